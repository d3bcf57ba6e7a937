"""Steps as they are told to readers of events: each event a line, encoded once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from events.chain import RecordedStep
from events.cloudevents import rfc3339
from events.vocabulary import AnyEvent
from replays.history.about import About

_encoder = msgspec.json.Encoder()


class ToldEvent(Struct, frozen=True, kw_only=True):
    """An event as it is sent, and as `evsched log show --json` prints it: with the time and number of its frame."""

    time: int
    frame: int
    event: AnyEvent


class ServerSentEvent(Struct, frozen=True, kw_only=True):
    """A message of an event stream (HTML, "Server-sent events").

    Attributes:
        id: The ``seq`` that it tells of; a reader that comes back names it as ``Last-Event-ID``.
        event: What it is.
        data: A JSON document.
    """

    id: str
    event: str
    data: str


class Line(NamedTuple):
    """One event, encoded.

    Attributes:
        data: A `ToldEvent` as JSON.
    """

    seq: int
    kind: str
    data: bytes


class EventsWanted(Struct, frozen=True, kw_only=True):
    """Which events are wanted.

    Attributes:
        types: Of these types; empty: of all.
        queue: About this queue or one below it; None: about any, or none.
        application: About this application; None: the same.
    """

    types: frozenset[str] = frozenset()
    queue: str | None = None
    application: str | None = None

    @property
    def narrow(self) -> bool:
        """Whether what an event is about matters."""
        return self.queue is not None or self.application is not None


class ToldStep:
    """A step, with what its events are about.

    Attributes:
        first, last: The ``seq`` of its first and last event.
        time: Of its frame.
    """

    __slots__ = ("_lines", "abouts", "events", "first", "frame", "last", "time")

    def __init__(self, step: RecordedStep, abouts: Sequence[About] | None) -> None:
        """Take a step; ``abouts`` are of its events, None: they do not matter to whoever reads."""
        self.events = step.events
        self.last = step.head.next_seq - 1
        self.first = self.last - len(step.events) + 1
        self.time = step.time
        self.frame = step.head.frame
        self.abouts = abouts
        self._lines: list[Line] | None = None

    @property
    def lines(self) -> list[Line]:
        """Every event as it is sent."""
        if self._lines is None:
            self._lines = [
                Line(
                    event.seq,
                    type(event).__name__,
                    _encoder.encode(ToldEvent(time=self.time, frame=self.frame, event=event)),
                )
                for event in self.events
            ]
        return self._lines

    def wanted(self, wanted: EventsWanted, after: int, until: int | None) -> list[Line]:
        """Return the lines of the events that are wanted, of those behind ``after`` and up to ``until`` (None: all)."""
        found = []
        for number, line in enumerate(self.lines):
            if line.seq <= after or (until is not None and line.seq > until):
                continue
            if wanted.types and line.kind not in wanted.types:
                continue
            if wanted.narrow:
                assert self.abouts is not None
                if not self.abouts[number].touches(wanted.queue, wanted.application):
                    continue
            found.append(line)
        return found


def as_sse(lines: Sequence[Line]) -> bytes:
    """Return lines as server-sent events: the id is the ``seq``, the event's name its type."""
    return b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n" % (line.seq, line.kind.encode(), line.data)
        for line in lines
    )


def as_ndjson(lines: Sequence[Line]) -> bytes:
    """Return lines as JSON, a document a line."""
    return b"".join(line.data + b"\n" for line in lines)


class CloudEvent(Struct, frozen=True, kw_only=True):
    """An event as a CloudEvent 1.0 in JSON.

    Attributes:
        id: ``LOG_ID/SEQ``.
        sequence: The ``seq`` in twenty digits, so that it sorts as text (CloudEvents, "Sequence").
        data: The event.
    """

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str = "application/json"
    sequence: str
    data: msgspec.Raw


class _TimedEvent(Struct):
    time: int
    event: msgspec.Raw


def cloud_events(lines: Sequence[Line], log_id: str, partition: int) -> list[CloudEvent]:
    """Return lines as CloudEvents."""
    found = []
    for line in lines:
        told = msgspec.json.decode(line.data, type=_TimedEvent)
        found.append(
            CloudEvent(
                id=f"{log_id}/{line.seq}",
                source=f"/evsched/{log_id}",
                type=f"evsched.event.{line.kind}",
                subject=str(partition),
                time=rfc3339(told.time),
                sequence=f"{line.seq:020d}",
                data=told.event,
            )
        )
    return found

"""The chain of frames: who may write what next, and what a reader believes.

Pure: bytes and positions in, complete steps out. A log is ordered and only grows, but it is not
trusted: several processes may believe that they lead, and disks and people alter things. Every
reader decides by the same rules, so all of them see the same history:

1. The first frame of a term is a *fence*: one LeaderStarted, the term one higher than before,
   following the last accepted frame. It owns the term.
2. A frame of a lower term, or of the same term by another leader, is *stale*: ignored, and no part
   of the chain.
3. A fence that was built on an older head than the one it met has *lost its race*: ignored too. So
   is a second genesis frame, whatever its log_id.
4. Everything else must follow exactly: log_id, number, hash of the frame before, time, ``seq``.
   What does not is a damaged log, and the reader stops there.

``inbox_next`` counts in the inbox that the log names, and never goes back there. Only an
InboxAttached, alone in its step, begins another count.

A step that was cut into several frames counts when its last frame is there. When a fence comes
first, its beginning is forgotten: those frames stay in the chain (the next one carries the hash of
the last of them), but their events never happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from events.bounds import MAX_FRAME_BYTES
from events.errors import LogDamaged, WrittenByNewer
from events.frame import (
    UNREADABLE,
    Frame,
    FrameOutline,
    attachment,
    decode_event,
    decode_frame,
    decode_outline,
    encode_event,
    encode_frame,
    frame_hash,
    is_fence,
    unknown_event,
)
from events.proof import proved
from events.vocabulary import AnyEvent, LeaderStarted

FRAGMENT_CHARACTERS = 80_000
"""Characters of one fragment: a character takes at most six bytes in JSON, so a fragment always fits into a frame."""

_FRAME_RESERVE = 256
"""Bytes kept free in a frame of a cut step: its number may need more digits than that of the frame measured."""


class Head(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of what a reader has accepted, after a complete step. A snapshot keeps it and starts again from it.

    Attributes:
        frame: Number of the last accepted frame, 0 at the start.
        hash: Hash of its bytes.
        position: Its position in the log, -1 at the start.
        time: Of the last frame; no later frame may be earlier.
        next_seq: ``seq`` of the next event.
        inbox_next: Position of the next proposal to read.
        inbox: Id of the inbox in which it counts; empty when the log does not name it.
    """

    log_id: str = ""
    term: int = 0
    leader: str = ""
    frame: int = 0
    hash: str = ""
    position: int = -1
    time: int = 0
    next_seq: int = 1
    inbox_next: int = 0
    inbox: str = ""


START = Head()
"""The head of an empty log."""


class RecordedStep(NamedTuple):
    """One complete step as it stands in the log.

    Attributes:
        head: The head of the log after this step.
        time: When it was taken, milliseconds.
        decided: Whether it decided.
        events: What it brought, in the order of their ``seq``.
    """

    head: Head
    time: int
    decided: bool
    events: tuple[AnyEvent, ...]


class Sealed(NamedTuple):
    """A frame that is ready to be written.

    Attributes:
        data: Its bytes.
        hash: Their hash.
    """

    frame: Frame
    data: bytes
    hash: str


class Ignored(NamedTuple):
    """A frame that readers pass over.

    Attributes:
        reason: Which rule made it void.
    """

    position: int
    term: int
    leader: str
    reason: str


class ChainReader:
    """Reads a log record by record and hands out the steps that count.

    Attributes:
        tip: The last accepted frame, which may be in the middle of a step.
        ignored: How many frames were passed over.
        last_ignored: The latest of them, for an alarm; None when there was none.
        release: Which release leads, as its fence says; empty: one from before fences named it;
            None: the fence lies before the place where this reader began.
    """

    def __init__(self, head: Head = START) -> None:
        """Start at the beginning, or behind a head that was kept; the caller makes sure that the log still holds that frame."""
        self.tip = head
        self.ignored = 0
        self.last_ignored: Ignored | None = None
        self.release: str | None = None if head.frame else ""
        self._head = head
        self._parts: list[Frame] = []
        self._events: list[AnyEvent] = []
        self._text: list[str] = []

    @property
    def head(self) -> Head:
        """The end of the last complete step."""
        return self._head

    @property
    def unfinished(self) -> bool:
        """Whether the log ends in the middle of a step."""
        return bool(self._parts)

    def accept(self, data: bytes, position: int) -> RecordedStep | None:
        """Take the next record of the log and return the step that it completes, None when it completes none.

        Raises:
            LogDamaged: The record cannot stand here.
            WrittenByNewer: It may, and a newer release wrote into it what this one does not know.
        """
        try:
            frame = decode_frame(data)
        except UNREADABLE as error:
            self._pass_over(data, position, error)
            return None
        if frame.requires:
            self._pass_over(data, position, None)
            return None
        return self.take(frame, frame_hash(data), position)

    def _pass_over(self, data: bytes, position: int, error: Exception | None) -> None:
        """Pass over a frame that cannot be read when it is void; raise what is wrong with any other.

        Only a frame that follows the last one by its hash was written by a leader of this log, and
        what this release does not know in it may be newer. It is damage when that leader is of a
        release that wrote no such thing, as is anything else.
        """
        try:
            outline = decode_outline(data)
        except UNREADABLE:
            raise LogDamaged(position, f"no frame can be read: {error}") from error
        void = self._void(outline)
        if void:
            self.ignored += 1
            self.last_ignored = Ignored(position, outline.term, outline.leader, void)
            return
        if outline.unknown and outline.prev == self.tip.hash and self.release != "":
            raise WrittenByNewer(outline.unknown, position, self.release or "") from error
        raise LogDamaged(position, f"no frame can be read: {error}") from error

    def take(self, frame: Frame, digest: str, position: int) -> RecordedStep | None:
        """Do as `accept` does with a frame that is decoded already; ``digest`` is the hash of its bytes."""
        if position <= self.tip.position:
            raise LogDamaged(position, f"comes after position {self.tip.position}")
        void = self._void(frame)
        if void:
            self.ignored += 1
            self.last_ignored = Ignored(position, frame.term, frame.leader, void)
            return None
        self._follows(frame, position)
        inbox = self.tip.inbox
        if frame.term > self.tip.term:
            inbox = self._begin_term(frame, position) or inbox
        elif (attached := attachment(frame)) is not None:
            inbox = attached.inbox
        next_seq = self._collect(frame, position)
        self.tip = Head(
            log_id=frame.log_id,
            term=frame.term,
            leader=frame.leader,
            frame=frame.frame,
            hash=digest,
            position=position,
            time=frame.time,
            next_seq=next_seq,
            inbox_next=frame.inbox_next,
            inbox=inbox,
        )
        return self._complete(frame) if frame.last else None

    def _void(self, frame: Frame | FrameOutline) -> str:
        """Return why readers pass over this frame (rules 2 and 3), an empty text when they do not."""
        tip = self.tip
        if tip.frame == 0:
            return ""
        own = frame.term == tip.term and frame.leader == tip.leader
        if frame.term == 1 and frame.frame == 1 and not frame.prev and not own:
            return "another frame began this log"
        if frame.log_id != tip.log_id:
            return ""
        if frame.term < tip.term:
            return f"term {frame.term} was superseded by term {tip.term}"
        if frame.term == tip.term and not own:
            return f"term {frame.term} is owned by leader {tip.leader}"
        raced = frame.term == tip.term + 1 and frame.frame <= tip.frame
        if raced and isinstance(frame, Frame) and is_fence(frame):
            return f"fence of term {frame.term} met frame {tip.frame}, it was built on frame {frame.frame - 1}"
        return ""

    def _follows(self, frame: Frame, position: int) -> None:
        """Raise LogDamaged unless the frame follows the tip (rule 4)."""
        tip = self.tip
        if tip.frame and frame.log_id != tip.log_id:
            raise LogDamaged(position, f"frame of log {frame.log_id}, this is log {tip.log_id}")
        if frame.frame != tip.frame + 1:
            raise LogDamaged(
                position,
                f"frame {frame.frame} found after frame {tip.frame}, expected {tip.frame + 1}",
            )
        if frame.prev != tip.hash:
            raise LogDamaged(
                position,
                f"frame {frame.frame} follows a frame of hash {frame.prev!r}, the one before has {tip.hash!r}",
            )
        if frame.term not in (tip.term, tip.term + 1):
            raise LogDamaged(
                position, f"frame {frame.frame}: term {frame.term} found after term {tip.term}"
            )
        if frame.time < tip.time:
            raise LogDamaged(
                position, f"frame {frame.frame}: time {frame.time} found after time {tip.time}"
            )
        attached = attachment(frame)
        if attached is not None and attached.position != frame.inbox_next:
            raise LogDamaged(
                position,
                f"frame {frame.frame}: inbox_next {frame.inbox_next}, its InboxAttached says {attached.position}",
            )
        if attached is None and frame.inbox_next < self._head.inbox_next:
            raise LogDamaged(
                position,
                f"frame {frame.frame}: inbox_next went back from {self._head.inbox_next} to {frame.inbox_next}",
            )

    def _begin_term(self, frame: Frame, position: int) -> str:
        """Take the fence of a new term and return the inbox that it names.

        The beginning of a step that nobody can finish any more is forgotten (rule 1).
        """
        if not frame.log_id or not frame.leader or not is_fence(frame):
            raise LogDamaged(
                position,
                f"frame {frame.frame}: the first of term {frame.term}, expected a LeaderStarted alone",
            )
        if frame.inbox_next != self._head.inbox_next:
            raise LogDamaged(
                position,
                f"frame {frame.frame}: inbox_next {frame.inbox_next} in a fence, expected {self._head.inbox_next}",
            )
        # A fence holds one LeaderStarted and nothing else.
        started: LeaderStarted = frame.events[0]  # type: ignore[assignment]
        self.release = started.release
        if started.inbox and self.tip.inbox not in ("", started.inbox):
            raise LogDamaged(
                position,
                f"frame {frame.frame}: its leader reads inbox {started.inbox}, the log {self.tip.inbox}",
            )
        self._parts, self._events, self._text = [], [], []
        self.tip = msgspec.structs.replace(self.tip, next_seq=self._head.next_seq)
        return started.inbox

    def _collect(self, frame: Frame, position: int) -> int:
        """Put the frame's events to the step that is being read and return the ``seq`` that comes next."""
        if self._parts:
            first = self._parts[0]
            if (frame.time, frame.decided, frame.inbox_next) != (
                first.time,
                first.decided,
                first.inbox_next,
            ):
                raise LogDamaged(
                    position,
                    f"frame {frame.frame}: is not of the step that frame {first.frame} began",
                )
        events = frame.events
        if frame.fragment or self._text:
            events = self._join(frame, position)
        expected = self.tip.next_seq
        for event in events:
            if event.seq != expected:
                raise LogDamaged(
                    position, f"frame {frame.frame}: event {event.seq} found, expected {expected}"
                )
            expected += 1
        if not frame.last:
            self._parts.append(frame)
        if self._parts:
            self._events.extend(events)
        return expected

    def _join(self, frame: Frame, position: int) -> tuple[AnyEvent, ...]:
        """Return the event that this fragment completes."""
        if not frame.fragment or frame.events or (frame.last and not frame.fragment_ends):
            raise LogDamaged(position, f"frame {frame.frame}: the pieces of an event do not go on")
        self._text.append(frame.fragment)
        if not frame.fragment_ends:
            return ()
        text, self._text = "".join(self._text), []
        try:
            return (decode_event(text),)
        except UNREADABLE as error:
            unknown = unknown_event(text)
            if unknown and self.release != "":
                raise WrittenByNewer(unknown, position, self.release or "") from error
            raise LogDamaged(
                position, f"frame {frame.frame}: no event in its pieces: {error}"
            ) from error

    def _complete(self, frame: Frame) -> RecordedStep:
        """Return the step that this frame ends."""
        events = frame.events
        if self._parts:
            events = tuple(self._events)
            self._parts, self._events = [], []
        elif frame.fragment:
            raise LogDamaged(
                self.tip.position,
                f"frame {frame.frame}: a piece of an event in a step of one frame",
            )
        self._head = self.tip
        return RecordedStep(self._head, frame.time, frame.decided, events)


def fence(reader: ChainReader, started: LeaderStarted, *, log_id: str, time: int) -> Sealed:
    """Return the frame that opens the next term after everything that a reader has accepted.

    Args:
        reader: Has read to the end of the log.
        started: What it holds, its leader a random id that was never used before; ``seq`` and
            ``term`` are given here.
        log_id: Random id for the log, used when it is empty.
        time: Now, milliseconds; the head's time when that is later.
    """
    tip, step = reader.tip, reader.head
    term = tip.term + 1
    event = msgspec.structs.replace(started, seq=step.next_seq, term=term)
    return _seal(
        Frame(
            log_id=tip.log_id or log_id,
            term=term,
            leader=event.leader,
            frame=tip.frame + 1,
            prev=tip.hash,
            time=max(time, tip.time),
            decided=False,
            inbox_next=step.inbox_next,
            events=(event,),
        )
    )


def cut_into_frames(
    head: Head,
    events: tuple[AnyEvent, ...],
    *,
    time: int,
    decided: bool,
    inbox_next: int,
    limit: int = MAX_FRAME_BYTES,
) -> tuple[Sealed, ...]:
    """Return the frames of one step, each of at most ``limit`` bytes, all but the last with ``last=False``.

    Args:
        head: What the step follows; its term and leader write the step.
        events: With their ``seq``, the first of them ``head.next_seq``.
        time: Milliseconds, not before the head's.
        decided: Whether the step decided.
        inbox_next: Position of the next proposal to read after this step.
        limit: Bytes; at least what a fragment needs (half a megabyte), smaller values are for tests
            with small events.

    Raises:
        StepUnprovable: No reader could read the step; nothing of it may be written.
    """
    whole = Frame(
        log_id=head.log_id,
        term=head.term,
        leader=head.leader,
        frame=head.frame + 1,
        prev=head.hash,
        time=time,
        decided=decided,
        inbox_next=inbox_next,
        events=events,
    )
    sealed = _seal(whole)
    if len(sealed.data) <= limit:
        return (sealed,)
    room = (
        limit
        - len(encode_frame(msgspec.structs.replace(whole, events=(), last=False, prev="0" * 32)))
        - _FRAME_RESERVE
    )
    pieces = list(_pieces(events, room))
    frames: list[Sealed] = []
    number, prev = whole.frame, head.hash
    for index, (group, fragment, ends) in enumerate(pieces):
        part = msgspec.structs.replace(
            whole,
            frame=number,
            prev=prev,
            events=group,
            fragment=fragment,
            fragment_ends=ends,
            last=index == len(pieces) - 1,
        )
        frames.append(_seal(part))
        number, prev = number + 1, frames[-1].hash
    return tuple(frames)


def _pieces(
    events: tuple[AnyEvent, ...], room: int
) -> Iterable[tuple[tuple[AnyEvent, ...], str, bool]]:
    """Yield what goes into each frame: events that fit together, or a fragment of one that does not and whether it ends it."""
    group: list[AnyEvent] = []
    used = 0
    for event in events:
        text = encode_event(event)
        if group and used + len(text) + 1 > room:
            yield tuple(group), "", False
            group, used = [], 0
        if len(text) + 1 > room:
            letters = text.decode()
            size = min(FRAGMENT_CHARACTERS, max(1, room // 6))
            for begin in range(0, len(letters), size):
                yield (), letters[begin : begin + size], begin + size >= len(letters)
            continue
        group.append(event)
        used += len(text) + 1
    if group:
        yield tuple(group), "", False


def _seal(frame: Frame) -> Sealed:
    data = proved(frame)
    return Sealed(frame, data, frame_hash(data))

"""A stretch of the log at a glance: how busy it was, what stands out, and what each leaf used.

Asked of a read model (`projections`), as an audit is: a log of a million events is drawn without being
read. The stretch is cut into buckets; what happened in a bucket is counted, what a leaf used is looked
up at its end, so a peak between two ends is not seen.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import aiosql
import msgspec
from msgspec import Struct

from projections import audit as ready
from replays.history.rows import ByResource

_queries = aiosql.from_path(
    Path(ready.__file__).parent / "sql" / "timeline.sql", "sqlite3", mandatory_parameters=False
)

MOST_BUCKETS = 2_000
MOST_LANES = 60
MOST_MARKS = 300
"""Of each kind."""


class TimelineQuestion(Struct, frozen=True, kw_only=True):
    """What happened between two events, in how many pieces?

    Attributes:
        start: The event before the stretch; 0: it begins with the log.
        end: Its last event; None: the last of the read model.
        buckets: Most pieces, 1 to `MOST_BUCKETS`.
        scale: Whether the pieces have about as many frames, or are of one length in time.
        lanes: Whether usage is wanted, and of which leaves: those in this queue; ``*``: all; empty:
            none.
    """

    start: int = 0
    end: int | None = None
    buckets: int = 240
    scale: Literal["events", "time"] = "events"
    lanes: str = ""


class Edge(Struct, frozen=True):
    """Where a bucket ends: an event, and the time of its frame (milliseconds)."""

    seq: int
    time: int


class Mark(Struct, frozen=True, kw_only=True):
    """An event that stands out.

    Attributes:
        kind: ``configuration`` or ``quota``.
        what: Id of its proposal; what was done: scheduled, cancelled, decided, unhelpful.
        queue: Whose quota; empty for a configuration.
    """

    seq: int
    time: int
    kind: Literal["configuration", "quota"]
    what: str
    queue: str = ""


class LimitsSince(Struct, frozen=True, kw_only=True):
    """What a leaf was guaranteed and could use at most, from an event on."""

    seq: int
    time: int
    guaranteed: ByResource
    maximum: ByResource


class Lane(Struct, frozen=True, kw_only=True):
    """What one leaf used and asked for at each edge.

    Attributes:
        used, pending: By resource, a number for each edge.
        waiting: How many asks waited, a number for each edge. An edge within a step has the amounts
            of the step before.
        limits: In force somewhere in the stretch, the oldest first.
    """

    queue: str
    used: dict[str, list[int]]
    pending: dict[str, list[int]]
    waiting: list[int]
    limits: list[LimitsSince]


class TimelineAnswer(Struct, frozen=True, kw_only=True):
    """A stretch of the log.

    Attributes:
        edges: The event before the stretch, then the last one of each bucket, ascending; fewer than
            asked for where there are fewer frames. A stretch that reaches beyond the read model ends
            with that.
        evictions: Allocations whose eviction was decided, a number for each bucket.
        refusals: Proposals that were refused, a number for each bucket.
        cut: Whether there are more marks or lanes than are told.
    """

    edges: list[Edge]
    evictions: list[int]
    refusals: list[int]
    marks: list[Mark]
    lanes: list[Lane]
    cut: bool


def timeline(path: Path, question: TimelineQuestion) -> TimelineAnswer:
    """Answer from the read model at ``path``, which is only read.

    Raises:
        ValueError: The stretch ends before it begins, or the number of buckets is out of bounds.
        sqlite3.Error: The file cannot be read.
    """
    if not 1 <= question.buckets <= MOST_BUCKETS:
        raise ValueError(f"buckets: found {question.buckets}, expected 1 to {MOST_BUCKETS}")
    if question.end is not None and question.end < question.start:
        raise ValueError(f"end: found {question.end}, expected at least start {question.start}")
    with closing(ready.connect(path)) as connection:
        edges = _edges(connection, question)
        pairs = [{"after": before.seq, "until": edge.seq} for before, edge in pairwise(edges)]
        stretch = {"after": edges[0].seq, "until": edges[-1].seq}
        marks, more_marks = _marks(connection, stretch)
        lanes, more_lanes = _lanes(connection, question.lanes, edges)
        return TimelineAnswer(
            edges=edges,
            evictions=[_queries.evictions(connection, **pair) for pair in pairs],
            refusals=[_queries.refusals(connection, **pair) for pair in pairs],
            marks=marks,
            lanes=lanes,
            cut=more_marks or more_lanes,
        )


class _Frame(NamedTuple):
    """A row of ``frames``: number, time, and the last event so far."""

    frame: int
    time: int
    seq: int


def _edges(connection: sqlite3.Connection, question: TimelineQuestion) -> list[Edge]:
    """Return the two ends of the stretch and between them ends of frames, no two at one place."""
    found = _queries.last_frame(connection)
    if found is None:
        return [Edge(0, 0)]
    last = _Frame(*found)
    end = last.seq if question.end is None else min(question.end, last.seq)
    start = min(question.start, end)
    low, high = (_frame_of(connection, seq, last) for seq in (start, end))
    edges = {start: low.time}
    for part in range(1, question.buckets):
        if question.scale == "events":
            place = low.frame + (high.frame - low.frame) * part // question.buckets
            frame = _Frame(*_queries.frame_at(connection, place=place))
        else:
            time = low.time + (high.time - low.time) * part // question.buckets
            frame = _Frame(*_queries.frame_by_time(connection, time=time))
        if start < frame.seq < end:
            edges[frame.seq] = frame.time
    edges[end] = high.time
    return [Edge(seq, time) for seq, time in sorted(edges.items())]


def _frame_of(connection: sqlite3.Connection, seq: int, last: _Frame) -> _Frame:
    """Return the first frame that reaches ``seq``.

    The numbers of events grow with those of frames, so the search halves. Of the numbers of frames
    some are not there: a step of several frames counts by its last.
    """
    low, high = 0, last.frame
    while low < high:
        middle = (low + high) // 2
        if _Frame(*_queries.frame_at(connection, place=middle)).seq >= seq:
            high = middle
        else:
            low = middle + 1
    return _Frame(*_queries.frame_at(connection, place=low))


def _marks(connection: sqlite3.Connection, stretch: dict[str, int]) -> tuple[list[Mark], bool]:
    """Return what stands out, oldest first, and whether there is more."""
    limit = MOST_MARKS + 1
    applied = list(_queries.configurations(connection, **stretch, limit=limit))
    acted = list(_queries.quota_actions(connection, **stretch, limit=limit))
    marks = [
        Mark(seq=seq, time=time, kind="configuration", what=proposal)
        for seq, time, proposal in applied[:MOST_MARKS]
    ]
    marks += [
        Mark(seq=seq, time=time, kind="quota", what=action, queue=queue)
        for seq, time, action, queue in acted[:MOST_MARKS]
    ]
    more = max(len(applied), len(acted)) > MOST_MARKS
    return sorted(marks, key=lambda mark: mark.seq), more


def _lanes(
    connection: sqlite3.Connection, wanted: str, edges: list[Edge]
) -> tuple[list[Lane], bool]:
    """Return the lanes of the leaves at the end of the stretch, by name, and whether there are more."""
    if not wanted:
        return [], False
    queue = None if wanted == "*" else wanted
    leaves = [
        name
        for (name,) in _queries.leaves(
            connection, until=edges[-1].seq, queue=queue, limit=MOST_LANES + 1
        )
    ]
    return [_lane(connection, leaf, edges) for leaf in leaves[:MOST_LANES]], len(
        leaves
    ) > MOST_LANES


def _lane(connection: sqlite3.Connection, queue: str, edges: list[Edge]) -> Lane:
    used: dict[str, list[int]] = {}
    pending: dict[str, list[int]] = {}
    waiting = [0] * len(edges)
    for number, edge in enumerate(edges):
        row = _queries.usage(connection, queue=queue, seq=edge.seq)
        if row is None:
            continue
        for series, text in ((used, row[0]), (pending, row[1])):
            for resource, amount in msgspec.json.decode(text).items():
                series.setdefault(resource, [0] * len(edges))[number] = amount
        waiting[number] = row[2]
    limits = [
        LimitsSince(
            seq=seq,
            time=time,
            guaranteed=msgspec.json.decode(guaranteed),
            maximum=msgspec.json.decode(maximum),
        )
        for seq, time, guaranteed, maximum in _queries.limits(
            connection, queue=queue, after=edges[0].seq, until=edges[-1].seq
        )
    ]
    return Lane(queue=queue, used=used, pending=pending, waiting=waiting, limits=limits)

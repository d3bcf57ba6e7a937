"""Whether a log holds together: its chain, its numbers, its terms, and every digest that it carries."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from events.chain import ChainReader, RecordedStep
from events.vocabulary import CheckpointRecorded, InboxAttached, LeaderStarted
from evsched.core.engine import Engine
from replays.checking.tail_check import TailCheck
from replays.history.rebuild import apply_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.streams.protocols import EventLog

MOST_IGNORED = 20
"""How many void frames are named; all are counted."""


class Term(Struct, frozen=True, kw_only=True):
    """Who led, and from when on."""

    term: int
    leader: str
    seq: int
    time: int


class Void(Struct, frozen=True, kw_only=True):
    """A frame that readers pass over, and by which rule."""

    position: int
    term: int
    leader: str
    reason: str


class ChainReport(Struct, kw_only=True):
    """What a log that holds together contains.

    Attributes:
        records: How many there are, void ones included.
        holes: Positions that hold no record (a broker may leave some).
        digests: How many checkpoints were compared with the state.
        uncompared: How many were not, because this release cannot make their record of the state.
        unfinished: Whether it ends in the middle of a step, which then never happened.
        ignored: How many frames are void; ``voids`` names the first of them.
        digest: Of the state at the end.
        hash: Of the last frame of the last complete step.
        inbox: Id of the inbox that the log reads; empty when it does not name it.
        inbox_next: Position of the next proposal to read there.
        attachments: Each time another inbox was attached.
    """

    log_id: str = ""
    records: int = 0
    frames: int = 0
    events: int = 0
    first_time: int = 0
    last_time: int = 0
    holes: int = 0
    digests: int = 0
    uncompared: int = 0
    unfinished: bool = False
    ignored: int = 0
    voids: list[Void] = []
    terms: list[Term] = []
    digest: str = ""
    hash: str = ""
    inbox: str = ""
    inbox_next: int = 0
    attachments: list[InboxAttached] = []


async def check_log(
    log: EventLog, progress: Callable[[int], None] | None = None, known: Iterable[str] = ()
) -> ChainReport:
    """Read a log to its end as it is now and return what it contains.

    Args:
        log: Any log, exported ones too.
        progress: Called with the position of every record.
        known: Hashes of ends of the log that were kept elsewhere.

    Raises:
        LogDamaged: It does not hold together; the error says where. An `events.errors.PositionLost`
            when a part of it is gone.
    """
    witness = TailCheck(await log.last_heartbeat(), known)
    report, reader, engine = ChainReport(), ChainReader(), Engine()
    last = -1
    async with aclosing(log.read()) as batches:
        async for batch in batches:
            for record in batch:
                report.records += 1
                report.holes += record.position - last - 1
                last = record.position
                step = reader.accept(record.data, record.position)
                _note_void(report, reader)
                if step is not None:
                    witness.see(step.head)
                    apply_step(engine, step)
                    _note(report, step)
                if progress is not None:
                    progress(record.position)
    witness.end(reader.head)
    head = reader.head
    report.log_id, report.frames, report.events, report.hash = (
        head.log_id,
        head.frame,
        head.next_seq - 1,
        head.hash,
    )
    report.inbox, report.inbox_next = head.inbox, head.inbox_next
    report.unfinished, report.digest = reader.unfinished, engine.state.digest()
    report.uncompared = engine.state.uncompared
    report.digests -= report.uncompared
    return report


def _note(report: ChainReport, step: RecordedStep) -> None:
    if not report.terms:
        report.first_time = step.time
    report.last_time = step.time
    for event in step.events:
        if type(event) is CheckpointRecorded:
            report.digests += 1
        elif type(event) is InboxAttached:
            report.attachments.append(event)
        elif type(event) is LeaderStarted:
            report.terms.append(
                Term(term=event.term, leader=event.leader, seq=event.seq, time=step.time)
            )


def _note_void(report: ChainReport, reader: ChainReader) -> None:
    if reader.ignored == report.ignored:
        return
    report.ignored = reader.ignored
    void = reader.last_ignored
    if void is not None and len(report.voids) < MOST_IGNORED:
        report.voids.append(
            Void(position=void.position, term=void.term, leader=void.leader, reason=void.reason)
        )

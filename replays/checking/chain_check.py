"""Whether a log holds together: its chain, its numbers, its terms, and every digest that it carries."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from events.chain import ChainReader, RecordedStep
from events.errors import LogDamaged
from events.vocabulary import CheckpointRecorded, InboxAttached, LeaderStarted
from evsched.core.engine import Engine
from evsched.core.tallies import uncounted
from replays.checking.tail_check import KnownEnds, TailCheck
from replays.history.parts import LogPart, PartOutcome, PartReading, Unfit, on_all_cores, parts_of
from replays.history.rebuild import History, apply_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from events.streams.protocols import EventLog
    from replays.history.parts import AllCores

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
    log: EventLog,
    progress: Callable[[int], None] | None = None,
    known: Iterable[str] = (),
    cores: AllCores | None = None,
) -> ChainReport:
    """Read a log to its end as it is now and return what it contains.

    Args:
        log: Any log, exported ones too.
        progress: Called with the position of every record that this process reads.
        known: Hashes of ends of the log that were kept elsewhere.
        cores: To read the parts between its snapshots on all cores; None: this process reads it.

    Raises:
        LogDamaged: It does not hold together; the error says where. An `events.errors.PositionLost`
            when a part of it is gone.
    """
    question = KnownEnds(await log.last_heartbeat(), tuple(known))
    parts = [] if cores is None else parts_of(cores, await History(log).log_id())
    if cores is not None and len(parts) > 1:
        try:
            found = await on_all_cores(cores, parts, check_part, question)
            return _whole(found, question)
        except (Unfit, LogDamaged) as error:
            cores.warn(f"one process reads all of the log: {error}")
    reading = PartReading(log, LogPart(0, None, None), Engine(), ChainReader())
    try:
        result = await check_part(reading, question, progress)
    except LogDamaged:
        # Once more with an eye on every tally: what cannot follow is found at its place.
        reading = PartReading(log, LogPart(0, None, None), Engine(), ChainReader())
        result = await _check(reading, question, progress)
    return _whole([PartOutcome(result, "", "", reading.reader.head)], question)


async def check_part(
    reading: PartReading, question: KnownEnds, progress: Callable[[int], None] | None = None
) -> tuple[ChainReport, tuple[str, ...]]:
    """Read a part of a log; return what it contains, and the hashes that it does not.

    Raises:
        LogDamaged: It does not hold together.
    """
    with uncounted(reading.engine.state):
        return await _check(reading, question, progress)


async def _check(
    reading: PartReading, question: KnownEnds, progress: Callable[[int], None] | None
) -> tuple[ChainReport, tuple[str, ...]]:
    reader, engine = reading.reader, reading.engine
    witness = TailCheck(question)
    report = ChainReport()
    last = reader.head.position
    async with aclosing(reading.log.read(after=last)) as batches:
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
                if reading.at_end(record.position):
                    return _ended(report, reading), witness.missing
    return _ended(report, reading), witness.missing


def _ended(report: ChainReport, reading: PartReading) -> ChainReport:
    """Complete the report of a part that was read to its end."""
    head, state = reading.reader.head, reading.engine.state
    report.log_id, report.frames, report.events, report.hash = (
        head.log_id,
        head.frame,
        head.next_seq - 1,
        head.hash,
    )
    report.inbox, report.inbox_next = head.inbox, head.inbox_next
    report.unfinished = reading.reader.unfinished
    report.digest = "" if reading.part.end is not None else state.digest()
    report.uncompared = state.uncompared
    report.digests -= report.uncompared
    return report


def _whole(outcomes: Sequence[PartOutcome], question: KnownEnds) -> ChainReport:
    """Return the report of all parts; raise `LogDamaged` when the log is not the one that was known."""
    reports: list[ChainReport] = [report for (report, _), *_ in outcomes]
    whole = reports[-1]
    for report in reversed(reports[:-1]):
        whole.records += report.records
        whole.holes += report.holes
        whole.digests += report.digests
        whole.uncompared += report.uncompared
        whole.ignored += report.ignored
        whole.voids = [*report.voids, *whole.voids][:MOST_IGNORED]
        whole.terms = [*report.terms, *whole.terms]
        whole.attachments = [*report.attachments, *whole.attachments]
        whole.first_time = report.first_time
    # A part that begins behind the frame of the heartbeat has nothing to compare it with.
    witness = TailCheck(question.not_in(left for (_, left), *_ in outcomes))
    head = outcomes[-1].head
    witness.see(head)
    witness.end(head)
    return whole


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

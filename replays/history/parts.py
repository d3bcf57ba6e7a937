"""A log read by all cores: parts that begin and end at snapshots, each read by a process of its own.

What a part says counts only when the parts hold together: the first begins with the log, each reads
up to the very frame at which the next one begins, and the state at its end has the digest of the
snapshot from which the next one goes on. So no snapshot is believed: it is found again by whoever
read up to it, and by induction all the way from the beginning of the log. Where anything is not as
it should be (a damaged log, a snapshot that does not fit), nothing of it is used, and one process
reads the log as if there were no snapshots: it finds what there is to find, and says it.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from events.chain import ChainReader, Head
from events.streams import open_log
from events.streams.reading import resume
from events.streams.security import KafkaSecurity
from evsched.core.engine import Engine
from evsched.core.record import RECORDS
from evsched.snapshots.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.sharedctypes import Synchronized, SynchronizedArray

    from events.streams.protocols import EventLog

LEAST_EVENTS = 50_000
"""A part is not shorter: a process of its own costs as much as reading some ten thousand events."""
LOOK_EVERY_S = 0.2
COLLECT_AFTER = 50_000
NONE = 2**31 - 1


class LogSource(NamedTuple):
    """How another process finds a log and its snapshots; arguments as of `events.streams.open_log`.

    Attributes:
        snapshots: Folder of those of this log.
    """

    url: str
    partition: int
    security: KafkaSecurity | None
    snapshots: Path


class AllCores(NamedTuple):
    """Leave to read a log on all cores.

    Attributes:
        source: Where other processes find it.
        warn: Hears why one process read it all the same.
        progress: Called now and then with the number of positions that were read.
    """

    source: LogSource
    warn: Callable[[str], None]
    progress: Callable[[int], None] | None = None


class LogPart(NamedTuple):
    """A part of a log.

    Attributes:
        number: 0, 1, 2, … in the order of the log.
        begin: Behind which frame; None: at the beginning of the log.
        end: Up to which frame; None: to the end of the log as it is now.
    """

    number: int
    begin: Head | None
    end: Head | None


class PartReading:
    """A part as it is being read, in the process that reads it.

    Attributes:
        engine: With the state before the next step; the task moves it on.
        reader: Stands there; the task moves it on.
    """

    def __init__(self, log: EventLog, part: LogPart, engine: Engine, reader: ChainReader) -> None:
        self.log = log
        self.part = part
        self.engine = engine
        self.reader = reader

    def at_end(self, position: int) -> bool:
        """Tell whether the part ends with the record at a position; note that it was read."""
        end = self.part.end
        if _signals is not None:
            _signals.read[self.part.number] = position + 1
        return end is not None and position >= end.position

    @property
    def decided_before(self) -> bool:
        """Whether an earlier part has found what was looked for, so that this one need not look."""
        return _signals is not None and _signals.found.value < self.part.number

    def found(self) -> None:
        """Say that what was looked for was found in this part."""
        if _signals is not None:
            with _signals.found.get_lock():
                _signals.found.value = min(_signals.found.value, self.part.number)


class PartTask(Protocol):
    """What is done with each part: a function of a module, as it is called in another process."""

    async def __call__(self, reading: PartReading, question: Any) -> Any:
        """Read a part to its end and return what was found, which can be pickled."""


class PartOutcome(NamedTuple):
    """What a process says of its part.

    Attributes:
        result: Of the task.
        began, ended: Digests of the state before and after; empty for none.
        head: Where it ended.
    """

    result: Any
    began: str
    ended: str
    head: Head


class Unfit(Exception):
    """The parts do not hold together, or one cannot be read; the message says why."""


class PartSignals(NamedTuple):
    """What the processes share.

    Attributes:
        read: By part, the position up to which it was read.
        found: Number of the first part that found what is looked for; `NONE`: none did.
    """

    read: SynchronizedArray[int]
    found: Synchronized[int]


_signals: PartSignals | None = None


def parts_of(cores: AllCores, log_id: str, each: int = 1) -> list[LogPart]:
    """Return the parts of a log that lie between its snapshots; one, where there are no snapshots to part it.

    Args:
        cores: Where they lie.
        log_id: Of the log; snapshots of others are passed over.
        each: How many parts a core is to have: several where one may take much longer than another.
    """
    heads = [
        header.head
        for header in SnapshotStore(cores.source.snapshots, cores.warn).headers()
        if header.head.log_id == log_id
    ]
    if not heads or core_count() == 1:
        return [LogPart(0, None, None)]
    wanted = max(heads[-1].next_seq // (core_count() * each), LEAST_EVENTS)
    cuts: list[Head] = []
    for head in heads:
        if head.next_seq - (cuts[-1].next_seq if cuts else 1) >= wanted:
            cuts.append(head)
    return [
        LogPart(number, begin, end)
        for number, (begin, end) in enumerate(zip([None, *cuts], [*cuts, None], strict=True))
    ]


def core_count() -> int:
    """Return how many processes may work at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def on_all_cores(
    cores: AllCores, parts: Sequence[LogPart], task: PartTask, question: Any
) -> list[PartOutcome]:
    """Let processes read the parts of a log, and return what came of each in their order.

    Args:
        cores: Where they find it.
        parts: All of them.
        task: What is done with each.
        question: For the task.

    Raises:
        Unfit: The parts do not hold together, or one cannot be read: read the log in one piece.
    """
    context = multiprocessing.get_context("spawn")
    signals = PartSignals(context.Array("q", len(parts)), context.Value("i", NONE))
    pool = ProcessPoolExecutor(
        min(core_count(), len(parts)), mp_context=context, initializer=_begin, initargs=(signals,)
    )
    try:
        futures = [pool.submit(_work, cores.source, part, task, question) for part in parts]
        waiting = {asyncio.wrap_future(future) for future in futures}
        while waiting:
            done, waiting = await asyncio.wait(
                waiting, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_EXCEPTION
            )
            for future in done:
                future.result()
            if cores.progress is not None:
                cores.progress(_positions(parts, signals))
    except (ValueError, BrokenExecutor) as error:
        raise Unfit(str(error)) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    outcomes = [future.result() for future in futures]
    hold_together(outcomes, signals.found.value)
    return outcomes


def _positions(parts: Sequence[LogPart], signals: PartSignals) -> int:
    begun = [0 if part.begin is None else part.begin.position + 1 for part in parts]
    return sum(max(0, read - begin) for read, begin in zip(signals.read[:], begun, strict=True))


def hold_together(outcomes: Sequence[PartOutcome], found: int) -> None:
    """Raise `Unfit` unless each part ends with the state in which the next one begins.

    Behind the part in which something was found nothing need fit: it is not looked at any more.
    """
    for number in range(min(len(outcomes) - 1, found)):
        if outcomes[number].ended != outcomes[number + 1].began:
            message = f"the snapshot of frame {outcomes[number].head.frame} does not hold the state that the log gives"
            raise Unfit(message)


# ------------------------------------------------------------------------------ in another process


def _begin(signals: PartSignals) -> None:
    """Keep what the processes share."""
    global _signals  # noqa: PLW0603 - what a process is given when it begins
    _signals = signals
    gc.set_threshold(COLLECT_AFTER)


def _work(source: LogSource, part: LogPart, task: PartTask, question: Any) -> PartOutcome:
    try:
        return asyncio.run(_read(source, part, task, question))
    except Exception as error:  # noqa: BLE001 - see below
        # Not every exception can travel; whoever reads the log in one piece meets it again.
        message = f"part {part.number}: {type(error).__name__}: {error}"
        raise ValueError(message) from None


async def _read(source: LogSource, part: LogPart, task: PartTask, question: Any) -> PartOutcome:
    """Read one part."""
    log = open_log(source.url, source.partition, source.security)
    try:
        engine, reader = Engine(), ChainReader()
        if part.begin is not None:
            state = SnapshotStore(source.snapshots, _refuse).state_at(part.begin)
            engine, reader = Engine(state), await resume(log, part.begin)
        began = engine.state.digest(max(RECORDS)) if part.begin is not None else ""
        result = await task(PartReading(log, part, engine, reader), question)
        head = reader.head
        if part.end is not None and head != part.end:
            _refuse(f"ends with frame {head.frame}, expected {part.end.frame}")
        ended = engine.state.digest(max(RECORDS)) if part.end is not None else ""
        return PartOutcome(result, began, ended, head)
    finally:
        await log.close()


def _refuse(reason: str) -> None:
    raise ValueError(reason)

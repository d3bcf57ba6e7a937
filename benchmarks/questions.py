"""What questions cost as the log grows: `explain`, `whatif` and `at` at sizes that double, each with its exponent.

The log is that of `benchmarks.looking_back`, and its last steps are taken by an engine, so that
deciding them again gives them again. Snapshots and the index of subjects lie beside it as `evsched
run` leaves them. Each question begins with nothing in memory, as a command does. The limit of a
question is restoring one snapshot, which none of them gets by without.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from time import process_time

from benchmarks.growth import exponent
from benchmarks.looking_back import FRAME_MS, percentile, records
from benchmarks.rows import Benchmark, Row, calm
from events.chain import ChainReader, RecordedStep
from events.configuration import YunikornSpec
from events.streams import open_streams
from events.streams.protocols import EventLog, Record
from events.vocabulary import AllocationReleased, AnyEvent, AskSubmitted, Proposal
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.tallies import uncounted
from evsched.service.rebuilding import SNAPSHOT_EVERY
from evsched.snapshots.store import Header, SnapshotStore
from evsched.snapshots.subjects import SubjectIndex
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.explaining.question import ExplainQuestion, explain
from replays.history.finding import lengthen
from replays.history.moments import Moment
from replays.history.rebuild import History, apply_step
from replays.history.sealing import Sealer

SIZES = (250_000, 500_000, 1_000_000, 2_000_000)
LAST = 60_000
"""So many events at the end are decided by an engine."""
TRIED = 50_000
ASKED = 25
GROUP = 200


class Site:
    """A log with what lies beside it."""

    def __init__(self, folder: Path, log: EventLog, events: int) -> None:
        """Begin with a log that is made already."""
        self.log = log
        self.events = events
        self.store = SnapshotStore(folder / "snapshots", print)
        self.index = SubjectIndex(folder / "snapshots", print)

    def history(self) -> History:
        """Return the past of the log as a command opens it."""
        return History(self.log, self.store, print, self.index)


async def made(folder: Path, log: EventLog, events: int) -> Site:
    """Write a log of so many events, its snapshots and its index."""
    site = Site(folder, log, events)
    engine, reader, last = Engine(), ChainReader(), 0
    group: list[Record] = []
    with uncounted(engine.state):
        for record in records(events - LAST):
            group.append(record)
            step = reader.accept(record.data, record.position)
            if step is not None:
                apply_step(engine, step)
                last = keep(site, engine, step, last)
            if len(group) == GROUP:
                await asyncio.gather(*(log.append(one.data) for one in group))
                group = []
    for record, step in decided(engine, reader, events):
        group.append(record)
        last = keep(site, engine, step, last)
    await asyncio.gather(*(log.append(one.data) for one in group))
    await lengthen(site.history())
    return site


def keep(site: Site, engine: Engine, step: RecordedStep, last: int) -> int:
    """Leave a snapshot when it is time; return the ``seq`` of the last one."""
    if step.head.next_seq - last <= SNAPSHOT_EVERY:
        return last
    site.store.save(Header(head=step.head), snapshot.encode(engine.state))
    return step.head.next_seq


def decided(
    engine: Engine, reader: ChainReader, events: int
) -> Iterable[tuple[Record, RecordedStep]]:
    """Yield the last steps: some asks come and some allocations end, and the engine decides."""
    sealer = Sealer(reader.head.log_id)
    sealer.reader = ChainReader(reader.head)
    running, number = list(engine.state.allocations), 10**9
    time = engine.state.time
    while engine.state.seq < events:
        time += FRAME_MS
        inputs: list[AskSubmitted | AllocationReleased] = []
        for one in range(30):
            number += 1
            resources = {"vcore": 1000 + 500 * (number % 4), "memory": 2**30}
            inputs.append(
                AskSubmitted(ask=f"task-{number}", application=f"app-{one}", resources=resources)
            )
            inputs.append(AllocationReleased(allocation=running.pop(), reason="completed"))
        events_of: tuple[AnyEvent, ...] = engine.step(time, [Proposal(input=one) for one in inputs])
        for record in sealer.seal(time, events_of):
            step = reader.accept(record.data, record.position)
            if step is not None:
                yield record, step


async def asked(question: Callable[[History], Awaitable[object]], site: Site) -> float:
    """Return the CPU milliseconds of one question by a process that knows nothing yet."""
    gc.collect()
    started = process_time()
    await question(site.history())
    return (process_time() - started) * 1000


async def explained(site: Site) -> float:
    """Return the 99th percentile of the milliseconds that explaining takes: any subject, half of them at any moment."""
    draw, took = Random(1), []
    for number in range(ASKED):
        moment = Moment() if number % 2 else Moment(seq=draw.randrange(site.events))
        subject = f"task-{draw.randrange(site.events // 3)}"
        question = ExplainQuestion(subject=subject, moment=moment)
        took.append(
            await asked(lambda history, question=question: explain(history, question), site)
        )
    return percentile(took, 99)


async def at_any_moment(site: Site) -> float:
    """Return the 99th percentile of the milliseconds to the state at a random moment."""
    draw, took = Random(2), []
    for _ in range(ASKED):
        moment = Moment(seq=draw.randrange(site.events))
        took.append(await asked(lambda history, moment=moment: history.at(moment), site))
    return percentile(took, 99)


async def tried(site: Site) -> float:
    """Return the milliseconds of a what-if over the last events, with the configuration in force."""
    spec = (await site.history().at(Moment())).state.configuration
    assert isinstance(spec, YunikornSpec)
    start = Moment(seq=site.events - TRIED)
    question = WhatIfQuestion(configurations=(spec,), start=start)
    return await asked(lambda history: what_if(history, question), site)


async def restored(site: Site) -> float:
    """Return the milliseconds of restoring the newest snapshot."""
    return await asked(lambda history: history.start(), site)


MEASURED: dict[str, tuple[Callable[[Site], Awaitable[float]], dict[int, float], float]] = {
    "explain any subject, p99": (explained, {SIZES[-1]: 1000}, 0.3),
    "whatif over the last 50,000 events": (tried, {SIZES[-1]: 2000}, 0.1),
    "state at a random moment, p99": (at_any_moment, {SIZES[-1]: 500}, 0.2),
}
"""Question to its measure, what it is to take at most by size, and how it may grow at most."""


def growing() -> Iterable[Row]:
    """Measure each question at each size."""
    found: dict[str, dict[int, float]] = {name: {} for name in MEASURED}
    limits = {}
    for events in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            limits[events] = asyncio.run(_measure(Path(folder), events, found))
    for name, (_, targets, steepest) in MEASURED.items():
        for events, value in found[name].items():
            yield Row(
                name=f"{name}, {events} events", value=value, unit="ms", better="less",
                target=targets.get(events), limit=limits[events], limit_name="restoring one snapshot",
            )  # fmt: skip
        yield Row(
            name=f"the exponent of that, {SIZES[0]} to {SIZES[-1]}", value=exponent(found[name]),
            unit="", better="less", target=steepest,
        )  # fmt: skip


async def _measure(folder: Path, events: int, found: dict[str, dict[int, float]]) -> float:
    async with open_streams(f"sqlite:///{folder / 'log.db'}") as streams:
        await streams.log.create()
        site = await made(folder, streams.log, events)
        with calm():
            for name, (measure, _, _) in MEASURED.items():
                found[name][events] = await measure(site)
            return await restored(site)


BENCHMARKS: dict[str, Benchmark] = {"growing": growing}

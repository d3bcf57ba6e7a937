"""What looking back costs at a million events: the read model, questions to it, and the state at a random moment.

The log: asks, bindings and releases over 5,000 nodes and 50 leaves, every 20th ask preempting
another; 100 events a frame, a frame every 250 ms of the log's time, which makes three quarters of
an hour. Limit of the rebuild: folding the same log without writing anything. Questions are put to
the file as `evsched audit` does, over a connection that is there, with random queues and windows;
time travel reads a log in SQLite from the newest snapshot before the moment, as `evsched at` does,
snapshots being as far apart as `evsched run` leaves them.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from time import process_time

import msgspec
from msgspec.structs import replace

from benchmarks.clusters import APPLICATIONS, LEAVES, PARENTS, START, cluster, leaf
from benchmarks.rows import Benchmark, Row, calm, measured
from events.chain import ChainReader, RecordedStep
from events.streams import open_streams
from events.streams.protocols import Record
from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AnyEvent,
    ApplicationPlaced,
    ApplicationSubmitted,
    AskSubmitted,
    LeaderStarted,
    PreemptionDecided,
    Victim,
)
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.service.rebuilding import SNAPSHOT_EVERY
from evsched.snapshots.store import Header, SnapshotStore
from projections import audit
from projections.read_model import Rebuild
from replays.history.moments import Moment
from replays.history.rebuild import History, apply_step
from replays.history.rows import document
from replays.history.sealing import Sealer
from replays.history.tabled import Narrowed, TabledMoment
from replays.history.views import View

EVENTS = 1_000_000
NODES = 5000
RUNNING = 50_000
FRAME = 100
FRAME_MS = 250
ONE_IN = 20
QUESTIONS = 40
"""How often each question is put."""
MOMENTS = 100
PAGE = 500
SUMS = frozenset({
    "usage-by-hour", "below-guarantee", "above-maximum", "who-preempts-whom", "fairness", "users-and-limits",
})  # fmt: skip
"""Questions that add up all that lies in a window: they cost what it holds."""


def eventful(events: int, running: int = RUNNING, waiting: int = 0) -> Iterator[AnyEvent]:
    """Yield the events of a log in which so many tasks run and so many wait at a time, its fence not included."""
    seq = 1
    queues: dict[str, str] = {}
    for proposed in cluster(NODES):
        seq += 1
        yield replace(proposed, seq=seq)
        if isinstance(proposed, ApplicationSubmitted):
            seq += 1
            queues[proposed.application] = proposed.queue
            yield ApplicationPlaced(
                seq=seq, cause=seq - 1, application=proposed.application, queue=proposed.queue
            )
    asked: deque[int] = deque()
    number = oldest = 0
    while seq < events:
        seq += 1
        yield _task(seq, number + len(asked))
        asked.append(seq)
        if len(asked) <= waiting:
            continue
        name, node = f"task-{number}", f"node-{number % NODES:05}"
        cause = asked.popleft()
        if number - oldest >= running:
            reason = "completed"
            if number % ONE_IN == 0:
                seq += 1
                victim = Victim(
                    id=f"task-{oldest}",
                    queue=queues[f"app-{oldest % APPLICATIONS}"],
                    reason=f"rule {number % 7}",
                )
                yield PreemptionDecided(
                    seq=seq,
                    cause=cause,
                    ask=name,
                    node=node,
                    victims=(victim,),
                    algorithm="guarantee",
                )
                reason = "preempted"
            seq += 1
            yield AllocationReleased(seq=seq, allocation=f"task-{oldest}", reason=reason)
            oldest += 1
        seq += 1
        yield AllocationBound(seq=seq, cause=cause, ask=name, node=node)
        number += 1


def _task(seq: int, number: int) -> AskSubmitted:
    return AskSubmitted(
        seq=seq,
        ask=f"task-{number}",
        application=f"app-{number % APPLICATIONS}",
        resources={"vcore": 1000 + 500 * (number % 4), "memory": 2**30},
        priority=number % 3,
    )


def records(events: int, running: int = RUNNING, waiting: int = 0) -> Iterator[Record]:
    """Yield the log as it is written."""
    sealer = Sealer("benchmark-log")
    yield from sealer.seal(
        START, (LeaderStarted(seq=1, term=1, leader="bench", checkpoint_every=0),)
    )
    batch: list[AnyEvent] = []
    time = START
    for event in eventful(events, running, waiting):
        batch.append(event)
        if len(batch) == FRAME:
            time += FRAME_MS
            yield from sealer.seal(time, tuple(batch))
            batch = []


def steps(written: Iterable[Record]) -> Iterator[RecordedStep]:
    """Yield the steps of a log that lies in memory."""
    reader = ChainReader()
    for record in written:
        step = reader.accept(record.data, record.position)
        if step is not None:
            yield step


def read_model() -> Iterable[Row]:
    """The read model of a million events, made anew, and every question put to it."""
    written = list(records(EVENTS))
    engine = Engine()
    with measured() as folding:
        for step in steps(written):
            apply_step(engine, step)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.db"
        model = Rebuild(path, "benchmark-log")
        with measured() as rebuilding:
            for step in steps(written):
                model.take(step)
            model.finish()
        assert model.state.digest() == engine.state.digest()
        yield Row(
            name=f"read model of {engine.state.seq} events made anew ({path.stat().st_size / 2**20:.0f} MiB)",
            value=rebuilding.seconds,
            unit="s",
            target=15,
            better="less",
            limit=folding.seconds,
            limit_name="folding alone",
        )
        del written, engine, model
        gc.collect()
        yield from questions(path)
        yield from pages(path)


def pages(path: Path) -> Iterable[Row]:
    """A page of each long list as of a random moment, from its first row or behind another page, as a server makes it."""
    draw = Random(1)
    views: tuple[View, ...] = ("nodes", "apps", "asks", "allocations")
    for view in views:
        took = []
        with calm():
            for _ in range(QUESTIONS):
                seq, after = draw.randrange(1, EVENTS), None
                for _ in range(2):
                    started = process_time()
                    with closing(audit.connect(path)) as connection:
                        wanted = Narrowed(after=after, limit=PAGE)
                        found = TabledMoment(connection, seq).page(view, wanted)
                        msgspec.json.encode([document(row) for row in found.rows])
                    took.append((process_time() - started) * 1000)
                    if found.more:
                        after = str(getattr(found.rows[-1], found.rows[-1].__struct_fields__[0]))
        yield Row(
            name=f"{PAGE} {view} as of a random moment of {EVENTS} events, p99",
            value=percentile(took, 99),
            unit="ms",
            target=20,
            better="less",
            note=f"p50 {percentile(took, 50):.1f}",
        )


def questions(path: Path) -> Iterable[Row]:
    """Each audit question with random queues, windows, moments and ids."""
    draw = Random(1)
    everything: list[float] = []
    with closing(audit.connect(path)) as connection, calm():
        for name in audit.questions():
            took = []
            for _ in range(QUESTIONS):
                scope = scope_of(draw)
                started = process_time()
                audit.ask_connected(connection, name, scope)
                took.append((process_time() - started) * 1000)
            if name not in SUMS:
                everything += took
            worst = f"worst {max(took):.1f}"
            yield Row(
                name=f"audit {name}, p50",
                value=percentile(took, 50),
                unit="ms",
                better="less",
                note=worst,
            )
    yield Row(
        name=f"audit, {len(audit.questions()) - len(SUMS)} questions at {EVENTS} events, p99",
        value=percentile(everything, 99),
        unit="ms",
        target=10,
        better="less",
        note=f"{len(everything)} random ones",
    )


def scope_of(draw: Random) -> audit.Scope:
    """Return what a question is narrowed to: half the time a leaf, else a parent or everything; a window of any length."""
    kind = draw.random()
    number = draw.randrange(PARENTS * LEAVES)
    queue = leaf(number) if kind < 0.5 else leaf(number).rpartition(".")[0] if kind < 0.75 else None
    first = draw.randrange(EVENTS)
    whole = draw.random() < 0.2
    return audit.Scope(
        queue=queue,
        first=0 if whole else first,
        end=audit.FOREVER if whole else draw.randrange(first, EVENTS + 1),
        seq=draw.randrange(EVENTS),
        of=f"task-{draw.randrange(EVENTS // 4)}",
        limit=100,
    )


def percentile(values: list[float], part: int) -> float:
    """Return the value that this many of a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * part // 100)]


def time_travel() -> Iterable[Row]:
    """The state at random moments of a million events, by ``seq`` and by time."""
    with tempfile.TemporaryDirectory() as folder:
        took = asyncio.run(_travel(Path(folder)))
    yield Row(
        name=f"state at a random moment of {EVENTS} events, p99",
        value=percentile(took, 99),
        unit="ms",
        target=500,
        better="less",
        note=f"p50 {percentile(took, 50):.0f}, snapshots {SNAPSHOT_EVERY} events apart",
    )


async def _travel(folder: Path) -> list[float]:
    store = SnapshotStore(folder / "snapshots", print)
    draw = Random(1)
    took = []
    async with open_streams(f"sqlite:///{folder / 'log.db'}") as streams:
        log = streams.log
        await log.create()
        engine, reader, last = Engine(), ChainReader(), 0
        group: list[Record] = []
        for record in records(EVENTS):
            group.append(record)
            step = reader.accept(record.data, record.position)
            if step is not None:
                apply_step(engine, step)
                if step.head.next_seq - last > SNAPSHOT_EVERY:
                    last = step.head.next_seq
                    data = snapshot.encode(engine.state)
                    store.save(Header(head=step.head), data)
            if len(group) == FRAME:
                await asyncio.gather(*(log.append(one.data) for one in group))
                group = []
        await asyncio.gather(*(log.append(one.data) for one in group))
        end = engine.state.time
        del engine
        with calm():
            for number in range(MOMENTS):
                seq, time = draw.randrange(1, EVENTS), draw.randrange(START, end)
                started = process_time()
                found = await History(log, store).at(
                    Moment(seq=seq) if number % 2 else Moment(time=time)
                )
                took.append((process_time() - started) * 1000)
                assert found.state.seq == seq or not number % 2
                # A command that travels does it once; the next one does not find the remains of the
                # last.
                del found
                gc.collect()
    return took


BENCHMARKS: dict[str, Benchmark] = {"read_model": read_model, "time_travel": time_travel}

"""For how long the event loop of a process stands still when a large state is encoded whole: heartbeats wait as long.

A member over streams in memory leads a cluster of 50,000 nodes. Beside it a task asks for a turn of
the loop every millisecond, and takes down the longest time without one: while the leader makes a
digest, while a follower compares it, and while a snapshot is made. It is waiting that is measured
here, by the clock on the wall, and a busy machine shows.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from benchmarks.rows import Benchmark, Row, calm
from benchmarks.service import cluster
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from events.vocabulary import AllocationRestored, AnyInput, NodeRegistered, NodeUpdated
from evsched.service.ending import ended
from evsched.service.environment import SystemClock
from evsched.service.leading import Pace
from evsched.service.member import Member
from evsched.service.rebuilding import Replica, Snapshots

NODES, RUNNING = 50_000, 100_000
AFTER = 2_000
"""Inputs after which the digest is due."""
ALONE = 50
"""Inputs of one proposal: few, so that the leader would take their step on the loop."""
TURN_S = 0.001
TARGET_MS = 50.0


def large() -> list[AnyInput]:
    """Return a cluster in which a lot runs."""
    capacity = {"vcore": 100_000, "memory": 1 << 38, "pods": 110}
    nodes = [
        NodeRegistered(node=f"large-{number:05}", capacity=capacity, labels={"zone": "a"})
        for number in range(NODES)
    ]
    running = [
        AllocationRestored(
            allocation=f"task-{number:06}",
            application="app",
            queue="root.a",
            node=f"large-{number % NODES:05}",
            resources={"vcore": 1000 + number % 7 * 100, "memory": 1 << 30},
            created=1,
        )
        for number in range(RUNNING)
    ]
    return [*cluster(), *nodes, *running]


class Turns:
    """How long the loop was busy at most between two turns.

    Attributes:
        longest: Milliseconds.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.longest = 0.0

    async def take(self) -> None:
        """Take turns until cancelled."""
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(TURN_S)
            self.longest = max(self.longest, (time.perf_counter() - asked - TURN_S) * 1000)


@asynccontextmanager
async def watched() -> AsyncIterator[Turns]:
    """Take turns as long as the body runs."""
    turns = Turns()
    task = asyncio.create_task(turns.take())
    try:
        yield turns
    finally:
        task.cancel()


async def taken(member: Member, holds: Callable[[Member], bool]) -> None:
    """Wait until this holds of a member."""
    while not holds(member):  # noqa: ASYNC110 - a state that the member changes
        await asyncio.sleep(TURN_S)


async def stalls() -> dict[str, float]:
    """Return the longest stalls, milliseconds, by what was done."""
    store = MemoryStore()
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    inputs = large()
    pace = Pace(checkpoint_every=len(inputs) + AFTER)
    member = Member(streams, SystemClock(), pace=pace)
    leading = asyncio.create_task(member.run())
    await streams.inbox.propose(inputs, "benchmark")
    await taken(member, lambda one: one.engine is not None and one.engine.state.seq > len(inputs))
    found: dict[str, float] = {}
    replica = Replica()
    await replica.catch_up(streams.log)

    async def leads() -> None:
        for number in range(0, AFTER + ALONE, ALONE):
            names = [f"large-{one:05}" for one in range(number, number + ALONE)]
            updates = [NodeUpdated(node=name, schedulable=True) for name in names]
            await streams.inbox.propose(updates, "benchmark")
            await asyncio.sleep(5 * TURN_S)
        await taken(member, lambda one: bool(one.engine and one.engine.state.last_checkpoint))

    async def during(name: str, work: Awaitable[None]) -> None:
        async with watched() as turns:
            await work
        found[name] = turns.longest

    await during("a leader's digest", leads())
    member.stop()
    await leading

    async def follows() -> None:
        following = asyncio.create_task(replica.keep_up(streams.log))
        end = await streams.log.end()
        while replica.reader.tip.position < end - 1:  # noqa: ASYNC110 - what the follower changes
            await asyncio.sleep(TURN_S)
        await ended(following)

    await during("a follower's digest", follows())
    with tempfile.TemporaryDirectory() as folder:
        snapshots = Snapshots(Path(folder), 1)
        await during("a snapshot", snapshots.save(replica))
        await snapshots.close()
    return found


def longest() -> Iterable[Row]:
    """Measure the longest stall of the loop by digests and snapshots of a large state."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with calm():
        found = asyncio.run(stalls())
    for name, value in found.items():
        yield Row(
            name=f"{name}, {NODES} nodes, {RUNNING} allocations: longest stall of the event loop",
            value=value,
            unit="ms",
            better="less",
            target=TARGET_MS,
            note="by the clock on the wall",
        )


BENCHMARKS: dict[str, Benchmark] = {"stalls": longest}

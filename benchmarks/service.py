"""From an input record on a real Kafka to the definite decision in the log, at a steady rate, seen from outside.

The service is a process of its own; this process proposes, follows the log, and takes the time from
handing a proposal to the client to reading the event that binds it. So it is waiting that is
measured here, by the clock on the wall, and a busy machine shows.

Limit: the same client at the same rate, in the same run, sending the same bytes to a topic and
reading them back: what Kafka and the client take once, where a decision takes it twice (inbox and
log).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, aclosing
from pathlib import Path

from benchmarks.rows import Benchmark, Row
from events.chain import ChainReader
from events.frame import encode_event
from events.streams import Streams, open_streams
from events.streams.reading import follow_steps
from events.vocabulary import (
    AllocationBound,
    AnyInput,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
)
from evsched.config import from_mapping
from tests.kafka.broker import own_broker
from tests.service.running import Running

RATE = 2000
"""Proposals a second."""
TICK_S = 0.005
WARM_S, MEASURED_S = 3.0, 10.0
DEADLINE_S = 60.0
NODES = 1000
P50_MS, P99_MS = 10.0, 30.0


def cluster() -> list[AnyInput]:
    """Return a queue, an application, and nodes with room for every ask of the run."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}
    (configuration,) = from_mapping(
        "yunikorn", {"partitions": [{"name": "default", "queues": [root]}]}, "benchmark"
    )
    nodes = [
        NodeRegistered(node=f"node-{number:04}", capacity={"vcore": 100_000})
        for number in range(NODES)
    ]
    return [
        ConfigurationApplied(configuration=configuration),
        *nodes,
        ApplicationSubmitted(application="app", queue="root.a"),
    ]


def asks() -> int:
    """Return how many asks there are."""
    return int((WARM_S + MEASURED_S) * RATE)


def ask(number: int) -> AskSubmitted:
    """Return an ask of one core."""
    return AskSubmitted(
        ask=f"task-{number}", application="app", resources={"vcore": 1000}, proposal=f"p-{number}"
    )


async def at_rate(streams: Streams, begun: dict[str, float]) -> None:
    """Propose asks at the rate, never waiting for an answer; take down when each was handed over."""
    number, start = 0, time.monotonic()
    under_way: set[asyncio.Task[tuple[int, ...]]] = set()
    while number < asks():
        batch = [
            ask(one) for one in range(number, min(asks(), round((time.monotonic() - start) * RATE)))
        ]
        number += len(batch)
        now = time.monotonic()
        for one in batch:
            begun[one.ask] = now
        if batch:
            task = asyncio.create_task(streams.inbox.propose(batch, "benchmark"))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.sleep(TICK_S)
    await asyncio.gather(*under_way)


async def decisions(url: str) -> list[float]:
    """Return how long each decision took, milliseconds, in the order of the asks, without those of the warm-up."""
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    async with asyncio.timeout(DEADLINE_S), open_streams(url) as streams:
        await streams.inbox.propose(cluster(), "benchmark")
        reader, proposing = ChainReader(), asyncio.create_task(at_rate(streams, begun))
        async with aclosing(follow_steps(streams.log, reader)) as batches:
            async for steps in batches:
                now = time.monotonic()
                for step in steps:
                    ended.update(
                        (event.ask, now)
                        for event in step.events
                        if isinstance(event, AllocationBound)
                    )
                if len(ended) == asks():
                    break
        await proposing
    return _measured(begun, ended)


async def bare(url: str) -> list[float]:
    """Return how long it takes to send such records with the same client and to read them back, milliseconds."""
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    async with asyncio.timeout(DEADLINE_S), open_streams(url) as streams:
        await streams.log.create()
        sending = asyncio.create_task(at_rate(streams, begun))
        position = 0
        while len(ended) < asks():
            found = await streams.inbox.read(position, wait_s=0.5)
            now = time.monotonic()
            ended.update(
                (one.input.ask, now) for one in found if isinstance(one.input, AskSubmitted)
            )
            position = found[-1].position + 1 if found else position
        await sending
    return _measured(begun, ended)


def _measured(begun: dict[str, float], ended: dict[str, float]) -> list[float]:
    first = min(begun.values()) + WARM_S
    return [(ended[name] - at) * 1000 for name, at in begun.items() if at >= first]


def percentile(values: list[float], percent: float) -> float:
    """Return the value that so many percent do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def latency() -> Iterable[Row]:
    """At 2,000 proposals a second: the median, and what one in a hundred exceeds."""
    with ExitStack() as stack:
        bootstrap = os.environ.get("EVSCHED_TEST_KAFKA", "")
        if not bootstrap:
            broker = own_broker()
            stack.callback(broker.stop)
            bootstrap = broker.bootstrap
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        name = f"bench-{uuid.uuid4().hex[:8]}"
        limit = asyncio.run(bare(f"kafka://{bootstrap}/{name}-bare"))
        url = f"kafka://{bootstrap}/{name}"
        service = Running(
            folder, "run", "--log", url, "--create-topics", "--partitions", "1", verbose=False
        )
        stack.callback(service.kill)
        service.start().wait_ready()
        found = asyncio.run(decisions(url))
        service.stop()
    size = len(encode_event(ask(0)))
    for percent, target in ((50, P50_MS), (99, P99_MS)):
        yield Row(
            name=f"input record on Kafka to definite decision, {RATE:,}/s, p{percent}",
            value=percentile(found, percent),
            unit="ms",
            target=target,
            better="less",
            limit=percentile(limit, percent),
            limit_name=f"idempotent send of {size} bytes and read back",
            note="seen from outside; by the clock on the wall",
        )


BENCHMARKS: dict[str, Benchmark] = {"latency": latency}

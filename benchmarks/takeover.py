"""How soon a standby decides after the leader was killed, on a log of a million events with 100,000 allocations.

Leader and standby are processes of one machine, as `evsched run` starts them. The leader is killed
(SIGKILL), a proposal is made at once, and the time is taken until a step of the next term that
answers it is read from the log. The killed process is started again as the next standby. It is
waiting that is measured here, by the clock on the wall, and a busy machine shows.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, aclosing
from pathlib import Path

from benchmarks.looking_back import records
from benchmarks.rows import Benchmark, Row
from events.chain import ChainReader
from events.streams import Streams, open_streams
from events.streams.reading import follow_steps, read_steps
from events.vocabulary import AskSubmitted
from tests.kafka.broker import own_broker
from tests.service.running import Running

EVENTS, RUNNING = 1_000_000, 100_000
KILLS = 3
GROUP = {"sqlite": 200, "kafka": 1}
"""Frames that are written at a time; on Kafka only one after the other keeps their order."""
READY_S = 300.0
TARGET_S = 1.0


async def write(streams: Streams, at_once: int) -> None:
    """Write the log, so many frames at once."""
    await streams.log.create()
    group: list[bytes] = []
    for record in records(EVENTS, RUNNING):
        group.append(record.data)
        if len(group) == at_once:
            await asyncio.gather(*map(streams.log.append, group))
            group = []
    await asyncio.gather(*map(streams.log.append, group))


async def until_both(pair: list[Running]) -> Running:
    """Return the one that leads, once the other one stands by."""
    async with asyncio.timeout(READY_S):
        while sorted(role for one in pair for role in one.roles().values()) != [
            "leading",
            "standby",
        ]:
            assert not any(one.over for one in pair), [one.said()[-500:] for one in pair]
            await asyncio.sleep(0.05)
    return next(one for one in pair if one.leading())


async def takeovers(url: str, folder: Path, stack: ExitStack) -> list[float]:
    """Return how many seconds each takeover took."""
    took: list[float] = []
    async with open_streams(url) as streams:
        await write(streams, GROUP[url.partition(":")[0]])
        pair = [
            Running(folder, "run", "--log", url, name=name, verbose=False)
            for name in ("first", "second")
        ]
        for one in pair:
            stack.callback(one.kill)
            one.start()
        reader = ChainReader()
        # What is there is read before anything is measured.
        async with aclosing(read_steps(streams.log, reader)) as batches:
            async for _ in batches:
                pass
        async with aclosing(follow_steps(streams.log, reader)) as batches:
            for number in range(KILLS):
                leader = await until_both(pair)
                begun = time.monotonic()
                leader.kill()
                name = f"after-{number}"
                proposed = AskSubmitted(ask=name, application="app-0", resources={"vcore": 1000})
                await streams.inbox.propose([proposed], "benchmark")
                async for steps in batches:
                    if any(getattr(e, "ask", "") == name for one in steps for e in one.events):
                        break
                took.append(time.monotonic() - begun)
                leader.start()
    return took


def takeover() -> Iterable[Row]:
    """Measure takeovers on SQLite and on Kafka: the longest of a few."""
    for kind in ("SQLite", "Kafka"):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = f"sqlite:///{folder / 'log.db'}"
            if kind == "Kafka":
                broker = own_broker()
                stack.callback(broker.stop)
                url = f"kafka://{broker.bootstrap}/takeover-{uuid.uuid4().hex[:8]}"
            took = asyncio.run(takeovers(url, folder, stack))
        yield Row(
            name=f"a standby decides after a kill, {EVENTS} events, {RUNNING} allocations, {kind}",
            value=max(took),
            unit="s",
            better="less",
            target=TARGET_S,
            note=f"the longest of {KILLS}; by the clock on the wall",
        )


BENCHMARKS: dict[str, Benchmark] = {"takeover": takeover}

"""The shell around the emulated agent: it reads the log, keeps the clock, and proposes.

What the agent owed when it was stopped it owes when it starts again, and because the ids of its proposals are made from what they
answer, it does not matter whether the last of them had arrived.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing, suppress

import structlog

from events.chain import ChainReader
from events.errors import EnvironmentFault, OutcomeUnknown
from events.streams import Streams
from events.streams.reading import follow_steps, read_steps
from evsched.service.emulate import SOURCE, Agent

AGAIN_S = 1.0
"""How long the agent waits after a proposal failed before it sends it again."""

BATCH = 500

_log = structlog.get_logger(__name__)


def wall_clock_ms() -> int:
    """Return the time, milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


async def emulate_on(streams: Streams, agent: Agent, now: Callable[[], int] = wall_clock_ms) -> None:
    """Follow the log and propose what the agent owes; never ends by itself.

    Args:
        streams: Of a cluster partition.
        agent: Has seen nothing yet.
        now: The clock, milliseconds since the epoch.
    """
    reader = ChainReader()
    async with aclosing(read_steps(streams.log, reader)) as batches:
        async for steps in batches:
            for step in steps:
                for event in step.events:
                    agent.take(event, step.time)
    changed = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(streams, reader, agent, changed))
        group.create_task(_answer(streams, agent, changed, now))


async def _follow(streams: Streams, reader: ChainReader, agent: Agent, changed: asyncio.Event) -> None:
    """Give the agent what is new in the log."""
    async with aclosing(follow_steps(streams.log, reader)) as batches:
        async for steps in batches:
            for step in steps:
                for event in step.events:
                    agent.take(event, step.time)
            changed.set()


async def _answer(streams: Streams, agent: Agent, changed: asyncio.Event, now: Callable[[], int]) -> None:
    """Propose what is due, then sleep until something else is, or the log says something new."""
    while True:
        changed.clear()
        owed = agent.owed(now())
        for begin in range(0, len(owed), BATCH):
            batch = owed[begin : begin + BATCH]
            while True:
                try:
                    await streams.inbox.propose(batch, SOURCE)
                    break
                except (EnvironmentFault, OutcomeUnknown) as error:
                    _log.warning("proposals may be lost, sending them again", count=len(batch), error=str(error))
                    await asyncio.sleep(AGAIN_S)
        due = agent.next_due()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(0, due - now()) / 1000):
                await changed.wait()

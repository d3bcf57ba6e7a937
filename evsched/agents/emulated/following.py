"""The shell around the emulated agent: it reads the log, keeps the clock, and proposes.

What the agent owed when it was stopped it owes when it starts again, and because the ids of its
proposals are made from what they answer, it does not matter whether the last of them had arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

import structlog

from events.chain import ChainReader, RecordedStep
from events.errors import EnvironmentFault, StreamError
from events.streams import Streams
from events.streams.reading import follow_steps, read_steps
from evsched.agents.emulated.agent import SOURCE, Agent
from evsched.agents.proposing import AGAIN_S, propose_all

_log = structlog.get_logger(__name__)


async def emulate_on(streams: Streams, agent: Agent, now: Callable[[], int]) -> None:
    """Follow the log and propose what the agent owes; never ends by itself.

    Args:
        streams: Of a cluster partition.
        agent: Has seen nothing yet.
        now: The time, milliseconds since the epoch.
    """
    reader = ChainReader()
    async with aclosing(read_steps(streams.log, reader)) as batches:
        async for steps in batches:
            _give(agent, steps)
    changed = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_follow(streams, reader, agent, changed))
            group.create_task(_answer(streams, agent, changed, now))
    except* StreamError as errors:
        # One of the two gave up and the other was cancelled, so there is one reason.
        reason = errors.exceptions[0]
    raise reason


async def _follow(
    streams: Streams, reader: ChainReader, agent: Agent, changed: asyncio.Event
) -> None:
    """Give the agent what is new in the log; one that cannot be reached is tried again."""
    while True:
        try:
            async with aclosing(follow_steps(streams.log, reader)) as batches:
                async for steps in batches:
                    _give(agent, steps)
                    changed.set()
        except EnvironmentFault as error:
            _log.warning("log not reached, following it again", error=str(error))
            await asyncio.sleep(AGAIN_S)


def _give(agent: Agent, steps: tuple[RecordedStep, ...]) -> None:
    for step in steps:
        for event in step.events:
            agent.take(event, step.time)


async def _answer(
    streams: Streams, agent: Agent, changed: asyncio.Event, now: Callable[[], int]
) -> None:
    """Propose what is due, then sleep until something else is, or the log says something new."""
    while True:
        changed.clear()
        await propose_all(streams.inbox, agent.owed(now()), SOURCE)
        due = agent.next_due()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(0, due - now()) / 1000):
                await changed.wait()

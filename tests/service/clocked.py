"""A leader over real streams whose clock is told."""

import asyncio

from events.chain import ChainReader
from events.streams import Leadership
from events.streams.leadership import Environment
from events.streams.reading import read_steps
from evsched.core.engine import Engine

START = 1_767_225_600_000


class Leader:
    """A leader of one cluster partition; a new one over the same streams is what a restart of the process makes."""

    def __init__(self, streams, term):
        self.streams, self.engine, self.term = streams, Engine(), term

    async def start(self, now):
        """Rebuild the state from the log and lead."""

        async def pause(lost):
            await asyncio.sleep(0)

        world = Environment(
            now=lambda: now, new_id=lambda: f"{self.streams.log.partition}-{self.term}", pause=pause
        )
        self.leadership = await Leadership.acquire(
            self.streams.log, ChainReader(), self._apply, world
        )

    def _apply(self, step):
        for event in step.events:
            self.engine.apply(event, step.time)

    async def happen(self, now, *inputs):
        """Propose these and take one step at this time; return its events."""
        await self.streams.inbox.propose(list(inputs), "test")
        found = await self.streams.inbox.read(self.leadership.head.inbox_next)
        until = found[-1].position + 1 if found else self.leadership.head.inbox_next
        events = self.engine.step(now, found)
        await self.leadership.append_step(
            events, time=self.leadership.stamp(now), decided=True, inbox_next=until
        )
        return events

    async def steps(self):
        """Return all steps of the log."""
        return [
            step async for batch in read_steps(self.streams.log, ChainReader()) for step in batch
        ]

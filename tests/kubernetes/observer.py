"""The leader of a log that is recorded: it takes what is proposed, decides nothing, and can be looked into."""

import asyncio
import time
from contextlib import suppress

from events.chain import ChainReader
from events.streams import Leadership, Streams
from events.streams.leadership import Environment
from evsched.core.engine import Engine


class Observer:
    """A leader.

    Attributes:
        engine: Its state.
        events: Everything that it has written.
    """

    def __init__(self, streams: Streams) -> None:
        """Lead nothing yet."""
        self.engine = Engine()
        self.events = []
        self._streams = streams
        self._task: asyncio.Task[None] | None = None
        self._stepped = asyncio.Event()

    async def start(self) -> None:
        """Make the log and lead it."""
        await self._streams.log.create()

        async def pause(lost):
            await asyncio.sleep(0)

        world = Environment(now=_now, new_id=lambda: f"id-{id(self)}", pause=pause)
        self._leadership = await Leadership.acquire(
            self._streams.log, ChainReader(), self._apply, world
        )
        self._task = asyncio.create_task(self._lead())

    async def stop(self) -> None:
        """Lead no longer."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def until(self, holds) -> None:
        """Return once something is true of the log."""
        while not holds():
            await self._stepped.wait()

    def _apply(self, step) -> None:
        for event in step.events:
            self.engine.apply(event, step.time)

    async def _lead(self) -> None:
        while True:
            head = self._leadership.head
            proposals = await self._streams.inbox.read(head.inbox_next, wait_s=1.0)
            if not proposals:
                continue
            now = self._leadership.stamp(_now())
            events = self.engine.step(now, proposals, decide=False)
            await self._leadership.append_step(
                events, time=now, decided=False, inbox_next=proposals[-1].position + 1
            )
            self.events += events
            self._stepped.set()
            self._stepped = asyncio.Event()


def _now() -> int:
    return time.time_ns() // 1_000_000

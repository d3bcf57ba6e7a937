"""Processes of a simulation: each has a clock of its own and streams that fail, hang or die with it.

Every call of a stream is a place where a process can be interrupted, before it takes effect and
after: killed (nothing of it ever happens again), paused (it goes on later and does not know), or
told that nobody knows whether a write arrived.
"""

import asyncio
from contextlib import suppress
from random import Random

from events.errors import OutcomeUnknown
from events.streams.leadership import Environment
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from evsched.service.leading import Pace
from evsched.service.member import Member
from tests.service.virtual import VirtualClock


class Process:
    """A process with one member.

    Attributes:
        clock: Its clock.
        member: What runs in it.
        alive: False once it was killed.
        paused: While it is set, every call of a stream waits.
        die_after: How many calls of streams it has left to live; None: any number.
        lose: Probability that an append is answered by `OutcomeUnknown`, arrived or not.
    """

    def __init__(
        self, store: MemoryStore, seed: int = 0, pace: Pace | None = None, **options
    ) -> None:
        self.clock = VirtualClock()
        self.alive = True
        self.paused = False
        self.die_after: int | None = None
        self.lose = 0.0
        self._random = Random(f"process {seed}")
        self._resumed = asyncio.Event()
        log, inbox = ProcessLog(store, self), ProcessInbox(store, self)
        self.member = Member(Streams(log, inbox), self.clock, pace=pace, **options)
        self.member._world = self._world()
        self.task = asyncio.create_task(self.member.run())

    def _world(self) -> Environment:
        """Return a world in which chance repeats itself."""

        async def pause(lost: int) -> None:
            await asyncio.sleep(self._random.uniform(0.02, 0.1) * lost)

        return Environment(
            now=self.clock.now,
            new_id=lambda: f"{self._random.getrandbits(128):032x}",
            pause=pause,
            observes=self.member._world.observes,
        )

    async def reach(self, *, write: bool = False) -> None:
        """Come to a place where the process can be interrupted."""
        await asyncio.sleep(0.001)
        if self.die_after is not None:
            self.die_after -= 1
            if self.die_after <= 0:
                self.alive = False
        if not self.alive:
            await asyncio.Event().wait()
        while self.paused:
            self._resumed.clear()
            await self._resumed.wait()
        if write and self._random.random() < self.lose:
            raise OutcomeUnknown("simulated", "the answer was lost")

    def resume(self) -> None:
        """Let a paused process go on."""
        self.paused = False
        self._resumed.set()

    async def kill(self) -> None:
        """Let nothing of it ever happen again, and clean up after it."""
        self.alive = False
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def stop(self) -> None:
        """End it in order."""
        self.member.stop()
        await self.task


class ProcessLog(MemoryLog):
    """The log as one process sees it."""

    def __init__(self, store: MemoryStore, process: Process) -> None:
        super().__init__(store)
        self._process = process

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`; fails before it is written, or after."""
        await self._process.reach(write=True)
        position = await super().append(data)
        await self._process.reach(write=True)
        return position

    async def end(self) -> int:
        """See `EventLog.end`."""
        await self._process.reach()
        return await super().end()

    async def heartbeat(self, beat) -> None:
        """See `EventLog.heartbeat`."""
        await self._process.reach()
        await super().heartbeat(beat)
        await self._process.reach()

    async def last_heartbeat(self):
        """See `EventLog.last_heartbeat`."""
        await self._process.reach()
        return await super().last_heartbeat()

    async def read(self, after=-1):
        """See `EventLog.read`."""
        await self._process.reach()
        async for batch in super().read(after):
            yield batch
            await self._process.reach()


class ProcessInbox(MemoryInbox):
    """The inbox as one process sees it."""

    def __init__(self, store: MemoryStore, process: Process) -> None:
        super().__init__(store)
        self._process = process

    async def end(self) -> int:
        """See `Inbox.end`."""
        await self._process.reach()
        return await super().end()

    async def read(self, position, limit=1000, wait_s=0.0):
        """See `Inbox.read`."""
        await self._process.reach()
        found = await super().read(position, limit, wait_s)
        await self._process.reach()
        return found

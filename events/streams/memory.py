"""Log and inbox in the memory of one process: for tests, simulations and demonstrations. Nothing survives the process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence

from events.cloudevents import InboxRecord, proposals, read_proposal
from events.errors import PositionLost
from events.streams.protocols import BEFORE_FIRST, Heartbeat, Record, Streams
from events.vocabulary import AnyInput, Proposal

BATCH = 1000


_made = itertools.count(1)


class MemoryStore:
    """What one cluster partition keeps; those that share it see the same streams.

    Attributes:
        log: Records in order; the index is the position.
        inbox: The same for proposals.
        inbox_id: Of the inbox; no other one of the process has it.
    """

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.inbox: list[InboxRecord] = []
        self.inbox_id = f"memory-{next(_made)}"
        self.beat: Heartbeat | None = None
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Let everyone look who waits for something new."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, at_most_s: float | None) -> None:
        """Return when something was written, or after this many seconds."""
        waiting = self._changed
        try:
            async with asyncio.timeout(at_most_s):
                await waiting.wait()
        except TimeoutError:
            return


_named: dict[tuple[str, int], MemoryStore] = {}


def open_memory(name: str, partition: int) -> Streams:
    """Return the streams of this name, the same for everyone in the process; without a name they are nobody else's."""
    store = _named.setdefault((name, partition), MemoryStore()) if name else MemoryStore()
    return Streams(MemoryLog(store, partition), MemoryInbox(store, partition))


class MemoryLog:
    """An `EventLog` in memory."""

    def __init__(self, store: MemoryStore, partition: int = 0) -> None:
        self.store = store
        self.partition = partition
        self.name = f"memory/{partition}"

    async def create(self) -> None:
        """Do nothing: it is there."""

    async def check(self) -> None:
        """Do nothing: there is nothing to set up."""

    async def read(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`."""
        _must_exist(after, len(self.store.log))
        end = len(self.store.log)
        for begin in range(after + 1, end, BATCH):
            stop = min(begin + BATCH, end)
            yield [
                Record(begin + index, data) for index, data in enumerate(self.store.log[begin:stop])
            ]
            await asyncio.sleep(0)

    async def follow(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.follow`."""
        while True:
            async for batch in self.read(after):
                yield batch
                after = batch[-1].position
            if after + 1 >= len(self.store.log):
                await self.store.changed(None)

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        position = len(self.store.log)
        self.store.log.append(data)
        self.store.wake()
        await asyncio.sleep(0)
        return position

    async def end(self) -> int:
        """See `EventLog.end`."""
        return len(self.store.log)

    async def heartbeat(self, beat: Heartbeat) -> None:
        """See `EventLog.heartbeat`."""
        self.store.beat = beat

    async def last_heartbeat(self) -> Heartbeat | None:
        """See `EventLog.last_heartbeat`."""
        return self.store.beat

    async def clock(self) -> None:
        """See `EventLog.clock`: there is none."""

    async def close(self) -> None:
        """Do nothing."""


class MemoryInbox:
    """An `Inbox` in memory."""

    def __init__(self, store: MemoryStore, partition: int = 0) -> None:
        self.store = store
        self.partition = partition
        self.name = f"memory/{partition}"

    async def propose(self, inputs: Sequence[AnyInput], source: str = "") -> tuple[int, ...]:
        """See `Inbox.propose`."""
        return await self.put(proposals(inputs, source))

    async def put(self, records: Sequence[InboxRecord]) -> tuple[int, ...]:
        """See `Inbox.put`."""
        begin = len(self.store.inbox)
        self.store.inbox.extend(records)
        self.store.wake()
        await asyncio.sleep(0)
        return tuple(range(begin, begin + len(records)))

    async def read(
        self, position: int, limit: int = 1000, wait_s: float = 0.0
    ) -> tuple[Proposal, ...]:
        """See `Inbox.read`."""
        _must_exist(position - 1, len(self.store.inbox))
        if position >= len(self.store.inbox) and wait_s > 0:
            await self._arrival(position, wait_s)
        return tuple(
            read_proposal(record, position + index)
            for index, record in enumerate(self.store.inbox[position : position + limit])
        )

    async def _arrival(self, position: int, wait_s: float) -> None:
        deadline = asyncio.get_running_loop().time() + wait_s
        while position >= len(self.store.inbox):
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            await self.store.changed(left)

    async def end(self) -> int:
        """See `Inbox.end`."""
        return len(self.store.inbox)

    async def identity(self) -> str:
        """See `Inbox.identity`."""
        return self.store.inbox_id

    async def close(self) -> None:
        """Do nothing."""


def _must_exist(position: int, end: int) -> None:
    if position >= end:
        raise PositionLost(position, f"the stream ends at {end}")

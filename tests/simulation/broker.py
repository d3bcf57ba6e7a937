"""A broker as a process meets it at the end of a line that is slow, cut, half-open, or forgets answers.

The broker keeps one cluster partition: log, inbox, and the last heartbeat. A write whose answer is
missing may have been written, not written, or be written seconds later, also when its writer is
long gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

from events.cloudevents import InboxRecord, proposals, read_proposal
from events.errors import AppendRefused, LogUnreachable, OutcomeUnknown, PositionLost
from events.streams.protocols import Heartbeat, Record
from tests.service.virtual import START_MS
from tests.simulation.loop import outside

T = TypeVar("T")

TIMEOUT_S = 1.5
"""How long a client waits for an answer."""
LATEST_S = 6.0
"""How late a write can arrive whose answer its writer no longer waits for."""
PROMPT_S = 0.003
"""The longest time of one way over a line that is well."""
BATCH = 40
POLL_S = 0.4


class Broker:
    """What is kept.

    Attributes:
        log: Records by position.
        arrived: When each was written, virtual seconds.
        backlog: How many proposals there were then.
        inbox: Proposals by position.
        beat: The last heartbeat.
    """

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.arrived: list[float] = []
        self.backlog: list[int] = []
        self.inbox: list[InboxRecord] = []
        self.beat: Heartbeat | None = None
        self._changed = asyncio.Event()

    def now(self) -> int:
        """Return the time by the broker's clock, which is right."""
        return START_MS + round(asyncio.get_running_loop().time() * 1000)

    def write(self, data: bytes) -> int:
        """Keep a record of the log and return its position."""
        self.log.append(data)
        self.arrived.append(asyncio.get_running_loop().time())
        self.backlog.append(len(self.inbox))
        self.wake()
        return len(self.log) - 1

    def put(self, records: list[InboxRecord]) -> tuple[int, ...]:
        """Keep proposals and return their positions."""
        begin = len(self.inbox)
        self.inbox.extend(records)
        self.wake()
        return tuple(range(begin, len(self.inbox)))

    def lose_tail(self, records: int) -> None:
        """Lose the last records of the log: a replica that lagged behind became the leader."""
        for kept in (self.log, self.arrived, self.backlog):
            del kept[len(kept) - records :]

    def keep(self, beat: Heartbeat) -> None:
        """Keep a heartbeat."""
        self.beat = beat

    def wake(self) -> None:
        """Let everyone look who waits for something new."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, seconds: float) -> None:
        """Return when something was written, or after this many seconds."""
        waiting = self._changed
        try:
            async with asyncio.timeout(seconds):
                await waiting.wait()
        except TimeoutError:
            return


class Line:
    """The way between one process and the broker.

    Attributes:
        cut: Nothing arrives.
        half_open: Requests arrive, answers do not.
        delay: Longest time of one way, seconds.
        lose: Probability that the answer to a write is lost.
        refuse: Probability that a write is refused.
    """

    def __init__(self, dice: Random) -> None:
        self.cut = self.half_open = False
        self.delay, self.lose, self.refuse = PROMPT_S, 0.0, 0.0
        self._dice = dice

    def heal(self) -> None:
        """Work as a line should."""
        self.cut = self.half_open = False
        self.delay, self.lose, self.refuse = PROMPT_S, 0.0, 0.0

    async def ask(self, effect: Callable[[], T]) -> T:
        """Ask the broker for something that changes nothing."""
        await self._way()
        if self.cut or self.half_open:
            await asyncio.sleep(TIMEOUT_S)
            raise LogUnreachable("simulated", "no answer")
        found = effect()
        if (
            self.delay > PROMPT_S
        ):  # else the way back is part of the way there: most that happens are such questions
            await self._way()
        return found

    async def tell(self, effect: Callable[[], T]) -> T:
        """Have the broker write something."""
        dice = self._dice
        await self._way()
        if self.cut:
            await asyncio.sleep(TIMEOUT_S)
            if dice.random() < 0.3:
                raise LogUnreachable("simulated", "not connected")
            if dice.random() < 0.5:
                outside(dice.uniform(0, LATEST_S), effect)
            raise OutcomeUnknown("simulated", "the line was cut")
        if dice.random() < self.refuse:
            raise AppendRefused("simulated", "not enough replicas")
        lost = dice.random() < self.lose
        if lost and dice.random() < 0.6:
            if dice.random() < 0.5:
                outside(dice.uniform(0, LATEST_S), effect)
            raise OutcomeUnknown("simulated", "the request was lost, or is on its way")
        found = effect()
        if self.half_open:
            await asyncio.sleep(TIMEOUT_S)
        await self._way()
        if lost or self.half_open or self.cut:
            raise OutcomeUnknown("simulated", "the answer was lost")
        return found

    async def _way(self) -> None:
        await asyncio.sleep(self._dice.uniform(0.0002, self.delay))


class SimulatedLog:
    """An `EventLog` at the end of a line."""

    name, partition = "simulated", 0

    def __init__(self, broker: Broker, line: Line) -> None:
        self.broker, self.line = broker, line

    async def create(self) -> None:
        """Do nothing: it is there."""

    async def check(self) -> None:
        """See `EventLog.check`."""
        await self.line.ask(lambda: None)

    async def read(self, after=-1):
        """See `EventLog.read`."""
        end = await self.end()
        if after >= end:
            raise PositionLost(after, f"the log ends at {end}")
        while after + 1 < end:
            batch = await self.line.ask(lambda first=after + 1: self._records(first, end))
            if not batch:
                raise PositionLost(after + 1, "the log became shorter")
            yield batch
            after = batch[-1].position

    async def follow(self, after=-1):
        """See `EventLog.follow`."""
        while True:
            batch = await self.line.ask(lambda first=after + 1: self._records(first, None))
            if batch:
                yield batch
                after = batch[-1].position
            else:
                await self.broker.changed(POLL_S)

    def _records(self, first: int, end: int | None) -> list[Record]:
        if first > len(self.broker.log):
            raise PositionLost(first - 1, f"the log ends at {len(self.broker.log)}")
        until = first + BATCH if end is None else min(end, first + BATCH)
        return [
            Record(first + index, data) for index, data in enumerate(self.broker.log[first:until])
        ]

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        return await self.line.tell(lambda: self.broker.write(data))

    async def end(self) -> int:
        """See `EventLog.end`."""
        return await self.line.ask(lambda: len(self.broker.log))

    async def heartbeat(self, beat) -> int:
        """See `EventLog.heartbeat`."""

        def keep() -> int:
            self.broker.keep(beat)
            return self.broker.now()

        return await self.line.tell(keep)

    async def clock(self) -> int:
        """See `EventLog.clock`."""
        return await self.line.tell(self.broker.now)

    async def last_heartbeat(self):
        """See `EventLog.last_heartbeat`."""
        return await self.line.ask(lambda: self.broker.beat)

    async def close(self) -> None:
        """Do nothing."""


class SimulatedInbox:
    """An `Inbox` at the end of a line."""

    name, partition = "simulated", 0

    def __init__(self, broker: Broker, line: Line) -> None:
        self.broker, self.line = broker, line

    async def propose(self, inputs, source="") -> tuple[int, ...]:
        """See `Inbox.propose`."""
        return await self.put(proposals(inputs, source))

    async def put(self, records) -> tuple[int, ...]:
        """See `Inbox.put`."""
        return await self.line.tell(lambda: self.broker.put(list(records)))

    async def read(self, position, limit=1000, wait_s=0.0):
        """See `Inbox.read`."""
        inbox, loop = self.broker.inbox, asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        found = await self.line.ask(lambda: inbox[position : position + limit])
        while not found and (left := deadline - loop.time()) > 0:
            await self.broker.changed(left)
            found = await self.line.ask(lambda: inbox[position : position + limit])
        return tuple(read_proposal(one, position + index) for index, one in enumerate(found))

    async def end(self) -> int:
        """See `Inbox.end`."""
        return await self.line.ask(lambda: len(self.broker.inbox))

    async def identity(self) -> str:
        """See `Inbox.identity`."""
        return await self.line.ask(lambda: "inbox-of-the-simulation")

    async def close(self) -> None:
        """Do nothing."""

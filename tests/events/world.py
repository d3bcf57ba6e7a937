"""What the tests of the streams share: a world without clock and chance, logs that fail on demand, little steps to write."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from events.chain import ChainReader, RecordedStep
from events.errors import OutcomeUnknown
from events.streams import EventLog, Heartbeat, Leadership, Record
from events.streams.leadership import Environment
from events.streams.reading import read_steps
from events.vocabulary import AnyEvent, NodeRegistered, NodeRemoved
from tests.events.places import Place

_numbers = itertools.count(1)


async def _no_pause(lost: int) -> None:
    await asyncio.sleep(0)


def world(now: Callable[[], int] = lambda: 1_000, attempts: int = 10) -> Environment:
    """Return surroundings with a fixed clock and ids that count."""
    return Environment(
        now=now, new_id=lambda: f"id{next(_numbers)}", pause=_no_pause, attempts=attempts
    )


async def lead(log: EventLog, seen: list[RecordedStep] | None = None) -> Leadership:
    """Return a new leadership; what was read on the way goes to ``seen``."""
    steps = seen if seen is not None else []
    return await Leadership.acquire(log, ChainReader(), steps.append, world())


def nodes(leadership: Leadership, *names: str) -> tuple[AnyEvent, ...]:
    """Return a step's events: these nodes are removed."""
    first = leadership.head.next_seq
    return tuple(NodeRemoved(seq=first + index, node=name) for index, name in enumerate(names))


async def write(leadership: Leadership, *names: str, inbox_next: int = 0) -> RecordedStep:
    """Append one step and return it."""
    return await leadership.append_step(
        nodes(leadership, *names), time=leadership.stamp(2_000), decided=True, inbox_next=inbox_next
    )


async def records_of(log: EventLog, after: int = -1) -> list[Record]:
    """Return all records after a position."""
    return [record async for batch in log.read(after) for record in batch]


async def steps_of(log: EventLog, reader: ChainReader | None = None) -> list[RecordedStep]:
    """Return all steps that count."""
    async with aclosing(read_steps(log, reader or ChainReader())) as batches:
        return [step async for batch in batches for step in batch]


def names_in(steps: Sequence[RecordedStep]) -> list[str]:
    """Return the names of the nodes that these steps registered or removed, in order."""
    return [
        event.node
        for step in steps
        for event in step.events
        if isinstance(event, NodeRemoved | NodeRegistered)
    ]


async def filled(place: Place, *names: str) -> Leadership:
    """Return the leader of a log in this place that holds a step for each name."""
    streams = await place.open()
    leader = await lead(streams.log)
    for name in names:
        await write(leader, name)
    return leader


class Wrapped:
    """A log that passes everything on; tests override what is to go wrong."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.name = log.name
        self.partition = log.partition

    async def create(self) -> None:
        """See `EventLog.create`."""
        await self.log.create()

    async def check(self) -> None:
        """See `EventLog.check`."""
        await self.log.check()

    def read(self, after: int = -1) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`."""
        return self.log.read(after)

    def follow(self, after: int = -1) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.follow`."""
        return self.log.follow(after)

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        return await self.log.append(data)

    async def end(self) -> int:
        """See `EventLog.end`."""
        return await self.log.end()

    async def heartbeat(self, beat: Heartbeat) -> int | None:
        """See `EventLog.heartbeat`."""
        return await self.log.heartbeat(beat)

    async def clock(self) -> int | None:
        """See `EventLog.clock`."""
        return await self.log.clock()

    async def last_heartbeat(self) -> Heartbeat | None:
        """See `EventLog.last_heartbeat`."""
        return await self.log.last_heartbeat()

    async def close(self) -> None:
        """See `EventLog.close`."""
        await self.log.close()


class Unreliable(Wrapped):
    """Loses what its plan says: for each append ``ok``, ``reply`` (written, but nobody hears) or ``write`` (never written)."""

    def __init__(self, log: EventLog, *plan: str) -> None:
        super().__init__(log)
        self._plan = list(plan)

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        fate = self._plan.pop(0) if self._plan else "ok"
        if fate == "write":
            raise OutcomeUnknown(self.name, "the request was lost")
        position = await super().append(data)
        if fate == "reply":
            raise OutcomeUnknown(self.name, "the reply was lost")
        return position


class Gated(Wrapped):
    """Holds every append until the gate is opened.

    Attributes:
        waiting: Set when an append stands before the gate.
        gate: Set it to let them through.
    """

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self.waiting = asyncio.Event()
        self.gate = asyncio.Event()

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        self.waiting.set()
        await self.gate.wait()
        return await super().append(data)

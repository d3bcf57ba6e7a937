"""What is asked of the past, answered in the room in which the log is followed.

Every method that looks at a log is a coroutine of that room; `Past.ask` brings it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from events.chain import ChainReader, RecordedStep
from events.configuration import Configuration
from events.streams.protocols import EventLog
from evsched.api.heads import Heads
from evsched.api.keeping import Beside, Keeper
from evsched.api.pinned import PinnedHistory
from evsched.api.rooms import Room
from evsched.api.tail import Tail
from evsched.api.told import ToldStep
from projections import asof, audit
from replays.history.about import About, about
from replays.history.loads import NO_NODES, Loads, NodeLoads
from replays.history.moments import Moment

T = TypeVar("T")

READ_EVENTS = 4_000
"""About how many events are read from the log together."""


class LogPlaces(Struct, frozen=True, kw_only=True):
    """Where a log lies, and what is kept beside it.

    Attributes:
        open_log: Opens the log; called in each thread that reads it.
        beside: From the log's id to its read model and snapshots.
    """

    open_log: Callable[[], EventLog]
    beside: Callable[[str], Beside]


class StoredConfiguration(NamedTuple):
    """A configuration in force, and the text of it that was applied (empty: none was kept)."""

    seq: int
    time: int
    spec: Configuration | None
    document: str


class Past:
    """The past of one log, followed as it grows.

    Attributes:
        tail: Its end; of the server's thread.
    """

    def __init__(self, places: LogPlaces) -> None:
        """Prepare; `open` begins to read."""
        self.tail = Tail()
        self._places = places
        self._room = Room("evsched-past")
        self._heads = Heads()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: Keeper | None = None
        self._history: PinnedHistory | None = None
        self._log: EventLog | None = None
        self._following: asyncio.Task[None] | None = None
        self._loads = Loads()

    async def open(self) -> None:
        """Begin to follow the log."""
        self._loop = asyncio.get_running_loop()
        self._room.open()
        await self._room.ask(self._begin())

    async def close(self) -> None:
        """Stop following, and let go of everything."""
        await self._room.ask(self._end())
        await self._room.close()

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one of the coroutines below in the room of the log."""
        return await self._room.ask(work)

    async def _begin(self) -> None:
        loop = self._loop
        assert loop is not None
        self._log = self._places.open_log()
        self._history = PinnedHistory(self._log)
        self._keeper = Keeper(
            self._log,
            self._known,
            lambda head, steps: _call(loop, self.tail.add, head, steps),
            lambda ready, fault: _call(loop, self.tail.say, ready, fault),
            self._heads,
        )
        self._following = asyncio.create_task(self._keeper.run())

    def _known(self, log_id: str) -> Beside:
        """Return what is kept beside a log, and use its snapshots from now on."""
        found = self._places.beside(log_id)
        if found.snapshots is not None:
            self.history.use(found.snapshots)
        return found

    async def _end(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._log is not None:
            await self._log.close()

    @property
    def keeper(self) -> Keeper:
        """What follows the log."""
        assert self._keeper is not None
        return self._keeper

    @property
    def log(self) -> EventLog:
        """The log; of the room of this past."""
        assert self._log is not None
        return self._log

    @property
    def history(self) -> PinnedHistory:
        """The past of the log."""
        assert self._history is not None
        return self._history

    # ----------------------------------------------------------------------------------- coroutines

    async def seq_by(self, time: int) -> int:
        """Return the last ``seq`` at or before a time (milliseconds), from the read model; 0: there is none."""
        path = self.keeper.path
        if path is None or self.keeper.model is None:
            return 0
        with closing(audit.connect(path)) as connection:
            return asof.seq_at_time(connection, time)

    async def seq_at(self, moment: Moment) -> int:
        """Return the last ``seq`` by a moment that is a time or lies before the end; called in the server's thread."""
        time = moment.time
        if time is None:
            time = self.tail.head.time - (moment.before_end_ms or 0)
        known = self.tail.last_by(time)
        return known if known is not None else await self.ask(self.seq_by(time))

    async def written(self) -> None:
        """Have the read model hold everything that was read."""
        self.keeper.write_down(self.keeper.at.next_seq - 1)

    async def rules_in_force(self) -> int:
        """Return the version of the rules that decide now."""
        return self.keeper.state.rules_version

    async def configuration(self, seq: int | None) -> StoredConfiguration:
        """Return the configuration in force after an event, with its text; None: after the last one."""
        state = self.keeper.state if seq is None else (await self.history.pinned(seq)).engine.state
        document = ""
        if self.keeper.path is not None:
            self.keeper.write_down(state.seq)
            with closing(audit.connect(self.keeper.path)) as connection:
                document = asof.document_at(connection, state.seq)
        return StoredConfiguration(state.seq, state.time, state.configuration, document)

    async def loads(self, seq: int, resource: str | None, most: int) -> NodeLoads:
        """Return how full the nodes were after an event; before the log's first one there are none."""
        path = self.keeper.path
        if path is None or self.keeper.model is None:
            return NO_NODES
        self.keeper.write_down(seq)
        with closing(audit.connect(path)) as connection:
            return self._loads.at(connection, seq, resource, most)

    async def steps_behind(self, seq: int, *, narrow: bool) -> list[ToldStep]:
        """Return the next steps with events behind ``seq``, read from the log.

        Args:
            seq: The first step may have earlier events, too.
            narrow: Whether it matters what the events are about.
        """
        found: list[ToldStep] = []
        events = 0
        reader = ChainReader(self._heads.before(seq))
        async with aclosing(self.history.steps(reader)) as steps:  # type: ignore[type-var]
            async for step in steps:
                self._heads.note(step.head)
                if step.head.next_seq - 1 <= seq:
                    continue
                found.append(ToldStep(step, self._abouts(step) if narrow else None))
                events += len(step.events)
                if events >= READ_EVENTS:
                    break
        return found

    def _abouts(self, step: RecordedStep) -> list[About]:
        """Return what the events of a step are about, by the read model."""
        path = self.keeper.path
        if path is None:
            return [about(event, ()) for event in step.events]
        self.keeper.write_down(step.head.next_seq - 1)
        with closing(audit.connect(path)) as connection:
            return [
                about(event, (partial(asof.belongs, connection, event.seq),))
                for event in step.events
            ]


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *arguments: Any) -> None:
    """Call something in the server's thread, unless that has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(what, *arguments)

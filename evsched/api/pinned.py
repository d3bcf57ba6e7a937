"""States of moments that were asked for lately: whoever looks at one moment from several sides has it rebuilt once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from events.chain import ChainReader, Head
from events.streams.protocols import EventLog
from evsched.core.engine import Engine
from evsched.core.recorded import apply_recorded
from evsched.core.state import State
from evsched.core.tallies import uncounted
from evsched.snapshots.store import SnapshotStore
from replays.history.moments import Moment
from replays.history.rebuild import History
from replays.history.rows import Row
from replays.history.steps import copy
from replays.history.views import VIEWS, View

MOST_STATES = 32
MOST_THINGS = 400_000
"""Nodes, asks, applications and allocations of all states that are kept, together; the last one stays however large it is."""


class Pinned(NamedTuple):
    """A state at a ``seq``. It is only read, and copied by whoever goes on from it.

    Attributes:
        head: Of the last step all of whose events are in it.
        rows: Of the views that were asked for.
    """

    engine: Engine
    head: Head
    rows: dict[View, Sequence[Row]]


class PinnedHistory(History):
    """The past of a log that keeps the states of a few moments."""

    def __init__(
        self,
        log: EventLog,
        store: SnapshotStore | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """See `History`."""
        super().__init__(log, store, warn)
        self._kept: OrderedDict[int, Pinned] = OrderedDict()
        self._under_way: dict[int, asyncio.Task[Pinned]] = {}

    async def at(self, moment: Moment) -> Engine:
        """See `History.at`; whoever asks only reads the engine, or copies it."""
        if moment.seq is None:
            return await super().at(moment)
        return (await self.pinned(moment.seq)).engine

    async def rows(self, seq: int, view: View) -> tuple[State, Sequence[Row]]:
        """Return the state after an event, and the rows of a view of it."""
        found = await self.pinned(seq)
        state = found.engine.state
        if view not in found.rows:
            found.rows[view] = VIEWS[view](state)
        return state, found.rows[view]

    async def pinned(self, seq: int) -> Pinned:
        """Return the state after an event of the log (the end, where the log does not go that far)."""
        if seq in self._kept:
            self._kept.move_to_end(seq)
            return self._kept[seq]
        task = self._under_way.get(seq)
        if task is None:
            task = asyncio.create_task(self._build(seq))
            self._under_way[seq] = task
            task.add_done_callback(lambda _: self._under_way.pop(seq, None))
        # Whoever gives up leaves the others that wait for the same state alone.
        return await asyncio.shield(task)

    async def _build(self, seq: int) -> Pinned:
        engine, head, counted = await self._base(seq)
        with nullcontext() if counted else uncounted(engine.state):
            async for step in self.steps(ChainReader(head)):
                fresh = [event for event in step.events if engine.state.seq < event.seq <= seq]
                if fresh:
                    apply_recorded(engine, fresh, step.time, step.head.position)
                if step.head.next_seq > seq + 1:
                    break
                engine.state.time = step.time
                head = step.head
                if head.next_seq > seq:
                    break
        found = Pinned(engine, head, {})
        self._keep(seq, found)
        return found

    async def _base(self, seq: int) -> tuple[Engine, Head, bool]:
        """Return a state before a moment, its head, and whether its tallies are kept: of a kept one, a snapshot or the start."""
        # Within a step a state may have begun what its next event ends, and a copy would lose that.
        whole = (one for one, kept in self._kept.items() if kept.head.next_seq == one + 1)
        before = max((one for one in whole if one <= seq), default=0)
        newest = None if self._store is None else self._store.newest(seq, None)
        if before > (newest or 0):
            kept = self._kept[before]
            return copy(kept.engine), kept.head, True
        engine, reader = await self.start(seq)
        return engine, reader.head, False

    def _keep(self, seq: int, found: Pinned) -> None:
        self._kept[seq] = found
        things = sum(_things(one.engine.state) for one in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > MOST_STATES or things > MOST_THINGS):
            _, gone = self._kept.popitem(last=False)
            things -= _things(gone.engine.state)


def _things(state: State) -> int:
    return (
        len(state.nodes)
        + len(state.asks)
        + len(state.applications)
        + len(state.allocations)
        + len(state.queues)
    )

"""Where a log speaks of whom: through the index of subjects where there is one, else by reading all of it.

Whatever is found is read from the log, from a head that the log was compared with, so an index can
be slow or missing, but not wrong about what an event says. One that is of another log, or damaged,
is dropped with a warning, and what it does not cover is gathered while it is read.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from events.chain import ChainReader
from events.errors import PositionLost
from events.streams.reading import resume
from events.vocabulary import ConfigurationApplied
from evsched.snapshots.names import CONFIGURED, names_of
from evsched.snapshots.subjects import NOTHING, SEGMENT_EVENTS, Gathering, IndexDamaged
from replays.history.moments import Moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from events.chain import Head, RecordedStep
    from evsched.snapshots.subjects import Covered
    from replays.history.rebuild import History

T = TypeVar("T")


class Finder:
    """The steps of a log by the names of which they speak.

    Attributes:
        covered: How far the index goes; what lies behind comes from `rest`.
    """

    def __init__(self, history: History, covered: Covered = NOTHING) -> None:
        """Use the index of a history as far as it is ``covered``."""
        self._history = history
        self.covered = covered

    def stretches(self, name: str) -> list[int]:
        """Return the stretches of the log that speak of a name, in their order."""
        index = self._history.subjects
        if index is None or not self.covered.stretches:
            return []
        return index.stretches(name, self.covered)

    def last(self, moment: Moment) -> int:
        """Return the stretch in which a moment (absolute, before the end of what is covered) lies."""
        low, high = 0, self.covered.stretches - 1
        while low < high:
            middle = (low + high + 1) // 2
            head = self._before(middle)
            late = moment.time is not None and head.time > moment.time
            if late or (moment.seq is not None and head.next_seq - 1 > moment.seq):
                high = middle - 1
            else:
                low = middle
        return low

    def reaches(self, moment: Moment) -> bool:
        """Tell whether all that belongs to a moment (absolute) is covered."""
        head = self.covered.head
        return (moment.time is not None and head.time > moment.time) or (
            moment.seq is not None and head.next_seq > moment.seq
        )

    async def steps(self, stretch: int) -> AsyncIterator[RecordedStep]:
        """Yield the steps of one stretch."""
        found = self._before(stretch)
        behind = (
            self.covered.head
            if stretch + 1 == self.covered.stretches
            else self._before(stretch + 1)
        )
        try:
            reader = await resume(self._history.log, found)
        except PositionLost as error:
            message = f"before stretch {stretch}: {error.reason}"
            raise IndexDamaged(message) from error
        async with aclosing(self._history.steps(reader)) as steps:  # type: ignore[type-var]
            async for step in steps:
                yield step
                if step.head.next_seq >= behind.next_seq:
                    return

    async def rest(self) -> AsyncIterator[tuple[RecordedStep, set[str]]]:
        """Yield the steps that are not covered, each with the names in it, and lengthen the index by them."""
        index = self._history.subjects
        gathering = Gathering(self.covered)
        async with aclosing(self._history.steps(ChainReader(self.covered.head))) as steps:  # type: ignore[type-var]
            async for step in steps:
                names = {name for event in step.events for name in names_of(event)}
                yield step, names
                if index is None:
                    continue
                gathering.take(step, names)
                if gathering.events < SEGMENT_EVENTS:
                    continue
                try:
                    written = await asyncio.to_thread(index.append, gathering)
                except (IndexDamaged, OSError, sqlite3.Error):
                    written = False  # the folder may be there to be read alone
                index = index if written else None
                gathering = Gathering(gathering.covered)

    def _before(self, stretch: int) -> Head:
        index = self._history.subjects
        assert index is not None
        return index.before(stretch)


async def find(history: History, search: Callable[[Finder], Awaitable[T]]) -> T:
    """Search a log; where its index turns out to be wrong, once more without it."""
    index = history.subjects
    if index is None:
        return await search(Finder(history))
    try:
        covered = index.covered(await history.log_id())
        if covered.stretches:
            await resume(history.log, covered.head)
        return await search(Finder(history, covered))
    except PositionLost as error:
        index.distrust(error.reason)
    except IndexDamaged as error:
        index.distrust(str(error))
    return await search(Finder(history))


async def lengthen(history: History) -> None:
    """Bring the index up to the end of the log as it is now, but for what is less than a segment."""

    async def search(finder: Finder) -> None:
        async for _ in finder.rest():
            pass

    await find(history, search)


async def last_configuration(history: History) -> Moment:
    """Return the moment before the last configuration was applied; the start of the log where none was."""

    async def search(finder: Finder) -> Moment:
        seq = 0
        for stretch in finder.stretches(CONFIGURED)[-1:]:
            async for step in finder.steps(stretch):
                seq = _before_configuration(step, seq)
        async for step, names in finder.rest():
            seq = _before_configuration(step, seq) if CONFIGURED in names else seq
        return Moment(seq=seq)

    return await find(history, search)


def _before_configuration(step: RecordedStep, seq: int) -> int:
    """Return the ``seq`` before a step that applies a configuration, that which is given for any other step."""
    applies = any(type(event) is ConfigurationApplied for event in step.events)
    return step.events[0].seq - 1 if applies else seq

"""Questions that read much of the log, answered in a room of their own beside the one that follows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from events.streams.protocols import EventLog
from evsched.api.keeping import Beside
from evsched.api.rooms import Room
from replays.history.rebuild import History

T = TypeVar("T")


class Asking:
    """A room with a log of its own."""

    def __init__(
        self, open_log: Callable[[], EventLog], beside: Callable[[str], Beside], name: str
    ) -> None:
        """Prepare; see `evsched.api.past.LogPlaces`. ``name`` shows in traces."""
        self._open_log = open_log
        self._beside = beside
        self._room = Room(name)
        self._log: EventLog | None = None
        self._history: History | None = None
        self._opening: asyncio.Lock | None = None

    def open(self) -> None:
        """Begin; the log is opened when the first question comes."""
        self._room.open()

    async def close(self) -> None:
        """Give up what is being answered, and let go of everything."""
        await self._room.ask(self._let_go())
        await self._room.close()

    async def ask(self, question: Callable[[History], Awaitable[T]]) -> T:
        """Return what a question about the past comes to; cancelling gives it up where it waits next."""
        return await self._room.ask(self._answer(question))

    async def _answer(self, question: Callable[[History], Awaitable[T]]) -> T:
        if self._history is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                await self._open_once()
        assert self._history is not None
        return await question(self._history)

    async def _open_once(self) -> None:
        if self._history is not None:
            return
        self._log = self._open_log()
        history = History(self._log)
        log_id = await history.log_id()
        beside = self._beside(log_id) if log_id else None
        if beside is not None and beside.snapshots is not None:
            history.use(beside.snapshots, beside.subjects)
        self._history = history

    async def _let_go(self) -> None:
        if self._log is not None:
            await self._log.close()

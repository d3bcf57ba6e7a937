"""A thread with an event loop of its own, for work that would keep the server from answering others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Room:
    """A thread in which coroutines run one beside the other, away from the server's own loop.

    What is opened in a room (a log, a connection) belongs to it and is used and closed there.
    """

    def __init__(self, name: str) -> None:
        """Prepare; `open` starts the thread. ``name`` shows in traces."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._done: asyncio.Event | None = None

    def open(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()
        self._started.wait()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._done = asyncio.Event()
            self._started.set()
            runner.run(_forever(self._done))

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in this room and return what it returns; cancelling cancels it there, too."""
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def close(self) -> None:
        """Cancel what runs there, wait for it, and end the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        assert self._done is not None
        loop.call_soon_threadsafe(self._done.set)
        await asyncio.to_thread(thread.join)
        self._loop = self._thread = None


async def _forever(done: asyncio.Event) -> None:
    await done.wait()

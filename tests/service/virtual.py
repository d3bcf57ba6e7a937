"""An event loop whose time passes by itself: when nothing can run, it is at once the time of the next timer.

Seconds of a lease cost nothing then, and the same program always runs in the same order. It is for
code that does no I/O; whoever waits for something that nobody will do is told so, where a real loop
would wait for ever.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_MS = 1_767_258_000_000


class NothingEverHappens(Exception):
    """Everybody waits, and no timer runs."""


class _Selector(selectors.DefaultSelector):
    """Never waits, and does not ask the system: nothing here does I/O. Tells the loop how long it should have waited."""

    def __init__(self, passed: Callable[[float], None]) -> None:
        super().__init__()
        self._passed = passed

    def select(self, timeout=None):
        """Let the time pass; nothing is ever ready."""
        if timeout is None:
            raise NothingEverHappens
        if timeout:
            self._passed(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the top of this module."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self._pass))

    def time(self) -> float:
        """Return seconds since the loop was made."""
        return self._now

    def run_in_executor(self, executor, func, *args):
        """Do at once what a thread is to do: in virtual time it takes none, and always comes in the same order."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            done.set_exception(error)
        return done

    def _pass(self, seconds: float) -> None:
        self._now += max(seconds, 0.0)


class VirtualClock:
    """The clock of one process of a simulation; others may go wrong in other ways.

    Attributes:
        offset_ms: How far it is ahead of the others.
    """

    def __init__(self) -> None:
        self.offset_ms = 0

    def now(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return START_MS + round(self.elapsed() * 1000) + self.offset_ms

    def elapsed(self) -> float:
        """Return seconds since the loop was made."""
        return asyncio.get_running_loop().time()

    def heed(self, other: int | None) -> None:
        """Follow no other clock."""


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as this holds; raises TimeoutError when it does not within this time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)

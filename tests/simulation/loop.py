"""A virtual event loop that holds several processes, each of which can be frozen at any point of its program.

Everything that a process schedules carries its `Host` in its context. What is due while the host is
frozen is held back, and runs in the same order when the host goes on: this is SIGSTOP. A host that
never goes on was killed.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from weakref import WeakSet

from tests.service.virtual import VirtualLoop

T = TypeVar("T")


class Host:
    """What the loop knows of one process.

    Attributes:
        frozen: Whether nothing of it runs.
        slow: Returns how long the next work of a thread takes, seconds.
        tasks: Of its program, those that are done included as long as somebody holds them.
    """

    def __init__(self) -> None:
        self.frozen = False
        self.slow: Callable[[], float] = lambda: 0.0
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.held: list[asyncio.Handle] = []

    def thaw(self) -> None:
        """Let the process go on with what became due meanwhile, in its order."""
        self.frozen = False
        held, self.held = self.held, []
        loop = asyncio.get_running_loop()
        for handle in held:
            loop.pass_on(handle)


HOST: contextvars.ContextVar[Host | None] = contextvars.ContextVar("host", default=None)


class _Held(asyncio.Handle):
    """A callback of a process, which runs only while that is not frozen."""

    __slots__ = ("host",)

    def _run(self):
        if self.host.frozen:
            self.host.held.append(self)
        else:
            super()._run()


class _HeldTimer(asyncio.TimerHandle):
    """The same for a time; it may be called off between that and the end of a pause, as any other."""

    __slots__ = ("host",)

    def _run(self):
        if self.host.frozen:
            self.host.held.append(self)
        else:
            super()._run()


class ProcessLoop(VirtualLoop):
    """See the top of this module."""

    def call_soon(self, callback, *args, context=None):
        """Run a callback of a process as soon as that is not frozen."""
        context = context or contextvars.copy_context()
        host = context.get(HOST)
        if host is None:
            return super().call_soon(callback, *args, context=context)
        # What the base class does, but for the kind of handle: half of a story is callbacks.
        handle = _Held(callback, args, self, context)
        handle.host = host
        self._ready.append(handle)
        return handle

    def call_at(self, when, callback, *args, context=None):
        """Run a callback of a process at a time, or as soon after it as that is not frozen."""
        context = context or contextvars.copy_context()
        host = context.get(HOST)
        if host is None:
            return super().call_at(when, callback, *args, context=context)
        timer = _HeldTimer(when, callback, args, self, context)
        timer.host = host
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def create_task(self, coro, *, name=None, context=None):
        """Create a task, and count it to its process."""
        task = super().create_task(coro, name=name, context=context)
        host = HOST.get() if context is None else context.get(HOST)
        if host is not None:
            host.tasks.add(task)
        return task

    def pass_on(self, handle: asyncio.Handle) -> None:
        """Run a callback that was held back, unless it was called off meanwhile."""
        self._ready.append(handle)

    def run_in_executor(self, executor, func, *args):
        """Do at once what a thread is to do; its process hears of the end as late as its threads are slow."""
        host = HOST.get()
        seconds = host.slow() if host is not None else 0.0
        if not seconds:
            return super().run_in_executor(executor, func, *args)
        done, found = self.create_future(), super().run_in_executor(executor, func, *args)
        self.call_later(seconds, _hand_over, found, done)
        return done


def _hand_over(found: asyncio.Future, done: asyncio.Future) -> None:
    if done.cancelled():
        found.exception()
    elif (error := found.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(found.result())


def spawn(host: Host, main: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin a coroutine as a program of this host."""
    context = contextvars.copy_context()
    context.run(HOST.set, host)
    return asyncio.get_running_loop().create_task(main, context=context)


def outside(seconds: float, callback: Callable[..., object], *args: object) -> None:
    """Let something happen later, whatever becomes of the process that set it going."""
    contextvars.Context().run(asyncio.get_running_loop().call_later, seconds, callback, *args)


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=ProcessLoop) as runner:
        return runner.run(main)

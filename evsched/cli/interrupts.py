"""Ctrl-C while a command works: it is ended in order, so that files and logs are closed.

An async command is cancelled, by its event loop and between two of its steps. A handler that
cancels at once, as the one of `asyncio.run` does, may come in the middle of a callback, which then
fails with a traceback. Any other command is ended by a KeyboardInterrupt, as always in Python, and
so is what does not let itself be cancelled when Ctrl-C comes a second time.

A service that is to stop in an order of its own says so by `heeding`, for as long as it serves.

Before a command works and afterwards there is nothing to put in order; `evsched.__main__` says what
Ctrl-C does then.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
from _thread import start_new_thread
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], object]
"""What a process does on a signal."""


def carry_out(
    command: Callable[..., Any], bound: inspect.BoundArguments, at_once: Handler | None
) -> Any:
    """Call a command and return its answer, awaited where it is async.

    Args:
        command: A function, async or not.
        bound: Its arguments.
        at_once: The handler of Ctrl-C that is in force and will be again; None leaves signals
            alone.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    sync = not inspect.iscoroutinefunction(command)
    if at_once is None:
        return (
            command(*bound.args, **bound.kwargs)
            if sync
            else _run(command(*bound.args, **bound.kwargs))
        )
    sys.unraisablehook = _raise_again
    if not sync:
        return _run_until_told(command(*bound.args, **bound.kwargs), at_once)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return command(*bound.args, **bound.kwargs)
    finally:
        signal.signal(signal.SIGINT, at_once)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    import asyncio  # noqa: PLC0415 - slow to load, and some commands do without

    return asyncio.run(work)


def _run_until_told(work: Coroutine[Any, Any, Any], at_once: Handler) -> Any:
    """Await work, which Ctrl-C cancels."""
    import asyncio  # noqa: PLC0415 - as above

    told = False

    async def until_told() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def tell(*_: object) -> None:
            nonlocal told
            if told:
                raise KeyboardInterrupt
            told = True
            loop.call_soon_threadsafe(task.cancel)

        signal.signal(signal.SIGINT, tell)
        try:
            return await work
        finally:
            signal.signal(signal.SIGINT, at_once)

    try:
        return asyncio.run(until_told())
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def heeding(stop: Callable[[], object]) -> Iterator[None]:
    """Call something on SIGTERM and on Ctrl-C, from the event loop; afterwards they do what they did before.

    Not by `add_signal_handler`: taking that back leaves Python's own handler, which may come in the
    middle of a callback.
    """
    import asyncio  # noqa: PLC0415 - as above

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop)) for number in numbers
    ]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C again when it came where Python can raise nothing: while it frees an object, as each import does."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        # From a thread, which gets its turn when we have returned to where something can be raised.
        start_new_thread(os.kill, (os.getpid(), signal.SIGINT))
    else:
        sys.__unraisablehook__(lost)

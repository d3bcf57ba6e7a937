"""Work on a state by a thread, so that the event loop, with heartbeats and other cluster partitions, goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.state import State

LARGE = 5_000
"""Nodes, asks and allocations of which one pass takes a few milliseconds; a thread costs up to 5 ms of waiting."""

T = TypeVar("T")


def is_large(state: State) -> bool:
    """Tell whether a pass over all of a state takes so long that a thread should do it."""
    return len(state.nodes) + len(state.asks) + len(state.allocations) > LARGE


async def by_thread(work: Callable[[], T]) -> T:
    """Return what a thread makes of this work, once it is over: not even a cancellation leaves the thread at work.

    Raises:
        CancelledError: This task was cancelled meanwhile, and the work went well.
        Exception: The one that the work raised.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait((working,))
        except asyncio.CancelledError as error:
            cancelled = error
    found = working.result()
    if cancelled is not None:
        raise cancelled
    return found

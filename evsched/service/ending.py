"""Ending a task of our own without mistaking our own cancellation for its."""

from __future__ import annotations

import asyncio
from typing import Any


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancel a task and return when it has ended.

    Raises:
        CancelledError: We were cancelled meanwhile. To await the task and suppress that would swallow
            it, and who was cancelled would go on.
        Exception: The one that the task raised; not where we were cancelled before, as it would take
            the place of that and who was cancelled would go on.
    """
    task.cancel()
    await asyncio.wait((task,))
    own = asyncio.current_task()
    if not task.cancelled() and task.exception() is not None and not (own and own.cancelling()):
        task.result()

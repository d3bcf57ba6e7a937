"""Acts as long as the Lease is held, waits for it otherwise, and begins again from the log each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from evsched.agents.kubernetes.acting.carrying import Deposed
from evsched.agents.kubernetes.acting.election import LeaseElection

_RELEASED_WITHIN_S = 3.0


async def act_while_elected(election: LeaseElection, act: Callable[[], Awaitable[None]]) -> None:
    """Act whenever the Lease is held; never ends by itself, and gives the Lease back when cancelled.

    Args:
        election: For the Lease.
        act: Acts until cancelled, from a state that it reads anew; may raise `Deposed`.
    """
    try:
        while True:
            await election.acquire()
            await _one_term(election, act)
    finally:
        # An agent that is told to stop has no time to wait for a server that does not answer.
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELEASED_WITHIN_S):
                await election.release()


async def _one_term(election: LeaseElection, act: Callable[[], Awaitable[None]]) -> None:
    """Act until the Lease is lost."""
    acting = asyncio.ensure_future(act())
    keeping = asyncio.ensure_future(election.keep())
    try:
        await asyncio.wait({acting, keeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (acting, keeping):
            task.cancel()
        await asyncio.wait({acting, keeping})
    try:
        if not acting.cancelled():
            acting.result()
    except* Deposed:
        pass

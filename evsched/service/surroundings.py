"""The one place that reads clocks and draws random ids."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from importlib.metadata import version
from typing import Protocol

from events.streams.leadership import Surroundings

TOLERATED_MS = 1000
"""A clock that was set back by no more than this is waited for; one that was set back further is not believed."""


class Clock(Protocol):
    """What the shell needs of time. Tests have one that they move."""

    def now(self) -> int:
        """Return the time, milliseconds since the epoch, UTC."""

    def elapsed(self) -> float:
        """Return seconds since some moment; never goes back, whatever is done to the clock."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Return the time, milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def elapsed(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()


class RecordTime:
    """The time that a leader stamps its steps with: it never goes back, and it does not stand still when the clock was set back.

    It is the clock's time as long as that goes on. When the clock is set back it goes on at the
    pace of a clock that nobody sets, so that timers fire after the time they were given.
    """

    def __init__(self, clock: Clock, start: int) -> None:
        """Begin at ``start`` (the time of the last frame) or now, whichever is later."""
        self._clock = clock
        self._last = start
        self._then = clock.elapsed()

    def now(self) -> int:
        """Return the time, milliseconds since the epoch."""
        wall, elapsed = self._clock.now(), self._clock.elapsed()
        passed = int((elapsed - self._then) * 1000)
        # Only whole milliseconds are taken, or many calls would slow the time down.
        self._then += passed / 1000
        steady = self._last + passed
        self._last = max(self._last, wall) if wall >= steady - TOLERATED_MS else steady
        return self._last


def surroundings(clock: Clock, checkpoint_every: int = 100_000) -> Surroundings:
    """Return what `Leadership.acquire` needs of the world outside, with real randomness."""

    async def pause(lost: int) -> None:
        await asyncio.sleep(random.uniform(0.02, 0.1) * lost)  # noqa: S311 - to part two racers, no secret

    return Surroundings(
        now=clock.now,
        new_id=lambda: uuid.uuid4().hex,
        pause=pause,
        checkpoint_every=checkpoint_every,
        release=version("evsched"),
    )

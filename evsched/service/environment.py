"""The one place that reads clocks and draws random ids."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Protocol

import structlog

from events.streams.leadership import Environment
from evsched.core.rules import NEWEST

TOLERATED_MS = 1000
"""A clock that was set back by no more than this is waited for; one that was set back further is not believed."""


AHEAD_MS = 60_000
"""A clock that jumps ahead by more than this, while a process runs, is not believed by it."""

_log = structlog.get_logger(__name__)


class Clock(Protocol):
    """What the shell needs of time. Tests have one that they move."""

    def now(self) -> int:
        """Return the time, milliseconds since the epoch, UTC."""

    def elapsed(self) -> float:
        """Return seconds since some moment; never goes back, whatever is done to the clock."""

    def heed(self, other: int | None) -> None:
        """Take note of what another clock said just now, milliseconds since the epoch; None: there is none."""


_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Return the time, milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def elapsed(self) -> float:
        """Return seconds since some moment; those that the machine was suspended count where the system tells."""
        return time.clock_gettime(_STEADY)

    def heed(self, other: int | None) -> None:
        """Follow no other clock; that is for `BoundedClock`."""


class BoundedClock:
    """A clock that does not follow another one when that is ahead: the time in the log would be moved for good.

    From its first look on it knows how much time has passed, by a clock that nobody sets. A jump of
    more than `AHEAD_MS` is not believed, a line in the log of the service says so, and the time
    goes on at the pace of that clock. It is believed again once the other clock is back. What was
    wrong before the first look is seen as soon as there is a clock elsewhere to compare with: the
    earlier of the two is believed, as a log that lags behind delays nothing that is measured in it.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin with the time of that clock as it is now."""
        self._clock = clock
        self._most = clock.now()
        self._then = clock.elapsed()
        self._told = False

    def elapsed(self) -> float:
        """Return seconds since some moment."""
        return self._clock.elapsed()

    def heed(self, other: int | None) -> None:
        """Go on from what another clock said just now where this one is more than `AHEAD_MS` ahead of it.

        Args:
            other: Milliseconds since the epoch; None: there is no other clock.
        """
        if other is None or self.now() - other <= AHEAD_MS:
            return
        found = self._clock.now()
        _log.error(
            "clock ahead",
            by_ms=found - other,
            clock=_moment(found),
            broker=_moment(other),
            advice="the earlier one is followed; set the other right",
        )
        self._most, self._then, self._told = other, self._clock.elapsed(), True

    def now(self) -> int:
        """Return the time, milliseconds since the epoch, UTC."""
        wall = self._clock.now()
        passed = int((self._clock.elapsed() - self._then) * 1000)
        # Only whole milliseconds are taken, as in `RecordTime`.
        self._then += passed / 1000
        steady = self._most + passed
        ahead = wall - steady
        if ahead > AHEAD_MS:
            self._most = steady
            if not self._told:
                _log.error("clock ahead", by_ms=ahead, advice="if it is right, start evsched again")
            self._told = True
            return steady
        # A clock that was set back may come back to where it was: that is no jump.
        self._most = max(wall, steady)
        self._told = False
        return wall


def _moment(ms: int) -> str:
    """Return a time as people read it, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


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


@cache
def _release() -> str:
    """Return the release of this evsched."""
    return version("evsched")


def environment(
    clock: Clock, checkpoint_every: int = 100_000, *, observes: bool = False
) -> Environment:
    """Return what `Leadership.acquire` needs of the world outside, with real randomness."""

    async def pause(lost: int) -> None:
        await asyncio.sleep(random.uniform(0.02, 0.1) * lost)  # noqa: S311 - to part two racers, no secret

    return Environment(
        now=clock.now,
        new_id=lambda: uuid.uuid4().hex,
        pause=pause,
        checkpoint_every=checkpoint_every,
        release=_release(),
        observes=observes,
        knows=NEWEST,
    )

"""The end of the log as this server knows it: its head, and the steps that came last.

Belongs to the thread of the server. Whoever streams events takes them from here as long as it keeps
pace, and from the log itself where it does not.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress

from events.chain import START, Head
from evsched.api.told import ToldStep

KEPT_EVENTS = 20_000
"""About how many events are kept; a reader that is further behind reads the log."""

MOST_STEPS = 1_000
"""How many steps are handed out together."""


class Tail:
    """The steps that came last.

    Attributes:
        head: The end of what is known of the log.
        ready: Whether everything that was in the log at the start has been read.
        stopped: Whether whoever waits is to give up: the server stops.
        fault: Why the log cannot be read now, as a sentence; empty: it can.
    """

    def __init__(self) -> None:
        self.head: Head = START
        self.ready = False
        self.stopped = False
        self.fault = ""
        self._steps: list[ToldStep] = []
        self._lasts: list[int] = []
        self._changed = asyncio.Event()

    @property
    def seq(self) -> int:
        """Of the last event that is known; 0: there is none."""
        return self.head.next_seq - 1

    def add(self, head: Head, steps: Sequence[ToldStep]) -> None:
        """Take up steps, each behind the one before, and the head behind them."""
        for step in steps:
            self._steps.append(step)
            self._lasts.append(step.last)
        if steps:
            self._forget()
        self.head = head
        self._wake()

    def say(self, ready: bool, fault: str) -> None:
        """Take note of how the reading goes."""
        if (ready, fault) != (self.ready, self.fault):
            self.ready, self.fault = ready, fault
            self._wake()

    def stop(self) -> None:
        """Let whoever waits for something give up."""
        self.stopped = True
        self._wake()

    def behind(self, seq: int) -> list[ToldStep] | None:
        """Return the next steps with events after ``seq``; None: they are not kept any more.

        The first one may have earlier events, too.
        """
        if seq >= self.seq:
            return []
        at = bisect_right(self._lasts, seq)
        first = self._steps[at] if at < len(self._steps) else None
        if first is None or first.first > seq + 1:
            return None
        return self._steps[at : at + MOST_STEPS]

    def last_by(self, time: int) -> int | None:
        """Return the last ``seq`` that happened by a time; None: only the read model knows."""
        at = bisect_right(self._steps, time, key=lambda step: step.time)
        return self._lasts[at - 1] if at else None

    async def changed(self, at_most_s: float) -> None:
        """Return when something came, or after so many seconds."""
        waiting = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await waiting.wait()

    async def reached(self, seq: int, at_most_s: float) -> bool:
        """Return once an event is known, or after so many seconds whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while self.seq < seq and not self.stopped:
                    await self._changed.wait()
        return self.seq >= seq

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _forget(self) -> None:
        """Let go of what is too old; now and then, so that it costs little for each step."""
        if self._lasts[-1] - self._steps[0].first > 2 * KEPT_EVENTS:
            at = bisect_right(self._lasts, self._lasts[-1] - KEPT_EVENTS)
            del self._steps[:at], self._lasts[:at]

"""Timers as state: what is due when, so that a restart forgets nothing.

A timer has an id (``quota:root.a``), a kind (what to do), a subject, and the ``seq`` of the event
that armed it. They fire by due time and then by id. The heap holds stale entries; the dictionary is
the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from msgspec import Struct

PAUSE = "pause"
"""The kind of the timers that end the pause of an application; their ids are this, a colon and the application's."""


NOMINATION = "nomination"
"""The kind of the timers that end the nomination of an ask."""


def nomination_of(ask: str) -> str:
    """Return the id of the timer that ends the nomination of an ask."""
    return f"{NOMINATION}:{ask}"


class Timer(Struct, frozen=True, gc=False):
    """One armed timer; ``due`` in milliseconds since the epoch."""

    due: int
    id: str
    kind: str
    subject: str
    cause: int


class Timers:
    """All armed timers of a partition."""

    __slots__ = ("_heap", "armed")

    def __init__(self, timers: list[Timer] | None = None) -> None:
        """Start with these timers armed."""
        self.armed: dict[str, Timer] = {timer.id: timer for timer in timers or ()}
        self._heap: list[tuple[int, str]] = [(timer.due, timer.id) for timer in timers or ()]
        heapify(self._heap)

    def arm(self, timer: Timer) -> None:
        """Arm a timer; one of the same id is replaced."""
        self.armed[timer.id] = timer
        heappush(self._heap, (timer.due, timer.id))

    def cancel(self, timer_id: str) -> None:
        """Take a timer off; one that is not armed is no error."""
        self.armed.pop(timer_id, None)

    def first(self, aside: Mapping[str, Timer | None] | None = None) -> Timer | None:
        """Return the timer that fires next, None when none is armed.

        Args:
            aside: Timers by id that are passed over; to take one up again, arm it.
        """
        heap = self._heap
        while heap:
            due, timer_id = heap[0]
            timer = self.armed.get(timer_id)
            if (
                timer is not None
                and timer.due == due
                and not (aside and aside.get(timer_id) == timer)
            ):
                return timer
            heappop(heap)
        return None

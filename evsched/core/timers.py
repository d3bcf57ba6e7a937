"""Timers as state: what is due when, so that a restart forgets nothing.

A timer has an id (``quota:root.a``), a kind (what to do), a subject, and the ``seq`` of the event
that armed it. They fire by due time and then by id. The heap holds stale entries; the dictionary is
the truth.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from evsched.core.lazy_heap import LazyHeap

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
        due = [(timer.due, timer.id) for timer in timers or ()]
        self._heap: LazyHeap[tuple[int, str]] = LazyHeap(self._is_due, due)

    def arm(self, timer: Timer) -> None:
        """Arm a timer; one of the same id is replaced."""
        self.armed[timer.id] = timer
        self._heap.push((timer.due, timer.id), len(self.armed))

    def cancel(self, timer_id: str) -> None:
        """Take a timer off; one that is not armed is no error."""
        self.armed.pop(timer_id, None)

    def first(self, aside: Mapping[str, Timer | None] | None = None) -> Timer | None:
        """Return the timer that fires next, None when none is armed.

        Args:
            aside: Timers by id that are passed over; to take one up again, arm it.
        """
        while (entry := self._heap.first()) is not None:
            timer = self.armed[entry[1]]
            if not aside or aside.get(timer.id) != timer:
                return timer
            self._heap.pop()
        return None

    def _is_due(self, entry: tuple[int, str]) -> bool:
        """Tell whether a timer is armed for the time of an entry."""
        timer = self.armed.get(entry[1])
        return timer is not None and timer.due == entry[0]

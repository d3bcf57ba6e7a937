"""Timers of a state whose changes are noted, so that a read model need not compare all of them after each event."""

from __future__ import annotations

from evsched.core.timers import Timer, Timers


class WatchedTimers(Timers):
    """All armed timers of a partition.

    Attributes:
        changed: Ids of those that were armed or taken off since somebody emptied it, in that order.
    """

    __slots__ = ("changed",)

    def __init__(self, timers: list[Timer]) -> None:
        """Start with these timers armed, which is no change."""
        super().__init__(timers)
        self.changed: dict[str, None] = {}

    def arm(self, timer: Timer) -> None:
        """See `Timers.arm`."""
        super().arm(timer)
        self.changed[timer.id] = None

    def cancel(self, timer_id: str) -> None:
        """See `Timers.cancel`."""
        super().cancel(timer_id)
        self.changed[timer_id] = None

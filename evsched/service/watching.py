"""Whether somebody leads: what a standby makes of a leader's signs of life.

No clocks are compared. A heartbeat or a frame that this process has not seen before is a sign of
life *now*, by its own monotonic clock; a leader that gave none for the lease counts as gone. Being
wrong about it costs the other leader its term and nothing else: who leads is decided in the log.
"""

from __future__ import annotations

from typing import Literal

from events.chain import Head
from events.streams.protocols import EventLog, Heartbeat
from evsched.service.environment import Clock
from evsched.service.process_identity import surely_gone

Sight = Literal["led", "open", "dead", "silent"]
"""Somebody leads; nobody does (it resigned, or none ever did); the process that did is gone; it was silent for the lease."""


class Watch:
    """Looks at the heartbeats of one cluster partition.

    Attributes:
        beat: The last heartbeat seen; None when there is none.
        age: Seconds since the last sign of life, or since the first look when there was none.
    """

    def __init__(self, log: EventLog, clock: Clock, lease: float) -> None:
        """Watch a log; ``lease`` is in seconds."""
        self.beat: Heartbeat | None = None
        self.age = 0.0
        self._log = log
        self._clock = clock
        self._lease = lease
        self._seen: tuple[str, int, int, int] | None = None
        self._since = 0.0
        self._given_up = ""

    def given_up(self, leader: str) -> None:
        """Take note that this process led under this id and does not any more."""
        self._given_up = leader

    async def look(self, tip: Head) -> Sight:
        """Return how things stand now.

        Args:
            tip: The last frame of the log that this process has read.
        """
        self.beat = beat = await self._log.last_heartbeat()
        seen = (
            (beat.leader, beat.term, beat.number, tip.frame)
            if beat is not None
            else ("", 0, 0, tip.frame)
        )
        now = self._clock.elapsed()
        if seen != self._seen:
            self._seen, self._since = seen, now
        self.age = now - self._since
        if self._nobody_leads(beat, tip):
            return "open"
        if beat is not None and beat.term >= tip.term and surely_gone(beat.process):
            return "dead"
        return "silent" if self.age >= self._lease else "led"

    @property
    def gone(self) -> bool:
        """Whether the process of the last heartbeat has surely ended; asks this machine alone, so it may be looked at often."""
        return self.beat is not None and surely_gone(self.beat.process)

    def _nobody_leads(self, beat: Heartbeat | None, tip: Head) -> bool:
        if beat is None:
            # One that gave up before its first heartbeat left none.
            return tip.frame == 0 or tip.leader == self._given_up
        if beat.term < tip.term:
            # A newer leader has begun, and its first heartbeat is on its way.
            return tip.leader == self._given_up
        return beat.resigned or beat.leader == self._given_up

"""What will arrive: stretches of the log's own past, drawn at random and played again.

PastArrivals come in bursts, and what comes together belongs together: a job submits a hundred equal
asks, nights are quiet. So no rate is estimated. Whole stretches of the past are played again with
everything in them (a block bootstrap); each queue and shape keeps its rate, and bursts stay bursts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from replays.forecasting.draws import Draws
    from replays.forecasting.past import Lessons, PastArrival

STRETCH_MS = 6 * 3_600_000
"""How long one stretch is at most."""

STRETCHES = 8
"""A short past is cut into at least so many, where it is longer than their number in milliseconds."""

LOOK_BACK_MS = 3_600_000
PLACES = 400
ALIKE = 8
"""The first stretch begins where the past was as busy as it is now: of so many places, even in time, one of the eighth part
before which as many asks had arrived, in the hour before, as now."""

DAY_MS = 86_400_000
DAYS = 3
"""A past of so many days knows what a time of day is: stretches keep theirs then."""


class Coming(NamedTuple):
    """An arrival of a run.

    Attributes:
        after_ms: From the begin of the run.
        stretch: Its number in the run; applications that come in different ones are different.
    """

    after_ms: int
    stretch: int
    arrival: PastArrival


class PastArrivals:
    """The arrivals of a past, by time."""

    def __init__(self, lessons: Lessons) -> None:
        """Take what is known."""
        self._arrivals: Sequence[PastArrival] = lessons.arrivals
        self._times = [one.time for one in lessons.arrivals]
        # Where more arrived than is remembered, the past begins with what is.
        self._begun = lessons.begun
        self._now = lessons.now
        span = lessons.now - lessons.begun
        self._length = max(1, min(STRETCH_MS, span // STRETCHES))
        self._first = self._alike()
        self._by_day = span >= DAYS * DAY_MS and DAY_MS % self._length == 0

    def drawn(self, draws: Draws, horizon_ms: int) -> Iterator[Coming]:
        """Yield the arrivals of a run, by time, all before the horizon."""
        if not self._times:
            return
        for number in range(-(-horizon_ms // self._length)):
            begin = self._stretch(draws, number)
            offset = number * self._length
            first = bisect_left(self._times, begin + 1)
            for at in range(first, bisect_left(self._times, begin + self._length + 1)):
                after = offset + self._times[at] - begin
                if after < horizon_ms:
                    yield Coming(after, number, self._arrivals[at])

    def _stretch(self, draws: Draws, number: int) -> int:
        """Return where a stretch of the past begins; all places are as likely, of the same time of day where there are days."""
        places = max(1, self._now - self._begun - self._length + 1)
        subject = f"stretch/{number}"
        if number == 0:
            return self._first[draws.below(len(self._first), subject)]
        if not self._by_day:
            return self._begun + draws.below(places, subject)
        # Counted back from now, the same time of day lies whole days before.
        latest = self._now + number * self._length % DAY_MS
        latest -= DAY_MS * -(-(latest + self._length - self._now) // DAY_MS)
        days = (latest - self._begun) // DAY_MS + 1
        return latest - DAY_MS * draws.below(max(1, days), subject)

    def _alike(self) -> list[int]:
        """Return places of the past before which about as many asks arrived as before now."""
        room = max(0, self._now - self._begun - self._length)
        look = min(LOOK_BACK_MS, self._length)
        busy = self._count(self._now - look, self._now)
        places = [self._begun + room * at // PLACES for at in range(PLACES + 1)]
        places.sort(key=lambda at: (abs(self._count(at - look, at) - busy), -at))
        return places[: len(places) // ALIKE]

    def _count(self, after: int, until: int) -> int:
        """Return how many arrived after a time, up to another one."""
        return bisect_right(self._times, until) - bisect_right(self._times, after)

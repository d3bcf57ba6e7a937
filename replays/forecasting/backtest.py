"""How well such forecasts held: asks of the last week are forecast from the moment they came, and compared with their starts.

A forecast of the past knows only what was known then. An ask is judged when its start is known, or
when it still waits behind the 90th percentile; one that was withdrawn says nothing. Which asks are
taken depends on the log alone: they lie evenly among those that waited.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from replays.forecasting.arrivals import PastArrivals
from replays.forecasting.draws import Draws, ranked
from replays.forecasting.running_ahead import RunAhead
from replays.history.moments import Moment
from replays.history.steps import copier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from events.chain import ChainReader
    from evsched.core.engine import Engine
    from replays.forecasting.past import Learning, Lessons, Waited
    from replays.history.rebuild import History

WEEK_MS = 7 * 86_400_000


class Calibration(Struct, frozen=True, kw_only=True):
    """How forecasts of the past compare with what happened.

    Attributes:
        asks: How many were forecast.
        judged: Of how many of them the start is known well enough.
        inside: How many of these started from the 10th to the 90th percentile, both included.
        before: How many started before the 10th percentile.
        after: How many started after the 90th, or still wait behind it.
        first_half: How many started up to the 50th percentile.
        runs: Of each forecast.
        begin, end: From when to when the asks came, milliseconds.
    """

    asks: int = 0
    judged: int = 0
    inside: int = 0
    before: int = 0
    after: int = 0
    first_half: int = 0
    runs: int = 0
    begin: int = 0
    end: int = 0

    @property
    def percent(self) -> int | None:
        """How many percent of the judged started inside, rounded down; None: none was judged."""
        return self.inside * 100 // self.judged if self.judged else None


class Band(NamedTuple):
    """A forecast's percentiles, milliseconds from when it was made; None: not within the horizon.

    Attributes:
        horizon: Of the forecast, milliseconds.
    """

    p10: int | None
    p50: int | None
    p90: int | None
    horizon: int

    @classmethod
    def of(cls, starts: list[int], runs: int, horizon: int) -> Band:
        """Return the percentiles of so many runs, in which these starts came about."""
        p10, p50, p90 = (ranked(starts, runs, percent) for percent in (10, 50, 90))
        return cls(p10, p50, p90, horizon)

    def place(self, waited: int | None, seen: int) -> int | None:
        """Return where a start lies.

        Args:
            waited: After how many milliseconds it came; None: it had not when the log ended.
            seen: How many milliseconds of the log there are behind the forecast.

        Returns:
            -1: before the band; 0: inside; 1: after it; None: unknown.
        """
        if waited is None and seen <= (self.horizon if self.p90 is None else self.p90):
            return None
        # What still waits behind the band, or behind the horizon, starts later than both.
        start = seen if waited is None else waited
        if start < (self.horizon if self.p10 is None else self.p10):
            return -1
        return 1 if self.p90 is not None and start > self.p90 else 0


class PastForecast(NamedTuple):
    """A forecast of the past beside what happened, as of `Band.place`."""

    asked: Waited
    band: Band
    place: int | None


def chosen(waited: Sequence[Waited], begin: int, most: int) -> list[Waited]:
    """Return at most so many of those that came from a time on, evenly among them."""
    candidates = [one for one in waited if one.submitted >= begin and not one.withdrawn]
    if len(candidates) <= most:
        return candidates
    return [candidates[at * len(candidates) // most] for at in range(most)]


class Backtest(NamedTuple):
    """How to go about it.

    Attributes:
        runs: Of each forecast.
        horizon_ms: Of each forecast.
        seed: As of the forecast.
        arrivals: Whether asks arrive.
    """

    runs: int
    horizon_ms: int
    seed: int
    arrivals: bool

    async def trials(
        self,
        history: History,
        learnt: Learning,
        asks: Sequence[Waited],
        progress: Callable[[], Awaitable[None]],
    ) -> list[PastForecast]:
        """Forecast these asks from the moments they came.

        Args:
            history: The log.
            learnt: Has read it from before the first of them to its end.
            asks: By submission.
            progress: Called after each run.
        """
        found: list[PastForecast] = []
        behind: tuple[Engine, ChainReader] | None = None
        end = learnt.until().now
        for seq, group in groupby(asks, key=lambda one: one.seq):
            behind = await history.boundary(Moment(seq=seq), behind)
            together = list(group)
            lessons = learnt.until(behind[0].state.time)
            starts = await self._starts(behind[0], lessons, [one.ask for one in together], progress)
            for one in together:
                band = Band.of(starts[one.ask], self.runs, self.horizon_ms)
                waited = None if one.started is None else one.started - one.submitted
                found.append(PastForecast(one, band, band.place(waited, end - one.submitted)))
        return found

    async def _starts(
        self,
        engine: Engine,
        lessons: Lessons,
        asks: list[str],
        progress: Callable[[], Awaitable[None]],
    ) -> dict[str, list[int]]:
        again, arrivals = copier(engine), PastArrivals(lessons)
        starts: dict[str, list[int]] = {ask: [] for ask in asks}
        for number in range(self.runs):
            draws = Draws(self.seed, number)
            coming = arrivals.drawn(draws, self.horizon_ms) if self.arrivals else ()
            run = RunAhead(again(), lessons, draws, coming)
            for ask, outcome in run.go(asks, self.horizon_ms, to_the_end=False).items():
                if outcome.after_ms is not None:
                    starts[ask].append(outcome.after_ms)
            await progress()
        return starts


def held(trials: Sequence[PastForecast], runs: int) -> Calibration:
    """Sum trials up."""
    judged = [one for one in trials if one.place is not None]
    return Calibration(
        asks=len(trials),
        judged=len(judged),
        inside=sum(one.place == 0 for one in judged),
        before=sum(one.place == -1 for one in judged),
        after=sum(one.place == 1 for one in judged),
        first_half=sum(_in_first_half(one) for one in judged),
        runs=runs,
        begin=min((one.asked.submitted for one in trials), default=0),
        end=max((one.asked.submitted for one in trials), default=0),
    )


def _in_first_half(trial: PastForecast) -> bool:
    started, p50 = trial.asked.started, trial.band.p50
    return started is not None and (p50 is None or started - trial.asked.submitted <= p50)

"""How long will it wait: the question of `evsched forecast`.

The state of the moment is copied once a run. Each copy runs ahead on a clock of its own
(`replays.forecasting.running_ahead`), with lives and arrivals that are drawn from what the log says of
its past (`replays.forecasting.past`). Nothing is written. The seed decides every draw, so that an
answer to one place of the log is always the same.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from evsched.core.tallies import uncounted
from replays import wording_forecast
from replays.forecasting.arrivals import PastArrivals
from replays.forecasting.backtest import WEEK_MS, Backtest, Band, Calibration, chosen, held
from replays.forecasting.draws import Draws
from replays.forecasting.levers import Lever, LeverKind, levers
from replays.forecasting.past import Learning
from replays.forecasting.running_ahead import Fate, RunAhead, RunRefused
from replays.history.moments import END, Moment
from replays.history.rebuild import apply_step
from replays.history.steps import copier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evsched.core.engine import Engine
    from evsched.core.state import State
    from replays.forecasting.past import Lessons
    from replays.history.rebuild import History

RUNS = 100
HORIZON_MS = 86_400_000
PASTS = 10
"""A horizon that is not asked for is a day, but at most so many times as long as the past that is known."""

LEARN_MS = 4 * WEEK_MS
MOST_ASKS = 500
"""So many asks of a queue are forecast at most, the oldest first."""

CHANGE_RUNS = 10
"""So many runs at most try each change."""

TEST_RUNS = 20
"""So many runs at most forecast each ask of a back-test."""


class ForecastQuestion(Struct, frozen=True, kw_only=True):
    """When will an ask start, or the asks that wait in a queue?

    Attributes:
        subject: An ask that waits, or a queue (with those below it).
        moment: From when the engine runs ahead.
        runs: How many times; more of them make the percentiles steadier.
        horizon_ms: How far each run goes; None: a day, or less where little of a past is known.
        seed: Decides every draw.
        arrivals: Whether asks arrive, as they did in the past; False: nothing comes any more.
        learn_ms: How much of the past is learnt from.
        changes: Whether to try what would shorten it.
        backtest: How many asks of the last week are forecast to compare; 0: none.
    """

    subject: str
    moment: Moment = END
    runs: int = RUNS
    horizon_ms: int | None = None
    seed: int = 1
    arrivals: bool = True
    learn_ms: int = LEARN_MS
    changes: bool = True
    backtest: int = 10


class AskForecast(Struct, frozen=True, kw_only=True):
    """When one ask starts.

    Attributes:
        p10_ms, p50_ms, p90_ms: It starts so long after the moment or sooner in 10, 50 and 90 of a
            hundred runs; None: not within the horizon.
        started: In how many runs it starts within the horizon.
        preempted: In how many of these it is preempted before its end and before the horizon.
    """

    ask: str
    queue: str
    p10_ms: int | None
    p50_ms: int | None
    p90_ms: int | None
    started: int
    preempted: int


class TriedChange(Struct, frozen=True, kw_only=True):
    """What a change would do, found by running ahead with it.

    Attributes:
        kind: ``maximum``, ``guaranteed``, ``limit`` (of a user or group), ``applications``,
            ``nominal`` and ``borrowing`` (quotas of Kueue), ``queue`` (another one), ``shape``
            (half of all it asks for).
        where: The queue or cohort; for ``queue`` the other one.
        detail: The flavor, the limit, or further queues that are raised with it.
        before, after: The amounts that change, base units.
        p50_ms: With it; None: not within the horizon.
        without_p50_ms: The same runs without it.
        started, without_started: In how many of the runs it starts, with and without it.
        runs: How many were made; 0 where it is refused.
        refused: Why it cannot be; empty where it can.
    """

    kind: LeverKind
    where: str
    detail: str
    before: dict[str, int]
    after: dict[str, int]
    p50_ms: int | None
    without_p50_ms: int | None
    started: int
    without_started: int
    runs: int
    refused: str = ""


class ForecastAnswer(Struct, frozen=True, kw_only=True):
    """When an ask starts, or the asks that wait in a queue.

    Attributes:
        seq, time: The place from which the engine ran ahead.
        all: All asks of a queue taken together; for an ask the same as its own.
        asks: Each ask, the oldest first.
        left_out: Asks of the queue that wait as well and were not forecast.
        changes: What was tried, what shortens it most first.
        begun: Since when the past was learnt from, milliseconds.
        ends: How many allocations were seen to end by themselves.
        arrived: How many asks were seen to arrive.
        eviction_ms: How long evictions are supposed to take.
        held: How such forecasts of the past compare with what happened; None: not asked for.
        summary: The answer in sentences.
    """

    subject: str
    kind: Literal["ask", "queue"]
    seq: int
    time: int
    runs: int
    horizon_ms: int
    seed: int
    arrivals: bool
    all: AskForecast
    asks: tuple[AskForecast, ...]
    left_out: int
    changes: tuple[TriedChange, ...]
    begun: int
    ends: int
    arrived: int
    eviction_ms: int
    held: Calibration | None
    summary: tuple[str, ...] = ()


class NotForecast(Exception):
    """There is nothing to forecast; the message says why."""


async def forecast(
    history: History,
    question: ForecastQuestion,
    progress: Callable[[int, int], None] | None = None,
) -> ForecastAnswer:
    """Run the engine ahead from a moment, many times, and say when asks start.

    Args:
        history: The log.
        question: Of what, and how.
        progress: Called after each run with how many were made, and how many there are (as far as
            that is known).

    Raises:
        NotForecast: Nothing of that name waits.
    """
    engine = await history.at(question.moment)
    kind, asks = _asks(engine.state, question.subject)
    learnt = await _learnt(history, question, engine.state)
    lessons = learnt.until()
    horizon = question.horizon_ms
    if horizon is None:
        horizon = min(HORIZON_MS, max(1, PASTS * (lessons.now - lessons.begun)))
    work = _Work(question, horizon, progress or (lambda done, total: None))  # noqa: ARG005
    found = await work.outcomes(engine, lessons, asks[:MOST_ASKS])
    changes = await work.changes(engine, lessons, found, of_ask=kind == "ask")
    compared = await work.held(history, learnt) if question.backtest else None
    answer = ForecastAnswer(
        subject=question.subject,
        kind=kind,
        seq=engine.state.seq,
        time=engine.state.time,
        runs=question.runs,
        horizon_ms=horizon,
        seed=question.seed,
        arrivals=question.arrivals,
        all=_forecast(question.subject, "", [one for all_of in found.values() for one in all_of]),
        asks=tuple(
            _forecast(ask, engine.state.asks[ask].queue, all_of) for ask, all_of in found.items()
        ),
        left_out=len(asks) - len(found),
        changes=changes,
        begun=lessons.begun,
        ends=lessons.ends,
        arrived=len(lessons.arrivals),
        eviction_ms=lessons.eviction_ms,
        held=compared,
    )
    return replace(answer, summary=tuple(wording_forecast.told(answer)))


def _asks(state: State, subject: str) -> tuple[Literal["ask", "queue"], list[str]]:
    """Return the asks that are meant, the oldest first."""
    if subject in state.asks:
        return "ask", [subject]
    path = state.local_queues.get(subject, subject)
    queue = state.queues.get(path) or (state.root if path == state.root.path else None)
    if queue is None:
        runs = subject in state.allocations
        raise NotForecast(wording_forecast.not_waiting(subject, runs=runs))
    waiting = [
        ask
        for leaf in queue.leaves()
        for application in leaf.applications.values()
        for ask in application.asks.values()
        if subject in (path, ask.local_queue)
    ]
    if not waiting:
        raise NotForecast(wording_forecast.nothing_waits(subject))
    return "queue", [ask.id for ask in sorted(waiting, key=lambda ask: (ask.created, ask.id))]


async def _learnt(history: History, question: ForecastQuestion, state: State) -> Learning:
    """Read what there is to learn, up to the moment."""
    begin = Moment(time=state.time - question.learn_ms)
    engine, reader = await history.boundary(begin)
    learning = Learning(engine.state)
    with uncounted(engine.state):
        async with aclosing(history.steps(reader, Moment(seq=state.seq))) as steps:  # type: ignore[type-var]
            async for step in steps:
                apply_step(engine, step)
                learning.take(step, engine.state)
    return learning


class _Work:
    """The runs of one forecast."""

    def __init__(
        self, question: ForecastQuestion, horizon: int, progress: Callable[[int, int], None]
    ) -> None:
        self._question = question
        self._horizon = horizon
        self._progress = progress
        self._change_runs = min(question.runs, CHANGE_RUNS)
        self._test_runs = min(question.runs, TEST_RUNS)
        self._done = 0
        self._total = question.runs + question.backtest * self._test_runs

    async def _tell(self) -> None:
        """Count a run; a command can be interrupted here."""
        self._done += 1
        self._progress(self._done, max(self._total, self._done))
        await asyncio.sleep(0)

    async def outcomes(
        self, engine: Engine, lessons: Lessons, asks: Sequence[str]
    ) -> dict[str, list[Fate]]:
        """Return what becomes of each ask in each run."""
        found: dict[str, list[Fate]] = {ask: [] for ask in asks}
        again, arrivals = copier(engine), PastArrivals(lessons)
        for number in range(self._question.runs):
            run = self._run(again(), lessons, arrivals, number)
            for ask, outcome in run.go(asks, self._horizon).items():
                found[ask].append(outcome)
            await self._tell()
        return found

    def _run(
        self, world: Engine, lessons: Lessons, arrivals: PastArrivals, number: int
    ) -> RunAhead:
        draws = Draws(self._question.seed, number)
        coming = arrivals.drawn(draws, self._horizon) if self._question.arrivals else ()
        return RunAhead(world, lessons, draws, coming)

    async def changes(
        self,
        engine: Engine,
        lessons: Lessons,
        without: dict[str, list[Fate]],
        *,
        of_ask: bool,
    ) -> tuple[TriedChange, ...]:
        """Try what might shorten it, in the runs with the same numbers, and return what does so most first."""
        if not self._question.changes:
            return ()
        first = engine.state.asks[next(iter(without))]
        found = levers(engine.state, first, of_ask=of_ask)
        self._total += len(found) * self._change_runs
        before = [one for all_of in without.values() for one in all_of[: self._change_runs]]
        tried = [await self._tried(engine, lessons, one, tuple(without), before) for one in found]
        return tuple(sorted(tried, key=_by_effect))

    async def _tried(
        self,
        engine: Engine,
        lessons: Lessons,
        lever: Lever,
        asks: Sequence[str],
        before: list[Fate],
    ) -> TriedChange:
        again, arrivals = copier(engine), PastArrivals(lessons)
        after: list[Fate] = []
        refused, runs = "", 0
        for number in range(self._change_runs):
            run = self._run(again(), lessons, arrivals, number)
            try:
                after += run.go(asks, self._horizon, to_the_end=False, tried=lever.inputs).values()
            except RunRefused as error:
                refused = str(error)
                break
            finally:
                await self._tell()
            runs += 1
        return TriedChange(
            kind=lever.kind,
            where=lever.where,
            detail=lever.detail,
            before=lever.before,
            after=lever.after,
            p50_ms=_band(after).p50,
            without_p50_ms=_band(before).p50,
            started=_started(after),
            without_started=_started(before),
            runs=runs,
            refused=refused,
        )

    async def held(self, history: History, learnt: Learning) -> Calibration:
        """Forecast asks of the last week, or of the later half of what was learnt from where that is less."""
        question, lessons = self._question, learnt.until()
        begin = max(lessons.now - WEEK_MS, (lessons.begun + lessons.now) // 2)
        asks = chosen(learnt.waited(), begin, question.backtest)
        runs = self._test_runs
        test = Backtest(runs, self._horizon, question.seed, question.arrivals)
        trials = await test.trials(history, learnt, asks, self._tell)
        return held(trials, runs)


def _started(outcomes: Sequence[Fate]) -> int:
    return sum(one.after_ms is not None for one in outcomes)


def _band(outcomes: Sequence[Fate]) -> Band:
    starts = [one.after_ms for one in outcomes if one.after_ms is not None]
    return Band.of(starts, len(outcomes), 0)


def _forecast(ask: str, queue: str, outcomes: Sequence[Fate]) -> AskForecast:
    band = _band(outcomes)
    return AskForecast(
        ask=ask,
        queue=queue,
        p10_ms=band.p10,
        p50_ms=band.p50,
        p90_ms=band.p90,
        started=_started(outcomes),
        preempted=sum(one.preempted for one in outcomes),
    )


def _by_effect(change: TriedChange) -> tuple[bool, int, bool, int, str, str, str]:
    """Return the sort key of a change: a later start within fewer runs comes last, what is refused at the very end."""
    known = change.p50_ms is None
    return (
        bool(change.refused),
        -change.started,
        known,
        change.p50_ms or 0,
        change.kind,
        change.where,
        change.detail,
    )

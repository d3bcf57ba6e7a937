"""The sentences of a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.duration import format_duration
from replays.history.moments import format_time
from replays.wording import amounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from replays.forecasting.backtest import Calibration
    from replays.forecasting.forecast import AskForecast, ForecastAnswer, TriedChange

_UNITS = (86_400_000, 3_600_000, 60_000, 1000)


def span(ms: int) -> str:
    """Return a span of time with its two largest units, rounded down: ``2h5m``; below a second in milliseconds."""
    for larger, smaller in zip(_UNITS, (*_UNITS[1:], 1000), strict=True):
        if ms >= larger:
            return format_duration(ms // smaller * smaller)
    return format_duration(ms)


def not_waiting(subject: str, *, runs: bool) -> str:
    """Say why there is nothing to forecast."""
    if runs:
        return f"{subject}: runs already, expected an ask that waits, or a queue"
    return f"{subject}: neither waits nor is a queue at this moment"


def nothing_waits(queue: str) -> str:
    """Say that a queue has nothing to forecast."""
    return f"queue {queue}: nothing waits in it at this moment"


def told(answer: ForecastAnswer) -> Iterator[str]:
    """Yield the answer in sentences: the start, preemption, what helps, what it rests on, how well it held."""
    yield _start(answer)
    found = answer.all
    if found.started:
        yield (
            f"Of {found.started} runs in which it starts, it is preempted before its end in"
            f" {found.preempted}."
            if answer.kind == "ask"
            else f"Of {found.started} starts, {found.preempted} are preempted before their end."
        )
    if answer.left_out:
        yield f"{answer.left_out} more asks wait in it; the oldest are forecast."
    helpful = [one for one in answer.changes if _helps(one)]
    if helpful:
        yield f"What shortens it most: {change(helpful[0])}."
    elif answer.changes:
        yield "Nothing that was tried shortens it."
    yield _rests_on(answer)
    if answer.held is not None:
        yield held(answer.held)


def _start(answer: ForecastAnswer) -> str:
    found, horizon = answer.all, span(answer.horizon_ms)
    said = ", ".join(
        f"{share} {_within(at, horizon)}"
        for share, at in (
            ("10 %", found.p10_ms),
            ("50 %", found.p50_ms),
            ("90 %", found.p90_ms),
        )
    )
    subject = (
        f"ask {answer.subject}"
        if answer.kind == "ask"
        else f"{len(answer.asks)} asks in {answer.subject}"
    )
    made = answer.runs * len(answer.asks)
    late = made - found.started
    rest = f"; {late} of {made} not within {horizon}" if late else ""
    return f"Start of {subject} after {format_time(answer.time)}: {said}{rest}."


def _within(at: int | None, horizon: str) -> str:
    return f"later than {horizon}" if at is None else f"within {span(at)}"


def row(one: AskForecast, runs: int) -> tuple[str, ...]:
    """Return the cells of an ask: its name, queue, percentiles, and in how many runs it does not start and is preempted."""
    percentiles = ("-" if at is None else span(at) for at in (one.p10_ms, one.p50_ms, one.p90_ms))
    return one.ask, one.queue, *percentiles, str(runs - one.started), str(one.preempted)


_CHANGES = {
    "maximum": "a larger maximum of {where}",
    "guaranteed": "a larger guarantee of {where}",
    "limit": "a larger limit of {detail} in {where}",
    "applications": "more applications in {where}",
    "nominal": "a larger nominal quota of {where}, flavor {detail}",
    "borrowing": "a larger borrowing limit of {where}, flavor {detail}",
    "queue": "another queue, {where}",
    "shape": "a smaller shape",
}


def what(one: TriedChange) -> str:
    """Return what a change is, with its amounts."""
    said = _CHANGES[one.kind].format(where=one.where, detail=one.detail)
    if one.kind in ("maximum", "guaranteed") and one.detail:
        said = f"{said} {one.detail}"
    if not one.after:
        return said
    return f"{said} ({amounts(one.before)} → {amounts(one.after)})"


def effect(one: TriedChange) -> str:
    """Return what a change does to the median start."""
    if one.refused:
        return f"refused: {one.refused}"
    before = "not within the horizon" if one.without_p50_ms is None else span(one.without_p50_ms)
    after = "not within the horizon" if one.p50_ms is None else span(one.p50_ms)
    return after if before == after else f"{before} → {after}"


def change(one: TriedChange) -> str:
    """Return a change and what it does."""
    return f"{what(one)}: median start {effect(one)}"


def _helps(one: TriedChange) -> bool:
    if one.refused:
        return False
    if one.p50_ms is None:
        return one.started > one.without_started
    return one.without_p50_ms is None or one.p50_ms < one.without_p50_ms


def _rests_on(answer: ForecastAnswer) -> str:
    comes = (
        f"asks arrive as {answer.arrived} did since then"
        if answer.arrivals and answer.arrived
        else "no more asks arrive"
    )
    return (
        f"It rests on {answer.runs} runs, on {answer.ends} ends of allocations since"
        f" {format_time(answer.begun)}; {comes}; an eviction takes {span(answer.eviction_ms)};"
        " nodes and configuration stay as they are."
    )


def held(found: Calibration) -> str:
    """Say how forecasts of the past compare with what happened."""
    if not found.judged:
        return "No forecast of the past can be compared: no ask waited in that time."
    return (
        f"Of {found.judged} forecasts of asks that came from {format_time(found.begin)} to"
        f" {format_time(found.end)}, {found.inside} started from the 10th to the 90th percentile"
        f" (80 % would be right), {found.before} before it, {found.after} after it;"
        f" {found.first_half} up to the median."
    )

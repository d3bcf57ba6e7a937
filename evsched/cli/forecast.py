"""`evsched forecast`: how long an ask will wait, or the asks of a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from evsched.cli.answers import NO, CommandError, emit, paper, say, talk
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, SnapshotFolder, history_of, moment_of
from evsched.core.duration import DurationError, parse_duration_ms

if TYPE_CHECKING:
    from evsched.cli.tables import PlainTable
    from replays.forecasting.forecast import ForecastAnswer

ASKS_SHOWN = 20

AtLeastOne = Annotated[int, Parameter(validator=validators.Number(gte=1))]
NotNegative = Annotated[int, Parameter(validator=validators.Number(gte=0))]


async def forecast(  # noqa: PLR0913 - the options of a command
    subject: str,
    /,
    *,
    where: Where = HERE,
    at: Annotated[MomentText, Parameter(name="--at")] = "end",
    runs: AtLeastOne = 100,
    horizon: str | None = None,
    seed: int = 1,
    arrivals: bool = True,
    learn: str = "672h",
    changes: bool = True,
    backtest: NotNegative = 10,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Say when an ask will start, or the asks that wait in a queue; exits 1 when nothing of that name waits.

    The scheduler itself runs ahead from that moment, on a copy and many times. How long allocations
    live and what arrives is drawn from the log's own past. The answer: the start in 10, 50 and 90 of
    100 runs, in how many it is preempted, and what would shorten it, each tried by running. Asks of
    the last week are forecast as well and compared with what happened to them.

    Nothing is written, and the same log, moment and seed give the same answer.

    **Examples**

    `evsched forecast prod-7`

    `evsched forecast root.web --horizon 6h --runs 200`

    `evsched forecast prod-7 --no-arrivals --no-changes --backtest 0 --json`

    Args:
        subject: Id of an ask that waits, or a queue with all that waits in it and below.
        where: Which log.
        at: A seq, a time, or time before the end of the log (-15m).
        runs: How many times the scheduler runs ahead.
        horizon: How far, such as 6h or 90m; 24h by default, or less where the log is young.
        seed: Decides what is drawn.
        arrivals: Whether asks arrive, as they did in the past.
        learn: How much of the past is learnt from.
        changes: Whether to try what would shorten it.
        backtest: How many asks of the last week are forecast to compare; 0: none.
        snapshots: Folder of snapshots.
        json: One document.
    """
    from replays.forecasting.forecast import ForecastQuestion, NotForecast  # noqa: PLC0415
    from replays.forecasting.forecast import forecast as answer  # noqa: PLC0415

    question = ForecastQuestion(
        subject=subject,
        moment=moment_of(at),
        runs=runs,
        horizon_ms=None if horizon is None else _span("--horizon", horizon),
        seed=seed,
        arrivals=arrivals,
        learn_ms=_span("--learn", learn),
        changes=changes,
        backtest=backtest,
    )
    async with history_of(where, snapshots) as history:
        try:
            with _progress() as advance:
                found = await answer(history, question, advance)
        except NotForecast as error:
            say(str(error))
            return NO
    if json:
        emit(found)
    else:
        _print(found)
    return 0


def _span(option: str, text: str) -> int:
    try:
        found = parse_duration_ms(text)
    except DurationError as error:
        raise CommandError(f"{option}: {error}") from error
    if found <= 0:
        raise CommandError(f"{option}: found {text}, expected more than 0")
    return found


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show how many runs were made, on the standard error where that is a terminal."""
    console = talk()
    if not console.is_terminal:
        yield lambda done, total: None  # noqa: ARG005 - nobody looks
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("running ahead", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print(answer: ForecastAnswer) -> None:
    from rich.text import Text  # noqa: PLC0415

    from evsched.cli.tables import PlainTable  # noqa: PLC0415
    from replays.wording_forecast import effect, what  # noqa: PLC0415

    console = paper()
    for sentence in answer.summary:
        console.print(Text(sentence))
    if answer.kind == "queue":
        console.table(_asks(answer))
        if len(answer.asks) > ASKS_SHOWN:
            say(f"{len(answer.asks) - ASKS_SHOWN} more asks; --json shows all")
    if answer.changes:
        console.heading("What was tried")
        table = PlainTable("change", "median start")
        for one in answer.changes:
            table.add_row(what(one), effect(one))
        console.table(table)


def _asks(answer: ForecastAnswer) -> PlainTable:
    from evsched.cli.tables import PlainTable  # noqa: PLC0415
    from replays.wording_forecast import row  # noqa: PLC0415

    table = PlainTable("ask", "queue")
    for name in ("10 %", "50 %", "90 %", "not started", "preempted"):
        table.add_column(name, justify="right")
    for one in answer.asks[:ASKS_SHOWN]:
        table.add_row(*row(one, answer.runs))
    return table

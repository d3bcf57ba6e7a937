"""`evsched shadow`: what the scheduler of a cluster did, beside what evsched would have done."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from evsched.cli.answers import DONE, NO, CommandError, emit, paper, printable, say, tell
from evsched.cli.cells import amount_hours, counted
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import SnapshotFolder, end_of, history_of, meter, moment_of
from evsched.cli.whatif import Time
from evsched.core.rules import FIRST, NEWEST, RULES
from replays.history.moments import END, format_time

if TYPE_CHECKING:
    from evsched.cli.tables import PlainTable
    from replays.checking.shadow import ShadowAnswer

SHOWN = 50
"""So many differences are shown to a person; --json and --csv have all."""

COLUMNS = ("seq", "time", "subject", "kind", "verdict", "theirs", "ours", "scheduler", "text")


app = App(name="shadow", help="Compare evsched with the scheduler of a recorded cluster.")


@app.command
async def report(  # noqa: PLR0913 - the options of a command
    *,
    where: Where = HERE,
    first: Annotated[Time, Parameter(name="--from")] = None,
    last: Annotated[Time, Parameter(name="--to")] = None,
    rules: int | None = None,
    free: Annotated[bool, Parameter(negative=())] = False,
    snapshots: SnapshotFolder = None,
    json: Json = False,
    as_csv: Annotated[bool, Parameter(name="--csv", negative=())] = False,
) -> int:
    """Hold every decision of the cluster's scheduler against what evsched would have done at that point.

    With --free evsched goes on from its own decisions instead: the same nodes, asks and ends, decided
    by it from the first step on, and what became of each ask in the end. Exits 1 when any of them differs.

    **Examples**

    `evsched shadow report`

    `evsched shadow report --from -24h --csv > shadow.csv`

    `evsched shadow report --free`

    Args:
        where: Which log, in which a cluster was recorded.
        first: Moment from which decisions are compared; the beginning by default.
        last: Moment up to which they are.
        rules: Version of the rules by which evsched decides; those in force by default.
        free: How the cluster would have gone on under evsched, in place of decision by decision.
        snapshots: Folder of snapshots.
        json: One document.
        as_csv: Comma-separated, one line a decision.
    """
    from evsched.cli import shadow_courses as courses  # noqa: PLC0415
    from replays.checking.free import FreeAnswer, FreeQuestion, shadow_free  # noqa: PLC0415
    from replays.checking.shadow import ShadowQuestion, shadow  # noqa: PLC0415

    if json and as_csv:
        raise CommandError("--json and --csv: found both, expected one of them")
    if rules is not None and rules not in RULES:
        raise CommandError(f"--rules {rules}: not known, expected {FIRST} to {NEWEST}")
    begin = moment_of("start" if first is None else first)
    end = END if last is None else moment_of(last)
    async with history_of(where, snapshots) as history:
        with meter("comparing decisions", await end_of(history.log)) as advance:
            answer: ShadowAnswer | FreeAnswer
            if free:
                asked = FreeQuestion(start=begin, end=end, rules=rules)
                answer = await shadow_free(history, asked, lambda step: advance(step.head.position))
            else:
                question = ShadowQuestion(start=begin, end=end, rules=rules)
                answer = await shadow(history, question, lambda step: advance(step.head.position))
    if json:
        emit(answer)
    elif isinstance(answer, FreeAnswer):
        (courses.write if as_csv else courses.show)(answer)
    elif as_csv:
        _write(answer)
    else:
        _print(answer)
    return DONE if answer.same == answer.compared else NO


def _write(answer: ShadowAnswer) -> None:
    """Write one line a decision, whose texts cannot speak to a terminal."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in answer.rows:
        values = (
            row.seq, format_time(row.time), row.subject, row.kind, row.verdict, " ".join(row.theirs),
            " ".join(row.ours), row.scheduler, row.text,
        )  # fmt: skip
        writer.writerow([printable(one) if isinstance(one, str) else one for one in values])


def headline(same: int, compared: int, things: str) -> str:
    """Return how much agrees, as a sentence; ``compared`` is more than 0."""
    share = 1000 * same // compared
    return f"{same} of {counted(compared, things)} are the same ({share // 10}.{share % 10} %)."


def _print(answer: ShadowAnswer) -> None:
    """Show the headline, both sides, and the differences."""
    if not answer.compared:
        say(f"no decision of another scheduler in {counted(answer.steps, 'steps')}")
        return
    tell(headline(answer.same, answer.compared, "decisions"))
    console = paper()
    console.table(_sides(answer))
    tell(f"Below guarantee in the cluster (amount x hours): {amount_hours(answer.unmet)}.")
    for name, count in answer.unmodelled.items():
        tell(f"Not decided by: {printable(name)} ({counted(count, 'decisions')}).")
    if answer.gaps:
        tell(f"Not seen: {counted(answer.gaps, 'gaps')} of the observer.")
    different = [row for row in answer.rows if row.verdict != "same"]
    if different:
        console.table(_differences(answer))
    if len(different) > SHOWN:
        say(f"{len(different) - SHOWN} more differences; --json and --csv show all")


def _sides(answer: ShadowAnswer) -> PlainTable:
    """Return the figures of both sides."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415
    from evsched.core.duration import format_duration  # noqa: PLC0415

    table = PlainTable("")
    for name in ("bound", "waited", "preemptions"):
        table.add_column(name, justify="right")
    for name, side in (("the cluster", answer.theirs), ("evsched", answer.ours)):
        waited = format_duration(side.waited_ms)
        table.add_row(name, str(side.bound), waited, str(side.preemptions))
    return table


def _differences(answer: ShadowAnswer) -> PlainTable:
    """Return the decisions that differ, the first of them."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415

    table = PlainTable("seq", "class", "of", "the cluster", "evsched", "why")
    for row in [row for row in answer.rows if row.verdict != "same"][:SHOWN]:
        table.add_row(
            str(row.seq), row.verdict, f"{row.kind} {row.subject}", " ".join(row.theirs) or "-",
            " ".join(row.ours) or "-", row.text,
        )  # fmt: skip
    return table

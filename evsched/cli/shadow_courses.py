"""How `evsched shadow report --free` looks: two courses of one cluster, as a table or as CSV."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from evsched.cli.answers import paper, printable, say, tell
from evsched.cli.cells import amount_hours, counted
from evsched.cli.shadow import headline
from replays.checking.ledger import QueueFigures
from replays.history.moments import format_time
from replays.wording import decided

if TYPE_CHECKING:
    from evsched.cli.tables import PlainTable
    from replays.checking.free import FreeAnswer, FreeRow
    from replays.checking.ledger import Decided

SHOWN = 50
"""So many differences are shown to a person; --json and --csv have all."""

COLUMNS = (
    "subject", "kind", "verdict", "theirs_time", "theirs", "ours_time", "ours"
)  # fmt: skip


def write(answer: FreeAnswer) -> None:
    """Write one line for what became of each ask and allocation, whose texts cannot speak to a terminal."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in answer.rows:
        sides = [part for one in (row.theirs, row.ours) for part in (_time(one), _what(one))]
        writer.writerow([printable(one) for one in (row.subject, row.kind, row.verdict, *sides)])


def show(answer: FreeAnswer) -> None:
    """Show the headline, the figures of both courses by queue, the differences, and how far to trust them."""
    if not answer.compared:
        say(f"nothing was bound or evicted in {counted(answer.steps, 'steps')}")
        return
    tell(headline(answer.same, answer.compared, "outcomes"))
    console = paper()
    console.table(_figures(answer))
    different = [row for row in answer.rows if row.verdict != "same"]
    if different:
        console.table(_differences(different[:SHOWN]))
    if len(different) > SHOWN:
        say(f"{len(different) - SHOWN} more differences; --json and --csv show all")
    say(
        f"how far to trust it: {answer.left_out} recorded ends left out whose evictions did not happen, "
        f"{answer.confirmed} evictions supposed to take {answer.eviction_ms} ms each, "
        f"{answer.moved} ends moved with their beginnings, {answer.refused} inputs refused"
    )


def _figures(answer: FreeAnswer) -> PlainTable:
    """Return the figures of both courses, two lines a queue."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415
    from evsched.core.duration import format_duration  # noqa: PLC0415

    table = PlainTable("queue", "")
    for name in ("bound", "waited", "preemptions", "victims", "below guarantee (amount x hours)"):
        table.add_column(name, justify="right")
    for queue in dict.fromkeys((*answer.theirs, *answer.ours)):
        for side, of in (("the cluster", answer.theirs), ("evsched", answer.ours)):
            one = of.get(queue) or QueueFigures()
            waited = format_duration(one.waited_ms // 1000 * 1000)
            counts = (str(one.preemptions), str(one.victims))
            table.add_row(queue, side, str(one.bound), waited, *counts, amount_hours(one.unmet))
    return table


def _differences(rows: list[FreeRow]) -> PlainTable:
    """Return the outcomes that differ."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415

    table = PlainTable("class", "of", "the cluster", "evsched")
    for row in rows:
        sides = (decided(one) if one is not None else "-" for one in (row.theirs, row.ours))
        table.add_row(row.verdict, f"{row.kind} {row.subject}", *sides)
    return table


def _time(one: Decided | None) -> str:
    return "" if one is None else format_time(one.time)


def _what(one: Decided | None) -> str:
    """Return the node, the flavors, or for whom something was evicted."""
    if one is None:
        return ""
    if one.node is not None:
        return one.node
    flavors = (
        f"{name}{'/' if name else ''}{resource}={flavor}"
        for name, of in sorted(one.flavors.items())
        for resource, flavor in sorted(of.items())
    )
    return " ".join(flavors) or one.ask or one.queue

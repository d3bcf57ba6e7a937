"""`evsched diff`: what changed between two moments."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from evsched.cli.answers import emit, paper, say
from evsched.cli.cells import cell, counted
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, SnapshotFolder, history_of, moment_of
from replays.history.diff import Change, DiffQuestion
from replays.history.diff import diff as answer
from replays.history.moments import format_time
from replays.history.views import View

_STYLES = {"came": "green", "went": "red", "changed": ""}


async def diff(
    before: MomentText,
    after: MomentText = "end",
    /,
    *,
    where: Where = HERE,
    only: Annotated[list[View] | None, Parameter(name="--only", negative=())] = None,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> None:
    """Show what changed between two moments of the log: what came, what went, and what is different, entry by entry.

    **Examples**

    `evsched diff -15m`

    `evsched diff 2026-11-20T14:00:00Z 2026-11-20T14:03:00Z --only queues --only config`

    Args:
        before: The earlier moment, as for `evsched at`.
        after: The later one.
        where: Which log.
        only: Only these; may be repeated.
        snapshots: Folder of snapshots.
        json: One document a change.
    """
    question = DiffQuestion(
        before=moment_of(before), after=moment_of(after), views=tuple(only or ())
    )
    async with history_of(where, snapshots) as history:
        found = await answer(history, question)
    if json:
        for change in found.changes:
            emit(change)
    elif found.changes:
        _show(found.changes)
    places = ((found.from_seq, found.from_time), (found.to_seq, found.to_time))
    moments = " to ".join(f"event {seq} of {format_time(time)}" for seq, time in places)
    say(f"from {moments}: {counted(len(found.changes), 'changes')}")


def _show(found: list[Change]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from evsched.cli.consoles import PlainTable  # noqa: PLC0415 - costs time that --json need not pay

    made = PlainTable(show_edge=False, pad_edge=False)
    for name in ("what", "which", "", "entry", "before", "after"):
        made.add_column(name, overflow="fold")
    for change in found:
        entries = {
            name: both
            for name, both in change.fields.items()
            if any(cell(name, value) != "-" for value in both)
        }
        head: tuple[Any, ...] = (
            change.kind,
            change.key,
            Text(change.what, style=_STYLES[change.what]),
        )
        for name, (old, new) in entries.items() or [("", ("", ""))]:
            made.add_row(
                *head, name.replace("_", " "), Text(cell(name, old)), Text(cell(name, new))
            )
            head = ("", "", "")
    paper().print(made)

"""`evsched diff`: what changed between two moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evsched.cli.answers import emit, paper, say
from evsched.cli.cells import NOTHING, cell, counted
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, MostRows, SnapshotFolder, history_of, moment_of
from replays.history.diff import Change, DiffQuestion
from replays.history.diff import diff as answer
from replays.history.moments import format_time
from replays.history.views import View

if TYPE_CHECKING:
    from evsched.cli.tables import Cell

_STYLES = {"came": "green", "went": "red", "changed": ""}


async def diff(  # noqa: PLR0913 - the options of a command
    before: MomentText,
    after: MomentText = "end",
    /,
    *,
    where: Where = HERE,
    only: Annotated[list[View] | None, Parameter(name="--only", negative=())] = None,
    snapshots: SnapshotFolder = None,
    limit: MostRows = None,
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
        limit: Most changes; all of them by default.
        json: One document a change.
    """
    question = DiffQuestion(
        before=moment_of(before), after=moment_of(after), views=tuple(only or ())
    )
    async with history_of(where, snapshots) as history:
        found = await answer(history, question)
    shown = found.changes if limit is None else found.changes[:limit]
    if json:
        for change in shown:
            emit(change)
    elif shown:
        _show(shown)
    places = ((found.from_seq, found.from_time), (found.to_seq, found.to_time))
    more = f", {len(shown)} of them shown" if len(shown) < len(found.changes) else ""
    moments = " to ".join(f"event {seq} of {format_time(time)}" for seq, time in places)
    say(f"from {moments}: {counted(len(found.changes), 'changes')}{more}")


def _show(found: list[Change]) -> None:
    from evsched.cli.tables import PlainTable  # noqa: PLC0415 - costs time that --json need not pay

    made = PlainTable("what", "which", "", "entry", "before", "after")
    made.stream(lambda: (row for change in found for row in _rows(change)))
    paper().table(made)


def _rows(change: Change) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each entry of a change; what stands in all of them only in the first."""
    head: tuple[Cell, ...] = (change.kind, change.key, (change.what, _STYLES[change.what]))
    texts = [
        (name.replace("_", " "), *(cell(name, value) for value in both))
        for name, both in change.fields.items()
    ]
    for row in [one for one in texts if one[1:] != (NOTHING, NOTHING)] or [("", "", "")]:
        yield (*head, *row)
        head = ("", "", "")

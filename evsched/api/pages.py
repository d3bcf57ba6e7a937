"""Pages of the rows of a view: narrowed, in order, each row on one page only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from evsched.api.problems import ApiProblem, in_path, in_query
from evsched.api.rights import Rights
from evsched.core.state import State
from replays.history.moments import format_time
from replays.history.rows import (
    AllocationRow,
    ApplicationRow,
    AskRow,
    NodeRow,
    QueueRow,
    Row,
    SettingRow,
    TimerRow,
    document,
)
from replays.history.views import View

PAGE = 500
LARGEST_PAGE = 10_000
"""Rows of a page where the request does not say, and at most."""

ROW_TYPES: dict[View, type[Struct]] = {
    "queues": QueueRow,
    "nodes": NodeRow,
    "apps": ApplicationRow,
    "asks": AskRow,
    "allocations": AllocationRow,
    "timers": TimerRow,
    "config": SettingRow,
}
"""What the rows of each view are."""


class StateRows(Struct, frozen=True, kw_only=True):
    """Rows of a view of the state at a moment, a page of them.

    Attributes:
        seq: Of the last event before.
        time: Of its frame, milliseconds.
        total: How many rows there are on all pages.
        rows: As `evsched at --json` prints them.
        next: Address of the next page, at the same ``seq``; None: this is the last one.
    """

    seq: int
    time: int
    view: str
    total: int
    rows: list[dict[str, Any]]
    next: str | None


class RowsWanted(Struct, frozen=True, kw_only=True):
    """Which rows of a view are wanted.

    Attributes:
        queue: Those in this queue and below it.
        application, node: Those of this application, on this node.
        key: The one row with this key.
        after: Those behind the row with this key.
        limit: Most of them.
    """

    queue: str | None = None
    application: str | None = None
    node: str | None = None
    key: str | None = None
    after: str | None = None
    limit: int = PAGE


def page(
    state: State, view: View, rows: Sequence[Row], wanted: RowsWanted, rights: Rights
) -> StateRows:
    """Return the rows that are wanted, from those of a view."""
    found = _narrowed(state, view, rows, wanted, rights)
    total = len(found)
    if wanted.after is not None:
        found = found[_behind(found, wanted.after) :]
    shown = found[: wanted.limit]
    return StateRows(
        seq=state.seq,
        time=state.time,
        view=view,
        total=total,
        rows=[document(row) for row in shown],
        next=None if len(shown) == len(found) else key_of(shown[-1]),
    )


def _narrowed(
    state: State, view: View, rows: Sequence[Row], wanted: RowsWanted, rights: Rights
) -> Sequence[Row]:
    for name in ("application", "node"):
        value = getattr(wanted, name)
        if value is not None:
            _must_have(view, name)
            rows = [row for row in rows if getattr(row, name) == value]
    if wanted.queue is not None:
        _must_have(view, "queue")
        there = wanted.queue in state.queues or wanted.queue == state.root.path
        if not there or not rights.knows(wanted.queue):
            raise ApiProblem(
                "unknown-name", f"queue {wanted.queue}: is not there", in_query("queue")
            )
        below = f"{wanted.queue}."
        rows = [row for row in rows if f"{getattr(row, 'queue', '')}.".startswith(below)]
    if wanted.key is not None:
        rows = [row for row in rows if key_of(row) == wanted.key]
        if not rows:
            raise ApiProblem(
                "unknown-name",
                f"{wanted.key}: is not among the {view} after event {state.seq}"
                f" of {format_time(state.time)}",
                in_path("key"),
            )
    return rows


def _must_have(view: View, name: str) -> None:
    """Refuse to narrow a view by what its rows do not say: the answer would be taken for narrowed."""
    if name not in ROW_TYPES[view].__struct_fields__:
        raise ApiProblem(
            "parameter-invalid", f"{view}: cannot be narrowed by {name}", in_query(name)
        )


def _behind(rows: Sequence[Row], key: str) -> int:
    """Return where the rows behind one begin."""
    for number, row in enumerate(rows):
        if key_of(row) == key:
            return number + 1
    raise ApiProblem(
        "parameter-invalid",
        f"after: no row has the key {key} at this moment; follow `next` of a page",
        in_query("after"),
    )


def key_of(row: Row) -> str:
    """Return the key of a row: its first field."""
    return str(getattr(row, row.__struct_fields__[0]))

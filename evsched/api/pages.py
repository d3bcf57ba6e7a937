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
from replays.history.tabled import Narrowed, NoSuchRow, TabledMoment
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


def page(
    state: State, view: View, rows: Sequence[Row], wanted: Narrowed, rights: Rights
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


def tabled_page(moment: TabledMoment, view: View, wanted: Narrowed) -> StateRows:
    """Return the rows that are wanted, from the read model, for somebody who sees everything."""
    for name in ("application", "node", "queue"):
        if getattr(wanted, name) is not None:
            _must_have(view, name)
    if wanted.queue is not None and not moment.has_queue(wanted.queue):
        raise ApiProblem("unknown-name", f"queue {wanted.queue}: is not there", in_query("queue"))
    try:
        found = moment.page(view, wanted)
    except NoSuchRow as error:
        raise _no_row(str(error)) from error
    if wanted.key is not None and not found.rows:
        raise _no_key(wanted.key, view, moment.seq, moment.time)
    return StateRows(
        seq=moment.seq,
        time=moment.time,
        view=view,
        total=found.total,
        rows=[document(row) for row in found.rows],
        next=key_of(found.rows[-1]) if found.more else None,
    )


def _narrowed(
    state: State, view: View, rows: Sequence[Row], wanted: Narrowed, rights: Rights
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
            raise _no_key(wanted.key, view, state.seq, state.time)
    return rows


def _no_key(key: str, view: View, seq: int, time: int) -> ApiProblem:
    detail = f"{key}: is not among the {view} after event {seq} of {format_time(time)}"
    return ApiProblem("unknown-name", detail, in_path("key"))


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
    raise _no_row(key)


def _no_row(key: str) -> ApiProblem:
    return ApiProblem(
        "parameter-invalid",
        f"after: no row has the key {key} at this moment; follow `next` of a page",
        in_query("after"),
    )


def key_of(row: Row) -> str:
    """Return the key of a row: its first field."""
    return str(getattr(row, row.__struct_fields__[0]))

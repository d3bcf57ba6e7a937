"""As of a moment: the same answer from the tables and from a rebuilt state.

Both functions return plain rows by table, in the same order and form, so that a test can hold one
against the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
import msgspec

from evsched.core.timers import PAUSE
from projections.rows import text

if TYPE_CHECKING:
    import sqlite3

    from evsched.core.state import State

TableRows = list[tuple[Any, ...]]
Answers = dict[str, TableRows]

_queries = aiosql.from_path(Path(__file__).parent / "sql" / "asof.sql", "sqlite3")

TABLES = (
    "queues",
    "usage",
    "nodes",
    "applications",
    "asks",
    "allocations",
    "reservations",
    "pauses",
    "configuration",
)


def seq_at_time(connection: sqlite3.Connection, time: int) -> int:
    """Return the last ``seq`` at or before a time (milliseconds); 0 when the log began later."""
    return int(_queries.seq_at_time(connection, time=time))


def belongs(connection: sqlite3.Connection, seq: int, name: str) -> tuple[str, str] | None:
    """Return application and queue of the ask or allocation that last had an id by ``seq``; None: none had it."""
    found = _queries.belongs_at(connection, name=name, seq=seq)
    return (found[0], found[1]) if found is not None else None


def queue_of_ever(connection: sqlite3.Connection, name: str) -> str | None:
    """Return a queue in which an ask, allocation or application of this id ever was; None: nothing ever had it."""
    found = _queries.queue_of_ever(connection, name=name)
    return None if found is None else str(found)


def is_queue_ever(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether there ever was a queue of this name."""
    return bool(_queries.is_queue_ever(connection, name=name))


def configured_at(connection: sqlite3.Connection, seq: int) -> int:
    """Return the event that applied the configuration in force after event ``seq``; 0: there was none."""
    return int(_queries.configured_at(connection, seq=seq))


def document_at(connection: sqlite3.Connection, seq: int) -> str:
    """Return the text of the configuration in force after event ``seq``; empty: there is none, or it was not kept."""
    return str(_queries.document_at(connection, seq=seq) or "")


def from_tables(connection: sqlite3.Connection, seq: int) -> Answers:
    """Return what held after event ``seq``, from the read model."""
    found = {table: list(getattr(_queries, f"{table}_at")(connection, seq=seq)) for table in TABLES}
    found["queues"].sort()
    return found


def from_state(state: State) -> Answers:
    """Return the same from a state."""
    names, shapes = state.types.names, state.types.shapes

    def limits(found: dict[int, int]) -> str:
        return text(dict(sorted((names[index], amount) for index, amount in found.items())))

    def amounts(vector: list[int]) -> str:
        return text({names[index]: amount for index, amount in enumerate(vector) if amount})

    queues = [
        queue
        for queue in (state.root, *state.queues.values())
        if queue.path and state.configuration is not None
    ]
    return {
        "queues": sorted({
            (
                q.path, q.parent.path if q.parent is not None else None, int(q.leaf), int(q.dynamic), int(q.draining),
                limits(q.guaranteed), limits(q.maximum),
            )
            for q in queues
        }),
        "usage": sorted(
            (q.path, amounts(q.usage), amounts(q.pending), q.pending_asks)
            for q in state.queues.values()
            if q.leaf and (any(q.usage) or any(q.pending) or q.pending_asks)
        ),
        "nodes": sorted((n.name, text(n.resources), text(n.labels), int(n.schedulable)) for n in state.nodes.values()),
        "applications": sorted((a.id, a.leaf.path, a.user, a.created) for a in state.applications.values()),
        "asks": sorted(
            (a.id, a.application, a.queue, text(shapes[a.shape].resources), a.priority, a.created) for a in state.asks.values()
        ),
        "allocations": sorted(
            (
                a.id, a.application, a.queue, a.node, text(shapes[a.shape].resources), a.priority, a.created, a.bound,
                a.eviction_requested, a.victim_of, a.quota_of,
            )
            for a in state.allocations.values()
        ),
        "reservations": sorted(state.reservations.items()),
        "pauses": sorted(
            (name, state.applications[name].leaf.path, until, state.timers.armed[f"{PAUSE}:{name}"].cause)
            for name, until in state.paused.items()
        ),
        "configuration": []
        if state.configuration is None
        else [(msgspec.to_builtins(state.configuration)["format"], text(state.configuration))],
    }  # fmt: skip


def without_empty_usage(answers: Answers) -> Answers:
    """Leave out usage rows of leaves in which nothing runs or waits: the tables keep a row for a leaf that was used once."""
    return {**answers, "usage": [row for row in answers["usage"] if row[1:] != ("{}", "{}", 0)]}

"""As of a moment: the same answer from the tables and from a rebuilt state.

Both functions return plain rows by table, in the same order and form, so that a test can hold one
against the other.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
import msgspec
from msgspec import Struct

from evsched.core.kueue.model import quota_in
from evsched.core.timers import PAUSE
from projections.queue_rows import text
from projections.temporal import places

if TYPE_CHECKING:
    import sqlite3

    from evsched.core.queues import Queue
    from evsched.core.state import State

TableRows = list[tuple[Any, ...]]
Answers = dict[str, TableRows]

_queries = aiosql.from_path(Path(__file__).parent / "sql" / "asof.sql", "sqlite3")

TABLES = (
    "queues",
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


class LeafAmounts(Struct):
    """What a leaf has at a moment; amounts by resource name, those that are 0 may be there.

    Attributes:
        usage: What runs, what is leaving included.
        pending: What waits.
        preempting: What of the usage is being evicted.
        asks, allocations, applications: How many there are.
    """

    usage: dict[str, int]
    pending: dict[str, int]
    preempting: dict[str, int]
    asks: int = 0
    allocations: int = 0
    applications: int = 0


def leaves_at(connection: sqlite3.Connection, seq: int) -> dict[str, LeafAmounts]:
    """Return what the leaves have after event ``seq``, by path; one that nothing ever came to is not there."""
    step = _queries.step_before(connection, seq=seq)
    found = {
        row[0]: LeafAmounts(amounts(row[1]), amounts(row[2]), amounts(row[3]), *row[4:])
        for row in _queries.leaf_usage(connection, seq=step)
    }
    if step == seq:
        return found

    def leaf(path: str) -> LeafAmounts:
        return found.setdefault(path, LeafAmounts({}, {}, {}))

    end = _queries.end_seq(connection)
    given = {
        "step": step, "seq": seq, "now": text(places(seq, end)), "before": text(places(step, end)),
    }  # fmt: skip
    for path, resources, sign in _queries.asks_since(connection, **given):
        one = leaf(path)
        one.asks += sign
        _add(one.pending, resources, sign)
    for path, resources, sign, leaves in _queries.allocations_since(connection, **given):
        one = leaf(path)
        one.allocations += sign
        _add(one.usage, resources, sign)
        if leaves:
            _add(one.preempting, resources, sign)
    for path, sign in _queries.applications_since(connection, **given):
        leaf(path).applications += sign
    return found


def _add(total: dict[str, int], resources: str, sign: int) -> None:
    for name, amount in amounts(resources).items():
        total[name] = total.get(name, 0) + sign * amount


def amounts(written: str) -> dict[str, int]:
    """Return amounts as they stand in a table, a dictionary of its own each time."""
    return dict(_amounts(written))


@lru_cache(maxsize=10_000)
def _amounts(written: str) -> dict[str, int]:
    return msgspec.json.decode(written, type=dict[str, int])


def from_tables(connection: sqlite3.Connection, seq: int) -> Answers:
    """Return what held after event ``seq``, from the read model."""
    found: Answers = {
        table: list(getattr(_queries, f"{table}_at")(connection, seq=seq)) for table in TABLES
    }
    found["queues"].sort()
    order = dict(_queries.resource_order(connection))

    def ordered(one: dict[str, int]) -> str:
        return text({name: one[name] for name in sorted(one, key=order.__getitem__) if one[name]})

    found["usage"] = sorted(
        (path, ordered(leaf.usage), ordered(leaf.pending), leaf.asks)
        for path, leaf in leaves_at(connection, seq).items()
    )
    return found


def from_state(state: State) -> Answers:
    """Return the same from a state."""
    names, shapes = state.types.names, state.types.shapes

    def limits(found: dict[int, int], queue: Queue) -> str | None:
        """Return limits that Kueue's queues have none of, as they have quotas."""
        if quota_in(queue) is not None:
            return None
        return text({names[index]: found[index] for index in sorted(found)})

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
                limits(q.guaranteed, q), limits(q.maximum, q),
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

"""The rows of a moment from the read model: what `replays.history.views` makes of a rebuilt state, without rebuilding it.

Both give the same rows (a property holds them against each other). Here an answer costs what it shows:
keys come in order from the places at which something can hold at the moment
(`projections.temporal.places`), and what an application or node uses is counted up from its last mark.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiosql
import msgspec
from msgspec import UNSET, Struct, UnsetType

from events import vocabulary as v
from events.configuration import Configuration
from evsched.core.kueue import shares
from evsched.core.kueue.model import quota_in
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import asof
from projections.asof import LeafAmounts, amounts
from projections.temporal import places
from replays.history.rows import (
    AllocationRow,
    ApplicationRow,
    AskRow,
    ByResource,
    NodeRow,
    QueueRow,
    Row,
    SettingRow,
    TimerRow,
)
from replays.history.views import View, settings

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

ALL = 2**62
"""More rows than there can be."""

FEW = 2000
"""So many rows at one place are rather sorted than looked for in the order of keys, between those that do not hold."""

_queries = aiosql.from_path(Path(asof.__file__).parent / "sql" / "asof.sql", "sqlite3")


class Narrowed(Struct, frozen=True, kw_only=True):
    """Which rows of a view are wanted.

    Attributes:
        queue: Those in this queue and below it; None: all.
        application, node: Those of this application, on this node; None: all.
        key: The one row with this key; None: all.
        after: Those behind the row with this key; None: from the first one on.
        limit: Most of them.
    """

    queue: str | None = None
    application: str | None = None
    node: str | None = None
    key: str | None = None
    after: str | None = None
    limit: int = ALL


class NoSuchRow(LookupError):
    """No row has the key that rows were wanted behind; the argument is the key."""


class TabledRows(NamedTuple):
    """Rows of a view at a moment.

    Attributes:
        rows: As far as they were wanted.
        total: How many there would be without ``after`` and ``limit``.
        more: Whether there are some behind the last one.
    """

    rows: list[Row]
    total: int
    more: bool


class Counted(NamedTuple):
    """What counts against a quota, by resource name, and the share of it where shares decide."""

    usage: ByResource
    share: int | UnsetType


class TabledMoment:
    """The state after an event of the log, as the read model has it.

    Attributes:
        seq: Of the event.
        time: Of its step, milliseconds; 0 before the first event.
    """

    def __init__(self, connection: sqlite3.Connection, seq: int) -> None:
        """Look at a moment through a connection that reads the file; events behind its end are none."""
        end = int(_queries.end_seq(connection))
        self._connection = connection
        self.seq = min(seq, end)
        found = _queries.frame_of(connection, seq=max(self.seq, 1))
        self.time = int(found[0]) if found is not None and self.seq else 0
        self._places = places(self.seq, max(end, 1))
        self._order = dict(_queries.resource_order(connection))
        self._leaves: dict[str, LeafAmounts] | None = None

    # --------------------------------------------------------------------------------------- queues

    def has_queue(self, path: str) -> bool:
        """Tell whether there is a queue with this path; before the first configuration there is only the root."""
        found = {row[0] for row in _queries.queue_rows(self._connection, seq=self.seq)}
        return path in (found or {"root"})

    def leaves(self) -> dict[str, LeafAmounts]:
        """Return what the leaves have, by path; one that nothing ever came to is not there."""
        if self._leaves is None:
            self._leaves = asof.leaves_at(self._connection, self.seq)
        return self._leaves

    def queues(self) -> list[QueueRow]:
        """See `replays.history.views.queues`."""
        below: dict[str | None, list[tuple[Any, ...]]] = defaultdict(list)
        for row in _queries.queue_rows(self._connection, seq=self.seq):
            below[row[1]].append(row)
        order: list[tuple[Any, ...]] = []
        tops = [*below.pop(None, ()), *below.pop("", ())]
        stack = list(reversed(tops))
        while stack:
            row = stack.pop()
            order.append(row)
            stack.extend(reversed(below.pop(row[0], [])))
        order += [row for rest in below.values() for row in rest]
        sums = self._summed(order)
        # Quotas count otherwise than sums do, and shares are of them: asked only where there are any.
        counted = self._counted() if any(row[7] is not None for row in order) else {}
        return [self._queue(row, sums[row[0]], counted.get(row[0])) for row in order]

    def _summed(self, order: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
        """Return usage, pending amounts, what is leaving and the number of asks of each queue, those below it included."""
        found: dict[str, list[Any]] = {row[0]: [{}, {}, {}, 0] for row in order}
        leaves = self.leaves()
        for row in reversed(order):
            path, parent = row[:2]
            own, leaf = found[path], leaves.get(path) if row[2] else None
            if leaf is not None:
                own[:] = [leaf.usage, leaf.pending, leaf.preempting, leaf.asks]
            above = found.get(parent)
            if above is not None:
                for total, part in zip(above[:3], own[:3], strict=True):
                    for name, amount in part.items():
                        total[name] = total.get(name, 0) + amount
                above[3] += own[3]
        return found

    def _queue(
        self, row: tuple[Any, ...], sums: Sequence[Any], counted: Counted | None
    ) -> QueueRow:
        path, _, leaf, dynamic, draining, *limits = row
        usage, share = (sums[0], UNSET) if counted is None else counted
        guaranteed, maximum, nominal, borrowing, lending, quota = (
            UNSET if one is None else amounts(one) for one in limits
        )
        return QueueRow(
            queue=path, usage=self._ordered(usage), guaranteed=guaranteed, maximum=maximum, nominal=nominal,
            borrowing_limit=borrowing, lending_limit=lending, quota=quota, share=share,
            pending=self._ordered(sums[1]), pending_asks=sums[3], preempting=self._ordered(sums[2]),
            leaf=bool(leaf), dynamic=bool(dynamic), draining=bool(draining),
        )  # fmt: skip

    def _ordered(self, found: ByResource) -> ByResource:
        """Return amounts in the order of their types, those that are 0 left out."""
        order = self._order
        return {name: found[name] for name in sorted(found, key=order.__getitem__) if found[name]}

    def _counted(self) -> dict[str, Counted]:
        """Return what counts against the quota of each ClusterQueue and cohort, and its share."""
        tree = _tree(self._configuration())
        number, names, fair = tree.types.type_index, tree.types.names, shares.are_shared(tree)
        quotas = {path: quota_in(queue) for path, queue in tree.queues.items()}
        found = {path: quota for path, quota in quotas.items() if quota is not None}
        for quota in found.values():
            quota.clear()
        for path, leaf in self.leaves().items():
            if path in found:
                used = tuple(
                    (number(name), amount) for name, amount in leaf.usage.items() if amount
                )
                found[path].use(used)
        return {
            path: Counted(
                {names[index]: amount for index, amount in quota.usage.items()},
                shares.status(quota, quota.usage) if fair else UNSET,
            )
            for path, quota in found.items()
        }

    def _configuration(self) -> str:
        """Return the configuration in force as JSON; empty: there is none."""
        for _, configuration in _queries.configuration_at(self._connection, seq=self.seq):
            return str(configuration)
        return ""

    # ---------------------------------------------------------------------------------------- pages

    def page(self, view: View, wanted: Narrowed) -> TabledRows:
        """Return rows of a view.

        Raises:
            NoSuchRow: Nothing has the key ``wanted.after`` at this moment.
        """
        if view in _KEYED:
            return self._keyed(view, wanted)
        rows: list[Row] = list(getattr(self, view)())
        if wanted.queue is not None:
            below = f"{wanted.queue}."
            rows = [one for one in rows if f"{getattr(one, 'queue', '')}.".startswith(below)]
        if wanted.key is not None:
            rows = [one for one in rows if _key(one) == wanted.key]
        total = len(rows)
        if wanted.after is not None:
            rows = rows[_behind([_key(one) for one in rows], wanted.after) :]
        return TabledRows(rows[: wanted.limit], total, len(rows) > wanted.limit)

    def _keyed(self, view: View, wanted: Narrowed) -> TabledRows:
        """Return rows of a view that may be long, in the order of their keys."""
        name = _KEYED[view]
        make = getattr(self, f"_{name}_rows")
        if wanted.key is not None:
            one = getattr(_queries, f"{name}_by")(self._connection, seq=self.seq, key=wanted.key)
            return TabledRows(make([] if one is None else [one]), int(one is not None), more=False)
        if wanted.application is not None or wanted.node is not None:
            listed = self._of(name, wanted)
            total = len(listed)
            keys: Iterable[tuple[Any, ...]] = listed
            if wanted.after is not None:
                keys = listed[_behind([one[0] for one in listed], wanted.after) :]
        else:
            total = self._total(name, wanted.queue)
            if wanted.after is not None and not self._holds(name, wanted.after):
                raise NoSuchRow(wanted.after)
            keys = self._keys(name, wanted.queue, wanted.after or "")
        found = list(islice(keys, wanted.limit + 1))
        shown = found[: wanted.limit]
        return TabledRows(make(shown), total, len(found) > len(shown))

    def _holds(self, name: str, key: str) -> bool:
        found = getattr(_queries, f"{name}_by")(self._connection, seq=self.seq, key=key)
        return found is not None

    def _of(self, name: str, wanted: Narrowed) -> list[tuple[Any, ...]]:
        """Return the keys of what belongs to one application, or runs on one node."""
        if wanted.application is not None:
            read = getattr(_queries, f"{name}s_of")
            found = list(read(self._connection, seq=self.seq, application=wanted.application))
        else:
            found = list(_queries.allocations_on(self._connection, seq=self.seq, node=wanted.node))
        if wanted.application is not None and wanted.node is not None:
            found = [row for row in found if row[3] == wanted.node]
        if wanted.queue is not None:
            found = [row for row in found if f"{row[2]}.".startswith(f"{wanted.queue}.")]
        return found

    def _below(self, queue: str) -> list[str]:
        return [path for path in self.leaves() if f"{path}.".startswith(f"{queue}.")]

    def _total(self, name: str, queue: str | None) -> int:
        """Return how many there are of what is counted by leaf, or how many nodes."""
        if name == "node":
            return int(_queries.node_number(self._connection, seq=self.seq))
        leaves = self.leaves()
        return sum(
            getattr(leaves[path], f"{name}s") for path in (leaves if queue is None else self._below(queue))
        )  # fmt: skip

    def _keys(self, name: str, queue: str | None, after: str) -> Iterator[tuple[Any, ...]]:
        """Yield key and row id of what holds, in order, behind a key."""
        connection, seq = self._connection, self.seq
        if name == "node":
            return iter(_queries.node_keys(connection, seq=seq, after=after))
        given: dict[str, Any] = {"seq": seq, "after": after}
        kind = ""
        if queue is not None:
            kind, given["queues"] = "_in", _text(self._below(queue))
        reading = []
        for place in self._places:
            side = "before" if place <= seq else "behind"
            count = getattr(_queries, f"{name}s_{side}")
            number = count(connection, fork=place, seq=seq, most=FEW + 1)
            if number:
                how = "keys" if number > FEW else f"few_{side}"
                read = getattr(_queries, f"{name}_{how}{kind}")
                reading.append(read(connection, fork=place, **given))
        return merge(*reading)

    # ----------------------------------------------------------------------------------------- rows

    def _node_rows(self, keys: Sequence[tuple[Any, ...]]) -> list[Row]:
        names = [one[0] for one in keys]
        used, numbers = self._used("node", names)
        reserved: dict[str, list[str]] = defaultdict(list)
        for _, ask, node in sorted(self._standing("reservations_in")):
            reserved[node].append(ask)
        rows: list[Row] = []
        for name, capacity, labels, schedulable in _queries.node_rows(
            self._connection, ids=_text([one[1] for one in keys])
        ):
            has, uses = amounts(capacity), self._ordered(used[name])
            rows.append(NodeRow(
                node=name, capacity=has, used=uses,
                free={resource: amount - uses.get(resource, 0) for resource, amount in has.items()},
                allocations=numbers[name], reserved_for=reserved[name], schedulable=bool(schedulable),
                labels=msgspec.json.decode(labels),
            ))  # fmt: skip
        return rows

    def _application_rows(self, keys: Sequence[tuple[Any, ...]]) -> list[Row]:
        used, numbers = self._used("application", [one[0] for one in keys])
        connection, ids = self._connection, _text([one[1] for one in keys])
        return [
            ApplicationRow(
                application=name, queue=queue, user=user, created=created, usage=self._ordered(used[name]),
                asks=numbers[name, "asks"], allocations=numbers[name],
                paused_until=until,
            )
            for name, queue, user, created, until
            in _queries.application_rows(connection, ids=ids, seq=self.seq)
        ]  # fmt: skip

    def _used(self, kind: str, names: Sequence[str]) -> tuple[dict[str, ByResource], Any]:
        """Return what applications or nodes use, and how many allocations (and asks) they have, from their last marks on."""
        connection, seq = self._connection, self.seq
        used: dict[str, ByResource] = {}
        numbers: dict[Any, int] = {}
        marks: dict[str, int] = {}
        for name, usage, asks, allocations, since in getattr(_queries, f"{kind}_marks")(
            connection, names=_text(names), seq=seq
        ):
            used[name] = amounts(usage or "{}")
            numbers[name], numbers[name, "asks"] = allocations or 0, asks or 0
            marks[name] = since
        given = _text(marks)
        for name, resources, count in getattr(_queries, f"{kind}_changes")(
            connection, marks=given, seq=seq
        ):
            numbers[name] += count
            has = used[name]
            for resource, amount in amounts(resources).items():
                has[resource] = has.get(resource, 0) + count * amount
        if kind == "application":
            for name, count in _queries.application_asks(connection, marks=given, seq=seq):
                numbers[name, "asks"] += count
        return used, numbers

    def _ask_rows(self, keys: Sequence[tuple[Any, ...]]) -> list[Row]:
        cycles = _queries.cycles_by(self._connection, seq=self.seq)
        ids = _text([one[1] for one in keys])
        return [
            AskRow(
                ask=ask, queue=queue, application=application, resources=amounts(resources), priority=priority,
                created=created, required_node=required, reserved=reserved, preempted=bool(preempted),
                missed=None if first is None else cycles - first + 1, failed=failed or "",
            )
            for ask, queue, application, resources, priority, created, required, reserved, first, preempted, failed
            in _queries.ask_rows(self._connection, ids=ids, seq=self.seq)
        ]  # fmt: skip

    def _allocation_rows(self, keys: Sequence[tuple[Any, ...]]) -> list[Row]:
        ids = _text([one[1] for one in keys])
        return [
            AllocationRow(
                allocation=name, queue=queue, application=application, node=node, resources=amounts(resources),
                priority=priority, created=created, bound=bound, eviction_requested=requested or None,
                victim_of=victim_of, quota_of=quota_of,
            )
            for name, queue, application, node, resources, priority, created, bound, requested, victim_of, quota_of
            in _queries.allocation_rows(self._connection, ids=ids)
        ]  # fmt: skip

    def _standing(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short forked table that hold."""
        read = getattr(_queries, query)
        return [
            row
            for place in self._places
            for row in read(self._connection, fork=place, seq=self.seq)
        ]

    def timers(self) -> list[TimerRow]:
        """See `replays.history.views.timers`."""
        return [
            TimerRow(timer=timer, due=due, kind=kind, subject=subject, cause=cause)
            for due, timer, kind, subject, cause in sorted(self._standing("timers_in"))
        ]

    def config(self) -> list[SettingRow]:
        """See `replays.history.views.config`."""
        return _settings(self._configuration())


_KEYED: dict[View, str] = {
    "nodes": "node",
    "apps": "application",
    "asks": "ask",
    "allocations": "allocation",
}
"""Views that may be long, and what their rows are."""


@lru_cache(maxsize=4)
def _settings(configuration: str) -> list[SettingRow]:
    return settings(msgspec.json.decode(configuration)) if configuration else []


@lru_cache(maxsize=4)
def _tree(configuration: str) -> State:
    """Return a state with the queues of a configuration, in which nothing runs."""
    state = State()
    spec = msgspec.json.decode(configuration, type=Configuration)
    apply(state, v.ConfigurationApplied(seq=1, configuration=spec))
    return state


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _key(row: Row) -> str:
    return str(getattr(row, row.__struct_fields__[0]))


def _behind(keys: Sequence[str], after: str) -> int:
    """Return where the keys behind one begin."""
    try:
        return keys.index(after) + 1
    except ValueError:
        raise NoSuchRow(after) from None

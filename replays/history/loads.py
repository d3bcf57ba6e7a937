"""How full the nodes are at a moment, as columns: what a grid of thousands of nodes is drawn from.

The figures are those of the view `nodes` (`replays.history.tabled`), for one resource and without what
a grid does not show. A time bar that is dragged asks for one moment after the other, so what nodes
use is kept for the moments asked about last: the next answer costs what changed between the two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiosql
import msgspec
from msgspec import Struct

from projections import asof
from projections.temporal import places

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

KEPT = 32
"""Moments that are kept; each has a number for every node and resource."""

FAR = 50_000
"""Events between two moments at which counting what changed costs about as much as counting all that runs."""

_queries = aiosql.from_path(Path(asof.__file__).parent / "sql" / "loads.sql", "sqlite3")
_moments = aiosql.from_path(Path(asof.__file__).parent / "sql" / "asof.sql", "sqlite3")

UsedByNode = dict[str, dict[str, int]]
"""By resource, then by node; ``""`` stands for the number of allocations."""


class NodeLoads(Struct, frozen=True, kw_only=True):
    """How full the nodes are after an event: columns, a value for each node.

    Attributes:
        seq: Of the event.
        time: Of its frame, milliseconds; 0 before the first one.
        total: How many nodes there are; the columns may end earlier.
        resource: Which one is told, in base units; empty: no node has any.
        resources: All that nodes have, in the order in which they appeared.
        nodes: Names, ascending.
        capacity, used: A node without this resource has 0.
        allocations: How many run there.
        reserved, unschedulable: Places in the columns, ascending.
    """

    seq: int
    time: int
    total: int
    resource: str
    resources: list[str]
    nodes: list[str]
    capacity: list[int]
    used: list[int]
    allocations: list[int]
    reserved: list[int]
    unschedulable: list[int]


NO_NODES = NodeLoads(
    seq=0, time=0, total=0, resource="", resources=[], nodes=[], capacity=[], used=[], allocations=[], reserved=[],
    unschedulable=[],
)  # fmt: skip
"""Before the first event."""


class _Place(NamedTuple):
    """Where a read model is looked at."""

    connection: sqlite3.Connection
    end: int

    def places(self, seq: int) -> str:
        """Return where rows can lie that hold after an event, as the statements take it."""
        return msgspec.json.encode(places(seq, max(self.end, 1))).decode()


class Loads:
    """Answers for one log, from its read model; used by one thread."""

    def __init__(self) -> None:
        """Begin with no moment kept."""
        self._kept: OrderedDict[int, UsedByNode] = OrderedDict()

    def at(
        self, connection: sqlite3.Connection, seq: int, resource: str | None, most: int
    ) -> NodeLoads:
        """Return how full the nodes are after an event.

        Args:
            connection: To the read model.
            seq: The event; one behind the end of the read model stands for its end.
            resource: Which one is told; None, or one that no node has: the first that nodes have.
            most: So many nodes at most.
        """
        end = int(_moments.end_seq(connection))
        seq = min(seq, end)
        used = self._used(_Place(connection, end), seq)
        found = _all(connection, "nodes", seq=seq)
        shown = found[:most]
        capacities = [asof.amounts(capacity) for _, capacity, _ in shown]
        has = set().union(*capacities)
        resources = [name for name, _ in _moments.resource_order(connection) if name in has]
        told = resource if resource in has else next(iter(resources), "")
        names = [name for name, _, _ in shown]
        frame = _moments.frame_of(connection, seq=max(seq, 1))
        uses, runs = used.get(told, {}), used[""]
        return NodeLoads(
            seq=seq,
            time=int(frame[0]) if frame is not None and seq else 0,
            total=len(found),
            resource=told,
            resources=resources,
            nodes=names,
            capacity=[one.get(told, 0) for one in capacities],
            used=[uses.get(name, 0) for name in names],
            allocations=[runs.get(name, 0) for name in names],
            reserved=_reserved(_Place(connection, end), seq, names),
            unschedulable=[place for place, (_, _, open_) in enumerate(shown) if not open_],
        )

    def _used(self, place: _Place, seq: int) -> UsedByNode:
        """Return what is used after an event, from the nearest moment that is kept."""
        nearest = min(self._kept, key=lambda kept: abs(kept - seq), default=None)
        if nearest is None or abs(nearest - seq) > FAR:
            used = self._counted(place, seq)
        elif nearest == seq:
            self._kept.move_to_end(seq)
            return self._kept[seq]
        else:
            used = self._changed(place, nearest, seq)
        self._kept[seq] = used
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return used

    def _counted(self, place: _Place, seq: int) -> UsedByNode:
        """Count all that runs after an event."""
        used: UsedByNode = defaultdict(dict, {"": {}})
        held = _all(place.connection, "holding", places=place.places(seq), seq=seq)
        for node, resources, number in held:
            _add(used, node, resources, number)
        return used

    def _changed(self, place: _Place, known: int, seq: int) -> UsedByNode:
        """Return what is used after an event from what was after another one, earlier or later."""
        used: UsedByNode = defaultdict(dict)
        used |= {name: dict(by_node) for name, by_node in self._kept[known].items()}
        earlier, later = min(known, seq), max(known, seq)
        ahead = 1 if seq > known else -1
        between = {"earlier": earlier, "later": later}
        begun = _all(place.connection, "begun", places=place.places(later), **between)
        ended = _all(place.connection, "ended", places=place.places(earlier), **between)
        for node, resources in begun:
            _add(used, node, resources, ahead)
        for node, resources in ended:
            _add(used, node, resources, -ahead)
        return used


def _all(connection: sqlite3.Connection, name: str, **given: object) -> list[tuple[Any, ...]]:
    """Return all rows of a statement: there are thousands, so they are not passed on one by one."""
    return connection.execute(getattr(_queries, name).sql, given).fetchall()


def _add(used: UsedByNode, node: str, resources: str, number: int) -> None:
    runs = used[""]
    runs[node] = runs.get(node, 0) + number
    for name, amount in asof.amounts(resources).items():
        by_node = used[name]
        by_node[node] = by_node.get(node, 0) + number * amount


def _reserved(place: _Place, seq: int, names: Sequence[str]) -> list[int]:
    """Return the places of the nodes that are reserved for an ask."""
    nodes = {
        node
        for fork in places(seq, max(place.end, 1))
        for _, _, node in _moments.reservations_in(place.connection, fork=fork, seq=seq)
    }
    found = {name: bisect_left(names, name) for name in nodes}
    return sorted(at for name, at in found.items() if at < len(names) and names[at] == name)

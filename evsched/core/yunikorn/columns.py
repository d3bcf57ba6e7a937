"""Free space of the nodes as columns: where does this fit, and which of those nodes comes first.

One int64 array a resource type holds what anybody may take of it on each node (capacity less usage
less what is reserved for anybody), so that "where does this fit" is one vectorised comparison a
type. Rows stand in the order of node names, so that of two nodes with equal scores the smaller name
wins without being compared.

**Scores.** The use of one type is ``floor(used * 10**9 / capacity)``. A node's use is the weighted
mean over the types that it has, rounded down: a mean and not a sum, so that a node with one more
type of resource does not count as fuller for it. ``fair`` takes the least used node first,
``binpacking`` the most used, whose score is therefore the negative use. Scores are computed in
Python with exact integers whenever a node changes, and only compared in the columns.

**The first node of all** is looked at before anything else: one heap holds all nodes that take
anybody, and under ``fair`` the first of them is the least used one, which nearly always has room.

**Equal asks are placed together.** A shape that is searched for often has a heap of the nodes that
it fits, by (score, row). These heaps are lazy: changed rows are noted in a journal, a search first
pushes those that changed since its last one, and drops entries from the top that are out of date.
So a run of equal asks costs a push and a pop each instead of a scan over all nodes.

The truth are the plain integers of `evsched.core.workloads.Node`; all of this is told of changes
and can be dropped at any time.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from events.configuration import YunikornSpec
from evsched.core.yunikorn.index import index_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evsched.core.resources import Pairs, Shape
    from evsched.core.state import State
    from evsched.core.workloads import Node

FULL = 10**9
"""The use of a node whose every type is used up."""
DEFAULT_WEIGHT = 1000
LOWEST, HIGHEST = -(2**62), 2**62
NEVER = 2**63 - 1
HEAP_FROM = 4
"""With which search for a shape its heap is built."""
MOST_HEAPS = 32
MOST_SEARCHED = 4096
"""For so many shapes at most it is noted how often they were searched for."""
SHUT = -1
"""Stands for the free space of a node that takes nobody: no amount fits into it."""


class NodeHeap:
    """The nodes that some amounts fit, by (score, row); entries may be out of date.

    Attributes:
        pairs: The amounts; none for the heap of all nodes that take anybody.
        read: How much of the journal is already in the heap.
    """

    __slots__ = ("entries", "pairs", "read")

    def __init__(self, pairs: Pairs, entries: list[tuple[int, int]], read: int) -> None:
        """Take over the entries, in any order."""
        heapify(entries)
        self.pairs = pairs
        self.entries = entries
        self.read = read


class NodeColumns:
    """Free space and scores of all nodes of one state (protocol `evsched.core.yunikorn.index.Columns`).

    Attributes:
        names: Of the nodes, sorted; the row of a node is its place here.
        rows: Row by name.
        available: One array a resource type: what anybody may take, negative when a node shrank
            below its usage.
        schedulable: Whether a node takes anybody.
        scores: The node with the smallest score comes first.
        grown: Rows that can take more than when somebody last cleared this mapping, in the order in
            which that was noticed.
    """

    def __init__(self, state: State) -> None:
        """Build the columns of all nodes."""
        spec = state.configuration
        weights = spec.node_sort_weights if isinstance(spec, YunikornSpec) else {}
        self._sign = (
            -1 if isinstance(spec, YunikornSpec) and spec.node_sort_policy == "binpacking" else 1
        )
        self._weights = [weights.get(name, DEFAULT_WEIGHT) for name in state.types.names]
        self.names = sorted(state.nodes)
        self.rows = {name: row for row, name in enumerate(self.names)}
        nodes = [state.nodes[name] for name in self.names]
        self._shut = [SHUT] * state.width
        self._rest = [_rest(node) if node.schedulable else self._shut for node in nodes]
        self._score = [self._score_of(node) for node in nodes]
        table = np.array([_rest(node) for node in nodes], dtype=np.int64).reshape(
            len(nodes), state.width
        )
        self.available: list[NDArray[np.int64]] = [
            np.ascontiguousarray(table[:, index]) for index in range(state.width)
        ]
        self.schedulable: NDArray[np.bool_] = np.array(
            [node.schedulable for node in nodes], dtype=np.bool_
        )
        self.scores: NDArray[np.int64] = np.array(self._score, dtype=np.int64)
        self.grown: dict[int, None] = {}
        self._dirty: dict[str, Node] = {}
        self._journal: list[int] = []
        self._heaps: dict[int, NodeHeap] = {}
        self._searched: dict[int, int] = {}
        self._all = self._heap_of(())

    # -------------------------------------------------------------------------------------- changes

    def node_changed(self, node: Node) -> None:
        """Note that usage, capacity, reservations or schedulability of a node changed; looked at when it matters."""
        self._dirty[node.name] = node

    @property
    def retry_needed(self) -> bool:
        """Whether a node changed since the columns were last looked at."""
        return bool(self._dirty) or bool(self.grown)

    def settle(self) -> None:
        """Bring the columns up to date. Every search does; call it before reading the arrays."""
        if not self._dirty:
            return
        for node in self._dirty.values():
            self._settle(node, self.rows[node.name])
        self._dirty.clear()
        if len(self._journal) > 4 * len(self.names) + 4096:
            self._journal.clear()
            self._heaps.clear()
            self._all = self._heap_of(())

    def _settle(self, node: Node, row: int) -> None:
        rest = _rest(node)
        before = self._rest[row]
        seen = self._rest[row] = rest if node.schedulable else self._shut
        for index, amount in enumerate(rest):
            self.available[index][row] = amount
            if seen[index] > before[index]:
                self.grown[row] = None
        self.schedulable[row] = node.schedulable
        self.scores[row] = self._score[row] = self._score_of(node)
        self._journal.append(row)

    def _score_of(self, node: Node) -> int:
        total = weighed = 0
        for weight, capacity, used in zip(self._weights, node.capacity, node.used, strict=True):
            if capacity > 0:
                total += weight
                weighed += weight * (used * FULL // capacity)
        use = weighed // total if total else 0
        return max(LOWEST, min(HIGHEST, self._sign * use))

    # ------------------------------------------------------------------------------------- searches

    def fitting(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return for each row whether these amounts fit into what anybody may take there."""
        self.settle()
        fits = self.schedulable.copy()
        for index, amount in pairs:
            fits &= self.available[index] >= amount
        return fits

    def fits_in(self, row: int, pairs: Pairs) -> bool:
        """Tell whether these amounts fit into what anybody may take of one node; `settle` first."""
        rest = self._rest[row]
        for index, amount in pairs:  # noqa: SIM110 - a loop is twice as fast as a generator here
            if rest[index] < amount:
                return False
        return True

    def rest(self, row: int) -> list[int] | None:
        """Return what anybody may take of one node, by type; None when it takes nobody. `settle` first."""
        rest = self._rest[row]
        return None if rest is self._shut else rest

    def place_on(self, name: str, pairs: Pairs) -> str | None:
        """Return the name when these amounts fit into what anybody may take of that node, else None."""
        self.settle()
        row = self.rows.get(name)
        return name if row is not None and self.fits_in(row, pairs) else None

    def place_among(self, rows: list[int], pairs: Pairs) -> str | None:
        """Return the first of some nodes, by score and then name, that these amounts fit; None when none does."""
        self.settle()
        fitting = [(self._score[row], row) for row in rows if self.fits_in(row, pairs)]
        return self.names[min(fitting)[1]] if fitting else None

    def place(self, shape: Shape) -> str | None:
        """Return the first node, in the order of the scores and then names, that the shape fits; None when none does."""
        self.settle()
        pairs = shape.pairs
        row = self._first(self._all)
        if row is None or self.fits_in(row, pairs):
            return None if row is None else self.names[row]
        heap = self._heaps.get(shape.index)
        if heap is not None and len(self._journal) - heap.read > len(self.names):
            del self._heaps[shape.index]  # so much has changed that a new one is cheaper
            heap = None
        if heap is None:
            if len(self._searched) > MOST_SEARCHED:
                self._searched.clear()
            searched = self._searched[shape.index] = self._searched.get(shape.index, 0) + 1
            if searched < HEAP_FROM or len(self._heaps) >= MOST_HEAPS:
                row = self._scan(pairs)
                return None if row is None else self.names[row]
            heap = self._heaps[shape.index] = self._heap_of(pairs)
        row = self._first(heap)
        return None if row is None else self.names[row]

    def _scan(self, pairs: Pairs) -> int | None:
        fits = self.fitting(pairs)
        if not fits.any():
            return None
        return int(np.where(fits, self.scores, NEVER).argmin())

    def _heap_of(self, pairs: Pairs) -> NodeHeap:
        rows = np.flatnonzero(self.fitting(pairs))
        return NodeHeap(
            pairs,
            list(zip(self.scores[rows].tolist(), rows.tolist(), strict=True)),
            len(self._journal),
        )

    def _first(self, heap: NodeHeap) -> int | None:
        """Return the row of the first node of a heap that is still what its entry says."""
        entries, pairs, scores, journal, rest, shut = (
            heap.entries,
            heap.pairs,
            self._score,
            self._journal,
            self._rest,
            self._shut,
        )
        end = len(journal)
        while heap.read < end:
            row = journal[heap.read]
            heap.read += 1
            if rest[row] is not shut and self.fits_in(row, pairs):
                heappush(entries, (scores[row], row))
        while entries:
            score, row = entries[0]
            if scores[row] == score and rest[row] is not shut and self.fits_in(row, pairs):
                return row
            heappop(entries)
        return None


def _rest(node: Node) -> list[int]:
    """Return what anybody may take of a node: capacity less usage less what is reserved for anybody."""
    rest = [capacity - used for capacity, used in zip(node.capacity, node.used, strict=True)]
    for shape in node.reserved.values():
        for index, amount in shape.pairs:
            rest[index] -= amount
    return rest


def columns_of(state: State) -> NodeColumns:
    """Return the columns of a state, built when they are not there."""
    index = index_of(state)
    columns = index.columns
    if not isinstance(columns, NodeColumns):
        columns = index.columns = NodeColumns(state)
    return columns

"""Free space of the nodes as columns: where does this fit, and which of those nodes comes first.

One int64 array a resource type holds what anybody may take of it on each node (capacity less usage
less what is reserved for anybody), so that "where does this fit" is one vectorised comparison a
type. A node keeps its row until it leaves, and the row of one that left is used again, so that a
cluster whose nodes come and go costs what changes. Of two nodes with equal scores the smaller name
wins: heaps hold names, and vectorised looks compare their ranks.

**Scores.** The use of one type is ``floor(used * 10**9 / capacity)``. A node's use is the weighted
mean over the types that it has, rounded down: a mean and not a sum, so that a node with one more
type of resource does not count as fuller for it. ``fair`` takes the least used node first,
``binpacking`` the most used, whose score is therefore the negative use. Scores are computed in
Python with exact integers whenever a node changes, and only compared in the columns.

**The first node of all** is looked at before anything else: one heap holds all nodes that take
anybody, and under ``fair`` the first of them is the least used one, which nearly always has room.

**Equal asks are placed together.** A shape that is searched for often has a heap of the nodes that
it fits, by (score, name). These heaps are lazy: changed rows are noted in a journal, a search first
pushes those that changed since its last one, and drops entries from the top that are out of date.
So a run of equal asks costs a push and a pop each instead of a scan over all nodes.

The truth are the plain integers of `evsched.core.workloads.Node`; all of this is told of changes
and can be dropped at any time.
"""

from __future__ import annotations

from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from events.configuration import YunikornSpec
from evsched.core.node_access import is_open_to_all
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.name_ranks import NameRanks
from evsched.core.yunikorn.node_marks import NodeMarks
from evsched.core.yunikorn.row_numbers import RowNumbers, widened

if TYPE_CHECKING:
    from msgspec import UnsetType
    from numpy.typing import NDArray

    from evsched.core.resources import Pairs, Shape
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Node

FULL = 10**9
"""The use of a node whose every type is used up."""
DEFAULT_WEIGHT = 1000
LOWEST, HIGHEST = -(2**62), 2**62
HEAP_FROM = 4
"""With which search for a shape its heap is built."""
MOST_HEAPS = 32
MOST_SEARCHED = 4096
"""For so many shapes at most it is noted how often they were searched for."""
SHUT = -1
"""Stands for the free space of a node that takes nobody: no amount fits into it."""


class NodeHeap:
    """The nodes that some amounts fit, by (score, name); entries may be out of date.

    Every node that fits has an entry with its score of now, once the journal is read to its end.
    Other entries are dropped at the top: the score is another one, or the amounts no longer fit.

    Attributes:
        entries: As `heapq` arranges them.
        pairs: The amounts; none for the heap of all nodes that take any ask.
        read: How much of the journal is already in the heap.
    """

    __slots__ = ("entries", "pairs", "read")

    def __init__(self, pairs: Pairs, entries: list[tuple[int, str]], read: int) -> None:
        """Take over the entries, in any order."""
        heapify(entries)
        self.pairs = pairs
        self.entries = entries
        self.read = read


class NodeColumns:
    """Free space and scores of all nodes of one state (protocol `evsched.core.yunikorn.index.Columns`).

    Attributes:
        names: Of the nodes by row; None for a row that is free.
        rows: Row by name.
        available: One array a resource type: what anybody may take, negative when a node shrank
            below its usage.
        schedulable: Whether a node takes anybody.
        open: Whether it takes pods that tolerate no taint.
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
        names = sorted(state.nodes)
        self._numbers: RowNumbers[str] = RowNumbers(names)
        self.names = self._numbers.owners
        self.rows = {name: row for row, name in enumerate(names)}
        self._order = NameRanks(names)
        nodes = [state.nodes[name] for name in names]
        self._shut = [SHUT] * state.width
        self._is_open = partial(is_open_to_all, state)
        # Rows as plain integers, for looks at single nodes; the arrays are for looks at all of
        # them.
        # `_base` is what tolerant pods may take, `_rest` what anybody may.
        self._base = [_rest(node) if node.schedulable else self._shut for node in nodes]
        self._rest = [
            base if self._is_open(node) else self._shut
            for node, base in zip(nodes, self._base, strict=True)
        ]
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
        self.open: NDArray[np.bool_] = np.array(list(map(self._is_open, nodes)), dtype=np.bool_)
        self.scores: NDArray[np.int64] = np.array(self._score, dtype=np.int64)
        self.grown: dict[int, None] = {}
        # Changed since the last `settle`; and the names of all that were settled, in order.
        self._dirty: dict[str, Node] = {}
        self._journal: list[str] = []
        # By index of a shape; and how often those without a heap were searched for.
        self._heaps: dict[int, NodeHeap] = {}
        self._searched: dict[int, int] = {}
        self._all = self._heap_of(())
        self._marks = NodeMarks(state, self.rows)

    # -------------------------------------------------------------------------------------- changes

    def node_joined(self, node: Node) -> None:
        """Give a new node a row.

        Its amounts are written by the next `settle`, which finds that they have grown from
        nothing. So asks that had no room are tried on it.
        """
        row = self.rows[node.name] = self._numbers.take(node.name)
        self._order.add(row, node.name)
        if row == len(self._rest):
            self._rest.append(self._shut)
            self._base.append(self._shut)
            self._score.append(0)
        if row >= len(self.scores):
            self.available = [widened(column) for column in self.available]
            self.schedulable, self.open = widened(self.schedulable), widened(self.open)
            self.scores = widened(self.scores)
            self._marks.repulsion.forget()  # its columns have no place for the new row
        self._dirty[node.name] = node

    def node_left(self, node: Node) -> None:
        """Take the row of a node back: nothing fits there.

        Entries of heaps that name it are dropped when they come to the top. A node that comes back
        under the same name is another one: its row and score are looked up anew.
        """
        row = self.rows.pop(node.name)
        self._numbers.give(row)
        self._order.remove(row, node.name)
        self._dirty.pop(node.name, None)
        self.grown.pop(row, None)
        self._rest[row] = self._base[row] = self._shut
        self.schedulable[row] = self.open[row] = False
        self._marks.clear(row)
        for column in self.available:
            column[row] = SHUT

    def node_changed(self, node: Node) -> None:
        """Note that usage, capacity, reservations or schedulability of a node changed.

        Looked at by the next `settle`, so that many changes of a node in one step cost one
        reading.
        """
        if node.name in self.rows:  # what ran on a node that left is released after that
            self._dirty[node.name] = node

    def started(self, allocation: Allocation) -> None:
        """An allocation runs now, beside which other pods may not be."""
        self._marks.repulsion.started(allocation)

    def ended(self, allocation: Allocation) -> None:
        """An allocation is gone: its node takes what kept away from it, be it fuller than before."""
        self._marks.repulsion.ended(allocation)
        row = None if allocation.node is None else self.rows.get(allocation.node)
        if row is not None:
            self.grown[row] = None

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
        # What heaps have not read yet is dropped with them, or the journal would grow for ever.
        if len(self._journal) > 4 * len(self.rows) + 4096:
            self._journal.clear()
            self._heaps.clear()
            self._all = self._heap_of(())

    def _settle(self, node: Node, row: int) -> None:
        """Write one row, and note whether it can take more of any type than before.

        A node that takes no ask counts as one without any room, so that it has grown when it opens
        again. One with other labels or taints may take pods that it did not take, so it has grown.
        """
        rest = _rest(node)
        before, base_before = self._rest[row], self._base[row]
        base = self._base[row] = rest if node.schedulable else self._shut
        is_open = self._is_open(node)
        seen = self._rest[row] = base if is_open else self._shut
        for index, amount in enumerate(rest):
            self.available[index][row] = amount
            if seen[index] > before[index]:
                self.grown[row] = None
        if self._marks.write(row, node) or (
            # Closed to most by a taint: it has grown for those that tolerate it.
            not is_open and any(now > then for now, then in zip(base, base_before, strict=True))
        ):
            self.grown[row] = None
        self.schedulable[row], self.open[row] = node.schedulable, is_open
        self.scores[row] = self._score[row] = self._score_of(node)
        self._journal.append(node.name)

    def _score_of(self, node: Node) -> int:
        """Return the score of a node: its weighted mean use in billionths.

        It is negative under ``binpacking``. Types without capacity are left out. A node that
        shrank may use many times its capacity, so the score is held within bounds that fit into
        int64.
        """
        total = weighed = 0
        for weight, capacity, used in zip(self._weights, node.capacity, node.used, strict=True):
            if capacity > 0:
                total += weight
                weighed += weight * (used * FULL // capacity)
        use = weighed // total if total else 0
        return max(LOWEST, min(HIGHEST, self._sign * use))

    # ------------------------------------------------------------------------------------- searches

    def fitting(self, pairs: Pairs, pod: bytes | UnsetType = UNSET) -> NDArray[np.bool_]:
        """Return for each row whether these amounts fit into what anybody may take there.

        Args:
            pairs: The amounts.
            pod: As the state keeps it: only rows that take it; UNSET: those that take any pod.
        """
        self.settle()
        fits = self.taking(pod)
        for index, amount in pairs:
            fits &= self.available[index] >= amount
        return fits

    def taking(self, pod: bytes | UnsetType) -> NDArray[np.bool_]:
        """Return for each row whether its node takes a pod, room aside; `settle` first. The array is new."""
        if pod is UNSET:
            return self.open.copy()
        return self.schedulable & self._marks.takes(pod, len(self.schedulable))

    def fits_in(self, row: int, pairs: Pairs, pod: bytes | UnsetType = UNSET) -> bool:
        """Tell whether these amounts fit into what any ask may take of one node; `settle` first.

        Read from plain integers, not from the columns.

        Args:
            row: Of the node.
            pairs: The amounts.
            pod: As for `fitting`.
        """
        if pod is not UNSET:
            return self._fits_pod(row, pairs, pod)
        rest = self._rest[row]
        for index, amount in pairs:  # noqa: SIM110 - a loop is twice as fast as a generator here
            if rest[index] < amount:
                return False
        return True

    def _fits_pod(self, row: int, pairs: Pairs, pod: bytes) -> bool:
        """Tell whether a pod may run on one node and its amounts fit there."""
        base = self._base[row]
        return all(base[index] >= amount for index, amount in pairs) and bool(
            self.schedulable[row] and self._marks.takes(pod, len(self.schedulable))[row]
        )

    def rest(self, row: int, *, tolerant: bool = False) -> list[int] | None:
        """Return what any ask may take of one node, by type; None when it takes none.

        Call `settle` first. The list is the one that is kept: it must not be changed.

        Args:
            row: Of the node.
            tolerant: What asks may take whose pods tolerate all taints.
        """
        rest = (self._base if tolerant else self._rest)[row]
        return None if rest is self._shut else rest

    def place_on(self, name: str, pairs: Pairs, pod: bytes | UnsetType = UNSET) -> str | None:
        """Return the name of a node when these amounts fit into what any ask may take of it.

        None when they do not, when it is not registered, and when it takes no ask at present, or
        not this pod.
        """
        self.settle()
        row = self.rows.get(name)
        return name if row is not None and self.fits_in(row, pairs, pod) else None

    def place_among(
        self, rows: list[int], pairs: Pairs, pod: bytes | UnsetType = UNSET
    ) -> str | None:
        """Return the first of some nodes, by score and then name, that these amounts fit.

        Args:
            rows: Few, as each is looked at; a row whose node has left is passed over.
            pairs: The amounts.
            pod: As for `fitting`.

        Returns:
            The name; None when they fit none of the nodes.
        """
        self.settle()
        fitting = [
            (self._score[row], name)
            for row in rows
            if (name := self.names[row]) is not None and self.fits_in(row, pairs, pod)
        ]
        return min(fitting)[1] if fitting else None

    def place(self, shape: Shape, pod: bytes | UnsetType = UNSET) -> str | None:
        """Return the first node, by score and then name, that the shape fits; None when none does.

        A pod that may not run wherever others may is scanned for each time.

        The first node of all is tried first. Then a shape is scanned for until `HEAP_FROM`
        searches have shown that it comes often, and has a heap from then on. "asks bound, 5000
        nodes, 50000 asks, one priority" measures heaps, "50000 asks of 500 shapes" measures scans,
        which all shapes beyond `MOST_HEAPS` need.
        """
        self.settle()
        pairs = shape.pairs
        if pod is not UNSET and not self._marks.is_usual(pod, len(self.schedulable)):
            return self._scan(pairs, pod)
        name = self._first(self._all)
        if name is None or self.fits_in(self.rows[name], pairs):
            return name
        heap = self._heaps.get(shape.index)
        if heap is not None and len(self._journal) - heap.read > len(self.rows):
            del self._heaps[shape.index]  # so much has changed that a new one is cheaper
            heap = None
        if heap is None:
            if len(self._searched) > MOST_SEARCHED:
                self._searched.clear()
            searched = self._searched[shape.index] = self._searched.get(shape.index, 0) + 1
            if searched < HEAP_FROM or len(self._heaps) >= MOST_HEAPS:
                return self._scan(pairs)
            heap = self._heaps[shape.index] = self._heap_of(pairs)
        return self._first(heap)

    def _scan(self, pairs: Pairs, pod: bytes | UnsetType = UNSET) -> str | None:
        """Return the first node that these amounts fit; None when there is none.

        One look at all columns answers what a heap would: smallest score, then smallest name.
        """
        rows = self.fitting(pairs, pod).nonzero()[0]
        if not len(rows):
            return None
        scores = self.scores[rows]
        return self.names[self._order.first(rows[scores == scores.min()])]

    def _heap_of(self, pairs: Pairs) -> NodeHeap:
        """Return a heap of the nodes that these amounts fit now.

        No amounts: all nodes that take any ask. All of the journal counts as read.
        """
        rows = np.flatnonzero(self.fitting(pairs))
        names = map(self.names.__getitem__, rows.tolist())
        entries = zip(self.scores[rows].tolist(), names, strict=True)
        return NodeHeap(
            pairs,
            [(score, name) for score, name in entries if name is not None],
            len(self._journal),
        )

    def _first(self, heap: NodeHeap) -> str | None:
        """Return the first node of a heap that is still what its entry says.

        None when there is none. First the nodes that changed since the last search are pushed
        where they fit. The names are local because this loop runs once for each ask that is bound.
        """
        entries, pairs, scores, journal, rest, shut, rows = (
            heap.entries,
            heap.pairs,
            self._score,
            self._journal,
            self._rest,
            self._shut,
            self.rows,
        )
        end = len(journal)
        while heap.read < end:
            name = journal[heap.read]
            heap.read += 1
            row = rows.get(name)
            if row is not None and rest[row] is not shut and self.fits_in(row, pairs):
                heappush(entries, (scores[row], name))
        while entries:
            score, name = entries[0]
            row = rows.get(name)
            if (
                row is not None
                and scores[row] == score
                and rest[row] is not shut
                and self.fits_in(row, pairs)
            ):
                return name
            heappop(entries)
        return None


def _rest(node: Node) -> list[int]:
    """Return what any ask may take of a node, by type: capacity less usage less all reservations.

    Negative when the node shrank below that.
    """
    rest = [capacity - used for capacity, used in zip(node.capacity, node.used, strict=True)]
    for shape in node.reserved.values():
        for index, amount in shape.pairs:
            rest[index] -= amount
    return rest


def columns_of(state: State) -> NodeColumns:
    """Return the columns of a state, built when they are not there.

    They follow the state from then on: the reducer tells the index of each change.
    """
    index = index_of(state)
    columns = index.columns
    if not isinstance(columns, NodeColumns):
        columns = index.columns = NodeColumns(state)
    return columns

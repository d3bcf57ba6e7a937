"""Possible victims: columns over allocations and nodes, so that most nodes are ruled out all at once.

The allocations of a node lie together in its *page*, cheapest victim first, so that what can be
said of a node is a sum or a maximum over its page. Pages follow the order of the nodes' names.
Allocations that can never be victims (being evicted already, or with a required node) are left out. A
page whose node changed is written anew before the next decision; when most of them changed, or one
no longer fits into its place, everything is built from the state. Nothing here is truth: dropping
it changes no decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.workloads import Allocation, Node
from evsched.core.yunikorn.cost import Cost
from evsched.core.yunikorn.index import index_of

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_LEAF = 0
"""The leaf of a place that holds nobody."""

SPARE = 2
"""Free places at the end of every page, so that a new allocation seldom moves all pages."""

REBUILD_SHARE = 4
"""When more than one in so many pages changed, all are built anew, which is cheaper by then."""


class VictimIndex:
    """The columns.

    Attributes:
        names: Nodes by page, ascending.
        schedulable: By page.
        space: By type and page: what is free once all that were told are gone, reservations
            subtracted.
        starts: First place of each page.
        page: By place: its page.
        leaf: By place: number of its leaf in ``leaves``; `NO_LEAF` where there is nobody.
        priority: By place.
        flags: By place: 2 if it opted out, plus 1 if it is an originator.
        amounts: By type and place.
        parts: By component of the cost and place.
        slots: By place: the allocation.
        leaves: By number: the path of the leaf; the first is nobody's.
    """

    def __init__(self, state: State, cost: Cost) -> None:
        """Build it from the state."""
        self._state = state
        self.cost = cost
        self._dirty: dict[str, None] = {}
        self._stale = False
        self.leaves: list[str]
        self._leaf_number: dict[str, int]
        self._build()

    # ----------------------------------------------------------------------- what the reducer tells

    def added(self, allocation: Allocation) -> None:
        """An allocation runs now."""
        if allocation.node is not None:
            self._dirty[allocation.node] = None

    removed = changed = added

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed."""
        self._dirty[node.name] = None

    def nodes_changed(self) -> None:
        """A node came or went."""
        self._stale = True

    # ----------------------------------------------------------------------------------- keeping up

    def refresh(self) -> None:
        """Catch up with what changed; the columns are those of the state afterwards."""
        if self._stale or len(self._dirty) * REBUILD_SHARE > len(self.names) + REBUILD_SHARE:
            self._build()
            return
        for name in self._dirty:
            page = self._page_of.get(name)
            if page is not None and not self._write_page(page, self._state.nodes[name]):
                self._build()
                return
        self._dirty.clear()

    def _number(self, leaf: str) -> int:
        number = self._leaf_number.get(leaf)
        if number is None:
            number = self._leaf_number[leaf] = len(self.leaves)
            self.leaves.append(leaf)
        return number

    def _build(self) -> None:
        state = self._state
        self._dirty.clear()
        self._stale = False
        self.leaves = [""]
        self._leaf_number = {}
        self.names = sorted(state.nodes)
        self._page_of = {name: page for page, name in enumerate(self.names)}
        page_of = self._page_of
        here = [
            allocation
            for allocation in state.allocations.values()
            if not allocation.eviction_requested
            and allocation.required_node is None
            and allocation.node in page_of
        ]
        pages = np.fromiter((page_of[allocation.node] for allocation in here), np.int64, len(here))  # type: ignore[index]
        flags = np.fromiter((_flags(allocation) for allocation in here), np.int8, len(here))
        parts = [np.fromiter(map(part.of, here), np.int64, len(here)) for part in self.cost.parts]
        newest = np.fromiter((-allocation.seq for allocation in here), np.int64, len(here))
        order = np.lexsort((newest, *reversed(parts), pages * 4 + flags))
        counts = (
            np.bincount(pages, minlength=len(self.names))
            if here
            else np.zeros(len(self.names), np.int64)
        )
        room = counts + SPARE
        self.starts: Longs = (
            np.concatenate((np.zeros(1, np.int64), np.cumsum(room)[:-1]))
            if len(room)
            else np.zeros(0, np.int64)
        )
        self._room = room
        size = int(room.sum())
        sorted_pages = pages[order]
        # Place of each: the start of its page plus its rank in it.
        first = (
            np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)[:-1]))
            if len(counts)
            else counts
        )
        places = self.starts[sorted_pages] + np.arange(len(here)) - first[sorted_pages]
        self.page: Longs = np.repeat(np.arange(len(self.names)), room)
        self.leaf: NDArray[np.int32] = np.zeros(size, np.int32)
        self.leaf[places] = np.fromiter(
            (self._number(allocation.queue) for allocation in here), np.int32, len(here)
        )[order]
        self.priority: Longs = np.zeros(size, np.int64)
        self.priority[places] = np.fromiter(
            (allocation.priority for allocation in here), np.int64, len(here)
        )[order]
        self.flags: NDArray[np.int8] = np.zeros(size, np.int8)
        self.flags[places] = flags[order]
        self.parts: list[Longs] = [_spread(part[order], places, size) for part in parts]
        shapes = np.fromiter((allocation.shape for allocation in here), np.int64, len(here))[order]
        numbers, shapes = np.unique(shapes, return_inverse=True)
        table = np.zeros((state.width, len(numbers)), np.int64)
        for column, number in enumerate(numbers.tolist()):
            for index, amount in state.types.shapes[number].pairs:
                table[index, column] = amount
        self.amounts: list[Longs] = [
            _spread(table[index][shapes], places, size) for index in range(state.width)
        ]
        self.slots: list[Allocation | None] = [None] * size
        for place, source in zip(places.tolist(), order.tolist(), strict=True):
            self.slots[place] = here[source]
        self._largest_first: dict[int, Longs] = {}
        self._cheapest_first: Longs | None = None
        self._build_nodes()

    def _build_nodes(self) -> None:
        state = self._state
        nodes = [state.nodes[name] for name in self.names]
        self.schedulable: Bools = np.fromiter(
            (node.schedulable for node in nodes), np.bool_, len(nodes)
        )
        room = [node.room_after(state.types.shapes) for node in nodes]
        table = np.array(room, np.int64).reshape(len(nodes), state.width)
        self.space: list[Longs] = [
            np.ascontiguousarray(table[:, index]) for index in range(state.width)
        ]

    def _write_page(self, page: int, node: Node) -> bool:
        """Write one page anew; False when its allocations no longer fit into it."""
        shapes = self._state.types.shapes
        possible = (
            one
            for one in node.allocations.values()
            if not one.eviction_requested and one.required_node is None
        )
        here = sorted(possible, key=self.cost.candidate_key)
        room, start = int(self._room[page]), int(self.starts[page])
        if len(here) > room:
            return False
        end, stop = start + len(here), start + room
        self.leaf[end:stop] = NO_LEAF
        self.slots[start:stop] = [*here, *[None] * (room - len(here))]
        self.leaf[start:end] = [self._number(allocation.queue) for allocation in here]
        self.priority[start:end] = [allocation.priority for allocation in here]
        self.flags[start:end] = [_flags(allocation) for allocation in here]
        for part, column in zip(self.cost.parts, self.parts, strict=True):
            column[start:end] = [part.of(allocation) for allocation in here]
        for column in self.amounts:
            column[start:stop] = 0
        for place, allocation in enumerate(here, start):
            for index, amount in shapes[allocation.shape].pairs:
                self.amounts[index][place] = amount
        for index, places in self._largest_first.items():
            places[start:stop] = start + np.argsort(-self.amounts[index][start:stop], kind="stable")
        if self._cheapest_first is not None:
            self._cheapest_first[start:stop] = start + np.lexsort(
                [part[start:stop] for part in reversed(self.parts)]
            )
        self.schedulable[page] = node.schedulable
        for column, room in zip(self.space, node.room_after(shapes), strict=True):
            column[page] = room
        return True

    def largest_first(self, index: int) -> Longs:
        """Return all places, page by page, those with most of a type first."""
        places = self._largest_first.get(index)
        if places is None:
            places = self._largest_first[index] = np.lexsort((-self.amounts[index], self.page))
        return places

    def cheapest_first(self) -> Longs:
        """Return all places, page by page, the cheapest first by the components of the cost, whoever asked to be spared."""
        if self._cheapest_first is None:
            self._cheapest_first = np.lexsort((*reversed(self.parts), self.page))
        return self._cheapest_first

    # -------------------------------------------------------------------------------------- by page

    def sums(self, column: NDArray[Any]) -> Longs:
        """Return the sum of a column over each page."""
        result: Longs = np.add.reduceat(column, self.starts, dtype=np.int64)
        return result

    def page_of(self, node: str) -> int | None:
        """Return the page of a node; None when it has none."""
        return self._page_of.get(node)

    def page_end(self, page: int) -> int:
        """Return the place behind a page."""
        return int(self.starts[page] + self._room[page])

    def here(self, page: int, eligible: Bools) -> list[Allocation]:
        """Return the eligible allocations of a page, cheapest first."""
        start = int(self.starts[page])
        marks = eligible[start : self.page_end(page)].nonzero()[0]
        return [
            allocation
            for mark in marks.tolist()
            if (allocation := self.slots[start + mark]) is not None
        ]


def _flags(allocation: Allocation) -> int:
    return 2 * (not allocation.allow_preemption) + allocation.originator


def _spread(values: Longs, places: Longs, size: int) -> Longs:
    column = np.zeros(size, np.int64)
    column[places] = values
    return column


def of(state: State, cost: Cost) -> VictimIndex:
    """Return the index of a state, built if there is none for this cost, and up to date."""
    known = index_of(state)
    index = known.victims
    if not isinstance(index, VictimIndex) or index.cost is not cost:
        index = known.victims = VictimIndex(state, cost)
        return index
    index.refresh()
    return index


def leaves_of(index: VictimIndex, state: State) -> Iterable[tuple[int, Queue]]:
    """Yield the leaves in which somebody ran since the index was built, with their numbers."""
    for number in range(1, len(index.leaves)):
        queue = state.queues.get(index.leaves[number])
        if queue is not None:
            yield number, queue

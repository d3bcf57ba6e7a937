"""Which allocations could be preempted: columns over allocations and nodes.

Most nodes are ruled out all at once by them. The allocations of a node lie together in its *page*,
cheapest victim first, so that what can be said of a node is a sum or a maximum over its page.
Allocations that can never be victims (their eviction was requested already, or they have a
required node) are left out. A page whose node changed is written again before the next decision;
when most of them changed, everything is read again (`evsched.core.yunikorn.victim_pages`).

A node that joins gets a page at the end, where there is spare room, or one that another node left;
a node whose allocations no longer fit into its page moves to a larger one. So pages follow the
order of names only at first, and `NameRanks` knows it from then on. A page without a node is empty
and not open, so that no look finds anything there.

Nothing here is truth: dropping it changes no decision. `benchmarks.growth_yunikorn` measures what
keeping it saves: "the first preemption after that" completes it, "a later preemption" finds it
there, and "a node joins" writes one page. "preemption, 5000 full nodes of 10 pods" in
`docs/performance.md` is the figure with a target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evsched.core.node_access import is_open_to_all
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.workloads import Allocation, Node
from evsched.core.yunikorn import victim_pages
from evsched.core.yunikorn.cost import Cost
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.name_ranks import NameRanks
from evsched.core.yunikorn.victim_pages import SPARE, Bools, Longs, Pages, flags_of, is_candidate

if TYPE_CHECKING:
    from evsched.core.yunikorn.eligible import Eligible, Similar


NO_LEAF = 0
"""The leaf of a place that holds nobody."""

TAIL_SHARE = 8
"""One in so many places is kept free behind all pages, for new ones and those that need more room."""

FEWEST_SPARE = 256
"""So many places at least are kept free there."""

REBUILD_SHARE = 4
"""When more than one in so many pages changed, all are built anew, which is cheaper by then."""


class VictimIndex:
    """The columns of one state for one cost.

    A *place* is where one allocation can stand; a page is a range of places. Empty places have no
    leaf and no amounts, so no mark is ever set there; their other columns mean nothing.

    Attributes:
        cost: Its components are the columns ``parts``; another cost needs another index.
        names: Nodes by page; None for a page without one.
        open: By page: whether the node takes a pod that tolerates no taint.
        space: By type and page: what is free once all victims are gone, reservations subtracted.
        starts: First place of each page.
        page: By place: its page.
        leaf: By place: number of its leaf in ``leaves``; `NO_LEAF` where the place is empty.
        priority: By place.
        flags: By place: 2 if it opted out, plus 1 if it is an originator.
        amounts: By type and place.
        parts: By component of the cost and place.
        slots: By place: the allocation; None where the place is empty.
        leaves: By number: the path of the leaf; the first stands for none.
        written: Pages in the order in which they were written since all were built; may repeat.
        eligible: What `evsched.core.yunikorn.eligible` keeps of these pages.
    """

    def __init__(self, state: State, cost: Cost) -> None:
        """Begin it; `read` goes on, and `refresh` completes it.

        The columns do not exist before `refresh`.
        """
        self._state = state
        self.cost = cost
        # Nodes whose pages are to be written again, or made, or taken away.
        self._dirty: dict[str, None] = {}
        self.names: list[str | None]
        self.open: Bools
        self.space: list[Longs]
        self.starts: Longs
        self.page: Longs
        self.leaf: NDArray[np.int32]
        self.priority: Longs
        self.flags: NDArray[np.int8]
        self.amounts: list[Longs]
        self.parts: list[Longs]
        self.slots: list[Allocation | None]
        self.leaves: list[str]
        self.written: list[int]
        self.eligible: dict[Similar, Eligible]
        self._leaf_number: dict[str, int]
        self._page_of: dict[str, int]
        self._order: NameRanks
        # Places by page, the largest page of the last build, and pages without a node.
        self._room: Longs
        self._usual_room: int
        self._free_pages: list[int]
        self._largest_first: dict[int, Longs]
        self._cheapest_first: Longs
        # Nodes that are still to be read, and what was read so far; `_finish` puts it together.
        self._unread: list[str]
        self._slices: list[Pages]
        # Rows in the table of free space, by page; None: to be looked up again.
        self._rows: Longs | None = None
        self._rows_of: dict[str, int] = {}
        self._finished = False
        self._begin()

    # ----------------------------------------------------------------------- what the reducer tells

    def added(self, allocation: Allocation) -> None:
        """An allocation runs now, is gone, or its eviction was requested or withdrawn.

        All three mean that the page of its node is written again. One that runs on no known node
        is on no page.
        """
        if allocation.node is not None:
            self._dirty[allocation.node] = None

    removed = changed = added

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed.

        They are in ``space`` and ``open``, so its page is written again.
        """
        self._dirty[node.name] = None

    def node_joined(self, node: Node) -> None:
        """A node came; its page is made before the next decision."""
        self._dirty[node.name] = None
        self._rows = None

    def node_left(self, node: Node) -> None:
        """A node went; its page is taken away before the next decision."""
        self._dirty[node.name] = None
        self._rows = None

    # ----------------------------------------------------------------------------------- keeping up

    def refresh(self) -> None:
        """Catch up with what changed; the columns are those of the state afterwards.

        A page is written in place while its allocations fit. Else its node takes another one, and
        where there is no room for that either, everything is read again. `written` is cut off when
        it grows longer than a list of all pages, and with it the marks that are caught up by it.
        """
        # The fixed part keeps a cluster of a few nodes from a rebuild whenever one of them changes.
        if len(self._dirty) * REBUILD_SHARE > len(self.names) + REBUILD_SHARE:
            self._begin()
        if not self._finished:
            self._finish()
        if len(self.written) > len(self.names) + FEWEST_SPARE:
            self.written.clear()
            self.eligible.clear()
        for name in self._dirty:
            node, page = self._state.nodes.get(name), self._page_of.get(name)
            if page is not None and (node is None or not self._write_page(page, node)):
                self._leave_page(page, name)
                page = None
            if node is not None and page is None and not self._take_page(node):
                self._begin()
                self._finish()
                return
        self._dirty.clear()

    def _leave_page(self, page: int, name: str) -> None:
        """Empty a page and keep it for another node.

        Its places stay where they are, so no other page moves.
        """
        del self._page_of[name]
        self._order.remove(page, name)
        self.names[page], self._rows = None, None
        self.open[page] = False
        self._fill(page, [])
        self._free_pages.append(page)

    def _take_page(self, node: Node) -> bool:
        """Give a node a page; False when there is no room for one.

        It is the one that became free last of those that are large enough, or one behind all
        others. Every page made here is at least as large as the largest of the last build, so that
        others can use it later.
        """
        room = max(len(node.allocations) + SPARE, self._usual_room)
        page = next((one for one in reversed(self._free_pages) if self._room[one] >= room), None)
        if page is not None:
            self._free_pages.remove(page)
        else:
            page = len(self.names) - 1
            if self._room[page] <= room:
                return False
            self._split(page, room)
        self.names[page], self._rows = node.name, None
        self._page_of[node.name] = page
        self._order.add(page, node.name)
        return self._write_page(page, node)

    def _split(self, page: int, room: int) -> None:
        """Cut the last page, which no node has, in two.

        The first part has ``room`` places and is for a node; the rest stays spare. Columns by page
        grow by one, those by place keep their length.
        """
        start = int(self.starts[page])
        self.starts = np.append(self.starts, start + room)
        self._room = np.append(self._room, self._room[page] - room)
        self._room[page] = room
        self.page[start + room :] = page + 1
        self.open = np.append(self.open, False)
        self.space = [np.append(column, 0) for column in self.space]
        self.names.append(None)

    def _number(self, leaf: str) -> int:
        """Return the number of a leaf, a new one when it has none.

        Numbers follow the order in which leaves are met, and stand in columns alone: no decision
        sees them.
        """
        number = self._leaf_number.get(leaf)
        if number is None:
            number = self._leaf_number[leaf] = len(self.leaves)
            self.leaves.append(leaf)
        return number

    def _begin(self) -> None:
        """Begin to read all nodes again.

        Names and numbers begin anew at once; the columns are not to be read before `_finish`.
        Changes that were noted are covered, as every node is still to be read.
        """
        self._dirty.clear()
        self.leaves = [""]
        self._leaf_number = {}
        self._unread = sorted(self._state.nodes)
        self._page_of = {name: page for page, name in enumerate(self._unread)}
        self._order = NameRanks(self._unread)
        self.names, self._rows = [*self._unread, None], None
        self._slices = []
        self._finished = False

    def read(self, nodes: int) -> bool:
        """Read so many nodes of those that are still to be read; tell whether some are left.

        A node that changes after it was read is written again by `refresh`, like any other.
        """
        if self._unread:
            names, self._unread = self._unread[:nodes], self._unread[nodes:]
            self._slices.append(victim_pages.read(self._state, self.cost, names, self._number))
        return bool(self._unread)

    def _finish(self) -> None:
        """Read what is left and put all slices one behind the other, and spare room behind them.

        The spare room is the last page, which has no node (`names` ends in None). Marks that were
        kept are dropped, as places have moved.
        """
        if self._unread or not self._slices:
            self._slices.append(
                victim_pages.read(self._state, self.cost, self._unread, self._number)
            )
            self._unread = []
        used = sum(len(one.slots) for one in self._slices)
        tail = victim_pages.empty(self._slices[0], max(used // TAIL_SHARE, FEWEST_SPARE))
        pages = victim_pages.joined([*self._slices, tail])
        self._slices, self._finished = [], True
        self._room = pages.room
        self._usual_room = int(pages.room[:-1].max(initial=SPARE))
        self.starts = np.cumsum(pages.room) - pages.room
        self.page = np.repeat(np.arange(len(pages.room)), pages.room)
        self.open, self.space = pages.open, pages.space
        self.leaf, self.priority, self.flags = pages.leaf, pages.priority, pages.flags
        self.amounts, self.parts, self.slots = pages.amounts, pages.parts, pages.slots
        self._largest_first = dict(enumerate(pages.largest_first))
        self._cheapest_first = pages.cheapest_first
        self.written, self.eligible, self._free_pages = [], {}, []

    def _write_page(self, page: int, node: Node) -> bool:
        """Write one page again; False when its allocations no longer fit into it.

        Nothing was written then.
        """
        here = sorted(filter(is_candidate, node.allocations.values()), key=self.cost.candidate_key)
        if len(here) > int(self._room[page]):
            return False
        self._fill(page, here)
        self.open[page] = is_open_to_all(self._state, node)
        for column, room in zip(self.space, node.room_after(self._state.types.shapes), strict=True):
            column[page] = room
        return True

    def _fill(self, page: int, here: list[Allocation]) -> None:
        """Put allocations, cheapest first, into a page that has room for them.

        Columns of the places behind them are cleared as far as they are read: leaf, allocation and
        amounts. The orders within the page are computed again, for the types for which there is
        one.
        """
        self.written.append(page)
        shapes = self._state.types.shapes
        room, start = int(self._room[page]), int(self.starts[page])
        end, stop = start + len(here), start + room
        self.leaf[end:stop] = NO_LEAF
        self.slots[start:stop] = [*here, *[None] * (room - len(here))]
        self.leaf[start:end] = [self._number(allocation.queue) for allocation in here]
        self.priority[start:end] = [allocation.priority for allocation in here]
        self.flags[start:end] = [flags_of(allocation) for allocation in here]
        for part, column in zip(self.cost.parts, self.parts, strict=True):
            column[start:end] = [part.of(allocation) for allocation in here]
        for column in self.amounts:
            column[start:stop] = 0
        for place, allocation in enumerate(here, start):
            for index, amount in shapes[allocation.shape].pairs:
                self.amounts[index][place] = amount
        for index, places in self._largest_first.items():
            places[start:stop] = start + np.argsort(-self.amounts[index][start:stop], kind="stable")
        self._cheapest_first[start:stop] = start + np.lexsort(
            [part[start:stop] for part in reversed(self.parts)]
        )

    def largest_first(self, index: int) -> Longs:
        """Return all places, page by page, those with most of a type first.

        With many types it is worked out for those that an ask requests (`TYPES_SORTED`), and kept
        up to date from then on.
        """
        places = self._largest_first.get(index)
        if places is None:
            places = self._largest_first[index] = np.lexsort((-self.amounts[index], self.page))
        return places

    def cheapest_first(self) -> Longs:
        """Return all places, page by page, the cheapest first by the components of the cost.

        Flags do not count here, unlike in the order of places: an opt-out may be cheaper than its
        neighbours.
        """
        return self._cheapest_first

    # -------------------------------------------------------------------------------------- by page

    def sums(self, column: NDArray[Any]) -> Longs:
        """Return the sum of a column over each page."""
        result: Longs = np.add.reduceat(column, self.starts, dtype=np.int64)
        return result

    def rows(self, row_of: dict[str, int]) -> Longs:
        """Return the row of each page's node in another table; -1 for a page without one.

        It is kept until a node comes or goes, or takes another page.

        Args:
            row_of: By name of the node; the mapping that the other table keeps.
        """
        if self._rows is None or self._rows_of is not row_of:
            rows = [-1 if name is None else row_of.get(name, -1) for name in self.names]
            self._rows, self._rows_of = np.array(rows, np.int64), row_of
        return self._rows

    def page_of(self, node: str) -> int | None:
        """Return the page of a node; None when it has none."""
        return self._page_of.get(node)

    def first_by_name(self, pages: Longs) -> int:
        """Return the page of some, at least one, whose node has the smallest name."""
        return self._order.first(pages)

    def by_name(self, pages: Longs) -> Longs:
        """Return pages in the order of the names of their nodes."""
        return self._order.sorted(pages)

    def rank(self, page: int) -> int:
        """Return the rank of a node's name among all.

        Of two plans that cost the same, the one on the node with the smaller name wins.
        """
        return int(self._order.ranks[page])

    def node(self, page: int) -> str:
        """Return the name of the node of a page that has one."""
        name = self.names[page]
        assert name is not None
        return name

    def page_end(self, page: int) -> int:
        """Return the place behind a page."""
        return int(self.starts[page] + self._room[page])

    def here(self, page: int, eligible: Bools) -> list[Allocation]:
        """Return the eligible allocations of a page, cheapest first.

        The order is that of the places: `_fill` wrote them so.
        """
        start = int(self.starts[page])
        marks = eligible[start : self.page_end(page)].nonzero()[0]
        return [
            allocation
            for mark in marks.tolist()
            if (allocation := self.slots[start + mark]) is not None
        ]


def prepare(state: State, cost: Cost, nodes: int) -> bool:
    """Read a slice of the index of a state ahead of need; tell whether more is left to be read.

    It only reads, so that a leader may do it between steps. An index for another cost is replaced.
    """
    known = index_of(state)
    index = known.victims
    if not isinstance(index, VictimIndex) or index.cost is not cost:
        index = known.victims = VictimIndex(state, cost)
    return index.read(nodes)


def of(state: State, cost: Cost) -> VictimIndex:
    """Return the index of a state, built if there is none for this cost, and up to date.

    Args:
        state: Only read.
        cost: Compared by identity; named costs are the same object each time.
    """
    known = index_of(state)
    index = known.victims
    if not isinstance(index, VictimIndex) or index.cost is not cost:
        index = known.victims = VictimIndex(state, cost)
    index.refresh()
    return index


def leaves_of(index: VictimIndex, state: State) -> Iterable[tuple[int, Queue]]:
    """Yield the leaves in which an allocation ran since the index was built, with their numbers.

    A leaf that was removed since is left out; its number is not given away again.
    """
    for number in range(1, len(index.leaves)):
        queue = state.queues.get(index.leaves[number])
        if queue is not None:
            yield number, queue

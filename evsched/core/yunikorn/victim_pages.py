"""Reading the pages of nodes into columns, some nodes at a time.

To read every allocation of a large cluster takes longer than a step may. So the nodes are read in
slices, in the steps before the first preemption, and the slices are put one behind the other when
it comes. What changes in between is written again like any other page. Whether it was read in one
slice or in many makes no difference to the columns, and so to no decision.

The row "the longest slice of what is read ahead" of `benchmarks.growth_yunikorn` measures how long
one such step takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evsched.core.node_access import is_open_to_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evsched.core.state import State
    from evsched.core.workloads import Allocation
    from evsched.core.yunikorn.cost import Cost

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

SPARE = 2
"""Free places at the end of every page, so that a new allocation seldom moves it."""

TYPES_SORTED = 4
"""With so many resource types at most, the places are put in order by each of them while they are
read; with more, by those that an ask requests, when one does."""


class Pages(NamedTuple):
    """The pages of some nodes, one behind the other.

    Places are numbered from 0 within a slice; `joined` moves what holds numbers of places.

    Attributes:
        room: Places, by page.
        open: By page.
        space: By type and page, as in the victim index.
        leaf, priority, flags: By place, as there.
        amounts: By type and place.
        parts: By component of the cost and place.
        slots: By place; None where the place is empty.
        largest_first: By type: the places of each page, those with most of it first; empty: not
            worked out.
        cheapest_first: The places of each page, the cheapest first.
    """

    room: Longs
    open: Bools
    space: list[Longs]
    leaf: NDArray[np.int32]
    priority: Longs
    flags: NDArray[np.int8]
    amounts: list[Longs]
    parts: list[Longs]
    slots: list[Allocation | None]
    largest_first: list[Longs]
    cheapest_first: Longs


def is_candidate(allocation: Allocation) -> bool:
    """Tell whether an allocation can be a victim at all.

    Not where its eviction was requested already, nor where it may run on its node only: evicted
    there, it could run nowhere.
    """
    return not allocation.eviction_requested and allocation.required_node is None


def flags_of(allocation: Allocation) -> int:
    """Return 2 for an allocation that opted out, plus 1 for an originator.

    The smaller number is the one to take first: the order of candidates as one integer.
    """
    return 2 * (not allocation.allow_preemption) + allocation.originator


def read(state: State, cost: Cost, names: Sequence[str], number: Callable[[str], int]) -> Pages:
    """Return the pages of some nodes; one that is no longer there has an empty page.

    The allocations of all of them are sorted at once: by page, flags, cost, and the newest first,
    as `Cost.candidate_key` sorts those of one page. `SPARE` places stay empty behind each page.

    Args:
        state: Only read.
        cost: Its components become columns.
        names: The nodes, in the order that their pages are to have.
        number: Returns the number of a leaf.
    """
    nodes = [state.nodes.get(name) for name in names]
    here = [
        [one for one in node.allocations.values() if is_candidate(one)] if node is not None else []
        for node in nodes
    ]
    flat = [allocation for page in here for allocation in page]
    counts = np.array([len(page) for page in here], np.int64)
    room = counts + SPARE
    pages = np.repeat(np.arange(len(here)), counts)
    flags = np.array([flags_of(one) for one in flat], np.int8)
    parts = [np.array([part.of(one) for one in flat], np.int64) for part in cost.parts]
    newest = np.array([-one.seq for one in flat], np.int64)
    # The last key counts most: page and flags in one number, as flags are below 4.
    order = np.lexsort((newest, *reversed(parts), pages * 4 + flags))
    # Place of each: the start of its page plus its rank in it.
    shift = np.cumsum(room) - room - (np.cumsum(counts) - counts)
    places, size = shift[pages] + np.arange(len(flat)), int(room.sum())

    def spread(values: NDArray, kind: type = np.int64) -> NDArray:  # type: ignore[type-arg]
        column: NDArray = np.zeros(size, kind)  # type: ignore[type-arg]
        column[places] = values[order]
        return column

    slots: NDArray[np.object_] = np.full(size, None, object)
    slots[places] = np.array([*flat, None], object)[:-1][order]
    shapes, which = np.unique(np.array([one.shape for one in flat], np.int64), return_inverse=True)
    table = np.zeros((state.width, len(shapes)), np.int64)
    for column, shape in enumerate(shapes.tolist()):
        for index, amount in state.types.shapes[shape].pairs:
            table[index, column] = amount
    amounts = [spread(table[index][which]) for index in range(state.width)]
    spread_parts = [spread(part) for part in parts]
    page = np.repeat(np.arange(len(here)), room)
    nothing = [0] * state.width
    space = np.array(
        [nothing if node is None else node.room_after(state.types.shapes) for node in nodes],
        np.int64,
    ).reshape(len(nodes), state.width)
    sorted_types = amounts if state.width <= TYPES_SORTED else []
    return Pages(
        room=room,
        open=np.array(
            [node is not None and is_open_to_all(state, node) for node in nodes], np.bool_
        ),
        space=[np.ascontiguousarray(space[:, index]) for index in range(state.width)],
        leaf=spread(np.array([number(one.queue) for one in flat], np.int32), np.int32),
        priority=spread(np.array([one.priority for one in flat], np.int64)),
        flags=spread(flags, np.int8),
        amounts=amounts,
        parts=spread_parts,
        slots=slots.tolist(),
        largest_first=[np.lexsort((-column, page)) for column in sorted_types],
        cheapest_first=np.lexsort((*reversed(spread_parts), page)),
    )


def empty(like: Pages, places: int) -> Pages:
    """Return one page without a node, of so many places, with columns like those of other pages.

    It is not open and has no space, so that no search considers it.
    """
    return Pages(
        room=np.array([places]),
        open=np.zeros(1, np.bool_),
        space=[np.zeros(1, np.int64) for _ in like.space],
        leaf=np.zeros(places, np.int32),
        priority=np.zeros(places, np.int64),
        flags=np.zeros(places, np.int8),
        amounts=[np.zeros(places, np.int64) for _ in like.amounts],
        parts=[np.zeros(places, np.int64) for _ in like.parts],
        slots=[None] * places,
        largest_first=[np.arange(places) for _ in like.largest_first],
        cheapest_first=np.arange(places),
    )


def joined(slices: Sequence[Pages]) -> Pages:
    """Return the pages of all slices, at least one, one behind the other.

    What is by page or by place is put together as it is. Orders of places are shifted by the
    places of the slices before.
    """
    sizes = np.array([len(one.slots) for one in slices])
    offsets = (np.cumsum(sizes) - sizes).tolist()

    def moved(orders: Sequence[Longs]) -> Longs:
        pairs = zip(orders, offsets, strict=True)
        return np.concatenate([order + offset for order, offset in pairs])

    return Pages(
        room=np.concatenate([one.room for one in slices]),
        open=np.concatenate([one.open for one in slices]),
        space=[
            np.concatenate(column) for column in zip(*(one.space for one in slices), strict=True)
        ],
        leaf=np.concatenate([one.leaf for one in slices]),
        priority=np.concatenate([one.priority for one in slices]),
        flags=np.concatenate([one.flags for one in slices]),
        amounts=[
            np.concatenate(column) for column in zip(*(one.amounts for one in slices), strict=True)
        ],
        parts=[
            np.concatenate(column) for column in zip(*(one.parts for one in slices), strict=True)
        ],
        slots=[slot for one in slices for slot in one.slots],
        largest_first=[
            moved(orders) for orders in zip(*(one.largest_first for one in slices), strict=True)
        ],
        cheapest_first=moved([one.cheapest_first for one in slices]),
    )

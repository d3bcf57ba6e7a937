"""Which allocations may be victims of an ask, each taken alone: marks over the places of the victim index.

Whether an allocation is eligible depends on its own page and on what the laws say of its leaf. From
one ask of a kind to the next both are mostly the same: a decision writes the few pages of its
victims again, and the room that a guarantee leaves in a leaf matters only where it is smaller than
the largest amount of all. So the marks are kept, and only pages that were written since are marked
again. `benchmarks.growth_yunikorn` ("later preemption") measures what this saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from evsched.core.yunikorn.victim_pages import Bools, Longs
    from evsched.core.yunikorn.victims import VictimIndex

LEVELS = (0, 1, 3)
"""Largest flags (2 opted out, plus 1 originator) of the victims allowed: none asked to be spared, originators too, everybody."""

KINDS_KEPT = 8
"""For so many kinds of asks the marks are kept."""

MARK_SHARE = 16
"""When more than one in so many pages was written, all are marked again, which is cheaper by then."""

Similar = tuple[str, int, tuple[int, ...]]
"""What asks have in common for whom the same allocations are eligible: leaf, priority and types."""


class LeafBounds(NamedTuple):
    """What the laws say of the allocations in each leaf, by its number.

    Attributes:
        highest: The highest priority of a victim.
        room: By type: the most that a single victim may hold; a type that is not there has no bound.
    """

    highest: Longs
    room: dict[int, Longs]

    def differ(self, other: LeafBounds, largest: dict[int, int]) -> bool:
        """Tell whether any allocation could be judged differently by the other bounds.

        Args:
            other: Bounds that marks were made with.
            largest: By type; bounds that are both above that count as equal. So a guarantee that
                leaves plenty of room may shrink without a new look.
        """
        return (
            len(self.highest) != len(other.highest)
            or self.room.keys() != other.room.keys()
            or bool((self.highest != other.highest).any())
            or any(
                (
                    np.minimum(column, largest[kind]) != np.minimum(other.room[kind], largest[kind])
                ).any()
                for kind, column in self.room.items()
            )
        )


class Eligible:
    """The marks for one kind of asks.

    A *level* is one of `LEVELS`: the largest flags of the victims that a search may take. What is
    known by level, or by level and type, is worked out when a search first asks for it and kept up
    to date.

    Attributes:
        index: Whose places are marked.
        marks: By place: whether the allocation there may be a victim, flags aside.
    """

    def __init__(self, index: VictimIndex, types: tuple[int, ...], bounds: LeafBounds) -> None:
        """Mark every place; the rest is worked out when it is wanted."""
        self.index = index
        self._types = types
        self._bounds = bounds
        self._largest = {kind: int(index.amounts[kind].max(initial=0)) for kind in bounds.room}
        self._read = len(index.written)
        self.marks = self._marked(slice(None))
        self._allowed: dict[int, Bools] = {}
        self._count: dict[int, int] = {}
        self._given: dict[tuple[int, int], Longs] = {}

    def catch_up(self, bounds: LeafBounds) -> bool:
        """Mark the pages again that were written since; False when all must be marked again.

        That is when too many pages were written, or when the bounds of a leaf differ in what
        matters. The marks are then not to be used any more. Pages that were added get a sum of 0
        before they are marked.
        """
        index = self.index
        pages = dict.fromkeys(index.written[self._read :])
        if len(pages) * MARK_SHARE > len(index.names) or bounds.differ(self._bounds, self._largest):
            return False
        self._bounds, self._read = bounds, len(index.written)
        for key, given in self._given.items():
            added = len(index.names) - len(given)
            self._given[key] = np.append(given, np.zeros(added, np.int64)) if added else given
        for page in pages:
            here = slice(int(index.starts[page]), index.page_end(page))
            for kind, most in self._largest.items():
                # An amount above all before makes bounds matter that were too high to.
                self._largest[kind] = max(most, int(index.amounts[kind][here].max(initial=0)))
            self.marks[here] = self._marked(here)
            for level, allowed in self._allowed.items():
                before = int(np.count_nonzero(allowed[here]))
                allowed[here] = self.marks[here] & (index.flags[here] <= level)
                self._count[level] += int(np.count_nonzero(allowed[here])) - before
            for (level, kind), given in self._given.items():
                given[page] = index.amounts[kind][here][self._allowed[level][here]].sum()
        return True

    def _marked(self, here: slice) -> Bools:
        """Return the marks of some places: priority, guarantee, and a type that the ask requests.

        The last of these holds for no empty place, as nothing is held there.
        """
        index, bounds = self.index, self._bounds
        leaf = index.leaf[here]
        marks: Bools = np.less_equal(index.priority[here], bounds.highest[leaf])
        for kind, column in bounds.room.items():
            marks &= np.less_equal(index.amounts[kind][here], column[leaf])
        shared = np.zeros(len(marks), np.bool_)
        for kind in self._types:
            shared |= index.amounts[kind][here] > 0
        marks &= shared
        return marks

    def allowed(self, level: int) -> Bools:
        """Return which of them may be taken at a level, by place."""
        found = self._allowed.get(level)
        if found is None:
            found = self._allowed[level] = self.marks & (self.index.flags <= level)
            self._count[level] = int(np.count_nonzero(found))
        return found

    def count(self, level: int) -> int:
        """Return how many of them may be taken at a level."""
        self.allowed(level)
        return self._count[level]

    def given(self, level: int, kind: int) -> Longs:
        """Return how much of a type all of them together would give, by page.

        It is an upper bound of what any set of victims gives there, which rules most pages out.
        """
        found = self._given.get((level, kind))
        if found is None:
            index = self.index
            found = self._given[level, kind] = index.sums(
                np.where(self.allowed(level), index.amounts[kind], 0)
            )
        return found


def eligible_of(index: VictimIndex, key: Similar, bounds: LeafBounds) -> Eligible:
    """Return the marks for a kind of asks, kept ones as far as they still hold.

    Args:
        index: Up to date.
        key: The kind.
        bounds: What the laws say of each leaf now.
    """
    kept = index.eligible
    found = kept.pop(key, None)
    if found is None or not found.catch_up(bounds):
        found = Eligible(index, key[2], bounds)
        if len(kept) >= KINDS_KEPT:
            del kept[next(iter(kept))]
    kept[key] = found
    return found

"""What preemption would cost an ask at least, on all nodes at once.

Everything here is a sum, a maximum or a comparison over the columns of `evsched.core.victims`. It rules nodes out and puts the
others into an order; it never decides. What it says of a node is a bound: no plan there has fewer victims, or costs less. Law 2
counts only as far as one victim alone would break it, and whether victims fit together is left to the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from evsched.core import victims as index_module
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.victims import Bools, Longs, VictimIndex
from evsched.core.yunikorn import laws
from evsched.core.yunikorn.laws import Asker

MOST = 2**53
"""No allocation holds more of a type."""

OPTED_OUT = 2
LEVELS = (0, 1, 3)
"""Largest flags (2 opted out, plus 1 originator) of the victims allowed: none asked to be spared, originators too, everybody."""


class Shortage(NamedTuple):
    """A queue on the asker's path whose maximum the ask would pass, and by how much of which type."""

    queue: Queue
    kind: int
    amount: int


def shortages(asker: Asker) -> list[Shortage]:
    """Return by what the ask would pass each maximum on its path once everything that was told to go is gone."""
    found = []
    for queue in asker.leaf.lineage:
        for index, amount in asker.pairs:
            limit = queue.maximum.get(index)
            if limit is not None:
                over = laws.remaining(queue, index) + queue.claimed[index] + amount - limit
                if over > 0:
                    found.append(Shortage(queue, index, over))
    return found


Similar = tuple[str, int, tuple[int, ...]]
"""What asks have in common for whom the same allocations are eligible: leaf, priority and types."""


class Eligible:
    """Who may be a victim taken alone.

    Attributes:
        marks: By place.
    """

    def __init__(self, index: VictimIndex, marks: Bools) -> None:
        """Keep the marks; the rest is worked out when it is wanted."""
        self.index = index
        self.marks = marks
        self._allowed: dict[int, tuple[Bools, int]] = {}
        self._given: dict[tuple[int, int], Longs] = {}

    def _at(self, level: int) -> tuple[Bools, int]:
        found = self._allowed.get(level)
        if found is None:
            allowed = self.marks if level == LEVELS[-1] else self.marks & (self.index.flags <= level)
            found = self._allowed[level] = (allowed, int(np.count_nonzero(allowed)))
        return found

    def allowed(self, level: int) -> Bools:
        """Return which of them may be taken at a level, by place."""
        return self._at(level)[0]

    def count(self, level: int) -> int:
        """Return how many of them may be taken at a level."""
        return self._at(level)[1]

    def given(self, level: int, kind: int) -> Longs:
        """Return how much of a type all of them together would give, by page."""
        found = self._given.get((level, kind))
        if found is None:
            index = self.index
            found = self._given[level, kind] = index.sums(np.where(self.allowed(level), index.amounts[kind], 0))
        return found


class Outlook:
    """One ask against all nodes.

    Attributes:
        lacking: By type of the ask, in its order, and by page: what a node has too little of; 0 or less where it has enough.
        shortages: What is lacking below maxima on the ask's path.
    """

    def __init__(self, state: State, index: VictimIndex, asker: Asker) -> None:
        """Compare what is asked for with what is there once everything told is gone."""
        self.state = state
        self.index = index
        self.asker = asker
        self.shortages = shortages(asker)
        self.lacking: list[Longs] = [amount - index.space[kind] for kind, amount in asker.pairs]

    def add_room(self, node: str) -> None:
        """Give the ask the room that is reserved for itself."""
        page = self.index.page_of(node)
        if page is not None:
            for (_, amount), lacking in zip(self.asker.pairs, self.lacking, strict=True):
                lacking[page] -= amount

    def fits(self) -> int | None:
        """Return a page on which the ask needs no victim, one with free room if possible; None when it needs some everywhere.

        There is room, or there will be when those who were told are gone.
        """
        if self.shortages:
            return None
        roomy = self.index.schedulable.copy()
        for lacking in self.lacking:
            roomy &= lacking <= 0
        pages = roomy.nonzero()[0].tolist()
        return next((page for page in pages if self.is_free(page)), pages[0] if pages else None)

    def is_free(self, page: int) -> bool:
        """Tell whether a node has room for the ask now, while those who were told are still there."""
        state = self.state
        held: dict[int, int] = {}
        for allocation in state.nodes[self.index.names[page]].allocations.values():
            if allocation.told:
                for kind, amount in state.types.shapes[allocation.shape].pairs:
                    held[kind] = held.get(kind, 0) + amount
        pairs = self.asker.pairs
        return all(lacking[page] + held.get(kind, 0) <= 0 for (kind, _), lacking in zip(pairs, self.lacking, strict=True))

    def eligible(self, known: dict[Similar, Eligible]) -> Eligible:
        """Return who may be a victim taken alone.

        Args:
            known: What was found for similar asks since anything changed; it is added to.
        """
        key = (self.asker.leaf.path, self.asker.priority, self.asker.types)
        found = known.get(key)
        if found is None:
            found = known[key] = Eligible(self.index, self._marks())
        return found

    def _marks(self) -> Bools:
        """Return which places hold somebody who may be a victim taken alone."""
        index, state, asker = self.index, self.state, self.asker
        highest = np.full(len(index.leaves), laws.NOBODY, np.int64)
        room: dict[int, Longs] = {}
        for number, leaf in index_module.leaves_of(index, state):
            if laws.leaf_objection(asker, leaf) is not None:
                continue
            highest[number] = laws.law6_highest_priority(asker, leaf)
            for queue in laws.below(leaf, leaf.common_ancestor(asker.leaf)):
                for kind, slack in laws.law2_slack(queue).items():
                    column = room.get(kind)
                    if column is None:
                        column = room[kind] = np.full(len(index.leaves), laws.ANYBODY, np.int64)
                    column[number] = min(column[number], max(slack, 0))
        eligible: Bools = np.less_equal(index.priority, highest[index.leaf])
        for kind, column in room.items():
            eligible &= np.less_equal(index.amounts[kind], column[index.leaf])
        shared = np.zeros(len(eligible), np.bool_)
        for kind, _ in asker.pairs:
            shared |= index.amounts[kind] > 0
        return eligible & shared

    def _inside(self, queue: Queue) -> Bools:
        """Return which places hold somebody of a leaf below a queue."""
        index = self.index
        inside = np.zeros(len(index.leaves), np.bool_)
        for number, leaf in index_module.leaves_of(index, self.state):
            inside[number] = queue.contains(leaf)
        found: Bools = inside[index.leaf]
        return found

    def promising(self, eligible: Eligible, level: int) -> Longs:
        """Return the pages on which all victims allowed at a level together would make room."""
        index = self.index
        good = index.schedulable.copy()
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            good &= eligible.given(level, kind) >= lacking
        allowed = eligible.allowed(level)
        for short in self.shortages:
            good &= index.sums(np.where(allowed & self._inside(short.queue), index.amounts[short.kind], 0)) >= short.amount
        pages: Longs = good.nonzero()[0]
        return pages

    def _fewest(self, allowed: Bools) -> Longs:
        """Return, by page, a number of victims below which no plan is possible, at least 1."""
        index = self.index
        fewest = np.ones(len(index.names), np.int64)
        needs = [(kind, lacking, allowed) for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True)]
        needs += [
            (short.kind, np.full(len(index.names), short.amount, np.int64), allowed & self._inside(short.queue))
            for short in self.shortages
        ]
        for kind, lacking, mask in needs:
            order = index.largest_first(kind)
            marks = mask[order]
            given = np.cumsum(np.where(marks, index.amounts[kind][order], 0))
            before = np.concatenate((np.zeros(1, np.int64), given))[index.starts]
            unmet = marks & np.less(given - before[index.page], lacking[index.page])
            np.maximum(fewest, np.where(lacking > 0, index.sums(unmet) + 1, 1), out=fewest)
        return fewest

    def bounds(self, allowed: Bools, level: int) -> list[Longs]:
        """Return, component by component of `Cost.between_nodes` and by page, what a plan there costs at least."""
        index, cost = self.index, self.index.cost
        fewest = self._fewest(allowed)
        able = self._able(allowed, fewest)
        first = self._first(allowed, fewest)
        opted_out = index.sums(first & (index.flags >= OPTED_OUT))
        originators = index.sums(first & (index.flags % OPTED_OUT == 1))
        if level:
            # No plan spares them all, so there is at least one; who goes with it need not be the cheapest of the others.
            if level == LEVELS[-1]:
                originators = np.where(opted_out > 0, originators, 0)
                np.maximum(opted_out, 1, out=opted_out)
            else:
                np.maximum(originators, 1, out=originators)
        order = index.cheapest_first()
        first = self._first(able[order], fewest)
        parts = []
        for part, column in zip(cost.parts, index.parts, strict=True):
            total = index.sums(np.where(first, column[order], 0))
            parts.append((fewest * self.state.time + total if part.ages else total) // part.unit)
        exact = fewest == (0 if level or self.shortages else 1)
        waste = self._least_waste(able, fewest, exact)
        return [opted_out, originators, fewest, *((*waste, *parts) if cost.waste_first else (*parts, *waste))]

    def _least_waste(self, allowed: Bools, fewest: Longs, exact: Bools) -> list[Longs]:
        """Return what victims give up at least beyond what is lacking, by type and page.

        Where any of those allowed is a plan by itself (``exact``) it is the least of those that the cost compares by waste.
        """
        index, cost = self.index, self.index.cost
        alone = allowed & exact[index.page]
        if not cost.waste_first:
            for column in index.parts:
                least = np.minimum.reduceat(np.where(alone, column, laws.ANYBODY), index.starts)
                alone &= column == least[index.page]
        waste = []
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            amounts = index.amounts[kind]
            smallest = np.minimum.reduceat(np.where(allowed, amounts, MOST), index.starts)
            least = np.minimum.reduceat(np.where(alone, amounts, MOST), index.starts)
            alone &= amounts == least[index.page]
            given = np.where(exact, least, smallest * fewest)
            waste.append(np.maximum(given - np.maximum(lacking, 0), 0))
        return waste

    def _able(self, allowed: Bools, fewest: Longs) -> Bools:
        """Return who can be one of the fewest victims: with the largest others beside it it covers all that is lacking."""
        index = self.index
        able = allowed.copy()
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            order = index.largest_first(kind)
            others = self._first(allowed[order], fewest - 1)
            given = index.sums(np.where(others, index.amounts[kind][order], 0))
            able &= index.amounts[kind] >= (lacking - given)[index.page]
        return able

    def _first(self, marks: Bools, count: Longs) -> Bools:
        """Return the first ``count`` marked places of each page."""
        index = self.index
        rank = np.cumsum(marks)
        before = np.concatenate((np.zeros(1, np.int64), rank))[index.starts]
        first: Bools = marks & np.less_equal(rank - before[index.page], count[index.page])
        return first


def by_bound(bounds: list[Longs], pages: Longs) -> Iterator[int]:
    """Yield pages by their bounds, then by name; the first without sorting the rest, as it often is the last one needed."""
    least = pages
    for column in bounds:
        values = column[least]
        least = least[values == values.min()]
    first = int(least[0])
    yield first
    order = np.lexsort((pages, *(column[pages] for column in reversed(bounds))))
    for page in pages[order].tolist():
        if page != first:
            yield page

"""What preemption would cost an ask at least, on all nodes at once.

Everything here is a sum, a maximum or a comparison over the columns of `evsched.core.yunikorn.victims`. It
rules nodes out and puts the others into an order; it never decides. What it says of a node is a
bound: no plan there has fewer victims, or costs less. Law 2 counts only as far as one victim alone
would break it, and whether victims fit together is left to the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from events.bounds import MAX_AMOUNT
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.yunikorn import laws
from evsched.core.yunikorn import victims as index_module
from evsched.core.yunikorn.columns import columns_of
from evsched.core.yunikorn.eligible import LEVELS, Eligible, LeafBounds, Similar, eligible_of
from evsched.core.yunikorn.laws import Asker
from evsched.core.yunikorn.maxima import first_exceeded, shortages
from evsched.core.yunikorn.victim_pages import Bools, Longs
from evsched.core.yunikorn.victims import VictimIndex

OPTED_OUT = 2

FEW = 4
"""So many pages are found one by one before the rest is sorted."""


class Outlook:
    """One ask against all nodes.

    Attributes:
        lacking: By type of the ask, in its order, and by page: what a node has too little of; 0 or
            less where it has enough.
        shortages: What is lacking below maxima on the ask's path.
        taking: By page: whether the node takes the ask at all.
    """

    def __init__(self, state: State, index: VictimIndex, asker: Asker) -> None:
        """Compare what is asked for with what is there once everything told is gone."""
        self.state = state
        self.index = index
        self.asker = asker
        self.shortages = shortages(asker.leaf, asker.pairs)
        self.lacking: list[Longs] = [amount - index.space[kind] for kind, amount in asker.pairs]
        self.taking = _taking(state, index, asker)

    def add_room(self, node: str) -> None:
        """Give the ask the room that is reserved for itself.

        The columns count every reservation as used, as they serve all asks.
        """
        page = self.index.page_of(node)
        if page is not None:
            for (_, amount), lacking in zip(self.asker.pairs, self.lacking, strict=True):
                lacking[page] -= amount

    def fits(self) -> int | None:
        """Return a page on which the ask needs no victim; None when it needs some everywhere.

        There is room on it, or there will be when those that are being evicted are gone. One with
        free room is preferred.
        """
        if self.shortages:
            return None
        pages = self.roomy()
        return next((page for page in pages if self.is_free(page)), pages[0] if pages else None)

    def roomy(self) -> list[int]:
        """Return the pages with room for the ask once those who were told are gone, in the order of their names."""
        roomy = self.taking.copy()
        for lacking in self.lacking:
            roomy &= lacking <= 0
        pages: list[int] = self.index.by_name(roomy.nonzero()[0]).tolist()
        return pages

    def is_free(self, page: int) -> bool:
        """Tell whether a node has room for the ask now, and every maximum, while the victims are still there."""
        asker = self.asker
        if first_exceeded(asker.leaf, asker.pairs) is not None:
            return False
        return self.state.nodes[self.index.node(page)].fits(asker.pairs, asker.ask)

    def eligible(self, known: dict[Similar, Eligible]) -> Eligible:
        """Return which allocations may be victims taken alone.

        Args:
            known: What was found for similar asks since anything changed; it is added to.
        """
        key = (self.asker.leaf.path, self.asker.priority, self.asker.types)
        found = known.get(key)
        if found is None:
            found = known[key] = eligible_of(self.index, key, self._leaf_bounds())
        return found

    def _leaf_bounds(self) -> LeafBounds:
        """Return what the laws say of each leaf.

        The laws are asked once a leaf, not once an allocation: each leaf has a highest priority
        that may be preempted in it (laws 3, 5, 6 and 7), and for each type the most that a single
        victim may hold before a guarantee on its path is broken (law 2). The rest is comparison of
        columns.
        """
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
        return LeafBounds(highest, room)

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
        good = self.taking.copy()
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            good &= eligible.given(level, kind) >= lacking
        allowed = eligible.allowed(level)
        for short in self.shortages:
            good &= (
                index.sums(
                    np.where(allowed & self._inside(short.queue), index.amounts[short.kind], 0)
                )
                >= short.amount
            )
        pages: Longs = good.nonzero()[0]
        return pages

    def bounds(self, allowed: Bools, pages: Longs, level: int) -> list[Longs]:
        """Return what a plan costs at least, for the pages given; one column a component.

        The components are those of `Cost.between_nodes`, in its order. Each is a bound by itself:
        the fewest victims, the cheapest so many by priority, the youngest so many, the least
        waste. No plan has all of these at once, as a rule, but none is below any of them in the
        order that counts.
        """
        index, cost = self.index, self.index.cost
        good = np.zeros(len(index.names), np.bool_)
        good[pages] = True
        allowed = allowed & good[index.page]
        counts = index.sums(allowed)
        fewest, able = self._fewest(allowed, counts)
        opted_out, originators = self._flags(allowed, counts, fewest, level)
        counts = index.sums(able)
        cheapest = _Packed(_ordered(index.cheapest_first(), able), counts)
        parts = []
        for part, column in zip(cost.parts, index.parts, strict=True):
            total = cheapest.first(column, fewest)
            parts.append((fewest * self.state.time + total if part.ages else total) // part.unit)
        exact = fewest == (0 if level or self.shortages else 1)
        waste = self._least_waste(_Packed(able.nonzero()[0], counts), fewest, exact)
        return [
            opted_out,
            originators,
            fewest,
            *((*waste, *parts) if cost.waste_first else (*parts, *waste)),
        ]

    def _fewest(self, allowed: Bools, counts: Longs) -> tuple[Longs, Bools]:
        """Return how many victims any plan has at least, and which can be one of so few.

        The number is by page and at least 1. The largest victims together must cover all that is
        lacking, so one of that many must cover what the others, even the largest, leave: whoever
        holds less is not *able*.
        """
        index = self.index
        fewest = np.ones(len(index.names), np.int64)
        packed = [
            _Packed(_ordered(index.largest_first(kind), allowed), counts)
            for kind, _ in self.asker.pairs
        ]
        for (kind, _), lacking, largest in zip(self.asker.pairs, self.lacking, packed, strict=True):
            np.maximum(fewest, largest.until(index.amounts[kind], lacking), out=fewest)
        for short in self.shortages:
            inside = allowed & self._inside(short.queue)
            largest = _Packed(_ordered(index.largest_first(short.kind), inside), index.sums(inside))
            np.maximum(
                fewest,
                largest.until(index.amounts[short.kind], np.full(len(fewest), short.amount)),
                out=fewest,
            )
        able = allowed.copy()
        for (kind, _), lacking, largest in zip(self.asker.pairs, self.lacking, packed, strict=True):
            rest = lacking - largest.first(index.amounts[kind], fewest - 1)
            if rest.max(initial=0) > 0:
                able &= index.amounts[kind] >= rest[index.page]
        return fewest, able

    def _flags(
        self, allowed: Bools, counts: Longs, fewest: Longs, level: int
    ) -> tuple[Longs, Longs]:
        """Return how many opted-out victims and originators a plan has at least, by page.

        Beyond level 0 no plan spares them all, so there is at least one; who goes with it need not
        be the cheapest of the others.
        """
        index = self.index
        none = np.zeros(len(fewest), np.int64)
        if not level:
            return none, none
        cheapest = _Packed(allowed.nonzero()[0], counts)
        originators = cheapest.first(index.flags % OPTED_OUT == 1, fewest)
        if level < LEVELS[-1]:
            return none, np.maximum(originators, 1)
        opted_out = cheapest.first(index.flags >= OPTED_OUT, fewest)
        return np.maximum(opted_out, 1), np.where(opted_out > 0, originators, 0)

    def _least_waste(self, able: _Packed, fewest: Longs, exact: Bools) -> list[Longs]:
        """Return what victims give up at least beyond what is lacking, by type and page.

        Where any of those allowed is a plan by itself (``exact``) it is the least of those that the
        cost compares by waste.
        """
        index, cost = self.index, self.index.cost
        page = index.page[able.places]
        alone = exact[page]
        some = bool(alone.any())
        if some and not cost.waste_first:
            for column in index.parts:
                values = np.where(alone, column[able.places], laws.ANYBODY)
                alone &= values == able.least(values)[page]
        waste = []
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            amounts = index.amounts[kind][able.places]
            given = np.minimum(able.least(amounts), MAX_AMOUNT) * fewest
            if some:
                values = np.where(alone, amounts, MAX_AMOUNT)
                least = able.least(values)
                alone &= values == least[page]
                given = np.where(exact, least, given)
            waste.append(np.maximum(given - np.maximum(lacking, 0), 0))
        return waste


def _ordered(order: Longs, marks: Bools) -> Longs:
    """Return the marked places in an order of all places."""
    places: Longs = order[marks[order]]
    return places


def _taking(state: State, index: VictimIndex, asker: Asker) -> Bools:
    """Return the pages whose node takes the ask, room aside."""
    if asker.pod is UNSET:
        return index.open
    columns = columns_of(state)
    columns.settle()
    rows = index.rows(columns.rows)
    # A page without a node has row -1, which marks nothing.
    taking: Bools = columns.taking(asker.pod)[rows] & (rows >= 0)
    return taking


class _Packed:
    """Some places of each page, one page behind the other without gaps.

    Attributes:
        places: In an order of their own within each page.
        counts: How many there are, by page.
    """

    def __init__(self, places: Longs, counts: Longs) -> None:
        self.places = places
        self.counts = counts
        self.starts: Longs = np.cumsum(counts) - counts

    def _totals(self, column: NDArray[Any]) -> Longs:
        totals = np.zeros(len(self.places) + 1, np.int64)
        np.cumsum(column[self.places], out=totals[1:])
        return totals

    def first(self, column: NDArray[Any], count: Longs) -> Longs:
        """Return the sum of a column over the first ``count`` places, by page.

        It is the difference of two running totals, so its cost does not depend on how many places
        there are.
        """
        totals = self._totals(column)
        sums: Longs = totals[self.starts + np.minimum(count, self.counts)] - totals[self.starts]
        return sums

    def until(self, column: NDArray[Any], amount: Longs) -> Longs:
        """Return how many of the first places add up to an amount, by page.

        The column is not negative, so running totals ascend and can be searched.
        """
        totals = self._totals(column)
        number: Longs = np.searchsorted(totals, totals[self.starts] + amount) - self.starts
        return number

    def least(self, values: Longs) -> Longs:
        """Return the least of some values, by page; without a place, the most there is.

        ``values`` has one value a place, in the order of ``places``.
        """
        found = np.full(len(self.counts), laws.ANYBODY, np.int64)
        there = self.counts.nonzero()[0]
        if len(there):
            found[there] = np.minimum.reduceat(values, self.starts[there])
        return found


def by_bound(index: VictimIndex, bounds: list[Longs], pages: Longs) -> Iterator[int]:
    """Yield pages by their bounds, then by name.

    The first few are found one by one, as sorting all of them costs more and is seldom needed.
    """
    left = pages
    for _ in range(FEW):
        if not len(left):
            return
        least = left
        for column in bounds:
            values = column[least]
            least = least[values == values.min()]
        first = index.first_by_name(least)
        yield first
        left = left[left != first]
    left = index.by_name(left)
    yield from left[np.lexsort([column[left] for column in reversed(bounds)])].tolist()

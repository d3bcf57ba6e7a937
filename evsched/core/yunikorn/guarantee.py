"""Preemption for guarantees: the cheapest lawful plan for one ask (seed preemption_design).

First the columns of `evsched.core.victims` say, for all nodes at once, which of them could make room and what that would cost at
least; then the nodes are searched exactly, the most promising first, until no other can be cheaper. Plans without opted-out
victims and originators are looked for on all nodes before any other (law 1), then those with originators, then the rest.

A queue on the asker's path whose maximum the ask would pass is one more thing that lacks room: enough victims must come from
below that queue. A plan that needs no victim is none: the ask waits for room that is free or being freed already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evsched.core import victims as index_module
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.victims import Bools, Longs, VictimIndex
from evsched.core.workloads import Allocation, Ask
from evsched.core.yunikorn import laws
from evsched.core.yunikorn.cost import Cost
from evsched.core.yunikorn.laws import Asker
from evsched.core.yunikorn.search import NODE_BUDGET, Candidate, Found, cheapest

ASK_BUDGET = 200_000
"""Most candidates that are looked at for one ask, over all nodes. A plan found until then is still lawful and minimal; the event
says that the search was cut."""

OPTED_OUT = 2
LEVELS = (0, 1, 3)
"""Largest flags (2 opted out, plus 1 originator) of the victims allowed: nobody asked to be spared, originators too, everybody."""


class Plan(NamedTuple):
    """A lawful, minimal plan.

    Attributes:
        cut: The search ended at its budget: a cheaper plan may exist.
    """

    node: str
    victims: tuple[Allocation, ...]
    cut: bool


class Failure(NamedTuple):
    """Why there is no plan.

    Attributes:
        code: A stable word.
        reason: A sentence; empty when preemption is not what the ask needs.
        cut: The search ended at its budget: a plan may exist.
    """

    code: str
    reason: str
    cut: bool = False


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


def find_plan(state: State, cost: Cost, ask: Ask) -> Plan | Failure:
    """Return the cheapest lawful plan for an ask that waits, or why there is none."""
    asker = Asker(state, ask)
    if asker.guarantor is None:
        return Failure("law4", f"queue {asker.leaf.path}: has no guarantee on its path (law 4)")
    if not laws.law4_below_guarantee(asker):
        return Failure("law4", f"queue {asker.guarantor.path}: is not below its guarantee in what the ask requests (law 4)")
    case = _Case(state, index_module.of(state, cost), asker)
    reserved = state.reservations.get(ask.id)
    if reserved is not None:
        case.add_room(reserved)
    return case.solve()


class _Case:
    """One ask against all nodes."""

    def __init__(self, state: State, index: VictimIndex, asker: Asker) -> None:
        self.state = state
        self.index = index
        self.cost = index.cost
        self.asker = asker
        self.shortages = shortages(asker)
        self.expanded = 0
        self.cut = False
        self.slacks: list[int] = []
        self._slack_number: dict[tuple[str, int], int] = {}
        self._kinds: dict[tuple[str, int], tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]] = {}
        self.lacking: list[Longs] = [amount - index.space[kind] for kind, amount in asker.pairs]

    def add_room(self, node: str) -> None:
        """Give the ask the room that is reserved for itself."""
        page = self.index.page_of(node)
        if page is not None:
            for (_, amount), lacking in zip(self.asker.pairs, self.lacking, strict=True):
                lacking[page] -= amount

    def solve(self) -> Plan | Failure:
        """Return the cheapest plan on any node."""
        index, schedulable = self.index, self.index.schedulable
        roomy = schedulable.copy()
        for lacking in self.lacking:
            roomy &= lacking <= 0
        if not self.shortages and bool(roomy.any()):
            return Failure("fits", "")
        before, path = 0, self.asker.leaf.path
        failure = Failure("no-victims", f"queue {path}: no task may be preempted for it (laws 2 to 7)")
        eligible = self._eligible()
        if eligible is None:
            return failure
        for level in LEVELS:
            allowed = eligible if level == LEVELS[-1] else eligible & (index.flags <= level)
            count = int(np.count_nonzero(allowed))
            if count == before:
                continue
            before = count
            pages = self._promising(allowed)
            if len(pages):
                plan = self._best(allowed, pages, level)
                if plan is not None:
                    return plan
                failure = Failure("law2", f"queue {path}: on no node do its lawful victims make room together (law 2)")
            elif failure.code == "no-victims":
                failure = Failure("node-short", f"queue {path}: on no node do its lawful victims make enough room")
        return failure._replace(cut=self.cut)

    # ------------------------------------------------------------------------------------------------ all nodes at once

    def _eligible(self) -> Bools | None:
        """Return which places hold somebody who may be a victim taken alone; None when no leaf may lose anything."""
        index, state, asker = self.index, self.state, self.asker
        highest = np.full(len(index.leaves), laws.NOBODY, np.int64)
        room: dict[int, Longs] = {}
        anybody = False
        for number, leaf in index_module.leaves_of(index, state):
            if laws.leaf_objection(asker, leaf) is not None:
                continue
            anybody = True
            highest[number] = laws.law6_highest_priority(asker, leaf)
            for queue in laws.below(leaf, leaf.common_ancestor(asker.leaf)):
                for kind, slack in laws.law2_slack(queue).items():
                    column = room.get(kind)
                    if column is None:
                        column = room[kind] = np.full(len(index.leaves), laws.ANYBODY, np.int64)
                    column[number] = min(column[number], max(slack, 0))
        if not anybody:
            return None
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

    def _promising(self, allowed: Bools) -> Longs:
        """Return the pages on which all allowed victims together would make room."""
        index = self.index
        good = index.schedulable.copy()
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            good &= index.sums(np.where(allowed, index.amounts[kind], 0)) >= lacking
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

    def _bounds(self, allowed: Bools, level: int) -> list[Longs]:
        """Return, component by component of `Cost.between_nodes` and by page, what a plan there costs at least."""
        index, cost = self.index, self.cost
        fewest = self._fewest(allowed)
        first = self._first(allowed, fewest)
        opted_out = index.sums(first & (index.flags >= OPTED_OUT))
        originators = index.sums(first & (index.flags % OPTED_OUT == 1))
        order: Longs | None = None
        if level:
            # No plan spares them all, so there is at least one; who goes with it need not be the cheapest of those that are spared.
            if level == LEVELS[-1]:
                originators = np.where(opted_out > 0, originators, 0)
                np.maximum(opted_out, 1, out=opted_out)
            else:
                np.maximum(originators, 1, out=originators)
            order = index.cheapest_first()
            first = self._first(allowed[order], fewest)
        parts = []
        for part, column in zip(cost.parts, index.parts, strict=True):
            total = index.sums(np.where(first, column if order is None else column[order], 0))
            parts.append((fewest * self.state.time + total if part.ages else total) // part.unit)
        waste = []
        for (kind, _), lacking in zip(self.asker.pairs, self.lacking, strict=True):
            smallest = np.minimum.reduceat(np.where(allowed, index.amounts[kind], laws.ANYBODY), index.starts)
            waste.append(np.maximum(np.minimum(smallest, 2**53) * fewest - np.maximum(lacking, 0), 0))
        return [opted_out, originators, fewest, *((*waste, *parts) if cost.waste_first else (*parts, *waste))]

    def _first(self, marks: Bools, count: Longs) -> Bools:
        """Return the first ``count`` marked places of each page."""
        index = self.index
        rank = np.cumsum(marks)
        before = np.concatenate((np.zeros(1, np.int64), rank))[index.starts]
        first: Bools = marks & np.less_equal(rank - before[index.page], count[index.page])
        return first

    # -------------------------------------------------------------------------------------------------- node by node

    def _best(self, allowed: Bools, pages: Longs, level: int) -> Plan | None:
        """Return the cheapest plan on these pages."""
        bounds = self._bounds(allowed, level)
        best: tuple[tuple[int, ...], int, tuple[Allocation, ...]] | None = None
        for page in _by_bound(bounds, pages):
            if self.expanded >= ASK_BUDGET:
                break
            if best is not None and (tuple(int(column[page]) for column in bounds), page) >= best[:2]:
                break
            most = best[0][2] if best is not None and best[0][:2] == (0, 0) else None
            found = self._search(page, allowed, int(bounds[2][page]), most)
            if found is not None:
                key = (self.cost.between_nodes(found, self._waste(page, found), self.state.time), page)
                if best is None or key < best[:2]:
                    best = (*key, found)
        if best is None:
            return None
        _, page, victims = best
        broken = laws.broken_by(self.state, self.asker, victims)
        if broken is not None:
            raise AssertionError(f"plan for {self.asker.leaf.path} on node {self.index.names[page]}: breaks {broken}")
        return Plan(self.index.names[page], victims, self.cut)

    def _waste(self, page: int, victims: Sequence[Allocation]) -> list[int]:
        given = dict.fromkeys(self.asker.types, 0)
        for victim in victims:
            for kind, amount in self.state.types.shapes[victim.shape].pairs:
                if kind in given:
                    given[kind] += amount
        return [given[kind] - max(int(lacking[page]), 0) for kind, lacking in zip(given, self.lacking, strict=True)]

    def _search(self, page: int, allowed: Bools, fewest: int, most: int | None) -> tuple[Allocation, ...] | None:
        """Return the cheapest plan on one node."""
        needs = [int(lacking[page]) for lacking in self.lacking] + [short.amount for short in self.shortages]
        candidates = []
        for allocation in self.index.here(page, allowed):
            covers, takes = self._kind(allocation)
            if any(needs[need] > 0 for need, _ in covers):
                candidates.append(self._candidate(allocation, covers, takes))
        candidates.sort(key=lambda candidate: candidate.weight)
        limit = len(candidates) if most is None else min(most, len(candidates))
        plain = all(candidate.allocation.allow_preemption and not candidate.allocation.originator for candidate in candidates)
        # Where nobody asked to be spared the number of victims decides first, so it is tried from the smallest on.
        for count in (*((fewest, fewest + 1) if plain else ()), limit):
            if count > limit:
                continue
            found = self._cheapest(candidates, needs, count)
            if found.plan is not None or found.cut:
                return None if found.plan is None else tuple(candidate.allocation for candidate in found.plan)
        return None

    def _cheapest(self, candidates: Sequence[Candidate], needs: Sequence[int], most: int) -> Found:
        found = cheapest(candidates, needs, self.slacks, most, min(NODE_BUDGET, ASK_BUDGET - self.expanded))
        self.expanded += found.expanded
        self.cut = self.cut or found.cut
        return found

    def _candidate(
        self, allocation: Allocation, covers: tuple[tuple[int, int], ...], takes: tuple[tuple[int, int], ...]
    ) -> Candidate:
        given = dict.fromkeys(self.asker.types, 0)
        for kind, amount in self.state.types.shapes[allocation.shape].pairs:
            if kind in given:
                given[kind] = amount
        alike = (allocation.queue, allocation.shape, allocation.allow_preemption, allocation.originator)
        return Candidate(allocation, self.cost.weight(allocation, tuple(given.values())), covers, takes, alike)

    def _kind(self, allocation: Allocation) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        """Return what the loss of an allocation covers and takes, by the numbers of needs and slacks."""
        key = (allocation.queue, allocation.shape)
        known = self._kinds.get(key)
        if known is None:
            leaf = self.state.queues[allocation.queue]
            pairs = self.state.types.shapes[allocation.shape].pairs
            types = self.asker.types
            covers = [(types.index(kind), amount) for kind, amount in pairs if kind in types]
            for number, short in enumerate(self.shortages, len(types)):
                covers += [(number, amount) for kind, amount in pairs if kind == short.kind and short.queue.contains(leaf)]
            takes = [
                (self._slack(queue, kind), amount)
                for queue in laws.below(leaf, leaf.common_ancestor(self.asker.leaf))
                for kind, amount in pairs
                if kind in queue.guaranteed
            ]
            known = self._kinds[key] = (tuple(covers), tuple(takes))
        return known

    def _slack(self, queue: Queue, kind: int) -> int:
        key = (queue.path, kind)
        number = self._slack_number.get(key)
        if number is None:
            number = self._slack_number[key] = len(self.slacks)
            self.slacks.append(laws.law2_slack(queue)[kind])
        return number


def _by_bound(bounds: list[Longs], pages: Longs) -> Iterator[int]:
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

"""Preemption for guarantees: the cheapest lawful plan for one ask (seed preemption_design).

First the columns of `evsched.core.yunikorn.victims` say, for all nodes at once, which of them could make
room and what that would cost at least; then the nodes are searched exactly, the most promising
first, until no other can be cheaper. Plans without opted-out victims and originators are looked for
on all nodes before any other (law 1), then those with originators, then the rest.

A queue on the asker's path whose maximum the ask would pass is one more thing that lacks room:
enough victims must come from below that queue. A plan that needs no victim is none: the ask waits
for room that is free or being freed already. For room that is being freed for others it waits once
and for a while (`Rules.patience_ms`), then it preempts elsewhere: several asks that fit into what
one large victim leaves would otherwise each take a victim of their own. But a victim need not
obey, and an ask with a lawful plan must not be left waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.workloads import Allocation, Ask
from evsched.core.yunikorn import laws, nomination
from evsched.core.yunikorn import victims as index_module
from evsched.core.yunikorn.bounds import Outlook, by_bound
from evsched.core.yunikorn.cost import Cost
from evsched.core.yunikorn.eligible import LEVELS, Eligible, Similar
from evsched.core.yunikorn.laws import Asker
from evsched.core.yunikorn.search import Candidate, SearchResult, cheapest
from evsched.core.yunikorn.victim_pages import Bools, Longs
from evsched.core.yunikorn.victims import VictimIndex

HOPELESS = frozenset({"no-victims", "node-short", "law2"})
"""Codes of failures that an ask for more of the same would share."""

GOING = "going"
"""Code of the failure of an ask that waits for such room."""


class Plan(NamedTuple):
    """A lawful, minimal plan.

    Attributes:
        cut: The search ended at its budget: a cheaper plan may exist.
        withdrawn: Asks in flight whose preemption must be withdrawn first (required node only).
    """

    node: str
    victims: tuple[Allocation, ...]
    cut: bool
    withdrawn: tuple[str, ...] = ()


class Failure(NamedTuple):
    """Why there is no plan.

    Attributes:
        code: A stable word.
        reason: A sentence; empty when preemption is not what the ask needs.
        cut: The search ended at its budget: a plan may exist.
        node: Where the ask may be nominated; empty: it may not.
        until: When that nomination, or its waiting for room, ends; 0: not said.
    """

    code: str
    reason: str
    cut: bool = False
    node: str = ""
    until: int = 0


def is_impatient(state: State, ask: Ask) -> bool:
    """Tell whether an ask has waited long enough for room that is being freed for others."""
    return 0 < ask.patient_until <= state.time


def find_plan(
    state: State, cost: Cost, ask: Ask, known: dict[Similar, Eligible] | None = None
) -> Plan | Failure:
    """Return the cheapest lawful plan for an ask that waits, or why there is none.

    Args:
        state: Only read.
        cost: By what the cheapest is chosen.
        ask: Old enough, allowed to preempt and not in flight; that is not looked at here.
        known: Kept by the caller from ask to ask and emptied when anything was decided; saves time
            when asks are similar.
    """
    asker = Asker(state, ask)
    if asker.guarantor is None:
        return Failure("law4", f"queue {asker.leaf.path}: has no guarantee on its path (law 4)")
    if not laws.law4_below_guarantee(asker):
        return Failure(
            "law4",
            f"queue {asker.guarantor.path}: is not below its guarantee in what the ask requests (law 4)",
        )
    case = _Case(state, index_module.of(state, cost), asker, ask)
    case.patient = not is_impatient(state, ask)
    reserved = state.reservations.get(ask.id)
    if reserved is not None:
        case.outlook.add_room(reserved)
    return case.solve({} if known is None else known)


class _Case:
    """One ask while a plan for it is sought.

    It holds what all nodes share: how much room lacks where (`Outlook`), the slack of each queue
    under its guarantee, and how much of the search's budget is spent. All queues, types and maxima
    are numbers here, so that the search itself adds and compares integers only.
    """

    def __init__(self, state: State, index: VictimIndex, asker: Asker, ask: Ask) -> None:
        self.state = state
        self.rules = state.rules
        self.index = index
        self.cost = index.cost
        self.asker = asker
        self.ask = ask
        self.outlook = Outlook(state, index, asker)
        self.lacking = self.outlook.lacking
        self.shortages = self.outlook.shortages
        self.patient = True
        self.expanded = 0
        self.cut = False
        self.slacks: list[int] = []
        self._slack_number: dict[tuple[str, int], int] = {}
        self._kinds: dict[
            tuple[str, int], tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
        ] = {}

    def solve(self, known: dict[Similar, Eligible]) -> Plan | Failure:
        """Return the cheapest plan on any node, or why there is none.

        Room that is there, or that is coming, is better than any plan. Then come three levels of
        victims: those that nobody asked to spare, originators in addition, opted-out ones in
        addition (law 1). A level that adds no candidate is passed over. The failure that is told
        is the one that came closest to a plan.
        """
        outlook, path = self.outlook, self.asker.leaf.path
        if not outlook.taking.any():
            return Failure("node-rule", f"queue {path}: no node takes its pod")
        page = outlook.fits()
        if page is not None and outlook.is_free(page):
            return Failure("fits", "")
        if page is not None or self.rules.nominates:
            going = self._going(page) if self.patient else None
            if going is not None:
                return going
        failure = Failure(
            "no-victims", f"queue {path}: no task may be preempted for it (laws 2 to 7)"
        )
        eligible = outlook.eligible(known)
        before = 0
        for level in LEVELS:
            count = eligible.count(level)
            if count == before:
                continue
            before = count
            pages = outlook.promising(eligible, level)
            if len(pages):
                plan = self._best(eligible.allowed(level), pages, level)
                if plan is not None:
                    return plan
                failure = Failure(
                    "law2",
                    f"queue {path}: on no node do its lawful victims make room together (law 2)",
                )
            elif failure.code == "no-victims":
                failure = Failure(
                    "node-short", f"queue {path}: on no node do its lawful victims make enough room"
                )
        if page is not None:
            # It could have nobody go because it needs nobody: for one that wants more that says
            # nothing.
            failure = failure._replace(code="elsewhere")
        return failure._replace(cut=self.cut)

    def _going(self, page: int | None) -> Failure | None:
        """Return that the ask waits for room that is being freed, by nomination or for a while; None: it does not."""
        reason = "node {}: will have room once those who were told to go are gone"
        if page is not None and not self.rules.nominates:
            return Failure(GOING, reason.format(self.index.node(page)))
        short = [shortage.queue for shortage in self.shortages]
        for one in self.outlook.roomy():
            name = self.index.node(one)
            until = nomination.until(self.state, self.ask, name, short)
            if until is not None:
                # Room below a maximum that is short even then cannot be promised.
                return Failure(GOING, reason.format(name), node="" if short else name, until=until)
        return None

    # --------------------------------------------------------------------------------- node by node

    def _best(self, allowed: Bools, pages: Longs, level: int) -> Plan | None:
        """Return the cheapest plan on these pages; None where there is none.

        A *page* is a node by its number in the columns. Each has a lower bound of the cost of any
        plan there. The nodes are searched in the order of their bounds, and as soon as the next
        bound is not below the best plan found, that plan is the cheapest of all. The search ends
        early at its budgets (``ask_budget`` looks in all, ``nodes_in_vain`` nodes that were no
        better), and the event says so.
        """
        bounds = self.outlook.bounds(allowed, pages, level)
        best: tuple[tuple[int, ...], int, int, tuple[Allocation, ...]] | None = None
        in_vain = 0
        for page in by_bound(self.index, bounds, pages):
            rank = self.index.rank(page)
            if (
                best is not None
                and (tuple(int(column[page]) for column in bounds), rank) >= best[:2]
            ):
                break
            if self.expanded >= self.rules.ask_budget or in_vain >= self.rules.nodes_in_vain:
                self.cut = True
                break
            in_vain += best is not None
            most = best[0][2] if best is not None and best[0][:2] == (0, 0) else None
            found = self._search(page, allowed, int(bounds[2][page]), most)
            if found is not None:
                cost = self.cost.between_nodes(found, self._waste(page, found), self.state.time)
                if best is None or (cost, rank) < best[:2]:
                    best = (cost, rank, page, found)
                    in_vain = 0
        if best is None:
            return None
        _, _, page, victims = best
        broken = laws.broken_by(self.state, self.asker, victims)
        if broken is not None:
            raise AssertionError(
                f"plan for {self.asker.leaf.path} on node {self.index.node(page)}: breaks {broken}"
            )
        return Plan(self.index.node(page), victims, self.cut)

    def _waste(self, page: int, victims: Sequence[Allocation]) -> list[int]:
        """Return what victims give up beyond what the ask lacks on a node, by the ask's types."""
        given = dict.fromkeys(self.asker.types, 0)
        for victim in victims:
            for kind, amount in self.state.types.shapes[victim.shape].pairs:
                if kind in given:
                    given[kind] += amount
        return [
            given[kind] - max(int(lacking[page]), 0)
            for kind, lacking in zip(given, self.lacking, strict=True)
        ]

    def _search(
        self, page: int, allowed: Bools, fewest: int, most: int | None
    ) -> tuple[Allocation, ...] | None:
        """Return the cheapest plan on one node; None where there is none.

        Args:
            page: The node.
            allowed: Which allocations of the index may be victims on this level.
            fewest: No plan here has fewer victims, by the bounds.
            most: How many victims the best plan so far has; more are no use. None: any number.
        """
        needs = [int(lacking[page]) for lacking in self.lacking] + [
            short.amount for short in self.shortages
        ]
        candidates = []
        for allocation in self.index.here(page, allowed):
            covers, takes = self._kind(allocation)
            if any(needs[need] > 0 for need, _ in covers):
                candidates.append(self._candidate(allocation, covers, takes))
        candidates.sort(key=lambda candidate: candidate.weight)
        limit = len(candidates) if most is None else min(most, len(candidates))
        plain = all(
            candidate.allocation.allow_preemption and not candidate.allocation.originator
            for candidate in candidates
        )
        # Where nobody asked to be spared the number of victims decides first, so it is tried from
        # the smallest on.
        for count in (*((fewest, fewest + 1) if plain else ()), limit):
            if count > limit:
                continue
            found = self._cheapest(candidates, needs, count)
            if found.plan is not None or found.cut:
                return (
                    None
                    if found.plan is None
                    else tuple(candidate.allocation for candidate in found.plan)
                )
        return None

    def _cheapest(
        self, candidates: Sequence[Candidate], needs: Sequence[int], most: int
    ) -> SearchResult:
        """Search one node within what is left of the budget, and count what it took.

        The slacks are those of all queues that a candidate lies below: a plan may not take more
        from a queue than it has above its guarantee (law 2).
        """
        budget = min(self.rules.node_budget, self.rules.ask_budget - self.expanded)
        found = cheapest(candidates, needs, self.slacks, most, budget)
        self.expanded += found.expanded
        self.cut = self.cut or found.cut
        return found

    def _candidate(
        self,
        allocation: Allocation,
        covers: tuple[tuple[int, int], ...],
        takes: tuple[tuple[int, int], ...],
    ) -> Candidate:
        """Return an allocation as a candidate for this ask.

        Candidates of one queue and shape, with the same wish to be spared, are *alike*: of two the
        search always prefers the lighter one, so it need not try both orders.
        """
        given = dict.fromkeys(self.asker.types, 0)
        for kind, amount in self.state.types.shapes[allocation.shape].pairs:
            if kind in given:
                given[kind] = amount
        alike = (
            allocation.queue,
            allocation.shape,
            allocation.allow_preemption,
            allocation.originator,
        )
        return Candidate(
            allocation, self.cost.weight(allocation, tuple(given.values())), covers, takes, alike
        )

    def _kind(
        self, allocation: Allocation
    ) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        """Return what the loss of an allocation covers and what it takes.

        Both are pairs of a number and an amount: the number of a need (a type that lacks on the
        node, or a maximum that is short), and the number of a slack (a queue with a guarantee
        between the victim and the common ancestor). They depend on queue and shape alone, and are
        computed once for each of these.
        """
        key = (allocation.queue, allocation.shape)
        known = self._kinds.get(key)
        if known is None:
            leaf = self.state.queues[allocation.queue]
            pairs = self.state.types.shapes[allocation.shape].pairs
            types = self.asker.types
            covers = [(types.index(kind), amount) for kind, amount in pairs if kind in types]
            for number, short in enumerate(self.shortages, len(types)):
                covers += [
                    (number, amount)
                    for kind, amount in pairs
                    if kind == short.kind and short.queue.contains(leaf)
                ]
            takes = [
                (self._slack(queue, kind), amount)
                for queue in laws.below(leaf, leaf.common_ancestor(self.asker.leaf))
                for kind, amount in pairs
                if kind in queue.guaranteed
            ]
            known = self._kinds[key] = (tuple(covers), tuple(takes))
        return known

    def _slack(self, queue: Queue, kind: int) -> int:
        """Return the number of a queue's slack for a type.

        The slack is how far the queue is above its guarantee (law 2).

        Numbers are given as queues are met, and a slack is computed when it gets its number.
        """
        key = (queue.path, kind)
        number = self._slack_number.get(key)
        if number is None:
            number = self._slack_number[key] = len(self.slacks)
            self.slacks.append(laws.law2_slack(queue)[kind])
        return number

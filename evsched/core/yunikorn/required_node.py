"""Preemption for asks that may run on one node only (DaemonSets; seed preemption_design, law 1 and "Preemption Logic").

They stand outside the laws of queues: no fence, no guarantee, no delay. What holds: a victim is on
that node, shares a type with the ask, is not itself bound to the node, and its plain priority is
not higher. Opted-out pods are the last resort, then originators; free space counts and the plan is
minimal, by the same cost as everywhere. A maximum on the ask's path still holds, as nothing could
be bound above it.

A node that takes nobody (it is being drained) gets no room made on it: who is evicted there dies
for an ask that cannot be bound.

Nobody else may keep room there before it: reservations of others are released as far as they are in
the way, those without victims first; those of asks in flight only when there is no plan otherwise,
and their preemption is withdrawn, which counts as losing the node. What is promised to another ask
that may run there only stays promised.
"""

from __future__ import annotations

from collections.abc import Sequence

from events import vocabulary as v
from evsched.core.node_access import refusal
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.step import Step
from evsched.core.withdrawal import withdraw
from evsched.core.workloads import Allocation, Ask, Node
from evsched.core.yunikorn.cost import Cost
from evsched.core.yunikorn.guarantee import Failure, Plan
from evsched.core.yunikorn.laws import Asker
from evsched.core.yunikorn.maxima import Shortage, shortages
from evsched.core.yunikorn.search import Candidate, SearchResult, cheapest


def find_plan(state: State, cost: Cost, ask: Ask) -> Plan | Failure:
    """Return the cheapest plan on the required node, or why there is none.

    Reservations of others are in three classes. Those of asks that may run there only stay. Those
    without victims go where they are in the way (`make_way`). Those of asks in flight are kept in
    a first search, and given up in a second one only if that finds nothing: their victims may stay
    then, so room that seemed to be coming is not.

    A plan without victims means that reservations of others alone are in the way.
    """
    assert ask.required_node is not None
    node = state.nodes.get(ask.required_node)
    if node is None:
        return Failure("node-unknown", f"node {ask.required_node}: is not registered")
    refused = refusal(state, ask, node)
    if refused is not None:
        if refused.code == "unschedulable":
            return Failure("unschedulable", f"node {node.name}: takes nobody at present")
        said = f"{refused.code} {refused.detail}".rstrip()
        return Failure("node-rule", f"node {node.name}: does not take its pod ({said})")
    pairs = state.types.shapes[ask.shape].pairs
    asker = Asker(state, ask)
    room = node.room_after(state.types.shapes, ask.id)
    if not shortages(asker.leaf, pairs) and all(amount <= room[index] for index, amount in pairs):
        return Failure("fits", "")
    staying = [other for other in node.reserved if other != ask.id and _stays(state, node, other)]
    flying = [
        other
        for other in node.reserved
        if other != ask.id and other not in staying and other in state.preemptions
    ]
    cut = False
    for kept, withdrawn in ((staying + flying, ()), (staying, tuple(flying))):
        found = _Search(state, cost, ask, node).run(kept, withdrawn)
        cut = cut or found.cut
        if found.plan is not None:
            return Plan(
                node.name, tuple(candidate.allocation for candidate in found.plan), cut, withdrawn
            )
        if not flying:
            break
    return Failure(
        "node-short",
        f"node {node.name}: tasks that may be preempted there do not make enough room",
        cut,
    )


def make_way(step: Step, ask: Ask, plan: Plan) -> None:
    """Release what others have reserved on the node as far as the plan needs it.

    Preemptions that the plan gives up come first. Of the others the newest reservation goes first,
    and no more of them go than is needed once the victims have left. An ask without victims gets a
    reservation of its own, or the room would be given to the next one that fits.
    """
    state = step.state
    node = state.nodes[plan.node]
    reason = f"node {node.name}: is needed by {ask.id}, which may run nowhere else"

    def in_the_way() -> bool:
        given: dict[int, int] = {}
        for victim in plan.victims:
            if not victim.eviction_requested:
                for index, amount in state.types.shapes[victim.shape].pairs:
                    given[index] = given.get(index, 0) + amount
        pairs = state.types.shapes[ask.shape].pairs
        room = node.room_after(state.types.shapes, ask.id)
        return any(amount > room[index] + given.get(index, 0) for index, amount in pairs)

    for other in plan.withdrawn:
        withdraw(step, ask.seq, other, reason)
    others = [
        other
        for other in reversed(node.reserved)
        if other != ask.id and not _stays(state, node, other)
    ]
    for other in others:
        if other not in state.preemptions and in_the_way():
            step.emit(
                v.ReservationReleased, cause=ask.seq, ask=other, node=node.name, reason=reason
            )
    if not plan.victims and state.reservations.get(ask.id) != node.name:
        step.emit(v.NodeReserved, cause=ask.seq, ask=ask.id, node=node.name)


def _stays(state: State, node: Node, other: str) -> bool:
    """Tell whether a reservation is kept whatever happens.

    It is when its ask may run on this node only, too: its claim is as good, and came first.
    """
    return state.asks[other].required_node == node.name


class _Search:
    """One ask and its node, while victims are sought for it.

    The search is the one for any node (`evsched.core.yunikorn.search`), but without slacks: no
    guarantee protects from an ask that can run nowhere else.
    """

    def __init__(self, state: State, cost: Cost, ask: Ask, node: Node) -> None:
        self.state, self.cost, self.ask, self.node = state, cost, ask, node
        self.asker = Asker(state, ask)

    def run(self, kept: Sequence[str], withdrawn: Sequence[str]) -> SearchResult:
        """Return the cheapest victims, given what is kept and what is withdrawn.

        What has to be covered is the room that is missing, by type, and after that what is above a
        maximum on the ask's path. A withdrawn preemption gives its victims back, so they can be
        chosen again. An allocation that covers nothing of what is missing is no candidate.
        """
        state, node = self.state, self.node
        returning = [
            a
            for a in node.allocations.values()
            if a.eviction_requested and a.victim_of in withdrawn
        ]
        over = self._shortages(returning, withdrawn)

        def leaves(allocation: Allocation) -> bool:
            return bool(allocation.eviction_requested) and allocation.victim_of not in withdrawn

        room = node.room_after(state.types.shapes, self.ask.id, kept=kept, leaves=leaves)
        needs = [amount - room[index] for index, amount in self.asker.pairs]
        needs += [short.amount for short in over]
        if all(need <= 0 for need in needs):
            return SearchResult((), 0, cut=False)
        candidates = []
        for allocation in sorted(node.allocations.values(), key=self.cost.candidate_key):
            if allocation.eviction_requested and allocation not in returning:
                continue
            if allocation.required_node is None and allocation.priority <= self.ask.priority:
                candidate = self._candidate(allocation, over)
                if any(needs[need] > 0 for need, _ in candidate.covers):
                    candidates.append(candidate)
        candidates.sort(key=lambda candidate: candidate.weight)
        return cheapest(candidates, needs, (), len(candidates), self.state.rules.node_budget)

    def _candidate(self, allocation: Allocation, over: Sequence[Shortage]) -> Candidate:
        """Return an allocation as a candidate: what it covers, and its weight.

        Needs are numbered: first the types of the ask, then one for each maximum that is short.
        Candidates with the same parts are *alike*, of which the search tries only the cheapest.
        """
        types = self.asker.types
        pairs = self.state.types.shapes[allocation.shape].pairs
        leaf = self.state.queues[allocation.queue]
        covers = [(types.index(kind), amount) for kind, amount in pairs if kind in types]
        for number, short in enumerate(over, len(types)):
            covers += [
                (number, amount)
                for kind, amount in pairs
                if kind == short.kind and short.queue.contains(leaf)
            ]
        given = {
            **dict.fromkeys(types, 0),
            **{kind: amount for kind, amount in pairs if kind in types},
        }
        alike = (tuple(covers), allocation.allow_preemption, allocation.originator)
        return Candidate(
            allocation,
            self.cost.weight(allocation, tuple(given.values())),
            tuple(covers),
            (),
            alike,
        )

    def _shortages(
        self, returning: Sequence[Allocation], withdrawn: Sequence[str]
    ) -> list[Shortage]:
        """Return by what the ask would pass maxima on its path, with some preemptions withdrawn.

        The victims of those stay, so their queues use more than was counted on. The asks they were
        for are no longer in flight, so theirs use less.
        """
        shapes, queues = self.state.types.shapes, self.state.queues
        shifts = [(queues[one.queue], shapes[one.shape].pairs, 1) for one in returning]
        shifts += [
            (queues[one.queue], shapes[one.shape].pairs, -1)
            for one in map(self.state.asks.__getitem__, withdrawn)
        ]

        def moved(queue: Queue, index: int) -> int:
            return sum(
                sign * amount
                for leaf, pairs, sign in shifts
                if queue.contains(leaf)
                for kind, amount in pairs
                if kind == index
            )

        return shortages(self.asker.leaf, self.asker.pairs, moved)

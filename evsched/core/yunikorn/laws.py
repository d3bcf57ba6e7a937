"""The laws of preemption, each a named predicate (seed preemption_design, "The Laws of Preemption").

Words: the *asker* is the ask that preempts; the *LCA* is the lowest queue that contains both its
leaf and the victim's; the queues *below the LCA* are those on the victim's path that do not contain
the asker's leaf. What an earlier preemption is evicting counts as gone, and what asks in flight
were promised counts as used, so that several asks cannot overdraw a guarantee together.

Laws 2 and 5 look at the queues below the LCA alone: what they lose to the asker, the queues above
keep. Laws 3, 6 and 7 and the rules beside the laws can be judged victim by victim, law 2 only for
all victims together; a subset of a lawful set is lawful.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evsched.core.node_access import pod_of
from evsched.core.queues import Queue
from evsched.core.resources import Pairs
from evsched.core.state import State
from evsched.core.workloads import Allocation, Ask


class Asker:
    """An ask that wants to preempt, and what the laws make of the place of its leaf.

    Attributes:
        pod: What decides on which nodes it may run; UNSET: nothing.
        guarantor: The closest queue at or above the leaf that has a guarantee; None when there is
            none.
        fence: The nearest queue at or above the leaf with the policy ``fence``; None when nothing
            holds it in.
    """

    __slots__ = ("application", "ask", "fence", "guarantor", "leaf", "pairs", "pod", "priority")

    def __init__(self, state: State, ask: Ask) -> None:
        """Look at an ask that waits."""
        self.ask = ask.id
        self.leaf: Queue = state.queues[ask.queue]
        self.pairs: Pairs = state.types.shapes[ask.shape].pairs
        self.pod = pod_of(state, ask)
        self.priority = ask.priority
        self.application = ask.application
        self.guarantor = guarantor(self.leaf)
        self.fence = fence(self.leaf)

    @property
    def types(self) -> tuple[int, ...]:
        """Indices of the resource types that the ask requests."""
        return tuple(index for index, _ in self.pairs)


def guarantor(leaf: Queue) -> Queue | None:
    """Return the closest queue at or above a leaf that has a guarantee; an unset guarantee is none, one of 0 is one."""
    return next((queue for queue in leaf.lineage if queue.guaranteed), None)


def fence(leaf: Queue) -> Queue | None:
    """Return the nearest queue at or above a leaf with the policy ``fence``; on root it has no effect."""
    return next(
        (queue for queue in leaf.lineage if queue.settings.preemption_policy == "fence"), None
    )


def below(leaf: Queue, ancestor: Queue) -> tuple[Queue, ...]:
    """Return the queues from a leaf up to, and without, an ancestor."""
    return leaf.lineage[: leaf.depth - ancestor.depth]


def remaining(queue: Queue, index: int) -> int:
    """Return what a queue uses of a type once everything that is being evicted is gone."""
    return queue.usage[index] - queue.preempting[index]


def seen_from(leaf: Queue, priority: int, ancestor: Queue) -> int:
    """Return a priority as it is seen from a queue above (seed priority_scheduling, "Priority offset", "Priority fencing").

    On the way up each queue below that point adds its offset; one with a priority fence puts its
    offset in place of the value.
    """
    for queue in below(leaf, ancestor):
        settings = queue.settings
        priority = (
            settings.priority_offset
            if settings.priority_fence
            else priority + settings.priority_offset
        )
    return priority


# ----------------------------------------------------------------------------------------- the laws


def law1_opt_out_is_last_resort(victims: Iterable[Allocation], *, sparing_plan: bool) -> bool:
    """Law 1: "Preemption policies are strong suggestions, not guarantees".

    Args:
        victims: A plan.
        sparing_plan: Whether a lawful plan without opted-out allocations exists on any node.
    """
    return not sparing_plan or all(victim.allow_preemption for victim in victims)


def law2_slack(queue: Queue) -> dict[int, int]:
    """Return how much of each guaranteed type may still be taken from a queue (law 2); negative: it is below its guarantee."""
    return {index: remaining(queue, index) - amount for index, amount in queue.guaranteed.items()}


def law2_guarantee_is_left(asker: Asker, leaves: Sequence[Queue], amounts: Sequence[Pairs]) -> bool:
    """Law 2: "Preemption can never leave a queue lower than its guaranteed capacity".

    For every queue below the LCA and every type with a guarantee there: if the victims together
    give up any of it, what remains is at least the guarantee. Types that the ask does not request
    count as well.

    Args:
        asker: Who preempts.
        leaves: The leaf of each victim.
        amounts: What each victim holds, in the same order.
    """
    taken: dict[tuple[str, int], int] = {}
    queues: dict[str, Queue] = {}
    for leaf, pairs in zip(leaves, amounts, strict=True):
        for queue in below(leaf, leaf.common_ancestor(asker.leaf)):
            queues[queue.path] = queue
            for index, amount in pairs:
                taken[queue.path, index] = taken.get((queue.path, index), 0) + amount
    return all(
        amount <= remaining(queues[path], index) - queues[path].guaranteed[index]
        for (path, index), amount in taken.items()
        if index in queues[path].guaranteed
    )


def law3_other_application(asker: Asker, victim: Allocation) -> bool:
    """Law 3: "A task cannot preempt other tasks in the same application"."""
    return victim.application != asker.application


def law4_below_guarantee(asker: Asker) -> bool:
    """Law 4: "A task cannot trigger preemption unless its queue is under its guaranteed capacity".

    The closest queue with a guarantee is below it in a type that the ask requests; asks in flight
    count as usage. Where the ask itself will end does not matter (flow 1 of "Preemption Loop
    Prevention" ends above).
    """
    queue = asker.guarantor
    if queue is None:
        return False
    guaranteed = queue.guaranteed
    return any(
        remaining(queue, index) + queue.claimed[index] < guaranteed[index]
        for index in asker.types
        if index in guaranteed
    )


def law4_outside_guarantor(asker: Asker, leaf: Queue) -> bool:
    """Law 4, its other half: no victim inside the very queue whose guarantee is restored.

    Its loss would bring that queue no closer to its guarantee, and it could take its place back in
    turn.
    """
    return asker.guarantor is None or not asker.guarantor.contains(leaf)


def law5_above_guarantee(queue: Queue) -> bool:
    """Law 5: "A task cannot be preempted unless its queue is over its guaranteed capacity".

    Holds for one queue below the LCA: it is above its guarantee in at least one type that has one;
    one without is always above.
    """
    guaranteed = queue.guaranteed
    return not guaranteed or any(
        remaining(queue, index) > amount for index, amount in guaranteed.items()
    )


def law5_queue(asker: Asker, leaf: Queue) -> Queue:
    """Return the queue that law 5 protects a leaf by: the lowest that is not above its guarantee."""
    path = below(leaf, leaf.common_ancestor(asker.leaf))
    return next(queue for queue in path if not law5_above_guarantee(queue))


NOBODY = -(2**62)
ANYBODY = 2**62


def law6_highest_priority(asker: Asker, leaf: Queue) -> int:
    """Return the highest priority of a victim in ``leaf`` that law 6 allows; `NOBODY` or `ANYBODY` behind a priority fence."""
    ancestor = leaf.common_ancestor(asker.leaf)
    own = seen_from(asker.leaf, asker.priority, ancestor)
    path = below(leaf, ancestor)
    if any(queue.settings.priority_fence for queue in path):
        return ANYBODY if seen_from(leaf, 0, ancestor) <= own else NOBODY
    return own - seen_from(leaf, 0, ancestor)


def law6_not_more_important(asker: Asker, leaf: Queue, priority: int) -> bool:
    """Law 6: "A task can only preempt a task with lower or equal priority", both as seen from the LCA."""
    return priority <= law6_highest_priority(asker, leaf)


def law7_inside_fence(asker: Asker, leaf: Queue) -> bool:
    """Law 7: "A task cannot preempt tasks outside its preemption fence"; the fence holds in, not out."""
    return asker.fence is None or asker.fence.contains(leaf)


# ---------------------------------------------------------------------------------- beside the laws


def other_leaf(asker: Asker, leaf: Queue) -> bool:
    """Tell whether a victim would be of another leaf; preemption inside a queue is no goal (seed, "Non Goals")."""
    return leaf is not asker.leaf


def may_be_preempted(leaf: Queue) -> bool:
    """Tell whether the policy of a leaf is not ``disabled``, its own or the one it takes over."""
    return leaf.settings.preemption_policy != "disabled"


def not_bound_to_node(victim: Allocation) -> bool:
    """Tell whether an allocation could run elsewhere; one with a required node (DaemonSet) is never a victim."""
    return victim.required_node is None


def shares_a_type(asker: Asker, pairs: Pairs) -> bool:
    """Tell whether an allocation holds anything that the ask requests."""
    wanted = asker.types
    return any(index in wanted for index, _ in pairs)


def leaf_objection(asker: Asker, leaf: Queue) -> str | None:
    """Return the code of the first rule that spares everything in a leaf; None when its allocations may be looked at."""
    if not other_leaf(asker, leaf):
        return "own-leaf"
    if not may_be_preempted(leaf):
        return "disabled"
    if not law4_outside_guarantor(asker, leaf):
        return "law4"
    if not law7_inside_fence(asker, leaf):
        return "law7"
    if not all(
        law5_above_guarantee(queue) for queue in below(leaf, leaf.common_ancestor(asker.leaf))
    ):
        return "law5"
    return None


def objection(state: State, asker: Asker, victim: Allocation) -> str | None:
    """Return the code of the first rule that spares an allocation taken alone; None when it may be a victim."""
    leaf = state.queues[victim.queue]
    pairs = state.types.shapes[victim.shape].pairs
    if victim.eviction_requested:
        return "leaving"
    if not not_bound_to_node(victim):
        return "required-node"
    if not law3_other_application(asker, victim):
        return "law3"
    found = leaf_objection(asker, leaf)
    if found is not None:
        return found
    if not shares_a_type(asker, pairs):
        return "no-shared-type"
    if not law6_not_more_important(asker, leaf, victim.priority):
        return "law6"
    if not law2_guarantee_is_left(asker, [leaf], [pairs]):
        return "law2"
    return None


def broken_by(state: State, asker: Asker, victims: Sequence[Allocation]) -> str | None:
    """Return the code of the first law that a plan breaks; None for a lawful one. Law 1 is judged over all nodes, not here."""
    if not law4_below_guarantee(asker):
        return "law4"
    for victim in victims:
        found = objection(state, asker, victim)
        if found is not None:
            return found
    leaves = [state.queues[victim.queue] for victim in victims]
    amounts = [state.types.shapes[victim.shape].pairs for victim in victims]
    return None if law2_guarantee_is_left(asker, leaves, amounts) else "law2"


def above_its_guarantee(leaf: Queue) -> str:
    """Return why a queue may lose a task, for people: the rule under which its allocation is eligible."""
    limited = next((queue for queue in leaf.lineage if queue.guaranteed), None)
    if limited is None:
        return f"queue {leaf.path} has no guarantee (law 5)"
    if limited is leaf:
        return f"queue {leaf.path} is above its guarantee (law 5)"
    return f"queue {leaf.path} has no guarantee of its own (law 5)"

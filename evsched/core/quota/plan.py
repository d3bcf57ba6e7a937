"""The plan of one quota enforcement: the victims that bring a queue down to its maximum (quota_enforcement).

A leaf's target is taken from its candidates in the seed's order. A parent's is shared out among its
children (`evsched.core.quota.targets`) and taken from each in the same way, down to the leaves; what a child
cannot give is offered to the others until nothing moves.

The last victim of each leaf may hold more than what was left of the target ("preempted to free up
resources until we reach the target"), so after all children have given, some victims may be
superfluous. The one that is worth most stays first: the victims are gone through from the end of
the seed's order, and each stays without which the target is met as well. That may make room within
a guarantee for another candidate that could not go before; therefore taking and sparing are
repeated until nothing changes. In the end no victim goes in vain, and no other candidate could
lawfully go that would bring a type nearer to its target.
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from evsched.core.quota.targets import releasable, shares
from evsched.core.quota.victims import Leaf, candidate_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Tracer
    from evsched.core.workloads import Allocation


class QuotaPlan:
    """Victims for one target, before anything is decided.

    It keeps what was taken so far, per queue and type, beside the state, which is only read.
    Several plans may be made for one state, for explanations.

    Attributes:
        queue: The queue that has to come down.
        target: What has to go, by type index, positive.
    """

    def __init__(self, state: State, queue: Queue, target: Mapping[int, int]) -> None:
        """Choose the victims.

        Taking and sparing alternate until neither changes anything. Each round takes at least one
        further victim, so there are no more rounds than allocations.
        """
        self.queue = queue
        self.target = dict(target)
        self._state = state
        self._taken: dict[str, list[int]] = {}
        self._leaves: dict[str, Leaf] = {}
        while self._take(queue, self.unmet()) and self._spare():
            pass

    def unmet(self) -> dict[int, int]:
        """Return what of the target would stay, by type index, positive amounts only."""
        taken = self._taken.get(self.queue.path)
        if taken is None:
            return dict(self.target)
        return {
            index: amount - taken[index]
            for index, amount in self.target.items()
            if taken[index] < amount
        }

    def victims(self) -> list[Allocation]:
        """Return the victims, leaf by leaf in the order of the configuration.

        Those of a leaf come in the seed's order.
        """
        leaves = sorted(self._leaves.values(), key=lambda leaf: (leaf.queue.order, leaf.queue.path))
        return [allocation for leaf in leaves for allocation in leaf.going()]

    # --------------------------------------------------------------------------------------- taking

    def _take(self, queue: Queue, want: Mapping[int, int]) -> dict[int, int]:
        """Take what is wanted from a queue as far as is lawful.

        A parent shares it out among its children by what each is above its guarantee. What a child
        cannot give of a type is offered to the others; it is not asked for that type again in this
        call. Children whose own enforcement is under way are left alone: their victims have been
        chosen already.

        Returns:
            What goes because of this call, by type index, of all types that the victims hold.
        """
        if queue.leaf:
            return self._take_from_leaf(queue, want)
        gone: dict[int, int] = {}
        left = dict(want)
        children = [
            child for child in queue.children.values() if child.path not in self._state.quota_runs
        ]
        exhausted: dict[tuple[str, int], None] = {}
        while left:
            parts = self._parts(children, left, exhausted)
            if not parts:
                break
            for child, part in parts:
                given = self._take(child, part)
                for index, amount in given.items():
                    gone[index] = gone.get(index, 0) + amount
                for index, amount in part.items():
                    if given.get(index, 0) < amount:
                        exhausted[child.path, index] = None
            left = {
                index: amount - gone.get(index, 0)
                for index, amount in want.items()
                if gone.get(index, 0) < amount
            }
        return gone

    def _parts(
        self,
        children: list[Queue],
        left: Mapping[int, int],
        exhausted: Mapping[tuple[str, int], None],
    ) -> list[tuple[Queue, dict[int, int]]]:
        """Share what is left out among the children that can still give something.

        Each amount is divided in whole units, with no remainder lost (`shares`).
        """
        parts: list[dict[int, int]] = [{} for _ in children]
        for index, amount in left.items():
            weights = [
                0
                if (child.path, index) in exhausted
                else releasable(child, index, self._taken_from(child, index))
                for child in children
            ]
            for part, share in zip(parts, shares(amount, weights), strict=True):
                if share:
                    part[index] = share
        return [(child, part) for child, part in zip(children, parts, strict=True) if part]

    def _take_from_leaf(self, queue: Queue, want: Mapping[int, int]) -> dict[int, int]:
        """Take from a leaf, and count it there and above."""
        leaf = self._leaves.get(queue.path)
        if leaf is None:
            leaf = self._leaves[queue.path] = Leaf(self._state, queue)
        gone = leaf.take(want, self.room(queue))
        self._count(queue, gone, 1)
        return gone

    def _taken_from(self, queue: Queue, index: int) -> int:
        """Return what the plan takes of a type from a queue and everything below it."""
        taken = self._taken.get(queue.path)
        return 0 if taken is None else taken[index]

    def _count(self, leaf: Queue, amounts: Mapping[int, int], sign: int) -> None:
        """Count (``sign`` 1) or uncount (-1) what is taken from a leaf, along its path."""
        for queue in leaf.lineage:
            taken = self._taken.get(queue.path)
            if taken is None:
                taken = self._taken[queue.path] = [0] * self._state.width
            for index, amount in amounts.items():
                taken[index] += sign * amount

    def room(self, leaf: Queue) -> dict[int, int]:
        """Return what may still go from a leaf before a guarantee on its path is broken.

        Returns:
            For each type that is guaranteed anywhere on the path, the least of what its queues have
            above their guarantee; a type that is not there may go wholly.
        """
        room: dict[int, int] = {}
        for queue in leaf.lineage:
            for index in queue.guaranteed:
                left = self.left(queue, index)
                if index not in room or left < room[index]:
                    room[index] = left
        return room

    def left(self, queue: Queue, index: int) -> int:
        """Return what a queue would use of a type above its guarantee, once the victims have gone.

        Negative where it is below its guarantee already.
        """
        stays = queue.usage[index] - queue.preempting[index] - self._taken_from(queue, index)
        return stays - queue.guaranteed.get(index, 0)

    # -------------------------------------------------------------------------------------- sparing

    def _spare(self) -> bool:
        """Let every victim stay that is not needed, the one that is worth most first.

        Only shapes that fit into the surplus are looked at, and of the victims only those of such
        shapes: with thousands of equal victims this is what keeps sparing cheap.

        Returns:
            Whether that may have made room for another victim while the target is unmet.
        """
        surplus = {
            index: self._taken_from(self.queue, index) - amount
            for index, amount in self.target.items()
        }
        surplus = {index: amount for index, amount in surplus.items() if amount > 0}
        if not surplus:
            return False
        shapes = self._state.types.shapes
        going = dict.fromkeys(
            shape for leaf in self._leaves.values() for shape in leaf.shapes_going()
        )
        small = [shape for shape in going if self._superfluous(shapes[shape].pairs, surplus)]
        spared = False
        leaves = self._leaves.values() if small else ()
        in_order = [leaf.costliest_first(small) for leaf in leaves]
        for allocation, leaf, place in merge(
            *in_order, key=lambda one: candidate_order(one[0]), reverse=True
        ):
            if allocation.shape in small:
                pairs = shapes[allocation.shape].pairs
                leaf.chosen[place] = 0
                self._count(leaf.queue, dict(pairs), -1)
                surplus = {
                    index: amount - dict(pairs).get(index, 0) for index, amount in surplus.items()
                }
                small = [
                    shape for shape in small if self._superfluous(shapes[shape].pairs, surplus)
                ]
                spared = True
                if not small:
                    break
        return spared and bool(self.unmet())

    def _superfluous(self, pairs: tuple[tuple[int, int], ...], surplus: Mapping[int, int]) -> bool:
        """Tell whether the target is met as well without these amounts."""
        return all(
            amount <= surplus.get(index, 0) for index, amount in pairs if index in self.target
        )


class Passed(NamedTuple):
    """Why a candidate was passed over: its id, a stable word, and the queue whose rule decided."""

    allocation: str
    code: str
    queue: str


def passed_over(state: State, plan: QuotaPlan) -> list[Passed]:
    """Return why each allocation stays that does, in the order of the configuration.

    Codes: ``leaving`` (being evicted already), ``required-node`` (a DaemonSet's), ``running`` (its
    queue has an enforcement of its own under way), ``type`` (holds nothing of the target),
    ``guarantee`` (would break the one of the queue named), ``not-needed``.
    """
    chosen = {allocation.id: None for allocation in plan.victims()}
    found = []
    for leaf in plan.queue.leaves():
        below = leaf.lineage[: leaf.depth - plan.queue.depth]
        busy = next((queue.path for queue in below if queue.path in state.quota_runs), "")
        for application in leaf.applications.values():
            for allocation in application.allocations.values():
                if allocation.id not in chosen:
                    code, queue = (
                        ("running", busy) if busy else _code(state, plan, leaf, allocation)
                    )
                    found.append(Passed(allocation.id, code, queue))
    return found


def _code(state: State, plan: QuotaPlan, leaf: Queue, allocation: Allocation) -> tuple[str, str]:
    """Return why an allocation is not among the victims, and the queue whose rule says so.

    The first reason that holds is the one that is told, from the most lasting to the least.
    """
    if allocation.eviction_requested or allocation.evicted:
        return "leaving", allocation.quota_of
    if allocation.required_node is not None:
        return "required-node", leaf.path
    pairs = state.types.shapes[allocation.shape].pairs
    if not any(index in plan.target for index, _ in pairs):
        return "type", plan.queue.path
    for queue in leaf.lineage:
        if any(
            index in queue.guaranteed and amount > plan.left(queue, index)
            for index, amount in pairs
        ):
            return "guarantee", queue.path
    return "not-needed", plan.queue.path


def note(state: State, plan: QuotaPlan, tracer: Tracer) -> None:
    """Tell a tracer which victims were chosen and why the others stay."""
    for allocation in plan.victims():
        tracer.note(allocation.id, "chosen", queue=allocation.queue)
    for passed in passed_over(state, plan):
        tracer.note(passed.allocation, passed.code, queue=passed.queue)

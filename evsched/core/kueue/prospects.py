"""Which waiting workloads a cycle could do anything for: the others need not be looked at (rules 2, record 41).

After something ended, a workload can be admitted or preempt only when each of its resource groups
has a flavor whose amounts it could get at best: the room that its queue has together with what
workloads of its own queue could give up, or what may be claimed of other queues
(`evsched.core.kueue.reach`). The bound errs on the side of looking, never on the other: a workload
that it rules out would be looked at in vain, as a property of the tests shows. So a cycle costs what
an end can help, and not what waits.

It is built from the state when a cycle first needs it and told of every change
(`evsched.core.kueue.index`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import KueueSpec
from evsched.core.kueue.model import quota_in
from evsched.core.kueue.reach import TreeReach
from evsched.core.kueue.shortlist import Classes, OwnUsage, Shortlist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.kueue.model import FlavorGroup, Quota
    from evsched.core.kueue.shortlist import Groups
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask


class Prospects:
    """The waiting workloads of a partition by cohort tree, and what their own queues could give.

    It holds nothing that the state does not say: dropping it and building it again changes no
    decision.
    """

    def __init__(self, state: State) -> None:
        """Build it from what runs and waits; usage first, before there are trees to tell of it."""
        spec = state.configuration
        assert isinstance(spec, KueueSpec)
        self._state = state
        self._fair = spec.fair_sharing
        self._own: dict[Quota, dict[int, OwnUsage]] = {}
        self._trees: dict[Quota, Shortlist] = {}
        shapes = state.types.shapes
        for allocation in state.allocations.values():
            self._count(allocation, shapes[allocation.shape].pairs, 1)
        for ask in state.asks.values():
            self.asked(ask)

    def tree(self, top: Quota) -> Shortlist:
        """Return the waiting workloads of a tree, laid out when it is first asked about."""
        found = self._trees.get(top)
        if found is None:
            reach = TreeReach(top, fair=self._fair)
            found = self._trees[top] = Shortlist(reach, Classes(reach, self._own, fair=self._fair))
        return found

    def asked(self, ask: Ask) -> None:
        """A workload started to wait.

        A workload of a queue that left the configuration is not kept: there is no quota to compare
        with.
        """
        quota = quota_in(self._state.queues[ask.queue])
        if quota is not None:
            tried = self._state.unschedulable_since.get(ask.id, 0)
            self.tree(quota.top).add(ask, quota, self._groups(ask, quota), tried)

    def unasked(self, ask: Ask) -> None:
        """A workload no longer waits."""
        quota = quota_in(self._state.queues[ask.queue])
        if quota is not None:
            self.tree(quota.top).remove(ask.id)

    def tried(self, names: tuple[str, ...]) -> None:
        """A cycle looked at these workloads; its number decides which come first next time."""
        state = self._state
        for name in names:
            quota = quota_in(state.queues[state.asks[name].queue])
            if quota is not None:
                self.tree(quota.top).tried(name, state.cycles)

    def started(self, allocation: Allocation, pairs: Pairs) -> None:
        """A workload of these amounts was admitted."""
        self._count(allocation, pairs, 1)

    def ended(self, allocation: Allocation, pairs: Pairs) -> None:
        """A workload of these amounts is gone."""
        self._count(allocation, pairs, -1)

    def _count(self, allocation: Allocation, pairs: Pairs, sign: int) -> None:
        """Count what a workload uses (``sign`` 1) or uncount it (-1), by its priority."""
        quota = quota_in(self._state.queues[allocation.queue])
        if quota is None:
            return  # its queue is no longer in the configuration and has no quota to give back
        own = self._own.setdefault(quota, {})
        for index, amount in pairs:
            if amount:
                own.setdefault(index, OwnUsage()).add(allocation.priority, sign * amount)
        shortlist = self._trees.get(quota.top)
        if shortlist is not None:
            shortlist.used(quota)

    def _groups(self, ask: Ask, queue: Quota) -> Groups | None:
        """Return what a workload asks for, by resource group and flavor.

        Of several podsets only the first counts, since the amounts of the next depend on its
        flavors. That is a bound as well: a workload whose first podset fits nowhere fits nowhere.

        Returns:
            For each group asked in, the amounts by type of each flavor it takes; None when some of
            it has no quota, or no flavor that it takes.
        """
        if ask.podsets:
            resources: Mapping[str, int] = ask.podsets[0].resources
            fixed = ask.podsets[0].flavors
        else:
            resources, fixed = self._state.types.shapes[ask.shape].resources, ask.flavors
        found: dict[int, list[dict[int, int]]] = {}
        for name, amount in resources.items():
            number = next(
                (n for n, group in enumerate(queue.groups) if name in group.resources), None
            )
            if number is None:
                if amount:
                    return None
            elif amount and number not in found:
                found[number] = _flavors(queue.groups[number], resources, fixed)
        return list(found.values()) if all(found.values()) else None


def _flavors(
    group: FlavorGroup, resources: Mapping[str, int], fixed: Mapping[str, str] | None
) -> list[dict[int, int]]:
    """Return the amounts by type in each flavor of a group that a podset takes.

    Args:
        group: Of the ClusterQueue.
        resources: What the podset asks for; amounts of 0 are left out.
        fixed: Resource to the only flavor it takes; None, or a missing resource: any.

    Returns:
        One mapping a flavor, in the order of the manifest; empty when it takes none of them.
    """
    names = sorted(name for name in resources if name in group.resources)
    return [
        {indices[name]: resources[name] for name in names if resources[name]}
        for flavor, indices in group.flavors
        if fixed is None or all(fixed.get(name, flavor) == flavor for name in names)
    ]

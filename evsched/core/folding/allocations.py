"""What allocations do to the state: they begin to run, and end.

A task begins to run in three ways. `AllocationBound` is a decision: an ask becomes an allocation
with the same id. `BindingObserved` is an input: the cluster itself bound it. So is
`AllocationRestored`: the scheduler was installed in a cluster that ran already.

It ends by `AllocationReleased`, whatever the reason: completed, evicted, its node gone.

Each of them may help an ask that waits in vain, so each sets `State.retry_needed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import tallies
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.asks import take_out, total
from evsched.core.folding.cluster import mark_dirty
from evsched.core.folding.preemptions import left
from evsched.core.pods import kept
from evsched.core.workloads import Allocation

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State


def allocation_restored(state: State, event: v.AllocationRestored) -> None:
    """An allocation was found running.

    It may be on its way out already (``preempting``); then it counts as a victim of nobody, and no
    timer is armed, since it is not known who asked for its room. With Kueue its quota is the one
    of its flavors, while the amounts that were asked for are kept beside it for the day it is put
    back.

    Raises:
        LookupError: Its node is unknown; validation refuses that, so the log is damaged.
    """
    asked = state.shape(total(event))
    shape = asked
    if event.flavors is not None or event.podsets:
        shape = state.shape(flavored_total(event.resources, event.flavors, event.podsets))
    application = application_of(state, event)
    allocation = Allocation(
        id=event.allocation,
        application=application.id,
        queue=application.leaf.path,
        node=event.node,
        shape=shape.index,
        ask_shape=asked.index,
        priority=event.priority,
        created=state.time if event.created is None else event.created,
        bound=state.time if event.admitted is None else event.admitted,
        seq=event.seq,
        allow_preemption=event.allow_preemption,
        originator=event.originator,
        required_node=event.required_node,
        uid=event.uid or event.allocation,
        eviction_requested=state.time if event.preempting else 0,
        evicted=event.evicted,
        podsets=event.podsets,
        flavors=event.flavors,
        local_queue=event.queue if event.queue in state.local_queues else "",
        pod=kept(event.pod),
    )
    if allocation.node is not None and allocation.node not in state.nodes:
        raise LookupError(allocation.node)
    application.created = min(application.created, allocation.created)
    state.allocations[allocation.id] = allocation
    application.running += 1
    if state.counting:
        tallies.found(state, application, allocation)
    state.retry_needed = True


def allocation_bound(state: State, event: v.AllocationBound | v.BindingObserved) -> None:
    """An ask got its resources.

    With YuniKorn that is a node; with Kueue, quota in the flavors that the event names, and no
    node. The allocation keeps the ask's id, priority, creation and right to stay.

    Raises:
        LookupError: Its node is unknown: the log is damaged.
    """
    node = event.node
    if node is not None and node not in state.nodes:
        raise LookupError(node)
    ask = state.asks.pop(event.ask)
    name = ask.id
    application = state.applications[ask.application]
    take_out(state, application, ask)
    shape_index = ask.shape
    by_flavor = event.flavors is not None or event.podsets
    if by_flavor:
        resources = state.types.shapes[ask.shape].resources
        shape_index = state.shape(flavored_total(resources, event.flavors, event.podsets)).index
    # Given by place, as in `asks.ask_submitted`.
    allocation = Allocation(
        name,
        ask.application,
        ask.queue,
        node,
        shape_index,
        ask.priority,
        ask.created,
        state.time,
        event.seq,
        ask.allow_preemption,
        ask.originator,
        ask.required_node,
        ask.uid,
        ask.shape,
    )
    if by_flavor:
        allocation.podsets, allocation.flavors, allocation.local_queue = (
            event.podsets,
            event.flavors,
            ask.local_queue,
        )
    allocation.pod = ask.pod
    state.allocations[name] = allocation
    application.running += 1
    if state.counting:
        tallies.begins(state, application, ask, allocation)
    state.retry_needed = True


def binding_observed(state: State, event: v.BindingObserved) -> None:
    """The cluster bound an ask: it runs, as if evsched had decided so.

    What runs already is where the event says it is (`evsched.core.validation`): evsched bound it
    before the cluster said so.
    """
    if event.ask in state.asks:
        allocation_bound(state, event)


def allocation_released(state: State, event: v.AllocationReleased) -> None:
    """An allocation ended.

    Where it was a victim, whoever waits for its room learns that. With Kueue the tree of its
    cohort is looked at again. An application that is closing goes with its last allocation.
    """
    allocation = state.allocations.pop(event.allocation)
    application = state.applications[allocation.application]
    application.running -= 1
    if state.counting:
        tallies.ends(state, application, allocation)
    if application.leaf.quota is not None:
        mark_dirty(state, application.leaf)
    if allocation.eviction_requested:
        left(state, allocation)
    if application.closing:
        forget_if_done(state, application)
    state.retry_needed = True


def flavored(resources: dict[str, int], flavors: dict[str, str] | None) -> dict[str, int]:
    """Return amounts by ``flavor/resource``; a resource without a flavor is left out, it uses no quota."""
    if not flavors:
        return {}
    return {
        f"{flavors[name]}/{name}": amount for name, amount in resources.items() if name in flavors
    }


def flavored_total(
    resources: dict[str, int], flavors: dict[str, str] | None, podsets: tuple[v.PodSet, ...]
) -> dict[str, int]:
    """Return what a Kueue workload uses of its quotas, by ``flavor/resource``.

    Podsets may differ in their flavors, so each is translated by itself and they are added up
    then. What no flavor is named for uses no quota (a resource that no group of the ClusterQueue
    covers).
    """
    if not podsets:
        return flavored(resources, flavors)
    total: dict[str, int] = {}
    for podset in podsets:
        for name, amount in flavored(podset.resources, podset.flavors).items():
            total[name] = total.get(name, 0) + amount
    return total

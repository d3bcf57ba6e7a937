"""What allocations do to the state: they begin to run, and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import tallies
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.asks import take_out, total
from evsched.core.folding.cluster import mark_dirty
from evsched.core.folding.preemptions import left
from evsched.core.workloads import Allocation

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State


def allocation_restored(state: State, event: v.AllocationRestored) -> None:
    """An allocation was found running."""
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
    )
    if allocation.node is not None and allocation.node not in state.nodes:
        raise LookupError(allocation.node)
    application.created = min(application.created, allocation.created)
    state.allocations[allocation.id] = allocation
    application.running += 1
    if state.counting:
        tallies.found(state, application, allocation)
    state.retry_needed = True


def allocation_bound(state: State, event: v.AllocationBound) -> None:
    """An ask got its resources."""
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
    state.allocations[name] = allocation
    application.running += 1
    if state.counting:
        tallies.begins(state, application, ask, allocation)
    state.retry_needed = True


def allocation_released(state: State, event: v.AllocationReleased) -> None:
    """An allocation ended."""
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
    """Return what a Kueue workload uses of its quotas, by ``flavor/resource``."""
    if not podsets:
        return flavored(resources, flavors)
    total: dict[str, int] = {}
    for podset in podsets:
        for name, amount in flavored(podset.resources, podset.flavors).items():
            total[name] = total.get(name, 0) + amount
    return total

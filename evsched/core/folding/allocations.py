"""What allocations do to the state: they begin to run, and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import queues as q
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.asks import take_out, total
from evsched.core.folding.cluster import stir
from evsched.core.folding.preemptions import left
from evsched.core.resources import subtract
from evsched.core.workloads import Allocation

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State
    from evsched.core.workloads import Application


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
        told=state.time if event.preempting else 0,
        evicted=event.evicted,
        podsets=event.podsets,
        flavors=event.flavors,
        local_queue=event.queue if event.queue in state.local_queues else "",
    )
    application.created = min(application.created, allocation.created)
    q.use(application.leaf, state.types.shapes[allocation.shape].pairs)
    _run(state, application, allocation)


def allocation_bound(state: State, event: v.AllocationBound) -> None:
    """An ask got its resources."""
    application = state.applications[state.asks[event.ask].application]
    ask = take_out(state, application, event.ask)
    shape_index = ask.shape
    if event.flavors is not None or event.podsets:
        resources = state.types.shapes[ask.shape].resources
        shape_index = state.shape(flavored_total(resources, event.flavors, event.podsets)).index
    # Given by place, as in `asks.ask_submitted`.
    allocation = Allocation(
        ask.id,
        ask.application,
        ask.queue,
        event.node,
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
    if event.flavors is not None or event.podsets:
        allocation.podsets, allocation.flavors, allocation.local_queue = event.podsets, event.flavors, ask.local_queue
    shapes = state.types.shapes
    if application.leaf.quota is None and shape_index == ask.shape:
        q.begin(application.leaf, shapes[shape_index].pairs)
    else:
        q.unwait(application.leaf, shapes[ask.shape].pairs)
        q.use(application.leaf, shapes[shape_index].pairs)
    _run(state, application, allocation)


def allocation_released(state: State, event: v.AllocationReleased) -> None:
    """An allocation ended."""
    allocation = state.allocations.pop(event.allocation)
    application = state.applications[allocation.application]
    del application.allocations[allocation.id]
    pairs = state.types.shapes[allocation.shape].pairs
    subtract(application.usage, pairs)
    leaf = application.leaf
    q.release(leaf, pairs)
    stir(state, leaf)
    if allocation.node is not None:
        node = state.nodes.get(allocation.node)
        if node is None or allocation.id not in node.allocations:
            node = state.lost[allocation.node]
        del node.allocations[allocation.id]
        subtract(node.used, pairs)
        if state.columns is not None:
            state.columns.node_changed(node)
        if state.lost and not node.allocations:
            state.lost.pop(allocation.node, None)
    if allocation.told:
        q.tell(leaf, pairs, -1)
        left(state, allocation)
    if state.order is not None:
        state.order.freed(application)
    if state.limits is not None:
        state.limits.released(application, pairs)
    if state.victims is not None:
        state.victims.removed(allocation)
    forget_if_done(state, application)
    state.changed = True


def _run(state: State, application: Application, allocation: Allocation) -> None:
    """Count an allocation everywhere but along its queues."""
    pairs = state.types.shapes[allocation.shape].pairs
    state.allocations[allocation.id] = allocation
    application.allocations[allocation.id] = allocation
    usage = application.usage
    for index, amount in pairs:
        usage[index] += amount
    if allocation.node is not None:
        node = state.nodes[allocation.node]
        node.allocations[allocation.id] = allocation
        used = node.used
        for index, amount in pairs:
            used[index] += amount
        if state.columns is not None:
            state.columns.node_changed(node)
    if allocation.told:
        q.tell(application.leaf, pairs, 1)
    if state.order is not None:
        state.order.used(application)
    if state.limits is not None:
        state.limits.used(application, pairs)
    if state.victims is not None:
        state.victims.added(allocation)
    state.changed = True


def flavored(resources: dict[str, int], flavors: dict[str, str] | None) -> dict[str, int]:
    """Return amounts by ``flavor/resource``; a resource without a flavor is left out, it uses no quota."""
    if not flavors:
        return {}
    return {f"{flavors[name]}/{name}": amount for name, amount in resources.items() if name in flavors}


def flavored_total(resources: dict[str, int], flavors: dict[str, str] | None, podsets: tuple[v.PodSet, ...]) -> dict[str, int]:
    """Return what a Kueue workload uses of its quotas, by ``flavor/resource``."""
    if not podsets:
        return flavored(resources, flavors)
    total: dict[str, int] = {}
    for podset in podsets:
        for name, amount in flavored(podset.resources, podset.flavors).items():
            total[name] = total.get(name, 0) + amount
    return total

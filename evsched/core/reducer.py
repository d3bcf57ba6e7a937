"""The reducer: what each event does to the state. Deciding and replaying share this one path.

One function a type, found by a dictionary. An event in the log was valid when it was written, so nothing is checked here and
nothing is decided here; a function that raises has met a defect or a damaged log. The module is hot: no copies, no
``isinstance``, amounts as pairs of indices.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from evsched.core import queues as q
from evsched.core.resources import add, subtract
from evsched.core.timers import Timer
from evsched.core.trees import add_queue, install
from evsched.core.workloads import Allocation, Application, Ask, Node, Preemption
from events import vocabulary as v
from events.configuration import KueueSpec, YunikornSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.queues import Queue
    from evsched.core.state import State

DEFAULT_GRACE_MS = 30_000


def apply(state: State, event: v.AnyEvent) -> None:
    """Apply one event; ``state.time`` must already be the time of its frame."""
    state.seq = event.seq
    kind = type(event)
    _APPLY[kind](state, event)
    if kind in _PROPOSED and event.proposal:  # type: ignore[union-attr]
        state.remember(event.proposal)  # type: ignore[union-attr]


def grace_ms(state: State) -> int:
    """Return the time a victim has to leave before it is told again, in milliseconds."""
    spec = state.configuration
    return spec.eviction_grace_ms if isinstance(spec, YunikornSpec) else DEFAULT_GRACE_MS


# ---------------------------------------------------------------------------------------------------- configuration, nodes


def _configuration_applied(state: State, event: v.ConfigurationApplied) -> None:
    install(state, event.configuration)
    state.changed = True
    state.stirred = {path: None for path in state.root.children} if isinstance(event.configuration, KueueSpec) else {}


def _stir(state: State, leaf: Queue) -> None:
    """Note that something ended in the tree of a leaf (Kueue): who waits there in vain is looked at again."""
    if leaf.quota is not None:
        state.stirred[leaf.quota.top.path] = None


def _node_registered(state: State, event: v.NodeRegistered) -> None:
    shape = state.shape(event.capacity)
    node = Node(event.node, state.width)
    node.resources = event.capacity
    node.labels = event.labels
    node.schedulable = event.schedulable
    for index, amount in shape.pairs:
        node.capacity[index] = amount
        state.total[index] += amount
    state.nodes[event.node] = node
    state.columns = None
    if state.victims is not None:
        state.victims.nodes_changed()
    state.changed = True


def _node_updated(state: State, event: v.NodeUpdated) -> None:
    node = state.nodes[event.node]
    if event.capacity is not None:
        shape = state.shape(event.capacity)
        for index, amount in enumerate(node.capacity):
            state.total[index] -= amount
            node.capacity[index] = 0
        for index, amount in shape.pairs:
            node.capacity[index] = amount
            state.total[index] += amount
        node.resources = event.capacity
    if event.labels is not None:
        node.labels = event.labels
    if event.schedulable is not None:
        node.schedulable = event.schedulable
    _node_changed(state, node)
    state.changed = True


def _node_removed(state: State, event: v.NodeRemoved) -> None:
    node = state.nodes.pop(event.node)
    if node.allocations:
        state.lost[event.node] = node
    for index, amount in enumerate(node.capacity):
        state.total[index] -= amount
    state.columns = None
    if state.victims is not None:
        state.victims.nodes_changed()
    state.changed = True


def _node_changed(state: State, node: Node) -> None:
    if state.columns is not None:
        state.columns.node_changed(node)
    if state.victims is not None:
        state.victims.node_changed(node)


# ----------------------------------------------------------------------------------------------- queues and applications


def _queue_created(state: State, event: v.QueueCreated) -> None:
    state.dynamic[event.queue] = event.parent
    add_queue(state, event.queue, parent=event.parent)


def _queue_removed(state: State, event: v.QueueRemoved) -> None:
    state.dynamic.pop(event.queue, None)
    state.templates.pop(event.queue, None)
    queue = state.queues.pop(event.queue)
    if queue.parent is not None:
        queue.parent.children.pop(queue.name, None)
    if state.order is not None:
        state.order.queue_removed(event.queue)


def _application_submitted(state: State, event: v.ApplicationSubmitted) -> None:
    # It is taken in by the ApplicationPlaced that follows; what it brought is kept until then.
    state.arriving[event.application] = event


def _application_placed(state: State, event: v.ApplicationPlaced) -> None:
    arrived = state.arriving.pop(event.application)
    application = _take_in(
        state, event.application, state.queues[event.queue], arrived.user, arrived.groups, arrived.created, arrived.seq
    )
    application.tags = arrived.tags


def _take_in(  # noqa: PLR0913, PLR0917 - one value a field
    state: State, name: str, leaf: Queue, user: str, groups: tuple[str, ...], created: int | None, seq: int
) -> Application:
    application = Application(
        id=name,
        leaf=leaf,
        user=user,
        groups=groups,
        created=state.time if created is None else created,
        seq=seq,
        width=state.width,
    )
    state.applications[name] = application
    leaf.applications[name] = application
    return application


def _application_removed(state: State, event: v.ApplicationRemoved) -> None:
    application = state.applications[event.application]
    application.closing = True
    _forget_if_done(state, application)


def _forget_if_done(state: State, application: Application) -> None:
    if application.closing and not application.asks and not application.allocations:
        state.applications.pop(application.id, None)
        application.leaf.applications.pop(application.id, None)


def leaf_of(state: State, queue: str) -> str:
    """Return the path of the leaf that a proposal's queue means: a LocalQueue stands for its ClusterQueue."""
    path = state.local_queues.get(queue, queue)
    return path if path in state.queues else path.lower()  # names in queues.yaml ignore case


def _application_of(state: State, event: v.AskSubmitted | v.AllocationRestored) -> Application:
    """Return the application of an ask; one that is unknown is taken in with it and goes with the last thing it has."""
    path = leaf_of(state, event.queue)
    name = event.application or path
    application = state.applications.get(name)
    if application is None:
        application = _take_in(state, name, state.queues[path], event.user, event.groups, event.created, event.seq)
        application.closing = True
    return application


# ------------------------------------------------------------------------------------------------------------------- asks


def _total(event: v.AskSubmitted | v.AllocationRestored) -> dict[str, int]:
    """Return what all podsets ask for together, by resource name."""
    if not event.podsets:
        return event.resources
    total: dict[str, int] = {}
    for podset in event.podsets:
        for name, amount in podset.resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def _ask_submitted(state: State, event: v.AskSubmitted) -> None:
    shape = state.shape(_total(event) if event.podsets else event.resources)
    application = _application_of(state, event)
    leaf = application.leaf
    ask = Ask(
        id=event.ask,
        application=application.id,
        queue=leaf.path,
        shape=shape.index,
        priority=event.priority,
        created=state.time if event.created is None else event.created,
        seq=event.seq,
        allow_preemption=event.allow_preemption,
        may_preempt=event.preemption_policy != "Never",
        originator=event.originator,
        required_node=event.required_node,
        uid=event.uid or event.ask,
        podsets=event.podsets,
        flavors=event.flavors,
        preempt_resources=event.preempt_resources,
        local_queue=event.queue if event.queue in state.local_queues else "",
    )
    state.asks[ask.id] = ask
    application.asks[ask.id] = ask
    application.created = min(application.created, ask.created)
    priorities = application.priorities
    priorities[ask.priority] = priorities.get(ask.priority, 0) + 1
    q.wait(leaf, shape.pairs)
    state.ripens(ask)
    if state.order is not None:
        state.order.asked(ask)


def _unask(state: State, ask_id: str) -> Ask:
    """Take an ask out of what waits and return it."""
    ask = state.asks.pop(ask_id)
    application = state.applications[ask.application]
    del application.asks[ask_id]
    priorities = application.priorities
    left = priorities[ask.priority] - 1
    if left:
        priorities[ask.priority] = left
    else:
        del priorities[ask.priority]
    pairs = state.types.shapes[ask.shape].pairs
    q.unwait(application.leaf, pairs)
    state.tried.pop(ask_id, None)
    if ask_id in state.preemptions:
        del state.preemptions[ask_id]
        q.claim(application.leaf, pairs, -1)
        if state.order is not None:
            state.order.freed(application)
    if ask_id in state.reservations:
        _unreserve(state, ask_id)
    if state.order is not None:
        state.order.unasked(ask)
    return ask


def _ask_withdrawn(state: State, event: v.AskWithdrawn) -> None:
    ask = _unask(state, event.ask)
    _stir(state, state.queues[ask.queue])
    _forget_if_done(state, state.applications[ask.application])
    state.changed = True


# ------------------------------------------------------------------------------------------------------------ allocations


def _run(state: State, application: Application, allocation: Allocation) -> None:
    """Count an allocation everywhere."""
    pairs = state.types.shapes[allocation.shape].pairs
    state.allocations[allocation.id] = allocation
    application.allocations[allocation.id] = allocation
    add(application.usage, pairs)
    leaf = application.leaf
    q.use(leaf, pairs)
    if allocation.node is not None:
        node = state.nodes[allocation.node]
        node.allocations[allocation.id] = allocation
        add(node.used, pairs)
        if state.columns is not None:
            state.columns.node_changed(node)
    if allocation.told:
        q.tell(leaf, pairs, 1)
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


def _allocation_restored(state: State, event: v.AllocationRestored) -> None:
    asked = state.shape(_total(event))
    shape = asked
    if event.flavors is not None or event.podsets:
        shape = state.shape(flavored_total(event.resources, event.flavors, event.podsets))
    application = _application_of(state, event)
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
    _run(state, application, allocation)


def _allocation_bound(state: State, event: v.AllocationBound) -> None:
    ask = _unask(state, event.ask)
    shape_index = ask.shape
    if event.flavors is not None or event.podsets:
        resources = state.types.shapes[ask.shape].resources
        shape_index = state.shape(flavored_total(resources, event.flavors, event.podsets)).index
    allocation = Allocation(
        id=ask.id,
        application=ask.application,
        queue=ask.queue,
        node=event.node,
        shape=shape_index,
        ask_shape=ask.shape,
        priority=ask.priority,
        created=ask.created,
        bound=state.time,
        seq=event.seq,
        allow_preemption=ask.allow_preemption,
        originator=ask.originator,
        required_node=ask.required_node,
        uid=ask.uid,
        podsets=event.podsets,
        flavors=event.flavors,
        local_queue=ask.local_queue,
    )
    _run(state, state.applications[ask.application], allocation)


def _allocation_released(state: State, event: v.AllocationReleased) -> None:
    allocation = state.allocations.pop(event.allocation)
    application = state.applications[allocation.application]
    del application.allocations[allocation.id]
    pairs = state.types.shapes[allocation.shape].pairs
    subtract(application.usage, pairs)
    leaf = application.leaf
    q.release(leaf, pairs)
    _stir(state, leaf)
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
        _left(state, allocation)
    if state.order is not None:
        state.order.freed(application)
    if state.limits is not None:
        state.limits.released(application, pairs)
    if state.victims is not None:
        state.victims.removed(allocation)
    _forget_if_done(state, application)
    state.changed = True


def _left(state: State, allocation: Allocation) -> None:
    """Note that a victim is gone, wherever somebody waits for that."""
    state.timers.cancel(f"evict:{allocation.id}")
    preemption = state.preemptions.get(allocation.victim_of)
    if preemption is not None and allocation.id in preemption.waiting_for:
        preemption.waiting_for.remove(allocation.id)
    run = state.quota_runs.get(allocation.quota_of)
    if run is not None:
        run.pop(allocation.id, None)
        if not run:
            del state.quota_runs[allocation.quota_of]


# ------------------------------------------------------------------------------------------- reservations and preemptions


def _reserve(state: State, ask_id: str, node_name: str) -> None:
    node = state.nodes[node_name]
    state.reservations[ask_id] = node_name
    node.reserved[ask_id] = state.types.shapes[state.asks[ask_id].shape]
    _node_changed(state, node)


def _unreserve(state: State, ask_id: str) -> None:
    node = state.nodes.get(state.reservations.pop(ask_id))
    if node is not None:
        node.reserved.pop(ask_id, None)
        _node_changed(state, node)
    state.changed = True


def _reserved(state: State, event: v.NodeReserved | v.ReservationRestored) -> None:
    _reserve(state, event.ask, event.node)


def _reservation_released(state: State, event: v.ReservationReleased) -> None:
    _unreserve(state, event.ask)


def _tell(state: State, victims: tuple[v.Victim, ...], seq: int, *, ask: str = "", queue: str = "") -> list[str]:
    """Mark victims as told to go for an ask or for the quota of a queue; return the ids of those that were not yet."""
    due, now = state.time + grace_ms(state), state.time
    told = [victim.id for victim in victims]
    if isinstance(state.configuration, KueueSpec):
        # A victim that is on its way out already is counted on by whoever else needs its room, and not told again.
        told = [name for name in told if not (state.allocations[name].told or state.allocations[name].evicted)]
    allocations = [state.allocations[name] for name in told]
    # A quota enforcement tells thousands of equal tasks at once: they are counted first, and along the paths only then.
    counts = Counter([(one.queue, one.shape) for one in allocations if not one.told])
    for (leaf, shape), count in counts.items():
        q.tell(state.queues[leaf], state.types.shapes[shape].pairs, count)
    for allocation in allocations:
        allocation.told = now
        allocation.victim_of = ask
        allocation.quota_of = queue
        allocation.attempts = 1
    if state.victims is not None:
        for allocation in allocations:
            state.victims.changed(allocation)
    state.timers.arm_all([Timer(due, f"evict:{name}", "evict", name, seq) for name in told])
    return told


def _preemption_decided(state: State, event: v.PreemptionDecided) -> None:
    told = _tell(state, event.victims, event.seq, ask=event.ask)
    ask = state.asks[event.ask]
    ask.failed = ""
    ask.preempted = True
    state.tried.pop(event.ask, None)
    known = state.preemptions.get(event.ask)
    if known is None:
        q.claim(state.queues[ask.queue], state.types.shapes[ask.shape].pairs, 1)
    else:
        told = [*known.waiting_for, *told]
    state.preemptions[event.ask] = Preemption(ask=event.ask, node=event.node, waiting_for=told, decided=state.time, seq=event.seq)
    if event.node is not None:
        if event.ask in state.reservations:
            _unreserve(state, event.ask)
        _reserve(state, event.ask, event.node)


def _preemption_failed(state: State, event: v.PreemptionFailed) -> None:
    state.asks[event.ask].failed = event.reason


def _eviction_repeated(state: State, event: v.EvictionRepeated) -> None:
    allocation = state.allocations[event.allocation]
    allocation.attempts = event.attempt
    due = state.time + grace_ms(state)
    state.timers.arm(Timer(due, f"evict:{allocation.id}", "evict", allocation.id, event.seq))


def _preemption_withdrawn(state: State, event: v.PreemptionWithdrawn) -> None:
    for name in event.victims:
        allocation = state.allocations[name]
        _left(state, allocation)
        _stir(state, state.queues[allocation.queue])
        q.tell(state.queues[allocation.queue], state.types.shapes[allocation.shape].pairs, -1)
        allocation.told = allocation.attempts = 0
        allocation.victim_of = allocation.quota_of = ""
        if state.victims is not None:
            state.victims.changed(allocation)
    if event.ask is not None and event.ask in state.preemptions:
        del state.preemptions[event.ask]
        ask = state.asks[event.ask]
        q.claim(state.queues[ask.queue], state.types.shapes[ask.shape].pairs, -1)
        if event.ask in state.reservations:
            _unreserve(state, event.ask)
        if event.node_lost:
            ask.preempted = False
            state.ripens(ask)
        if state.order is not None:
            state.order.freed(state.applications[ask.application])
            state.order.returned(ask)
    state.changed = True


def _quota_scheduled(state: State, event: v.QuotaPreemptionScheduled) -> None:
    state.timers.arm(Timer(event.at, f"quota:{event.queue}", "quota", event.queue, event.seq))


def _quota_cancelled(state: State, event: v.QuotaPreemptionCancelled) -> None:
    state.timers.cancel(f"quota:{event.queue}")


def _quota_decided(state: State, event: v.QuotaPreemptionDecided) -> None:
    state.timers.cancel(f"quota:{event.queue}")
    told = _tell(state, event.victims, event.seq, queue=event.queue)
    state.quota_runs[event.queue] = dict.fromkeys(told)


def _quota_unhelpful(state: State, event: v.QuotaPreemptionUnhelpful) -> None:
    state.timers.cancel(f"quota:{event.queue}")


# ------------------------------------------------------------------------------------------------------------------- rest


def _leader_started(state: State, event: v.LeaderStarted) -> None:
    state.term = event.term
    state.leader = event.leader
    state.checkpoint_every = event.checkpoint_every


def _nothing(state: State, event: v.InputRejected | v.EvictionRefused) -> None:
    """Leave the state as it is: a refused eviction is repeated when its grace timer fires."""


def _cycle_started(state: State, event: v.CycleStarted) -> None:
    state.last_cycle = state.time
    state.changed = event.again
    state.stirred.clear()
    for name in event.tried:
        state.tried[name] = None


def _checkpoint_recorded(state: State, event: v.CheckpointRecorded) -> None:
    state.last_checkpoint = event.seq


_APPLY: dict[type, Callable[[State, Any], None]] = {
    v.ConfigurationApplied: _configuration_applied,
    v.NodeRegistered: _node_registered,
    v.NodeUpdated: _node_updated,
    v.NodeRemoved: _node_removed,
    v.ApplicationSubmitted: _application_submitted,
    v.ApplicationRemoved: _application_removed,
    v.AskSubmitted: _ask_submitted,
    v.AskWithdrawn: _ask_withdrawn,
    v.AllocationRestored: _allocation_restored,
    v.AllocationReleased: _allocation_released,
    v.EvictionRefused: _nothing,
    v.ReservationRestored: _reserved,
    v.LeaderStarted: _leader_started,
    v.InputRejected: _nothing,
    v.QueueCreated: _queue_created,
    v.QueueRemoved: _queue_removed,
    v.ApplicationPlaced: _application_placed,
    v.AllocationBound: _allocation_bound,
    v.NodeReserved: _reserved,
    v.ReservationReleased: _reservation_released,
    v.PreemptionDecided: _preemption_decided,
    v.PreemptionFailed: _preemption_failed,
    v.EvictionRepeated: _eviction_repeated,
    v.PreemptionWithdrawn: _preemption_withdrawn,
    v.QuotaPreemptionScheduled: _quota_scheduled,
    v.QuotaPreemptionCancelled: _quota_cancelled,
    v.QuotaPreemptionDecided: _quota_decided,
    v.QuotaPreemptionUnhelpful: _quota_unhelpful,
    v.CycleStarted: _cycle_started,
    v.CheckpointRecorded: _checkpoint_recorded,
}

_PROPOSED = frozenset((*v.AnyInput.__args__, v.InputRejected))
"""Types that carry the id of a proposal, which is remembered so that a repetition is recognised."""

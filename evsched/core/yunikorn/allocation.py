"""The allocation cycle: who waits gets what is free, in the order of the policies.

First those for whom a node is reserved, then everybody in the order of
`evsched.core.yunikorn.ordering`. After each binding the order is looked at anew, because shares
have changed. An ask that cannot be bound is passed over and holds nobody else up; within one cycle
room only shrinks, so it is not tried twice, nor is any other with the same demand.

An ask in flight (its victims are being evicted) is bound on the reserved node alone, as soon as that
has room. When all its victims are gone it does not wait for those of other asks that have the same
node reserved: what is promised there fits together once all of them are gone, in whatever order.
When the node cannot take it after all (it shrank, it was closed), it is bound wherever it fits. An
ask with a required node runs there or nowhere.

An application that is paused is passed over, but for its asks in flight;
`evsched.core.yunikorn.pauses` says who is paused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.node_access import may_run, pod_of
from evsched.core.yunikorn import limits
from evsched.core.yunikorn.columns import NodeColumns, columns_of
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.maxima import first_exceeded
from evsched.core.yunikorn.nomination import is_nominated
from evsched.core.yunikorn.ordering import is_new
from evsched.core.yunikorn.waiting import WaitingOrder

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.workloads import Ask
    from evsched.core.yunikorn.order_nodes import Demand


def allocate(step: Step) -> None:
    """Bind what fits. Does nothing when nothing happened that could help an ask that waits.

    Reservations come before the order of asks. With a tracer, what holds up the asks that still
    wait is noted at the end.
    """
    state = step.state
    if not state.asks:
        return
    columns = columns_of(state)
    order = order_of(state)
    if (
        order.retry_needed or columns.retry_needed or order.columns is not columns
    ):  # else whoever waits was tried in vain, and nothing has changed that could help
        _serve_reserved(step, columns)
        _serve_waiting(step, order, columns)
        order.retry_needed = False
        step.ask = ""
    if step.tracer is not None:
        _note_waiting(step, order, columns)


def order_of(state: State) -> WaitingOrder:
    """Return the order of a state, built when it is not there.

    It is brought up to the capacity of now, as shares are compared with the total of all nodes.
    """
    index = index_of(state)
    order = index.order
    if not isinstance(order, WaitingOrder):
        order = index.order = WaitingOrder(state)
    if order.total != state.total:
        order.rescale()
    return order


def _serve_reserved(step: Step, columns: NodeColumns) -> None:
    """Bind the asks that have a node reserved, oldest in the log first.

    One that is bound elsewhere gives up room, and the first one of its application lifts
    `maxapplications` off the others: either may help an older one, so the round begins again.
    """
    state = step.state
    again = bool(state.reservations)
    while again:
        again = False
        for ask in sorted(
            (state.asks[name] for name in state.reservations), key=lambda ask: ask.seq
        ):
            step.ask = ask.id
            name = _reserved_place(state, columns, ask)
            if name is not None:
                again = (
                    name != state.reservations[ask.id]
                    or not state.applications[ask.application].allocations
                )
                step.emit(v.AllocationBound, cause=ask.seq, ask=ask.id, node=name)
                if again:
                    break


def _reserved_place(state: State, columns: NodeColumns, ask: Ask) -> str | None:
    """Return where an ask that has a node reserved can be bound now; None: not yet.

    In this order:

    - nowhere while a maximum is in the way, or, for an ask that is not in flight, a limit;
    - on the reserved node, when the ask fits beside what others have reserved there;
    - nowhere else while victims of it are still there, or when it is not in flight;
    - on the reserved node whatever others have reserved there, when it is not nominated;
    - on any node that has room, or on the required one.
    """
    shape = state.types.shapes[ask.shape]
    preemption = state.preemptions.get(ask.id)
    if (
        first_exceeded(state.queues[ask.queue], shape.pairs, nominated=preemption is None)
        is not None
    ):
        return None
    if (
        preemption is None
        and limits.blocks(state, state.applications[ask.application], shape.pairs) is not None
    ):
        return None
    node = state.nodes.get(state.reservations[ask.id])
    allowed = (
        node is not None and ask.required_node in {None, node.name} and may_run(state, ask, node)
    )
    if node is not None and allowed and node.fits(shape.pairs, ask.id):
        return node.name
    if preemption is None or preemption.waiting_for:
        return None
    if (
        node is not None
        and allowed
        # What is promised to an ask whose victims leave is not for one that rests on the same.
        and not is_nominated(state, ask.id)
        and all(node.free(index) >= amount for index, amount in shape.pairs)
    ):
        return node.name
    pod = pod_of(state, ask)
    return (
        columns.place(shape, pod)
        if ask.required_node is None
        else columns.place_on(ask.required_node, shape.pairs, pod)
    )


def _serve_waiting(step: Step, order: WaitingOrder, columns: NodeColumns) -> None:
    """Bind asks in their order until none is left that could be bound.

    What is in the way is reported to the order, which cuts off everything that it holds for: a
    maximum the bucket, a limit the peers, a lack of room the demand. So each round binds an ask,
    or takes away at least one group that would be tried.
    """
    state = step.state
    asks, applications = state.asks, state.applications
    order.begin(columns)
    while (group := order.first()) is not None:
        demand = group.demand
        assert group.entry is not None
        ask = asks[group.entry[1][3]]
        step.ask = ask.id
        pairs = demand.shape.pairs
        full = first_exceeded(applications[ask.application].leaf, pairs)
        if full is not None:
            order.cap(full.path, group)
            continue
        if limits.blocks(state, applications[ask.application], pairs) is not None:
            order.limit(group)
            continue
        name = _place(order, columns, demand)
        if name is None:
            order.block(demand)
            continue
        again = ask.id in state.reservations or (
            state.reservations and not applications[ask.application].allocations
        )
        step.emit(v.AllocationBound, cause=ask.seq, ask=ask.id, node=name)
        if again:  # as in `_serve_reserved`
            _serve_reserved(step, columns)
            order.begin(columns)
    order.end()


def look_for_room(state: State, order: WaitingOrder) -> None:
    """Block those demands that matter to pauses and that no node has room for.

    Allocation may not have tried them: a maximum or a limit may hold their asks back before any
    node is looked at. Whether an application is paused must not depend on that.
    """
    columns = columns_of(state)
    for demand in tuple(order.openings.unsure):
        if not demand.watched:
            del order.openings.unsure[demand]
        elif _place(order, columns, demand) is None:
            order.block(demand)


def _place(order: WaitingOrder, columns: NodeColumns, demand: Demand) -> str | None:
    """Return the node for an ask with a demand; None when none has room.

    It is not bound by this, and nothing is noted at the demand.
    """
    if demand.required is not None:
        return columns.place_on(demand.required, demand.shape.pairs, demand.pod)
    if order.bindable.blocked(demand):  # those that have grown since are the only ones to look at
        return columns.place_among(order.bindable.grown, demand.shape.pairs, demand.pod)
    return columns.place(demand.shape, demand.pod)


def _before(state: State, order: WaitingOrder, ask: Ask) -> tuple[str, ...]:
    """Return the new applications of a stateaware leaf that start before that of an ask, in order.

    Empty for an application that runs, and in leaves with another policy. A paused one makes way
    for those whose pause ends before its own, so it does not count as before them.
    """
    queue_node = order.queue_nodes[ask.queue]
    own = queue_node.app_nodes[ask.application]
    if queue_node.queue.settings.sort_policy != "stateaware" or not is_new(own.application):
        return ()
    paused = state.paused
    until = paused.get(own.application.id, state.time)
    waiting = [
        (one.key, one.application.id)
        for one in queue_node.app_nodes.values()
        if one is not own
        and one.key is not None
        and is_new(one.application)
        and paused.get(one.application.id, until) <= until
    ]
    return tuple(name for key, name in sorted(waiting) if own.key is None or key < own.key)


def _note_waiting(step: Step, order: WaitingOrder, columns: NodeColumns) -> None:
    """Tell the tracer what holds each waiting ask up; only explanations pay for this.

    Everything that is in the way is noted, not just what was found first. An ask may be behind
    others, above a maximum and without a node at once.
    """
    state, tracer = step.state, step.tracer
    assert tracer is not None
    order.settle()
    for ask in state.asks.values():
        if not tracer.wants(ask.id):
            continue
        shape = state.types.shapes[ask.shape]
        leaf = state.queues[ask.queue]
        in_flight = state.preemptions.get(ask.id)
        if in_flight is None and ask.application in state.paused:
            tracer.note(ask.id, "paused", until=state.paused[ask.application])
        if in_flight is None and (before := _before(state, order, ask)):
            tracer.note(ask.id, "behind", queue=leaf.path, applications=before)
        if in_flight is not None and in_flight.waiting_for:
            tracer.note(
                ask.id, "in-flight", node=in_flight.node, waiting_for=tuple(in_flight.waiting_for)
            )
        full = first_exceeded(leaf, shape.pairs, nominated=in_flight is None)
        if full is not None:
            names = state.types.names
            facts = {
                names[index]: (full.usage[index], full.claimed[index], amount, full.maximum[index])
                for index, amount in shape.pairs
                if index in full.maximum
            }
            tracer.note(ask.id, "max", queue=full.path, used_claimed_asked_maximum=facts)
        if in_flight is None:
            application = state.applications[ask.application]
            for limited in limits.blocking(state, application, shape.pairs):
                tracer.note(ask.id, "limit", **limited._asdict())
        if ask.required_node is not None:
            if columns.place_on(ask.required_node, shape.pairs, pod_of(state, ask)) is None:
                tracer.note(ask.id, "required-node", node=ask.required_node)
        elif columns.place(shape, pod_of(state, ask)) is None:
            tracer.note(ask.id, "no-node", nodes=len(columns.rows), resources=shape.resources)

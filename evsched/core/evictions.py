"""Victims on their way out: repeated, refused, lost, withdrawn (seed cross_queue_preemption, answer 1: graceful termination).

A victim gets a grace time. When it has not left by then its agent is asked again; after
`eviction_attempts` times the preemption is withdrawn with an event, so that nothing stays wedged:
the victims may stay, the ask waits like any other. It had its turn and does not preempt again, or
one that will not leave would make it evict others for ever ("no storm"). When the node was
lost it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.node_access import may_run
from evsched.core.registry import family_of
from evsched.core.withdrawal import withdraw

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.workloads import Ask, Node


def overdue(step: Step, timer: Timer) -> None:
    """Request the eviction of what has not left once more, or withdraw what wanted it to go.

    All victims of a decision share the timer and have been asked equally often. After the last
    attempt the whole preemption is called off, those victims included that other decisions added
    to it. What is left is a victim without an ask: of a quota, or of an ask that is gone.
    """
    state = step.state
    victims = tuple(state.leaving[int(timer.subject)])
    spec = state.configuration
    assert spec is not None  # victims have queues, and queues a configuration
    _, attempts = family_of(spec).evictions(spec)
    told = state.allocations[victims[0]].attempts
    if told < attempts:
        for name in victims:
            step.emit(v.EvictionRepeated, cause=timer.cause, allocation=name, attempt=told + 1)
        return
    preemption = state.preemptions.get(state.allocations[victims[0]].victim_of)
    reason = f"allocation {victims[0]}: did not leave though told {attempts} times"
    if preemption is not None and victims[0] in preemption.waiting_for:
        withdraw(step, timer.cause, preemption.ask, reason, node_lost=False)
        victims = tuple(state.leaving.get(int(timer.subject), ()))
    if victims:
        step.emit(v.PreemptionWithdrawn, cause=timer.cause, victims=victims, reason=reason)


def node_changed(step: Step, event: v.NodeUpdated) -> None:
    """Free the asks in flight whose node was closed, or shrank so that it cannot take them even when their victims are gone.

    An ask that may run there only keeps waiting while the node is closed.
    """
    state = step.state
    node = state.nodes[event.node]
    for name in [name for name in node.reserved if name in state.preemptions]:
        ask = state.asks[name]
        closed = ask.required_node is None and not may_run(state, ask, node)
        if closed or not _could_fit(state, node, ask):
            reason = (
                f"node {node.name}: {'takes nobody any more' if closed else 'has become too small'}"
            )
            withdraw(step, event.seq, name, reason)


def _could_fit(state: State, node: Node, ask: Ask) -> bool:
    """Tell whether an ask fits on its node once all victims there are gone.

    Capacity may have shrunk below that; then no waiting helps.
    """
    room = node.room_after(state.types.shapes, ask.id)
    return all(room[index] >= amount for index, amount in state.types.shapes[ask.shape].pairs)


def node_lost(step: Step, event: v.NodeRemoved) -> None:
    """Release what ran on a node that is gone, and free the asks for which it was reserved.

    Each allocation ends by an event of its own, so that a reader of the log needs no list of what
    ran where. An ask in flight loses its preemption and may have another; a mere reservation is
    released.
    """
    state = step.state
    lost = state.lost.get(event.node)
    for name in tuple(lost.allocations) if lost is not None else ():
        step.emit(v.AllocationReleased, cause=event.seq, allocation=name, reason="node removed")
    for ask in [ask for ask, node in state.reservations.items() if node == event.node]:
        if ask in state.preemptions:
            withdraw(step, event.seq, ask, f"node {event.node}: was removed")
        else:
            step.emit(
                v.ReservationReleased,
                cause=event.seq,
                ask=ask,
                node=event.node,
                reason=f"node {event.node}: was removed",
            )

"""What asks do to the state: they begin to wait, and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import queues as q
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.cluster import stir
from evsched.core.folding.reservations import unreserve
from evsched.core.workloads import Ask

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State


def ask_submitted(state: State, event: v.AskSubmitted) -> None:
    """An ask begins to wait."""
    shape = state.shape(total(event) if event.podsets else event.resources)
    application = application_of(state, event)
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


def ask_withdrawn(state: State, event: v.AskWithdrawn) -> None:
    """An ask was taken back."""
    ask = unask(state, event.ask)
    stir(state, state.queues[ask.queue])
    forget_if_done(state, state.applications[ask.application])
    state.changed = True


def unask(state: State, ask_id: str) -> Ask:
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
        unreserve(state, ask_id)
    if state.order is not None:
        state.order.unasked(ask)
    return ask


def total(event: v.AskSubmitted | v.AllocationRestored) -> dict[str, int]:
    """Return what all podsets ask for together, by resource name."""
    if not event.podsets:
        return event.resources
    total: dict[str, int] = {}
    for podset in event.podsets:
        for name, amount in podset.resources.items():
            total[name] = total.get(name, 0) + amount
    return total

"""What asks do to the state: they begin to wait, and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import queues as q
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.cluster import stir
from evsched.core.folding.pauses import end_pause
from evsched.core.folding.reservations import unreserve
from evsched.core.workloads import Ask

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State
    from evsched.core.workloads import Application


def ask_submitted(state: State, event: v.AskSubmitted) -> None:
    """An ask begins to wait."""
    shape = state.shape(total(event) if event.podsets else event.resources)
    application = application_of(state, event)
    leaf = application.leaf
    # Given by place: naming twelve fields costs nine times as much, and this is the hottest place of a replay.
    ask = Ask(
        event.ask,
        application.id,
        leaf.path,
        shape.index,
        event.priority,
        state.time if event.created is None else event.created,
        event.seq,
        event.allow_preemption,
        event.preemption_policy != "Never",
        event.originator,
        event.required_node,
        event.uid or event.ask,
    )
    if leaf.quota is not None:
        ask.podsets, ask.flavors, ask.preempt_resources = event.podsets, event.flavors, event.preempt_resources
        ask.local_queue = event.queue if event.queue in state.local_queues else ""
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
    """Take an ask out of what waits, along its queues too, and return it."""
    ask = take_out(state, state.applications[state.asks[ask_id].application], ask_id)
    q.unwait(state.queues[ask.queue], state.types.shapes[ask.shape].pairs)
    return ask


def take_out(state: State, application: Application, ask_id: str) -> Ask:
    """Take an ask out of what waits but for the sums of its queues, and return it."""
    ask = state.asks.pop(ask_id)
    del application.asks[ask_id]
    priorities = application.priorities
    left = priorities[ask.priority] - 1
    if left:
        priorities[ask.priority] = left
    else:
        del priorities[ask.priority]
    if state.tried:
        state.tried.pop(ask_id, None)
    if state.paused and not application.asks and application.id in state.paused:
        end_pause(state, application.id)
    if ask_id in state.preemptions:
        del state.preemptions[ask_id]
        q.claim(application.leaf, state.types.shapes[ask.shape].pairs, -1)
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

"""Pauses: an application with too many asks that cannot be placed is not looked at for a while.

``application.unschedasks.backoff`` of a leaf says how many (0: never),
``application.unschedasks.backoff.delay`` how long. What is read out of that:

- Asks count that no node has room for now, but those in flight. Whether a maximum or a limit holds
  them too is not asked.
- An application is paused at the end of a step, and not before all of its asks that are due have
  had their turn to preempt. So each look is a whole one: it binds, then preempts, then pauses; or
  who is paused again and again would never preempt.
- A paused application is passed over by allocation and by preemption. What is in flight goes on,
  and is bound in the pause; so is an ask for which a node is reserved. Its asks go on to count in
  the priority and the pending amounts of its queue.
- After the pause it is looked at in the same step, and paused anew if nothing is better. A pause
  ends early when the configuration has none for the queue any more, and when the application has no
  ask left. A changed delay is for later pauses.

Decided from the state alone, so that it does not matter what the order of waiting asks has tried:
what that does not know to be without room is tried here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.bounds import MAX_MOMENT
from events.configuration import YunikornSpec
from evsched.core.yunikorn import allocation
from evsched.core.yunikorn.agenda import owes_turn
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.waiting import WaitingOrder

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.yunikorn.order_nodes import ApplicationNode


def allocate(step: Step) -> None:
    """Bind what fits, then pause whom that leaves with too much, until nobody is left: in their place others may be looked at."""
    allocation.allocate(step)
    order = index_of(step.state).order
    while (
        isinstance(order, WaitingOrder)
        and (order.openings.crowded or order.openings.unsure)
        and _pause(step, order)
    ):
        allocation.allocate(step)


def resume(step: Step, timer: Timer) -> None:
    """End the pause whose time is over."""
    step.emit(v.ApplicationResumed, cause=timer.cause, application=timer.subject)


def after_configuration(step: Step, event: v.ConfigurationApplied) -> None:
    """End the pauses in queues that have none any more."""
    state = step.state
    for name in sorted(state.paused):
        if not state.applications[name].leaf.settings.backoff_asks:
            step.emit(v.ApplicationResumed, cause=event.seq, application=name)


def _pause(step: Step, order: WaitingOrder) -> bool:
    """Pause whoever has too many asks that no node has room for, by age in the log; tell whether anybody was."""
    state = step.state
    allocation.look_for_room(state, order)
    found: list[tuple[Application, int]] = []
    for app_node in tuple(order.openings.crowded):
        asks = _without_room(state, order, app_node) if app_node.watched else 0
        if asks < max(app_node.queue_node.backoff, 1):
            del order.openings.crowded[app_node]
        elif not _owed(state, app_node.application):
            found.append((app_node.application, asks))
    for application, asks in sorted(found, key=lambda one: one[0].seq):
        until = min(step.time + application.leaf.settings.backoff_delay_ms, MAX_MOMENT)
        cause = next(reversed(application.asks.values())).seq
        step.emit(
            v.ApplicationPaused, cause=cause, application=application.id, until=until, asks=asks
        )
    return bool(found)


def _without_room(state: State, order: WaitingOrder, app_node: ApplicationNode) -> int:
    """Return how many asks of an application no node has room for, those in flight left out."""
    blocked = order.bindable.blocked
    asks = sum(group.waiting for demand, group in app_node.groups.items() if blocked(demand))
    if asks < app_node.queue_node.backoff or not state.preemptions:
        return asks
    in_flight = [
        ask
        for name in state.preemptions
        if (ask := app_node.application.asks.get(name)) is not None
    ]
    return asks - sum(blocked(order.demand_of(ask)) for ask in in_flight)


def _owed(state: State, application: Application) -> bool:
    """Tell whether a preemption cycle is due in which an ask of an application has a turn."""
    spec = state.configuration
    assert isinstance(spec, YunikornSpec)
    return spec.preemption_enabled and any(
        owes_turn(state, ask) for ask in application.asks.values()
    )

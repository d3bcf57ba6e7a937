"""What asks do to the state: they begin to wait, and stop.

An ask is in three places: among all (`State.asks`), with its application, and, along the path of
its queue, in the pending amounts, which are a tally. It stops waiting by being bound or withdrawn,
and both go through `take_out`, so that nothing that is kept about a waiting ask can be forgotten
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import suspension, tallies
from evsched.core.folding.applications import application_of, forget_if_done
from evsched.core.folding.cluster import mark_dirty
from evsched.core.folding.pauses import end_pause
from evsched.core.folding.reservations import unreserve
from evsched.core.pods import kept
from evsched.core.resources import written
from evsched.core.timers import nomination_of
from evsched.core.workloads import Ask

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.queues import Application
    from evsched.core.state import State


def ask_submitted(state: State, event: v.AskSubmitted) -> None:
    """An ask begins to wait.

    It is new to preemption: its age runs from ``created``, where the submitter says when that was,
    else from now. It does not set `State.retry_needed`, because it cannot help an ask that waits
    already; it is looked at because it is not in `State.unschedulable_since`.
    """
    resources = total(event) if event.podsets else event.resources
    shape = state.types.known.get(written(resources)) or state.shape(resources)
    name = event.ask
    application = state.applications.get(event.application) or application_of(state, event)
    leaf = application.leaf
    # Given by place: naming twelve fields costs nine times as much, and this is the hottest place
    # of a replay.
    ask = Ask(
        name,
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
        event.uid or name,
    )
    if event.pod is not None:
        ask.pod = kept(event.pod)
    if leaf.quota is not None:
        ask.podsets, ask.flavors, ask.preempt_resources = (
            event.podsets,
            event.flavors,
            event.preempt_resources,
        )
        ask.local_queue = event.queue if event.queue in state.local_queues else ""
    if state.suspended:
        suspension.answered(state, name)
    state.asks[name] = application.asks[name] = ask
    if ask.created < application.created:  # noqa: PLR1730 - as above
        application.created = ask.created
    if state.counting:
        tallies.waits(state, application, ask)


def ask_withdrawn(state: State, event: v.AskWithdrawn) -> None:
    """An ask was taken back, by its owner or because it is set aside.

    One that is set aside already (`evsched.core.suspension`) waits nowhere any more, so that there
    is only its suspension to end. An ask that leaves may let another one be served: it no longer
    counts against a maximum, a limit, or the order of its cohort.
    """
    if state.suspended and event.ask not in state.asks and ("ask", event.ask) in state.suspended:
        suspension.answered(state, event.ask)
        return
    ask = state.asks.pop(event.ask)
    application = state.applications[ask.application]
    take_out(state, application, ask)
    if state.counting:
        tallies.waits_no_longer(state, application, ask)
    mark_dirty(state, application.leaf)
    forget_if_done(state, application)
    state.retry_needed = True


def take_out(state: State, application: Application, ask: Ask) -> None:
    """Forget an ask that is no longer among those that wait, but for the tallies.

    With it goes what only a waiting ask has: the memory of tries in vain, its preemption, the node
    that is kept for it, and the pause of an application in which nothing waits any more. Victims
    that were chosen for it are still evicted: their room is for whoever is next.
    """
    name = ask.id
    del application.asks[name]
    if name in state.unschedulable_since:
        del state.unschedulable_since[name]
    if state.paused and not application.asks and application.id in state.paused:
        end_pause(state, application.id)
    if name in state.preemptions:
        del state.preemptions[name]
        state.timers.cancel(nomination_of(name))
        if state.counting:
            tallies.claims(state, ask, -1)
            if state.index is not None:
                state.index.freed(application)
    if name in state.reservations:
        unreserve(state, name)


def total(event: v.AskSubmitted | v.AllocationRestored) -> dict[str, int]:
    """Return what all podsets ask for together, by resource name, in base units."""
    if not event.podsets:
        return event.resources
    total: dict[str, int] = {}
    for podset in event.podsets:
        for name, amount in podset.resources.items():
            total[name] = total.get(name, 0) + amount
    return total

"""What is set aside because evsched itself failed at it, and how it is taken up again.

Everything else goes on being decided. Policies know nothing of this: an ask that is set aside is
withdrawn, so that they do not see it; of a queue all asks are, those that come later as well; a
timer is passed over; a kind of decision is left out by the engine. What is set aside is part of the
truth, so it survives a restart, and every process keeps to it. It is taken up again when a
configuration is applied, or when other rules are adopted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.workloads import Suspension

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.refusals import Rejection
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.workloads import Ask


def is_off(state: State, kind: str) -> bool:
    """Tell whether all decisions of a kind are set aside."""
    return bool(state.suspended) and (kind, "") in state.suspended


def asks_of(state: State, leaf: str) -> tuple[str, ...]:
    """Return the asks that wait in a leaf, in the order of the log."""
    return tuple(ask.id for ask in state.asks.values() if ask.queue == leaf)


def of_its_queue(state: State, ask: str) -> Suspension | None:
    """Return the suspension of the queue in which an ask waits; None: none, or the ask does not wait."""
    found = state.asks.get(ask)
    return None if found is None else state.suspended.get(("queue", found.queue))


def first_timer(state: State) -> Timer | None:
    """Return the timer that fires next, those that are set aside left out; None when there is none."""
    if not state.suspended:
        return state.timers.first()
    aside = {one.subject: one.timer for one in state.suspended.values() if one.timer is not None}
    return state.timers.first(aside)


# ------------------------------------------------------------------------------------------- folds


def suspended(state: State, event: v.DecisionSuspended) -> None:
    """Keep what is needed to take it up again."""
    ask = state.asks.get(event.subject) if event.kind == "ask" else None
    state.suspended[event.kind, event.subject] = Suspension(
        kind=event.kind,
        subject=event.subject,
        place=event.place,
        seq=event.seq,
        since=state.time,
        ask=None if ask is None else _submitted(state, ask),
        timer=state.timers.armed.get(event.subject) if event.kind == "timer" else None,
    )


def resumed(state: State, event: v.DecisionResumed) -> None:
    """Forget that it was set aside."""
    found = state.suspended.pop((event.kind, event.subject), None)
    timer = None if found is None else found.timer
    # One that was called off or armed anew meanwhile is not this one any more.
    if timer is not None and state.timers.armed.get(timer.id) == timer:
        state.timers.arm(timer)


def answered(state: State, ask: str) -> None:
    """Forget that an ask was set aside: its owner has spoken."""
    state.suspended.pop(("ask", ask), None)


def _submitted(state: State, ask: Ask) -> v.AskSubmitted:
    """Return the ask as its owner submitted it."""
    application = state.applications[ask.application]
    resources = state.types.shapes[ask.shape].resources
    return v.AskSubmitted(
        ask=ask.id,
        application=ask.application,
        queue=ask.local_queue or ask.queue,
        user=application.user,
        groups=application.groups,
        resources={} if ask.podsets else resources,
        priority=ask.priority,
        allow_preemption=ask.allow_preemption,
        preemption_policy="PreemptLowerPriority" if ask.may_preempt else "Never",
        originator=ask.originator,
        required_node=ask.required_node,
        created=ask.created,
        uid=ask.uid,
        podsets=ask.podsets,
        flavors=ask.flavors,
        preempt_resources=ask.preempt_resources,
    )


# --------------------------------------------------------------------------------------- decisions


def in_force(state: State) -> tuple[Suspension, ...]:
    """Return what is set aside now, in the order in which that happened."""
    return tuple(
        one
        for one in state.suspended.values()
        if one.timer is None or state.timers.armed.get(one.subject) == one.timer
    )


def resume_all(
    step: Step, cause: int, refuse: Callable[[v.AskSubmitted], Rejection | None]
) -> None:
    """Take everything up again.

    Args:
        step: Under way.
        cause: ``seq`` of the event that gave the reason.
        refuse: Returns why an ask cannot be submitted now; None when it can.
    """
    for one in tuple(step.state.suspended.values()):
        refused = None if one.ask is None else refuse(one.ask)
        reason = "" if refused is None else refused.reason
        step.emit(v.DecisionResumed, cause=cause, kind=one.kind, subject=one.subject, reason=reason)
        if one.ask is not None and refused is None:
            fields = {name: getattr(one.ask, name) for name in _FIELDS}
            step.emit(v.AskSubmitted, cause=cause, **fields)


_FIELDS = tuple(
    name for name in v.AskSubmitted.__struct_fields__ if name not in {"seq", "cause", "due"}
)

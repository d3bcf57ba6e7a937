"""Quota enforcement: usage above a lowered maximum is preempted after a delay (seed quota_enforcement).

The way of one change: `after_configuration` arms a timer by the table of `evsched.core.quota.timers`; the timer
is state, so a restart loses nothing of it (the seed's "Impact of Restart" describes a scheduler
that forgets; this one does not). When it fires, `enforce` makes a `evsched.core.quota.plan.QuotaPlan` and decides
once: a QuotaPreemptionDecided with victims, or a QuotaPreemptionUnhelpful that says why nothing
is evicted. There is no retry. While victims of an enforcement have not left, another one of the same
queue is skipped.

Fences, policies, delays and offsets of the other preemption are of no relevance here ("should not
be used in conjunction").
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from events import vocabulary as v
from events.bounds import MAX_MOMENT
from evsched.core.quota import plan as quota_plan
from evsched.core.quota import timers as quota_timers
from evsched.core.quota.targets import over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer

REASON = "quota"
"""The rule that makes a victim of an enforcement eligible."""

Before = dict[str, quota_timers.Rule]
"""What counted for the timers before a configuration change, by path of the queue."""


def before(state: State) -> Before:
    """Return what a configuration change will replace; to be asked before it is applied."""
    return quota_timers.rules(state.queues)


def armed(state: State) -> dict[str, Timer]:
    """Return the quota timers by path of their queue, by due time and then id."""
    timers = [timer for timer in state.timers.armed.values() if timer.kind == "quota"]
    return {
        timer.subject: timer for timer in sorted(timers, key=lambda timer: (timer.due, timer.id))
    }


def after_configuration(
    step: Step, old: Before, event: v.ConfigurationApplied, *, enabled: bool
) -> None:
    """Start, restart and cancel timers after a configuration came into force.

    Args:
        step: The step that applied it.
        old: What counted before, as `before` returned it; empty where nothing did.
        event: The configuration.
        enabled: Whether it wants quotas enforced at all.
    """
    state = step.state
    for path, change in tuple(
        quota_timers.changes(old, before(state), armed(state), enabled=enabled)
    ):
        if change.delay_ms is None:
            step.emit(
                v.QuotaPreemptionCancelled,
                cause=event.seq,
                queue=path,
                reason=f"queue {path}: {change.reason}",
            )
        else:
            at = min(step.time + change.delay_ms, MAX_MOMENT)
            step.emit(v.QuotaPreemptionScheduled, cause=event.seq, queue=path, at=at)


def enforce(step: Step, timer: Timer, *, miss_percent: int = 100) -> None:
    """Enforce the maximum of a queue whose delay has passed.

    Queues below it that are due at the same instant come first, the deepest first: what leaves
    them has left the queue above as well, so less is left to be done there. Each has its own
    decision.

    Args:
        step: The step that decides.
        timer: The one that fired; its subject is the path of the queue, which may be gone.
        miss_percent: As in `enforce_target`.
    """
    state = step.state
    queue = state.queues.get(timer.subject)
    if queue is None:
        _unhelpful(step, timer.subject, timer.cause, "is not there any more")
        return
    for below in sorted(queue.walk(), key=lambda one: (-one.depth, one.order, one.path)):
        due = state.timers.armed.get(quota_timers.TIMER + below.path)
        if due is not None and due.due == timer.due:
            enforce_maximum(step, below, below.maximum, cause=due.cause, miss_percent=miss_percent)


def enforce_maximum(
    step: Step, queue: Queue, maximum: Mapping[int, int], *, cause: int, miss_percent: int = 100
) -> None:
    """Preempt what a queue uses above a maximum; else as `enforce_target`.

    Args:
        step: The step that decides.
        queue: Any queue.
        maximum: By type index; a type that is not there has none.
        cause: The ``seq`` that the event names as its cause.
        miss_percent: As in `enforce_target`.
    """
    enforce_target(step, queue, over(queue, maximum), cause=cause, miss_percent=miss_percent)


def enforce_target(
    step: Step, queue: Queue, target: Mapping[int, int], *, cause: int, miss_percent: int = 100
) -> None:
    """Preempt a target, and write an event whether there are victims or not.

    Args:
        step: The step that decides.
        queue: Any queue, a ClusterQueue of Kueue too.
        target: What has to go, by type index, positive amounts; empty when there is nothing to do.
        cause: The ``seq`` that the event names as its cause.
        miss_percent: Share of the target, in percent of each type, that may stay unmet; when more
            would, nothing is evicted.
    """
    state = step.state
    running = state.quota_runs.get(queue.path)
    if running:
        text = f"skipped, {len(running)} victims of an earlier enforcement have not left yet"
        _unhelpful(step, queue.path, cause, text)
        return
    if not target:
        most = (
            "its maximum"
            if queue.quota is None
            else "its nominal quota and what its cohort has left"
        )
        _unhelpful(step, queue.path, cause, f"uses no more than {most}")
        return
    plan = quota_plan.QuotaPlan(state, queue, target)
    if step.tracer is not None:
        quota_plan.note(state, plan, step.tracer)
    victims, unmet = plan.victims(), plan.unmet()
    reason = _too_much_missed(state, plan, miss_percent) if victims else _nobody(state, plan)
    if reason:
        _unhelpful(step, queue.path, cause, reason, plan)
        return
    step.emit(
        v.QuotaPreemptionDecided,
        cause=cause,
        queue=queue.path,
        # There may be tens of thousands: a comprehension with named fields costs several times as
        # much.
        victims=tuple(
            map(
                v.Victim,
                [one.id for one in victims],
                [one.queue for one in victims],
                repeat(REASON),
            )
        ),
        target=state.types.named(target.items()),
        unmet=state.types.named(unmet.items()),
    )


def _unhelpful(
    step: Step, path: str, cause: int, reason: str, plan: quota_plan.QuotaPlan | None = None
) -> None:
    """Write that an enforcement preempts nothing, and why.

    It is an event as the decision is, because the timer is spent with either: a reader of the log
    finds what became of it. Without a plan no amounts are told.
    """
    named = step.state.types.named
    step.emit(
        v.QuotaPreemptionUnhelpful,
        cause=cause,
        queue=path,
        reason=f"queue {path}: {reason}",
        target=named(plan.target.items()) if plan is not None else {},
        unmet=named(plan.unmet().items()) if plan is not None else {},
    )


def _too_much_missed(state: State, plan: quota_plan.QuotaPlan, miss_percent: int) -> str:
    """Return why the plan is not good enough (quota_enforcement, "Preemption does not help").

    Each type is judged by itself, in the order of their names, and the first that fails is told.
    Integers are compared, so no rounding decides.

    Returns:
        The reason; empty when the plan is good enough.
    """
    names = state.types.names
    for index, amount in sorted(plan.unmet().items(), key=lambda one: names[one[0]]):
        if amount * 100 > miss_percent * plan.target[index]:
            return (
                f"{amount} of {plan.target[index]} {names[index]} above the maximum would stay, "
                f"quota.preemption.miss allows {miss_percent} percent"
            )
    return ""


def _nobody(state: State, plan: quota_plan.QuotaPlan) -> str:
    """Return why there is no victim at all.

    All that runs below the queue is counted by the reason for which it stays; the reasons are told
    in the order of the table, those without a count left out.
    """
    words = {
        "leaving": "are leaving already",
        "required-node": "belong to their node (DaemonSet)",
        "running": "are in queues with an enforcement of their own under way",
        "type": "hold nothing of what is above the maximum",
        "guarantee": "are needed for a guarantee",
        "not-needed": "are not needed",
    }
    counts = dict.fromkeys(words, 0)
    for passed in quota_plan.passed_over(state, plan):
        counts[passed.code] += 1
    said = ", ".join(f"{count} {words[code]}" for code, count in counts.items() if count)
    return f"nobody can be preempted: {said}" if said else "nobody can be preempted"

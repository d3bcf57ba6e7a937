"""Quota enforcement (seed quota_enforcement)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer


class Before(NamedTuple):
    """Maximum (by type index) and delay of every queue before a configuration change, by path."""

    maximum: dict[str, dict[int, int]]
    delay_ms: dict[str, int]


def before(state: State) -> Before:
    """Return what a configuration change will replace."""
    queues = state.queues.values()
    return Before(
        {queue.path: queue.maximum for queue in queues},
        {queue.path: queue.settings.quota_preemption_delay_ms for queue in queues},
    )


def after_configuration(step: Step, old: Before | None, event: v.ConfigurationApplied) -> None:
    """Start, restart and cancel timers."""


def enforce(step: Step, timer: Timer) -> None:
    """Preempt what is used above a lowered maximum."""
    step.emit(v.QuotaPreemptionUnhelpful, cause=timer.cause, queue=timer.subject, reason="not implemented")

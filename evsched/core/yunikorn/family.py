"""YuniKorn's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn import allocation, application_placement, guarantee, quota
from events import vocabulary as v
from events.configuration import YunikornSpec

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.validation import Rejection


class YunikornFamily:
    """The policies of queues.yaml."""

    def __init__(self) -> None:
        """Start without a remembered configuration."""
        self._before: quota.Before | None = None

    def refuse(self, state: State, proposed: v.AnyInput) -> Rejection | None:
        """Ask the placement rules and limits."""
        return application_placement.refuse(state, proposed)

    def before_input(self, step: Step, event: v.AnyInput) -> None:
        """Keep the maxima and delays that a new configuration replaces."""
        if isinstance(event, v.ConfigurationApplied):
            self._before = quota.before(step.state)

    def follow(self, step: Step, event: v.AnyInput) -> None:
        """Place an application; start and cancel quota timers."""
        if isinstance(event, v.ApplicationSubmitted):
            application_placement.place(step, event)
        elif isinstance(event, v.ConfigurationApplied):
            quota.after_configuration(step, self._before, event)
            self._before = None

    def next_cycle(self, state: State) -> int | None:
        """Return when the next preemption cycle is due."""
        spec = state.configuration
        if not isinstance(spec, YunikornSpec) or not spec.preemption_enabled:
            return None
        return state.next_preemption(spec.pace.interval_ms)

    def cycle(self, step: Step) -> None:
        """Run a preemption cycle; it begins with what allocation can do, so that nobody is preempted for want of a try."""
        allocation.allocate(step)
        guarantee.cycle(step)

    def fire(self, step: Step, timer: Timer) -> None:
        """Enforce a quota whose delay has passed."""
        quota.enforce(step, timer)

    def allocate(self, step: Step) -> None:
        """Bind what fits."""
        allocation.allocate(step)

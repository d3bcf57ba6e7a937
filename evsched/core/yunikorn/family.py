"""YuniKorn's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import YunikornSpec
from evsched.core.quota import enforcement as quota
from evsched.core.timers import PAUSE
from evsched.core.yunikorn import allocation, application_placement, pauses, preemption

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.validation import Rejection


class YunikornFamily:
    """The policies of queues.yaml."""

    def __init__(self) -> None:
        """Start without a remembered configuration."""
        self._before: tuple[int, quota.Before] | None = None
        self._leaving: list[Queue] = []

    def refuse(self, state: State, proposed: v.AnyInput) -> Rejection | None:
        """Ask the placement rules and limits."""
        return application_placement.refuse(state, proposed)

    def before_input(self, step: Step, event: v.AnyInput) -> None:
        """Keep the maxima and delays that a new configuration replaces, and the queues that an exit may leave empty."""
        if isinstance(event, v.ConfigurationApplied):
            self._before = event.seq, quota.before(step.state)
        self._leaving = application_placement.leaves_that_may_go(step.state, event)

    def follow(self, step: Step, event: v.AnyInput) -> None:
        """Place an application; start and cancel quota timers, end pauses; remove queues that are empty now and were to go."""
        if isinstance(event, v.ApplicationSubmitted):
            application_placement.place(step, event)
        elif isinstance(event, v.ConfigurationApplied):
            # Before the first queues.yaml, or after another format, nothing was in force.
            seq, old = self._before or (0, {})
            quota.after_configuration(step, old if seq == event.seq else {}, event)
            pauses.after_configuration(step, event)
        for leaf in self._leaving:
            application_placement.remove_empty(step, leaf, event.seq)
        self._leaving = []

    def next_cycle(self, state: State) -> int | None:
        """Return when the next preemption cycle is due."""
        spec = state.configuration
        if not isinstance(spec, YunikornSpec) or not spec.preemption_enabled:
            return None
        return state.next_preemption(spec.pace.interval_ms)

    def cycle(self, step: Step) -> None:
        """Run a preemption cycle; it begins with what allocation can do, so that nobody is preempted for want of a try."""
        allocation.allocate(step)
        preemption.cycle(step)

    def fire(self, step: Step, timer: Timer) -> None:
        """End a pause, or enforce a quota, whose delay has passed."""
        if timer.kind == PAUSE:
            pauses.resume(step, timer)
        else:
            quota.enforce(step, timer)

    def allocate(self, step: Step) -> None:
        """Bind what fits, and pause applications that have too much that does not."""
        pauses.allocate(step)

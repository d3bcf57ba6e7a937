"""Kueue's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core.folding.applications import leaf_of
from evsched.core.kueue import enforcement, fixed, stopping
from evsched.core.kueue.admission import Run, is_due
from evsched.core.quota import enforcement as quota
from evsched.core.validation import Rejection, leaf_problem
from evsched.core.yunikorn import application_placement

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer


class KueueFamily:
    """The policies of Kueue manifests.

    Attributes:
        last_order: The asks that the last cycle considered, in that order, one list a cohort tree.
    """

    def __init__(self) -> None:
        """Start before the first cycle."""
        self.last_order: list[list[str]] = []
        self._before: tuple[int, quota.Before] | None = None
        self._leaving: list[Queue] = []

    def refuse(self, state: State, proposed: v.AnyInput) -> Rejection | None:
        """Refuse what names no ClusterQueue, or comes from a namespace that its ClusterQueue does not take."""
        if isinstance(proposed, v.ApplicationSubmitted):
            return leaf_problem(state, proposed.queue, f"application {proposed.application}")
        if isinstance(proposed, v.AskSubmitted):
            return _namespace_problem(state, proposed)
        return None

    def before_input(self, step: Step, event: v.AnyInput) -> None:
        """Keep the quotas and delays that a new configuration replaces, and the queues that an exit may leave empty."""
        if isinstance(event, v.ConfigurationApplied):
            self._before = event.seq, quota.before(step.state)
        self._leaving = application_placement.leaves_that_may_go(step.state, event)

    def follow(self, step: Step, event: v.AnyInput) -> None:
        """Take an application in, start and cancel quota timers, drain queues that are stopped, remove queues that are done."""
        if isinstance(event, v.ApplicationSubmitted):
            queue = leaf_of(step.state, event.queue)
            step.emit(
                v.ApplicationPlaced, cause=event.seq, application=event.application, queue=queue
            )
        elif isinstance(event, v.ConfigurationApplied):
            # Before the first manifests, or after another format, nothing was in force.
            seq, old = self._before or (0, {})
            quota.after_configuration(step, old if seq == event.seq else {}, event)
            stopping.drain_all(step, event.seq)
        elif isinstance(event, v.AllocationRestored):
            stopping.drain_one(step, event.allocation, event.seq)
        for leaf in self._leaving:
            application_placement.remove_empty(step, leaf, event.seq)
        self._leaving = []

    def next_cycle(self, state: State) -> int | None:
        """Return the present when somebody is new or something ended where somebody waits; None: not before something changes."""
        return state.time if isinstance(state.configuration, KueueSpec) and is_due(state) else None

    def cycle(self, step: Step) -> None:
        """Run cycles until nothing more can be done."""
        run = Run(step)
        run.until_quiet()
        self.last_order = run.order

    def cycle_once(self, step: Step) -> None:
        """Run exactly one cycle, one head per ClusterQueue, whoever was looked at before."""
        run = Run(step)
        run.once()
        self.last_order = run.order

    def search_once(self, step: Step) -> None:
        """Search victims once for every ask whose flavors are given; eligibility is not tested."""
        self.last_order = fixed.search_all(step)

    def fire(self, step: Step, timer: Timer) -> None:
        """Enforce a quota whose delay has passed."""
        enforcement.enforce(step, timer)

    def allocate(self, step: Step) -> None:
        """Admission is the matter of cycles."""


def _namespace_problem(state: State, proposed: v.AskSubmitted) -> Rejection | None:
    """Return why a ClusterQueue does not take an ask in, by its ``namespaceSelector``."""
    found = state.queues.get(leaf_of(state, proposed.queue))
    spec = found.quota.spec if found is not None and found.quota is not None else None
    if spec is None or spec.accepts_all_namespaces:
        return None
    namespace = proposed.queue.rpartition("/")[0]
    if namespace and namespace in spec.namespaces:
        return None
    who = f"namespace {namespace}" if namespace else "a workload that comes through no LocalQueue"
    takes = ", ".join(spec.namespaces) or "none"
    return Rejection(
        "invalid",
        f"ask {proposed.ask}: {who} found, expected one that ClusterQueue {spec.name} takes ({takes})",
    )

"""Kueue's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core import empty_queues
from evsched.core.kueue import enforcement, model, stopping
from evsched.core.kueue.admission import Run, is_due
from evsched.core.kueue.priority_classes import class_problem, with_priority
from evsched.core.kueue.quota_rules import quota_problems, quota_remarks, resource_types
from evsched.core.quota import enforcement as quota
from evsched.core.refusals import Rejection, leaf_of, leaf_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.problem import Problem
    from evsched.core.queues import Queue, Tree
    from evsched.core.resources import ResourceTypes
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer

GRACE_MS = 30_000
"""How long a workload may take to leave before its eviction is requested again."""

ATTEMPTS = 5
"""How often its eviction is requested."""

_Prepared = tuple["quota.Before", "list[Queue]"]
"""What counted for quota timers before a configuration, and the queues that an exit may leave empty."""


class KueueFamily:
    """The policies of Kueue manifests (protocol `evsched.core.family.Family`)."""

    by_quota = True

    # -------------------------------------------------------------------------------- configuration

    def problems(self, spec: KueueSpec) -> Iterable[Problem]:
        """Return what the rules of Kueue's manifests say."""
        return quota_problems(spec)

    def resource_types(self, spec: KueueSpec) -> Iterable[str]:
        """Return the resource types that a configuration names, each once."""
        return resource_types(spec)

    def remarks(self, spec: KueueSpec) -> list[Problem]:
        """Return the quotas that will not do what their author may think."""
        return quota_remarks(spec)

    def build(self, spec: KueueSpec, types: ResourceTypes) -> Tree:
        """Return the cohorts and ClusterQueues that a configuration describes."""
        return model.build(spec, types)

    def add_queue(self, state: State, path: str, *, parent: bool, draining: bool) -> Queue:
        """Add a ClusterQueue that left the configuration while it was in use; it has no quota."""
        return model.add_queue(state, path, parent=parent, draining=draining)

    def kept_leaves(self, state: State, spec: KueueSpec) -> Rejection | None:  # noqa: ARG002 - the protocol's
        """Refuse nothing: a ClusterQueue that is in use never becomes anything else."""
        return None

    def evictions(self, spec: KueueSpec) -> tuple[int, int]:  # noqa: ARG002 - the protocol's
        """Return what holds for all partitions, as manifests do not say."""
        return GRACE_MS, ATTEMPTS

    def preempts(self, spec: KueueSpec) -> bool:  # noqa: ARG002 - the protocol's
        """Tell that they may: each ClusterQueue has policies of its own."""
        return True

    def enforces_quotas(self, spec: KueueSpec) -> bool:  # noqa: ARG002 - the protocol's
        """Tell that they are enforced: ClusterQueues have their delay alone."""
        return True

    def places(self, spec: KueueSpec) -> bool:  # noqa: ARG002 - the protocol's
        """Tell that a workload's queue is the one that it names."""
        return False

    # --------------------------------------------------------------------------------------- inputs

    def refuse(self, state: State, proposed: v.AnyInput) -> Rejection | None:
        """Refuse an input that no ClusterQueue takes; None when there is nothing to refuse.

        It names no ClusterQueue, comes from a namespace that its ClusterQueue does not take, or
        names a priority class that is not there.
        """
        if isinstance(proposed, v.ApplicationSubmitted):
            return leaf_problem(state, proposed.queue, f"application {proposed.application}")
        if isinstance(proposed, v.AskSubmitted):
            return _namespace_problem(state, proposed) or class_problem(state, proposed)
        return None

    def completed(self, state: State, event: v.AnyInput) -> v.AnyInput:
        """Give an ask the priority of its class.

        The event goes into the log with the number, so that a replay does not depend on the
        classes.
        """
        return with_priority(state, event) if isinstance(event, v.AskSubmitted) else event

    def prepare(self, state: State, event: v.AnyInput) -> _Prepared:
        """Keep what an input may replace: it is read before the input is applied.

        That is the quotas and delays under the configuration in force, and the queues that an exit
        may leave empty.
        """
        rules = quota.before(state) if isinstance(event, v.ConfigurationApplied) else {}
        return rules, empty_queues.leaves_that_may_go(state, event)

    def follow(self, step: Step, event: v.AnyInput, prepared: _Prepared | None) -> None:
        """Write what follows from an input.

        An application is taken in, quota timers start and stop, stopped queues are drained, and
        queues that are done are removed.
        """
        # Before the first manifests, or after another format, nothing was in force.
        rules, leaving = prepared if prepared is not None else ({}, [])
        if isinstance(event, v.ApplicationSubmitted):
            queue = leaf_of(step.state, event.queue)
            step.emit(
                v.ApplicationPlaced, cause=event.seq, application=event.application, queue=queue
            )
        elif isinstance(event, v.ConfigurationApplied):
            quota.after_configuration(step, rules, event, enabled=True)
            stopping.drain_all(step, event.seq)
        elif isinstance(event, v.AllocationRestored):
            stopping.drain_one(step, event.allocation, event.seq)
        for leaf in leaving:
            empty_queues.remove_empty(step, leaf, event.seq)

    # ------------------------------------------------------------------------------------ decisions

    def next_cycle(self, state: State) -> int | None:
        """Return when a cycle is due, in milliseconds; None: not before something changes.

        It is due now when an ask is new or something ended where an ask waits. What the budget of
        the last cycle left is due in the next millisecond, and so in the next step: inputs come
        first.
        """
        if not isinstance(state.configuration, KueueSpec) or not is_due(state):
            return None
        return state.last_cycle + 1 if state.unfinished else state.time

    def cycle(self, step: Step) -> None:
        """Run cycles until nothing more can be done, or the budget of the run is spent."""
        Run(step).until_quiet()

    def fire(self, step: Step, timer: Timer) -> None:
        """Enforce a quota whose delay has passed."""
        enforcement.enforce(step, timer)

    def allocate(self, step: Step) -> None:
        """Admission is the matter of cycles."""

    def look_ahead(self, state: State) -> bool:  # noqa: ARG002 - the protocol's
        """Return False: the index of cohorts follows the events, and nothing of it is left to be read."""
        return False


def _namespace_problem(state: State, proposed: v.AskSubmitted) -> Rejection | None:
    """Return why a ClusterQueue does not take an ask in, by its ``namespaceSelector``."""
    found = state.queues.get(leaf_of(state, proposed.queue))
    quota = model.quota_in(found) if found is not None else None
    spec = quota.spec if quota is not None else None
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

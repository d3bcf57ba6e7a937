"""YuniKorn's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import YunikornSpec
from evsched.core import empty_queues
from evsched.core.quota import enforcement as quota
from evsched.core.refusals import Rejection
from evsched.core.timers import NOMINATION, PAUSE
from evsched.core.yunikorn import (
    allocation,
    application_placement,
    nomination,
    pauses,
    preemption,
    tree,
)
from evsched.core.yunikorn.guarantee_remarks import guarantee_remarks
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.queue_rules import queue_problems, resource_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.problem import Problem
    from evsched.core.queues import Queue, Tree
    from evsched.core.resources import ResourceTypes
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer


_Prepared = tuple["quota.Before", "list[Queue]"]
"""What counted for quota timers before a configuration, and the queues that an exit may leave empty."""


class YunikornFamily:
    """The policies of queues.yaml (protocol `evsched.core.family.Family`).

    It holds no state: everything it decides from lies in the state and its index. Each method
    hands on to the module that has the rule, so this is the table of contents of the folder.
    """

    by_quota = False

    # -------------------------------------------------------------------------------- configuration

    def problems(self, spec: YunikornSpec) -> Iterable[Problem]:
        """Return what the rules of queues.yaml say."""
        return queue_problems(spec)

    def resource_types(self, spec: YunikornSpec) -> Iterable[str]:
        """Return the resource types that a configuration names, each once."""
        return resource_types(spec)

    def remarks(self, spec: YunikornSpec) -> list[Problem]:
        """Return what guarantees will not do; what properties will not do is told with their line."""
        return list(guarantee_remarks(spec))

    def build(self, spec: YunikornSpec, types: ResourceTypes) -> Tree:
        """Return the queues that a configuration describes."""
        return tree.build(spec, types)

    def add_queue(self, state: State, path: str, *, parent: bool, draining: bool) -> Queue:
        """Add a dynamic queue by its template, or a draining one, and what is missing above it."""
        return tree.add_queue(state, path, parent=parent, draining=draining)

    def kept_leaves(self, state: State, spec: YunikornSpec) -> Rejection | None:
        """Refuse a configuration that makes a parent of a leaf in use, or a leaf of a parent above one."""
        return tree.kept_leaves(state, spec)

    def evictions(self, spec: YunikornSpec) -> tuple[int, int]:
        """Return the partition's own grace and number of attempts."""
        return spec.eviction_grace_ms, spec.eviction_attempts

    def preempts(self, spec: YunikornSpec) -> bool:
        """Return the partition's switch."""
        return spec.preemption_enabled

    def enforces_quotas(self, spec: YunikornSpec) -> bool:
        """Return the partition's switch."""
        return spec.quota_preemption_enabled

    def places(self, spec: YunikornSpec) -> bool:
        """Tell whether there are placement rules."""
        return bool(spec.placement_rules)

    # --------------------------------------------------------------------------------------- inputs

    def refuse(self, state: State, proposed: v.AnyInput) -> Rejection | None:
        """Ask the placement rules and limits; classes of priority are Kueue's alone."""
        if isinstance(proposed, v.AskSubmitted) and proposed.priority_class:
            found = f"ask {proposed.ask}: found priority class {proposed.priority_class}"
            return Rejection("invalid", f"{found}, expected none with a queues.yaml")
        return application_placement.refuse(state, proposed)

    def completed(self, state: State, event: v.AnyInput) -> v.AnyInput:  # noqa: ARG002 - the protocol's
        """Return the input: nothing in it is looked up."""
        return event

    def prepare(self, state: State, event: v.AnyInput) -> _Prepared:
        """Keep what an input is about to replace: maxima, delays, queues it may empty.

        Afterwards the tree is the new one, and what ended says no longer where it was.
        """
        rules = quota.before(state) if isinstance(event, v.ConfigurationApplied) else {}
        return rules, empty_queues.leaves_that_may_go(state, event)

    def follow(self, step: Step, event: v.AnyInput, prepared: _Prepared | None) -> None:
        """Emit what an accepted input leads to.

        An application is placed. A configuration starts and cancels quota timers and ends pauses.
        Queues that are empty now, and were to go, are removed.
        """
        # Before the first queues.yaml, or after another format, nothing was in force.
        rules, leaving = prepared if prepared is not None else ({}, [])
        if isinstance(event, v.ApplicationSubmitted):
            application_placement.place(step, event)
        elif isinstance(event, v.ConfigurationApplied):
            spec = event.configuration
            enabled = isinstance(spec, YunikornSpec) and self.enforces_quotas(spec)
            quota.after_configuration(step, rules, event, enabled=enabled)
            pauses.after_configuration(step, event)
        for leaf in leaving:
            empty_queues.remove_empty(step, leaf, event.seq)

    # ------------------------------------------------------------------------------------ decisions

    def next_cycle(self, state: State) -> int | None:
        """Return when the next preemption cycle is due."""
        spec = state.configuration
        if not isinstance(spec, YunikornSpec) or not self.preempts(spec):
            return None
        return index_of(state).agenda.next_cycle(spec.pace.interval_ms)

    def cycle(self, step: Step) -> None:
        """Run a preemption cycle.

        It begins with what allocation can do, so that nothing is evicted for an ask that fits by
        now.
        """
        allocation.allocate(step)
        preemption.cycle(step)

    def fire(self, step: Step, timer: Timer) -> None:
        """End a pause or a nomination, or enforce a quota, whose delay has passed."""
        if timer.kind == PAUSE:
            pauses.resume(step, timer)
        elif timer.kind == NOMINATION:
            nomination.expire(step, timer)
        else:
            spec = step.state.configuration
            assert isinstance(spec, YunikornSpec)
            quota.enforce(step, timer, miss_percent=spec.quota_miss_percent)

    def allocate(self, step: Step) -> None:
        """Bind what fits, and pause applications that have too much that does not.

        Nominations are reviewed first: room that an eviction was to make, and that will not come,
        must not be kept.
        """
        nomination.review(step)
        pauses.allocate(step)

    def look_ahead(self, state: State) -> bool:
        """Read a slice of the index of victims."""
        return preemption.look_ahead(state)

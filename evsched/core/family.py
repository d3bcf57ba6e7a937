"""What a family of policies (YuniKorn's, Kueue's) gives to the scheduler.

A family owns its world: what a configuration of its format means, which inputs it takes, when it is
due, what it decides. `evsched.core.registry` says which families there are; nothing else outside a
family's folder asks which one is in force. A family holds no state: what it must remember is in the
log, and so in the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.vocabulary import AnyInput
    from evsched.core.problem import Problem
    from evsched.core.queues import Queue, Tree
    from evsched.core.refusals import Rejection
    from evsched.core.resources import ResourceTypes
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer


class Family(Protocol):
    """One family of policies over the common state; ``spec`` is a configuration of its format.

    Attributes:
        by_quota: Admission is by quota alone, in flavors: an allocation has no node, asks may have
            podsets, and several asks may count on one victim. False: each allocation runs on a node.
    """

    by_quota: bool

    # -------------------------------------------------------------------------------- configuration

    def problems(self, spec: Any) -> Iterable[Problem]:
        """Return every rule that a configuration breaks, in its order; best one by one, as only the first are told."""

    def resource_types(self, spec: Any) -> Iterable[str]:
        """Return the resource types that a configuration makes, each once; `events.bounds` says how many may be."""

    def remarks(self, spec: Any) -> list[Problem]:
        """Return what is accepted but will not do what its author may think."""

    def build(self, spec: Any, types: ResourceTypes) -> Tree:
        """Return the queues that a configuration describes."""

    def add_queue(self, state: State, path: str, *, parent: bool, draining: bool) -> Queue:
        """Add a queue that the configuration does not name (draining, else dynamic) and return it."""

    def kept_leaves(self, state: State, spec: Any) -> Rejection | None:
        """Refuse a configuration that has no place for what waits or runs now; None: it has."""

    def evictions(self, spec: Any) -> tuple[int, int]:
        """Return the grace of a victim in milliseconds, and how often its eviction is requested."""

    def preempts(self, spec: Any) -> bool:
        """Tell whether asks may preempt at all."""

    def enforces_quotas(self, spec: Any) -> bool:
        """Tell whether usage above a lowered maximum is preempted at all."""

    def places(self, spec: Any) -> bool:
        """Tell whether rules choose the queue of an application, whatever queue it names."""

    # --------------------------------------------------------------------------------------- inputs

    def refuse(self, state: State, proposed: AnyInput) -> Rejection | None:
        """Return why the family refuses a valid proposal (no placement rule takes it, say); None when it does not."""

    def completed(self, state: State, event: AnyInput) -> AnyInput:
        """Return an accepted input as the log keeps it: what it names is looked up (a class, say)."""

    def prepare(self, state: State, event: AnyInput) -> Any:
        """Return what must be known of the state before an accepted input is applied, for `follow`."""

    def follow(self, step: Step, event: AnyInput, prepared: Any) -> None:
        """Emit what an accepted input leads to; it is already applied.

        Args:
            step: The step that takes it.
            event: The input.
            prepared: What `prepare` returned; None when another family, or none, was in force then.
        """

    # ------------------------------------------------------------------------------------ decisions

    def next_cycle(self, state: State) -> int | None:
        """Return when the next cycle is due, milliseconds; None: not before something changes."""

    def cycle(self, step: Step) -> None:
        """Run a cycle that is due. Must emit an event after which `next_cycle` is later, or None."""

    def fire(self, step: Step, timer: Timer) -> None:
        """Fire a timer of this family. Must emit an event that takes it off or arms it anew."""

    def allocate(self, step: Step) -> None:
        """Give free resources to those who wait, in the order of the policies."""

    def look_ahead(self, state: State) -> bool:
        """Do a little of what the next decision will need of the index; tell whether more is left to do.

        It may change nothing but the index, and so no decision.
        """

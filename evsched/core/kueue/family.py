"""Kueue's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.kueue import fixed
from evsched.core.kueue.admission import Run, is_due
from events.configuration import KueueSpec

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.validation import Rejection
    from events.vocabulary import AnyInput


class KueueFamily:
    """The policies of Kueue manifests.

    Attributes:
        last_order: The asks that the last cycle considered, in that order, one list a cohort tree.
    """

    def __init__(self) -> None:
        """Start before the first cycle."""
        self.last_order: list[list[str]] = []

    def refuse(self, state: State, proposed: AnyInput) -> Rejection | None:
        """Refuse nothing."""

    def before_input(self, step: Step, event: AnyInput) -> None:
        """Keep nothing."""

    def follow(self, step: Step, event: AnyInput) -> None:
        """Follow nothing."""

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
        """Fire a timer."""

    def allocate(self, step: Step) -> None:
        """Admission is the matter of cycles."""

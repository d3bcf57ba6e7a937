"""Kueue's policies, wired to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.validation import Rejection
    from events.vocabulary import AnyInput


class KueueFamily:
    """The policies of Kueue manifests."""

    def refuse(self, state: State, proposed: AnyInput) -> Rejection | None:
        """Refuse nothing."""

    def before_input(self, step: Step, event: AnyInput) -> None:
        """Keep nothing."""

    def follow(self, step: Step, event: AnyInput) -> None:
        """Follow nothing."""

    def next_cycle(self, state: State) -> int | None:
        """Return when the next cycle is due."""

    def cycle(self, step: Step) -> None:
        """Run a cycle."""

    def fire(self, step: Step, timer: Timer) -> None:
        """Fire a timer."""

    def allocate(self, step: Step) -> None:
        """Admit what fits."""

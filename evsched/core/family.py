"""What a family of policies (YuniKorn's, Kueue's) gives to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from events.vocabulary import AnyInput
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.validation import Rejection


class Family(Protocol):
    """One family of policies over the common state. It keeps nothing that could not be forgotten at any time."""

    def refuse(self, state: State, proposed: AnyInput) -> Rejection | None:
        """Return why the family refuses a valid proposal (no placement rule takes it, say); None when it does not."""

    def before_input(self, step: Step, event: AnyInput) -> None:
        """Look at the state before an accepted input is applied (to compare configurations); emit nothing."""

    def follow(self, step: Step, event: AnyInput) -> None:
        """Emit what an accepted input leads to; it is already applied."""

    def next_cycle(self, state: State) -> int | None:
        """Return when the next cycle is due, milliseconds; None: not before something changes."""

    def cycle(self, step: Step) -> None:
        """Run a cycle that is due. Must emit an event after which `next_cycle` is later, or None."""

    def fire(self, step: Step, timer: Timer) -> None:
        """Fire a timer of this family. Must emit an event that takes it off or arms it anew."""

    def allocate(self, step: Step) -> None:
        """Give free resources to those who wait, in the order of the policies."""

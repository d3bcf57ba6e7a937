"""Which queue takes an application in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import validation
from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.step import Step


def refuse(state: State, proposed: v.AnyInput) -> validation.Rejection | None:
    """Return why no queue takes this in; None when one does."""
    if isinstance(proposed, v.ApplicationSubmitted):
        return validation.leaf_problem(state, proposed.queue, f"application {proposed.application}")
    return None


def place(step: Step, event: v.ApplicationSubmitted) -> None:
    """Take an accepted application into its queue."""
    step.emit(v.ApplicationPlaced, cause=event.seq, application=event.application, queue=event.queue)

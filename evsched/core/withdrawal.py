"""An ask in flight gives up: its victims may stay, and it waits like any other ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.step import Step


def withdraw(step: Step, cause: int, ask: str, reason: str, *, node_lost: bool = True) -> None:
    """Withdraw the preemption, or the nomination, of an ask in flight.

    Args:
        step: Is told.
        cause: ``seq`` of the event that led to it.
        ask: In flight; those of its victims that have not left yet may stay.
        reason: For people.
        node_lost: The ask lost its node through no fault of its victims, so that it may preempt
            again.
    """
    step.emit(
        v.PreemptionWithdrawn,
        cause=cause,
        ask=ask,
        victims=tuple(step.state.preemptions[ask].waiting_for),
        reason=reason,
        node_lost=node_lost,
    )

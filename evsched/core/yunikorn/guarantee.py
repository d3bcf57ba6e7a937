"""Preemption for guarantees (seed preemption_design)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.step import Step


def cycle(step: Step) -> None:
    """Run a preemption cycle."""
    step.emit(v.CycleStarted, cause=step.state.seq, kind="preemption")

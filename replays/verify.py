"""Verify: decide the whole log again and compare it, event by event, with what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events.frame import encode_event
from replays.steps import retake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.chain import Step
    from events.vocabulary import AnyEvent
    from evsched.core.engine import Engine


class Difference(Struct, frozen=True, kw_only=True):
    """The first place where a log is not what its steps give.

    Attributes:
        seq: Of the event that differs.
        frame: The frame (step) it stands in.
        recorded: What the log holds there; None when it holds nothing more in this step.
        decided: What deciding again gives; None when it gives nothing more.
        error: When taking the step again failed altogether, what went wrong; empty otherwise.
    """

    seq: int
    frame: int
    time: int
    recorded: AnyEvent | None
    decided: AnyEvent | None
    error: str = ""


def compare(step: Step, decided: tuple[AnyEvent, ...]) -> Difference | None:
    """Return the first difference between a recorded step and what it gives now."""
    recorded = step.events
    for index in range(max(len(recorded), len(decided))):
        ours = decided[index] if index < len(decided) else None
        theirs = recorded[index] if index < len(recorded) else None
        if ours is None or theirs is None or (ours != theirs and encode_event(ours) != encode_event(theirs)):
            present = theirs if theirs is not None else ours
            assert present is not None
            return Difference(seq=present.seq, frame=step.head.frame, time=step.time, recorded=theirs, decided=ours)
    return None


def verify(
    engine: Engine, steps: Iterable[Step], progress: Callable[[Step], None] | None = None
) -> Difference | None:
    """Take every step again and return the first difference, None when there is none.

    Args:
        engine: At the state before the first step; it is moved on.
        steps: In order, without gaps.
        progress: Called after every step.
    """
    for step in steps:
        try:
            decided = retake(engine, step)
        except Exception as error:  # noqa: BLE001 - whatever a damaged step makes the core raise is the finding
            first = step.events[0] if step.events else None
            return Difference(
                seq=first.seq if first is not None else step.head.next_seq,
                frame=step.head.frame,
                time=step.time,
                recorded=first,
                decided=None,
                error=f"{type(error).__name__}: {error}",
            )
        found = compare(step, decided)
        if found is not None:
            return found
        if progress is not None:
            progress(step)
    return None

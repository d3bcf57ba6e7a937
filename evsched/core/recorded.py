"""Taking what was read from a log: with an eye on it, as somebody else may have written it, or changed it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from events.errors import StateDiffers
from events.vocabulary import AnyEvent, CheckpointRecorded
from evsched.core.record import RECORDS
from evsched.core.reducer import apply_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evsched.core.engine import Engine
    from evsched.core.state import State

IMPOSSIBLE = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError, AssertionError)
"""What the reducer raises at an event that no scheduler could have written there."""


def take_recorded(
    state: State, events: Sequence[AnyEvent], position: int, take: Callable[[AnyEvent], object]
) -> None:
    """Take the events of one step, and compare the digests that they carry with the state.

    Args:
        state: Of right before them.
        events: In order.
        position: Where the log has them, for the error.
        take: Applies an event to the state.

    Raises:
        StateDiffers: A digest is not that of the state, or an event cannot follow what came before
            it: this reader, or whoever wrote the log, is wrong.
    """
    event = None
    try:
        for event in events:
            if type(event) is CheckpointRecorded:
                _compare(state, position, event)
            take(event)
    except IMPOSSIBLE as error:
        raise _damage(position, event, error) from error


def apply_recorded(engine: Engine, events: Sequence[AnyEvent], time: int, position: int) -> None:
    """Apply the events of one step, of frames with this time; as `take_recorded`."""
    state = engine.state
    state.time = time
    try:
        apply_all(state, events, partial(_compare, state, position))
    except IMPOSSIBLE as error:
        raise _damage(
            position, next((event for event in events if event.seq == state.seq), None), error
        ) from error


def _compare(state: State, position: int, event: CheckpointRecorded) -> None:
    if event.record not in RECORDS:
        state.uncompared += 1
        return
    digest = state.digest(event.record)
    if digest != event.digest:
        raise StateDiffers(
            position,
            f"event {event.seq} carries digest {event.digest[:12]}…, the state has {digest[:12]}…",
        )


def _damage(position: int, event: AnyEvent | None, error: Exception) -> StateDiffers:
    name = f"event {event.seq}, {type(event).__name__}" if event is not None else "an event"
    return StateDiffers(
        position, f"{name}, cannot follow what came before it ({type(error).__name__}: {error})"
    )

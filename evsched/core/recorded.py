"""Taking what was read from a log: with an eye on it, as somebody else may have written it, or changed it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from events.errors import LogDamaged
from events.vocabulary import AnyEvent, CheckpointRecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evsched.core.engine import Engine
    from evsched.core.state import State

IMPOSSIBLE = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError, AssertionError)
"""What the reducer raises at an event that no scheduler could have written there."""


def take_recorded(state: State, events: Iterable[AnyEvent], position: int, take: Callable[[AnyEvent], object]) -> None:
    """Take the events of one step, and compare the digests that they carry with the state.

    Args:
        state: Of right before them.
        events: In order.
        position: Where the log has them, for the error.
        take: Applies an event to the state.

    Raises:
        LogDamaged: A digest is not that of the state, or an event cannot follow what came before it: this reader, or whoever
            wrote the log, is wrong.
    """
    seq, kind = 0, ""
    try:
        for event in events:
            seq, kind = event.seq, type(event).__name__
            if type(event) is CheckpointRecorded and (digest := state.digest()) != event.digest:
                raise LogDamaged(position, f"event {seq} carries digest {event.digest[:12]}…, the state has {digest[:12]}…")
            take(event)
    except IMPOSSIBLE as error:
        reason = f"event {seq}, {kind}, cannot follow what came before it ({type(error).__name__}: {error})"
        raise LogDamaged(position, reason) from error


def apply_recorded(engine: Engine, events: Iterable[AnyEvent], time: int, position: int) -> None:
    """Apply the events of one step, of frames with this time; as `take_recorded`."""
    take_recorded(engine.state, events, position, partial(engine.apply, time=time))

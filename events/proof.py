"""The proof of a step: what a reader would get from the bytes is what was to be written.

A frame that cannot be read takes every reader down, and the leader with its next start. So before a
frame is appended it is encoded, decoded under the bounds that hold for readers (`events.bounds`) and
encoded again: the same bytes, or the step is not written at all. Every integer of an event has
bounds of its own, so whatever passes here also fits into timers, columns and snapshots.
"""

from __future__ import annotations

from events.errors import StepUnprovable
from events.frame import UNREADABLE, Frame, decode_event, decode_frame, encode_event, encode_frame
from events.vocabulary import AnyEvent

_UNWRITABLE = (*UNREADABLE, RecursionError, TypeError)
"""What encoding or decoding raises for what cannot travel."""


def proved(frame: Frame) -> bytes:
    """Return the bytes of a frame, of which a reader makes the same frame.

    Raises:
        StepUnprovable: No reader would; with the first event that is at fault.
    """
    try:
        data = encode_frame(frame)
        if encode_frame(decode_frame(data)) == data:
            return data
        reason = "is read as something else than was written"
    except _UNWRITABLE as error:
        reason = f"{type(error).__name__}: {error}"
    for event in frame.events:
        wrong = _problem(event)
        if wrong:
            raise StepUnprovable(frame.frame, event.seq, type(event).__name__, wrong)
    raise StepUnprovable(frame.frame, 0, "", reason)


def _problem(event: AnyEvent) -> str:
    """Return why a reader would not get this event, and at which place of it; empty when it would."""
    try:
        data = encode_event(event)
        same = encode_event(decode_event(data)) == data
    except _UNWRITABLE as error:
        return f"{type(error).__name__}: {error}"
    return "" if same else "is read as something else than was written"

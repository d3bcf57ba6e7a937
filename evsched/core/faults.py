"""Faults of our own: what a step was working on when it raised, and where that lies."""

from __future__ import annotations

from typing import Literal

UNKNOWN = "?"

FaultKind = Literal[
    "input", "ask", "timer", "cycle", "allocation", "checkpoint", "suspension", "frame"
]
"""What raised: taking an input; deciding on an ask; a timer; else the part of the step, or making a frame of it."""


class StepFailed(Exception):
    """A step raised: evsched is at fault. The state may have taken a part of the step and is of no use any more.

    Attributes:
        kind: What the step was working on.
        subject: Id of the ask or timer; for an input its place among the proposals of the step; empty
            otherwise.
        part: The part of the step in which it happened, which is ``kind`` where no ask is to blame.
        place: File, line and function that raised.
        reason: Class and message of what was raised.
    """

    def __init__(self, kind: FaultKind, subject: str, part: FaultKind, error: Exception) -> None:
        """Wrap what was raised."""
        self.kind: FaultKind = kind
        self.subject = subject
        self.part: FaultKind = part
        self.place = place_of(error)
        self.reason = f"{type(error).__name__}: {error}"
        super().__init__(f"{kind} {subject}: {self.reason} ({self.place})")


def place_of(error: BaseException) -> str:
    """Return file, line and function of the innermost frame that raised this; ``?`` when it was never raised."""
    found = UNKNOWN
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename.replace("\\", "/").rpartition("/")[2]
        found = f"{name}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    return found

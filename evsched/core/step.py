"""One step while it is being taken: the state, the time, and the events that come out of it.

A policy decides by reading `Step.state` and calling `Step.emit`; the event is numbered, applied
through the same reducer that a replay uses, and kept. There is no other way to change anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from evsched.core.faults import StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from events.vocabulary import AnyEvent, Event
    from evsched.core.faults import FaultKind
    from evsched.core.state import State

E = TypeVar("E", bound="Event")


class Tracer(Protocol):
    """Listens to why things were passed over; `replays` has one for explanations, production has none."""

    def wants(self, ask: str) -> bool:
        """Tell whether this ask is explained: what was considered for it is noted one by one only then."""

    def note(self, subject: str, code: str, **facts: object) -> None:
        """Take down one consideration.

        Args:
            subject: What was considered: the id of an ask, allocation, node or queue.
            code: A stable word for the rule or limit that decided, such as ``law2``, ``max``,
                ``node-short``.
            facts: What it depended on, plain values.
        """


class Step:
    """What a policy sees of a step.

    Attributes:
        time: Of the step, milliseconds.
        due: When the timer that is being fired was due; None outside of timers.
        tracer: None in production.
        part: What the engine is about: taking an input, a timer, a cycle, allocation, a checkpoint.
        subject: The proposal's place or the timer's id, where the part has one.
        ask: The ask that a policy is deciding on; empty while it is about none.
    """

    __slots__ = (
        "_apply", "ask", "due", "events", "part", "state", "subject", "time", "tracer",
    )  # fmt: skip

    def __init__(
        self,
        state: State,
        time: int,
        apply: Callable[[State, AnyEvent], None],
        tracer: Tracer | None = None,
    ) -> None:
        """Begin a step; time never goes back, whatever the caller's clock does.

        Args:
            state: Of right before it.
            time: Milliseconds.
            apply: `evsched.core.reducer.apply`, given so that policies do not depend on the folds.
            tracer: None in production.
        """
        assert state.counting, "a decision needs the tallies"
        self.state = state
        self.time = state.time = max(time, state.time)
        self.due: int | None = None
        self.tracer = tracer
        self._apply = apply
        self.events: list[AnyEvent] = []
        self.part: FaultKind = "input"
        self.subject = ""
        self.ask = ""

    def begin(self, part: FaultKind, subject: str = "") -> None:
        """Note what the engine turns to, for the message should it fail."""
        self.part, self.subject, self.ask = part, subject, ""

    def failed(self, error: Exception) -> StepFailed:
        """Return the error that tells what the step was about when it raised."""
        if self.ask and self.part != "input":
            return StepFailed("ask", self.ask, self.part, error)
        return StepFailed(self.part, self.subject, self.part, error)

    def emit(self, kind: type[E], /, *, cause: int, **fields: Any) -> E:
        """Make the next event, apply it, keep it, and return it."""
        event = kind(seq=self.state.seq + 1, cause=cause, due=self.due, **fields)
        self._apply(self.state, event)  # type: ignore[arg-type]
        self.events.append(event)  # type: ignore[arg-type]
        return event

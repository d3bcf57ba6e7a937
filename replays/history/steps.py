"""Steps as the log holds them, and how to take them again.

The log is a function of its steps: the time of each, its proposals, and whether it decided. All
three are in its frames, so that `proposals_of` and `retake` are all that verify, what-if, explain
and bisect need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from events.chain import RecordedStep

INPUTS = frozenset(v.AnyInput.__args__)
"""Event types that began as proposals, unless they have a cause."""


def is_proposed(event: v.AnyEvent) -> bool:
    """Tell whether an event answers a proposal (accepted or refused), rather than following from something."""
    return event.cause == 0 and (type(event) in INPUTS or type(event) is v.InputRejected)


def proposal_of(event: v.AnyEvent) -> v.Proposal:
    """Return the proposal that an accepted or refused input answers."""
    if isinstance(event, v.InputRejected):
        malformed = event.input is None
        return v.Proposal(
            input=event.input,
            position=event.position,
            id=event.proposal,
            source=event.source,
            problem=event.reason if malformed else "",
            raw=event.raw,
            code=event.code if malformed else "",
            actor=event.actor,
        )
    return v.Proposal(input=replace(event, seq=0))  # type: ignore[arg-type]


def proposals_of(step: RecordedStep) -> list[v.Proposal]:
    """Return the proposals of a step, in their order."""
    return [proposal_of(event) for event in step.events if is_proposed(event)]


def retake(engine: Engine, step: RecordedStep) -> tuple[v.AnyEvent, ...]:
    """Take a recorded step again, deciding anew, and return what comes out of it now."""
    noted = note(engine, step)
    if noted is not None:
        return noted
    return engine.step(step.time, proposals_of(step), decide=step.decided)


def note(engine: Engine, step: RecordedStep) -> tuple[v.AnyEvent, ...] | None:
    """Take again a step in which nothing is decided; None for any other step.

    It begins a term, attaches another inbox, or sets aside what its leader failed at: facts, like inputs.
    """
    first = step.events[0] if step.events else None
    if isinstance(first, v.LeaderStarted):
        return engine.begin_term(step.time, first)
    if isinstance(first, v.InboxAttached):
        return engine.attach(step.time, first)
    if isinstance(first, v.DecisionSuspended):
        return engine.suspend(step.time, first.kind, first.subject, (first.place, first.reason))
    return None


def copier(engine: Engine) -> Callable[[], Engine]:
    """Return a function that makes an engine with a state of its own, equal to what this one has now."""
    time = engine.state.time
    data = snapshot.encode(engine.state)
    return lambda: Engine(snapshot.decode(data, time))


def copies(engine: Engine, count: int) -> list[Engine]:
    """Return so many engines with states of their own, each equal to that of the other engine."""
    again = copier(engine)
    return [again() for _ in range(count)]


def copy(engine: Engine) -> Engine:
    """Return an engine with a state of its own, equal to that of the other."""
    return copies(engine, 1)[0]

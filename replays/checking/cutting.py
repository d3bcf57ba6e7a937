"""A bundle from a log: the step of a moment, or of the last failure, and the state before it.

What a leader failed at is not in its log, only what became of it. A proposal that was refused with
``internal-error`` stands there with its beginning, and is proposed again when that is all of it. An
ask, a timer or a part of the step that was set aside is decided on again, with the next proposals
behind it: the failure came with those, unless it came by itself.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from events import vocabulary as v
from events.frame import UNREADABLE, decode_input
from evsched.core.faults import StepFailed
from replays.checking.bundle import Bundle, before, blamed, take
from replays.history.anonymise import Anonymiser, Names
from replays.history.moments import END, Moment
from replays.history.steps import proposals_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from events.chain import RecordedStep
    from replays.history.rebuild import History

FAILED = "internal-error"
"""The code of a refusal by which the leader answered what it failed at."""


class NoStep(Exception):
    """The log holds no step to make a bundle of; the message says which was looked for."""


async def cut(history: History, moment: Moment | None = None, *, nameless: bool = False) -> Bundle:
    """Return the bundle of a step.

    Args:
        history: The log.
        moment: Of its steps the last one that began by this moment and decides something; None: the
            last one that a leader failed at.
        nameless: Replace all names and leave out what people wrote, as an anonymised export does.

    Raises:
        NoStep: There is none.
        CannotAnonymise: The decisions of this log depend on the names in it.
    """
    found, behind = await _find(history, moment)
    first = found.events[0]
    proposals = tuple(map(_as_proposed, proposals_of(behind or found)))
    anonymiser = None
    if nameless:
        anonymiser, frame = await _renamed(history, first.seq, proposals)
        engine, log_id = anonymiser.engine, ""
        proposals = anonymiser.proposals(proposals)
    else:
        engine, reader = await history.boundary(Moment(seq=first.seq - 1))
        log_id, frame = reader.head.log_id, reader.head.frame
    decide = found.decided or isinstance(first, v.DecisionSuspended)
    made = before(engine, proposals, time=found.time, decide=decide, log_id=log_id, frame=frame)
    # Sentences in the recorded events hold names, so they are made anew, from the state that the
    # bundle has by now.
    events = found.events if anonymiser is None else anonymiser.take(found)
    made = replace(made, events=events)
    outcome = take(made)
    return blamed(made, outcome) if isinstance(outcome, StepFailed) else _recorded(made)


async def _find(
    history: History, moment: Moment | None
) -> tuple[RecordedStep, RecordedStep | None]:
    """Return the step to make a bundle of; and behind a suspension the next one with proposals, None when there is none."""
    until = END if moment is None else await history.absolute(moment)
    found: RecordedStep | None = None
    behind: RecordedStep | None = None
    async for step in _decided(history):
        if found is not None and behind is None and _is_suspension(found) and proposals_of(step):
            behind = step
        if _began_by(step, until) and (moment is not None or any(map(_is_failure, step.events))):
            found, behind = step, None
    if found is None:
        message = "no failure" if moment is None else "no step that decides by that moment"
        raise NoStep(message)
    return found, behind


async def _decided(history: History) -> AsyncIterator[RecordedStep]:
    """Yield the steps in which something is decided, refused or set aside."""
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            first = step.events[0] if step.events else None
            if first is not None and not isinstance(first, v.LeaderStarted | v.InboxAttached):
                yield step


def _began_by(step: RecordedStep, moment: Moment) -> bool:
    if moment.seq is not None:
        return step.events[0].seq <= moment.seq
    return moment.time is None or step.time <= moment.time


def _is_suspension(step: RecordedStep) -> bool:
    return isinstance(step.events[0], v.DecisionSuspended)


def _is_failure(event: v.AnyEvent) -> bool:
    # One with a cause is a consequence: an ask of a queue that is set aside.
    return (isinstance(event, v.DecisionSuspended) and not event.cause) or (
        isinstance(event, v.InputRejected) and event.code == FAILED
    )


def _as_proposed(proposal: v.Proposal) -> v.Proposal:
    """Return a proposal that a leader failed at as it came, when the log holds all of it."""
    if proposal.code != FAILED:
        return proposal
    try:
        found = decode_input(proposal.raw)
    except UNREADABLE:
        return proposal
    return replace(proposal, input=found, problem="", raw="", code="")


def _recorded(made: Bundle) -> Bundle:
    """Return a bundle whose step does not raise here with what its leader wrote of the failure, if there was one."""
    failure = next(filter(_is_failure, made.events), None)
    if isinstance(failure, v.DecisionSuspended):
        subject, place = failure.subject, failure.place
        return replace(made, kind=failure.kind, subject=subject, place=place, reason=failure.reason)
    if isinstance(failure, v.InputRejected):
        return replace(made, kind="input", subject=failure.proposal, reason=failure.reason)
    return made


async def _renamed(
    history: History, seq: int, proposals: Iterable[v.Proposal]
) -> tuple[Anonymiser, int]:
    """Return what has taken all steps before an event under new names, those of some proposals among them.

    Beside it the last frame of those steps.
    """
    names = Names()
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            names.note_step(step)
    for proposal in proposals:
        if proposal.input is not None:
            names.note_input(proposal.input)
    names.freeze()
    anonymiser, frame = Anonymiser(names), 0
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            if step.head.next_seq > seq:
                break
            anonymiser.take(step)
            frame = step.head.frame
    return anonymiser, frame

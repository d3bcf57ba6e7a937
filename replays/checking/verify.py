"""Verify: decide the whole log again and compare it, event by event, with what it holds.

What this finds: every decision that does not follow from the steps before it, and every input whose
change would have led to other decisions. A step is a function of its inputs, so an input that was
exchanged for another one *with all that follows from it* is another valid history; what notices
that is the chain (every frame carries the hash of the one before), the digests, and a head that was
kept elsewhere: in a heartbeat, in a snapshot, on paper.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from events.chain import ChainReader
from events.errors import LogDamaged, WrittenByNewer
from events.frame import encode_event
from events.vocabulary import AnyEvent
from evsched.core.tallies import uncounted
from replays.checking.tail_check import KnownEnds, TailCheck
from replays.history.around import around
from replays.history.moments import START, Moment
from replays.history.parts import PartReading, Unfit, on_all_cores, parts_of
from replays.history.rebuild import History
from replays.history.rows import Rows
from replays.history.steps import retake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from events.chain import Head, RecordedStep
    from evsched.core.engine import Engine
    from replays.history.parts import AllCores, LogPart

PARTS_PER_CORE = 4
"""So that no core waits long for another whose part has more to decide."""


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


def compare(step: RecordedStep, decided: tuple[AnyEvent, ...]) -> Difference | None:
    """Return the first difference between a recorded step and what it gives now."""
    recorded = step.events
    for index in range(max(len(recorded), len(decided))):
        ours = decided[index] if index < len(decided) else None
        theirs = recorded[index] if index < len(recorded) else None
        if (
            ours is None
            or theirs is None
            or (ours != theirs and encode_event(ours) != encode_event(theirs))
        ):
            present = theirs if theirs is not None else ours
            assert present is not None
            return Difference(
                seq=present.seq,
                frame=step.head.frame,
                time=step.time,
                recorded=theirs,
                decided=ours,
            )
    return None


def verify(
    engine: Engine,
    steps: Iterable[RecordedStep],
    progress: Callable[[RecordedStep], None] | None = None,
) -> Difference | None:
    """Take every step again and return the first difference, None when there is none.

    Args:
        engine: At the state before the first step; it is moved on.
        steps: In order, without gaps.
        progress: Called after every step.

    Raises:
        WrittenByNewer: This release does not know the rules in force at some step.
    """
    for step in steps:
        try:
            decided = retake(engine, step)
        except WrittenByNewer:
            raise
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


class VerifyQuestion(Struct, frozen=True, kw_only=True):
    """Does everything in the log follow from its steps?

    Attributes:
        start: The state of the last step that ended by this moment is taken as it is; all that
            follows is decided again.
        known: Hashes of ends of the log that were kept elsewhere; each must be that of a step that
            is read.
    """

    start: Moment = START
    known: tuple[str, ...] = ()


class Damage(Struct, frozen=True, kw_only=True):
    """Why a log could not be read on, or is not the one its leader wrote; ``position`` is -1 when it is not at one place."""

    position: int
    reason: str


class VerifyAnswer(Struct, frozen=True, kw_only=True):
    """What verifying a log came to.

    Attributes:
        frames, events: How many there are up to the end of what was read.
        first: ``seq`` of the first event that was decided again.
        hash: Of the last frame.
        ignored: Void frames that were passed over.
        inbox: Id of the inbox that the log reads; empty when it does not name it.
        inbox_next: Position of the next proposal to read there.
        difference: The first one; None when there is none.
        around: Rows of the state before the step that differs, as far as its events name them.
        damage: None when the log holds together.
    """

    log_id: str
    frames: int
    events: int
    first: int
    hash: str
    ignored: int
    inbox: str
    inbox_next: int
    difference: Difference | None
    around: Rows
    damage: Damage | None


WHOLE = VerifyQuestion()


class _PartVerified(Struct, frozen=True):
    """What verifying a part came to: its first difference, void frames, and the hashes that it does not contain."""

    difference: Difference | None
    ignored: int
    missing: tuple[str, ...]


async def verify_log(
    history: History,
    question: VerifyQuestion = WHOLE,
    progress: Callable[[RecordedStep], None] | None = None,
    cores: AllCores | None = None,
) -> VerifyAnswer:
    """Decide a log again up to its end as it is now.

    After a difference nothing more is decided, but the chain is read to its end: an edit that was
    not covered up shows there too.

    Args:
        history: The log, and the snapshots to start from.
        question: From where on, and what else has to be there.
        progress: Called after every step that this process decides.
        cores: To decide the parts between its snapshots on all cores; None: this process decides.
    """
    if cores is not None and question.start == START:
        parts = parts_of(cores, await history.log_id(), PARTS_PER_CORE)
        if len(parts) > 1:
            try:
                return await _on_all_cores(history, question, cores, parts)
            except (Unfit, LogDamaged) as error:
                cores.warn(f"one process verifies all of the log: {error}")
    return await _alone(history, question, progress)


async def _on_all_cores(
    history: History, question: VerifyQuestion, cores: AllCores, parts: Sequence[LogPart]
) -> VerifyAnswer:
    """Verify the parts of a log; raise `Unfit` or `LogDamaged` where one process has to say what is wrong with it."""
    known = KnownEnds(await history.log.last_heartbeat(), question.known)
    outcomes = await on_all_cores(cores, parts, verify_part, known)
    found: list[_PartVerified] = [one.result for one in outcomes]
    head = outcomes[-1].head
    witness = TailCheck(known.not_in(one.missing for one in found))
    witness.see(head)
    witness.end(head)
    difference = next((one.difference for one in found if one.difference is not None), None)
    return await _answer(history, (head, sum(one.ignored for one in found)), difference)


async def verify_part(reading: PartReading, question: KnownEnds) -> _PartVerified:
    """Decide a part of a log again; the question is what is known of its ends.

    Raises:
        LogDamaged: It cannot be read.
    """
    with uncounted(reading.engine.state):
        pass  # a state from a snapshot is not counted yet
    witness = TailCheck(question)
    difference = None
    async with aclosing(History(reading.log).steps(reading.reader)) as steps:  # type: ignore[type-var]
        async for step in steps:
            witness.see(step.head)
            if difference is None and not reading.decided_before:
                difference = verify(reading.engine, (step,))
                if difference is not None:
                    reading.found()
            if reading.at_end(step.head.position):
                break
    return _PartVerified(difference, reading.reader.ignored, witness.missing)


async def _alone(
    history: History,
    question: VerifyQuestion,
    progress: Callable[[RecordedStep], None] | None,
) -> VerifyAnswer:
    """Verify a log in this process."""
    witness = TailCheck(KnownEnds(await history.log.last_heartbeat(), question.known))
    difference, damage = None, None
    reader = ChainReader()
    first = 1
    try:
        engine, reader = await history.boundary(question.start)
        first = reader.head.next_seq
        async for step in history.steps(reader):
            witness.see(step.head)
            if difference is None:
                difference = verify(engine, (step,))
            if progress is not None:
                progress(step)
        witness.end(reader.head)
    except LogDamaged as error:
        damage = Damage(position=error.position, reason=error.reason)
    return await _answer(history, (reader.head, reader.ignored), difference, damage, first)


async def _answer(
    history: History,
    end: tuple[Head, int],
    difference: Difference | None,
    damage: Damage | None = None,
    first: int = 1,
) -> VerifyAnswer:
    """Return what verifying came to; ``end``: where reading ended, and how many frames were void."""
    surroundings = Rows()
    if difference is not None:
        before = (await history.boundary(Moment(seq=difference.seq - 1)))[0]
        surroundings = around(
            before.state,
            [event for event in (difference.recorded, difference.decided) if event is not None],
        )
    head, ignored = end
    return VerifyAnswer(
        log_id=head.log_id,
        frames=head.frame,
        events=head.next_seq - 1,
        first=first,
        hash=head.hash,
        ignored=ignored,
        inbox=head.inbox,
        inbox_next=head.inbox_next,
        difference=difference,
        around=surroundings,
        damage=damage,
    )

"""Verify: decide the whole log again and compare it, event by event, with what it holds.

What this finds: every decision that does not follow from the steps before it, and every input whose
change would have led to other decisions. A step is a function of its inputs, so an input that was
exchanged for another one *with all that follows from it* is another valid history; what notices
that is the chain (every frame carries the hash of the one before), the digests, and a head that was
kept elsewhere: in a heartbeat, in a snapshot, on paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events.chain import ChainReader
from events.errors import LogDamaged, WrittenByNewer
from events.frame import encode_event
from replays.checking.tail_check import Witness
from replays.history.around import around
from replays.history.moments import Moment
from replays.history.steps import retake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.chain import Head, Step
    from events.vocabulary import AnyEvent
    from evsched.core.engine import Engine
    from replays.history.rebuild import History
    from replays.history.views import Row


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
    engine: Engine, steps: Iterable[Step], progress: Callable[[Step], None] | None = None
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


class Outcome(Struct, frozen=True, kw_only=True):
    """What verifying a log came to.

    Attributes:
        head: The end of what was read.
        first: ``seq`` of the first event that was decided again.
        ignored: Void frames that were passed over.
        difference: The first one; None when there is none.
        around: Rows of the state before the step that differs, as far as its events name them, by
            view.
        damage: Why the log could not be read on, or is not the one its leader wrote; None when it
            holds together.
    """

    head: Head
    first: int
    ignored: int
    difference: Difference | None
    around: dict[str, list[Row]]
    damage: LogDamaged | None


START = Moment(seq=0)


async def verify_log(
    history: History,
    start: Moment = START,
    progress: Callable[[Step], None] | None = None,
    known: Iterable[str] = (),
) -> Outcome:
    """Decide a log again up to its end as it is now.

    After a difference nothing more is decided, but the chain is read to its end: an edit that was
    not covered up shows there too.

    Args:
        history: The log, and the snapshots to start from.
        start: The state of the last step that ended by this moment is taken as it is; all that
            follows is decided again.
        progress: Called after every step.
        known: Hashes of ends of the log that were kept elsewhere; each must be that of a step that
            is read.
    """
    witness = Witness(await history.log.last_heartbeat(), known)
    difference, damage = None, None
    reader = ChainReader()
    first = 1
    try:
        engine, reader = await history.boundary(start)
        first = reader.head.next_seq
        async for step in history.steps(reader):
            witness.see(step.head)
            if difference is None:
                difference = verify(engine, (step,))
            if progress is not None:
                progress(step)
        witness.end(reader.head)
    except LogDamaged as error:
        damage = error
    surroundings: dict[str, list[Row]] = {}
    if difference is not None:
        before = (await history.boundary(Moment(seq=difference.seq - 1)))[0]
        surroundings = around(
            before.state,
            [event for event in (difference.recorded, difference.decided) if event is not None],
        )
    return Outcome(
        head=reader.head,
        first=first,
        ignored=reader.ignored,
        difference=difference,
        around=surroundings,
        damage=damage,
    )

"""The first event at which something became true.

Read from the beginning, event by event: what is looked for may become true and false again any
number of times, so that halving the log would find some such event, but not the first.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from events.frame import encode_event
from events.vocabulary import AnyEvent
from evsched.core.engine import Engine
from evsched.core.recorded import apply_recorded
from replays.history.around import around
from replays.history.expressions import parse, subjects
from replays.history.known import must_have_been
from replays.history.moments import START, Moment
from replays.history.rows import Rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from events.chain import RecordedStep
    from replays.history.expressions import Predicate
    from replays.history.rebuild import History


class BisectQuestion(Struct, frozen=True, kw_only=True):
    """When did something become true?

    Attributes:
        expression: What, in the language of `replays.history.expressions`.
        start: What happened up to this moment is not looked at, though it may have held then.
    """

    expression: str
    start: Moment = START


class Found(Struct, frozen=True, kw_only=True):
    """Where something became true.

    Attributes:
        seq: Of the event after which it held first.
        event: That event; None where the log has ended there already (and another one has not).
        around: Rows of the state after it, as far as the event names them.
    """

    seq: int
    frame: int
    time: int
    event: AnyEvent | None
    around: Rows


class BisectAnswer(Struct, frozen=True, kw_only=True):
    """The first place; None when there is none."""

    first: Found | None


async def bisect(
    history: History,
    question: BisectQuestion,
    progress: Callable[[RecordedStep], None] | None = None,
) -> BisectAnswer:
    """Find the first event after which an expression holds.

    Args:
        history: The log.
        question: What is looked for.
        progress: Called after every step.

    Raises:
        ExpressionInvalid: It cannot be read.
        NeverThere: It holds nowhere, and names what the log never held.
    """
    predicate = parse(question.expression)
    found = await first(history, predicate, question.start, progress)
    if found is None:
        await must_have_been(history, subjects(question.expression))
    return BisectAnswer(first=found)


async def first(
    history: History,
    predicate: Predicate,
    start: Moment = START,
    progress: Callable[[RecordedStep], None] | None = None,
) -> Found | None:
    """Return the first event after which a predicate holds, None when there is none; see `bisect`."""
    engine, reader = await history.boundary(start)
    async with aclosing(history.steps(reader)) as steps:  # type: ignore[type-var]
        async for step in steps:
            for event in step.events:
                apply_recorded(engine, (event,), step.time, step.head.position)
                if predicate(engine.state, event):
                    return _found(engine, step, event.seq, event)
            if progress is not None:
                progress(step)
    return None


async def first_difference(
    ours: History, theirs: History, progress: Callable[[RecordedStep], None] | None = None
) -> Found | None:
    """Return the first event of our log after which its state has another digest than that of another log there.

    As long as the events and their times are the same, so are the states; from the first event that
    is not on, digests are compared. A log that ends earlier differs from the first event on that
    only the other one has.
    """
    us, them = Engine(), Engine()
    same = True
    async with aclosing(_events(ours)) as one, aclosing(_events(theirs)) as other:  # type: ignore[type-var]
        while True:
            mine, yours = await anext(one, None), await anext(other, None)
            if mine is None or yours is None:
                longer = mine or yours
                if longer is None:
                    return None
                step, event = longer
                return _found(us, step, event.seq, event if mine is not None else None)
            for engine, (step, event) in ((us, mine), (them, yours)):
                apply_recorded(engine, (event,), step.time, step.head.position)
            same = (
                same
                and mine[0].time == yours[0].time
                and encode_event(mine[1]) == encode_event(yours[1])
            )
            if not same and us.state.digest() != them.state.digest():
                return _found(us, mine[0], mine[1].seq, mine[1])
            if progress is not None:
                progress(mine[0])


def _found(engine: Engine, step: RecordedStep, seq: int, event: AnyEvent | None) -> Found:
    rows = around(engine.state, [event] if event is not None else [])
    return Found(seq=seq, frame=step.head.frame, time=step.time, event=event, around=rows)


async def _events(history: History) -> AsyncIterator[tuple[RecordedStep, AnyEvent]]:
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            for event in step.events:
                yield step, event

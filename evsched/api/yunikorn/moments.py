"""Views of moments, and records of events, made in the room in which the log is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, TypeVar

from evsched.api.event_routes import steps_behind
from evsched.api.yunikorn import records
from evsched.api.yunikorn.view import OtherFamily, YunikornView
from projections import audit
from projections.lives import subjects

if TYPE_CHECKING:
    import sqlite3

    from events.vocabulary import AnyEvent
    from evsched.api.app import Served
    from evsched.api.past import Past
    from evsched.api.told import ToldStep
    from evsched.api.yunikorn.answers import EventRecordInfo

T = TypeVar("T")


async def of_moment(past: Past, seq: int | None, answer: Callable[[YunikornView], T]) -> T:
    """Return what is made of the view of a moment; a coroutine of the room of the log.

    Args:
        past: Of the log.
        seq: After this event; None: after the last one that was read.
        answer: Must not keep the view.

    Raises:
        OtherFamily: No queues.yaml was in force then.
    """
    keeper = past.keeper
    state = keeper.state if seq is None else (await past.history.pinned(seq)).engine.state
    if keeper.model is None:
        raise OtherFamily("")
    with closing(_tables(past, state.seq)) as tables:
        return answer(YunikornView(state, tables, keeper.log_id))


async def records_of(served: Served, after: int, last: int) -> list[EventRecordInfo]:
    """Return the records of the events behind ``seq`` after up to ``last``; a coroutine of the server's thread."""
    found: list[tuple[int, AnyEvent]] = []
    if after < last:
        async with aclosing(steps_behind(served, after, narrow=False, follow=False)) as batches:  # type: ignore[type-var]
            async for steps in batches:
                found += _events(steps, after, last)
                if steps and steps[-1].last >= last:
                    break
    return await served.past.ask(recorded(served.past, found)) if found else []


async def recorded(past: Past, found: list[tuple[int, AnyEvent]]) -> list[EventRecordInfo]:
    """Return the records of events, each with its time; a coroutine of the room of the log."""
    last = found[-1][1].seq
    with closing(_tables(past, last)) as tables:
        known = subjects(tables, last, (records.named(event) for _, event in found))
    return [records.record(event, time, known) for time, event in found]


def _events(steps: Iterable[ToldStep], after: int, last: int) -> list[tuple[int, AnyEvent]]:
    return [
        (step.time, event) for step in steps for event in step.events if after < event.seq <= last
    ]


def _tables(past: Past, seq: int) -> sqlite3.Connection:
    """Return the tables, complete up to an event that was read."""
    path = past.keeper.path
    assert path is not None
    past.keeper.write_down(seq)
    return audit.connect(path)

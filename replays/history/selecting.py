"""Which events of a log somebody wants to see: of a stretch, of some types, about one ask, queue, application or node.

An event names an ask or allocation where it speaks of one; its queue and application are often those
of that ask alone. So where these are asked for, the state is rebuilt beside the events.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from evsched.core.recorded import apply_recorded
from evsched.snapshots.names import names_of
from replays.history.about import about
from replays.history.moments import END, START, Moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from events.chain import RecordedStep
    from events.vocabulary import AnyEvent
    from evsched.core.engine import Engine
    from replays.history.rebuild import History


class EventSelection(Struct, frozen=True, kw_only=True):
    """Which events are wanted; what is None says nothing.

    Attributes:
        first: A ``seq``: that event and those behind it; a time: that of the first frame.
        last: A ``seq``: up to that event; a time: up to that of the last frame.
        types: Of these types; empty: of all.
        subject: About this ask or allocation.
        queue: About this queue or one below it.
        application: About this application.
        node: That name this node.
    """

    first: Moment = START
    last: Moment = END
    types: frozenset[str] = frozenset()
    subject: str | None = None
    queue: str | None = None
    application: str | None = None
    node: str | None = None

    def wants(self, event: AnyEvent) -> bool:
        """Tell whether an event is wanted, its place, queue and application aside."""
        if self.types and type(event).__name__ not in self.types:
            return False
        if self.node is not None and getattr(event, "node", None) != self.node:
            return False
        return self.subject is None or self.subject in names_of(event)


async def selected(
    history: History, wanted: EventSelection
) -> AsyncIterator[tuple[RecordedStep, list[AnyEvent]]]:
    """Yield the wanted events, with their steps, up to the end of the log as it is now.

    Args:
        history: The log; where queue or application matter, its snapshots shorten the way.
        wanted: Which events.
    """
    first, last = await history.absolute(wanted.first), await history.absolute(wanted.last)
    narrow = wanted.queue is not None or wanted.application is not None
    # What is before the stretch matters only for whose the asks are that it speaks of.
    engine, reader = await history.boundary(_before(first)) if narrow else (None, None)
    async with aclosing(history.steps(reader)) as steps:  # type: ignore[type-var]
        async for step in steps:
            if _begins_after(step, last):
                return
            concerns = _concerns(step, wanted, engine)
            found = [
                event
                for event in step.events
                if (concerns is None or event.seq in concerns)
                and _within(event, step.time, first, last)
                and wanted.wants(event)
            ]
            if found:
                yield step, found


def _before(first: Moment) -> Moment:
    """Return the last moment before a stretch that begins with an event or a time."""
    if first.time is not None:
        return Moment(time=first.time - 1)
    return Moment(seq=max(0, (first.seq or 0) - 1))


def _begins_after(step: RecordedStep, last: Moment) -> bool:
    if last.time is not None:
        return step.time > last.time
    return last.seq is not None and bool(step.events) and step.events[0].seq > last.seq


def _within(event: AnyEvent, time: int, first: Moment, last: Moment) -> bool:
    if first.is_end:
        return False
    early = time < first.time if first.time is not None else event.seq < (first.seq or 0)
    late = time > last.time if last.time is not None else False
    return not early and not late and (last.seq is None or event.seq <= last.seq)


def _concerns(step: RecordedStep, wanted: EventSelection, engine: Engine | None) -> set[int] | None:
    """Apply a step, and return the events about the wanted queue and application; None: neither is asked for."""
    if engine is None:
        return None
    state = engine.state

    def belongs(name: str) -> tuple[str, str] | None:
        found = state.asks.get(name) or state.allocations.get(name)
        return None if found is None else (found.application, found.queue)

    # What ends is known before the step, what begins behind it.
    before = {event.seq: about(event, (belongs,)) for event in step.events}
    apply_recorded(engine, step.events, step.time, step.head.position)
    return {
        event.seq
        for event in step.events
        if before[event.seq]
        .and_also(about(event, (belongs,)))
        .touches(wanted.queue, wanted.application)
    }

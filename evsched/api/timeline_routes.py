"""A stretch of the log at a glance: what the page's time bar and timeline are drawn from."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from evsched.api.calls import Answered, Call, Operation, Reply
from evsched.api.problems import ApiProblem, in_query
from replays.history.timeline import MOST_BUCKETS, TimelineAnswer, TimelineQuestion, timeline

if TYPE_CHECKING:
    from evsched.api.app import Served


class TimelineQuery(Struct, frozen=True, kw_only=True):
    """Which stretch of the log, in how many pieces.

    Attributes:
        start: The event before it; 0: it begins with the log.
        end: Its last event; where none is given, the end of the log.
        buckets: Most pieces.
        scale: Whether pieces have about as many frames, or are of one length in time.
        lanes: Whose usage is wanted: the leaves in this queue; ``*``: all leaves.
    """

    start: Annotated[int, Meta(ge=0)] = 0
    end: Annotated[int, Meta(ge=0)] | None = None
    buckets: Annotated[int, Meta(ge=1, le=MOST_BUCKETS)] = 240
    scale: Literal["events", "time"] = "events"
    lanes: str = ""


async def stretch(served: Served, call: Call) -> Reply:
    """Answer with what happened in a stretch of the log."""
    served.must_be_ready()
    query: TimelineQuery = call.query
    end = served.past.tail.seq if query.end is None else query.end
    served.reached(end, in_query("end"))
    if query.start > end:
        detail = f"start: event {query.start} lies behind event {end}"
        raise ApiProblem("parameter-invalid", detail, in_query("start"))
    path = served.past.keeper.path
    if path is None or served.past.keeper.model is None:
        raise ApiProblem("not-ready", "the log is empty: there is no read model yet")
    question = msgspec.convert({**msgspec.structs.asdict(query), "end": end}, TimelineQuestion)
    answer = await asyncio.to_thread(timeline, path, question)
    # The read model may be a moment behind the log: what it says then is not the last word.
    shown = await served.past.ask(served.past.masked(call.principal, end, answer))
    whole = answer.edges[-1].seq == end
    return Reply(document=shown, lasting=whole and query.end is not None)


OPERATIONS = (
    Operation(
        name="timeline",
        right="view",
        method="GET",
        path="/v1/timeline",
        handler=stretch,
        summary="How busy a stretch of the log was, what stands out, and what each leaf queue used",
        query=TimelineQuery,
        answers=(Answered(200, "The stretch", TimelineAnswer),),
        problems=("moment-ahead",),
    ),
)

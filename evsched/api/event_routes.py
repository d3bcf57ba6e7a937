"""The events of the log: as a stream that goes on where a reader left off, as lines, as CloudEvents.

A stream has no silent gap: each event is told once and in order, or the stream ends. A reader that is
slow, or begins far back, is served from the log; one that keeps pace from memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct

from events.vocabulary import AnyEvent
from evsched.api.calls import Answered, Call, Operation, Reply, place_of_header
from evsched.api.pages import LARGEST_PAGE, PAGE
from evsched.api.problems import ApiProblem, ProblemPlace, in_query
from evsched.api.told import (
    CloudEvent,
    EventsWanted,
    Line,
    ToldEvent,
    ToldStep,
    as_ndjson,
    as_sse,
    cloud_events,
)

if TYPE_CHECKING:
    from evsched.api.app import Served

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
CLOUD_EVENTS = "application/cloudevents-batch+json"
FORMS = {"sse": SSE, "ndjson": NDJSON, "cloudevents": CLOUD_EVENTS}

ALIVE_S = 15.0
"""How often a stream without events says that it is there."""

NEARLY_S = 2.0
"""How long a reader waits for a seq that another server may have read before this one."""

ALIVE = b": alive\n\n"
RETRY = b"retry: 1000\n\n"
"""How long a reader of server-sent events is to wait before it comes back, milliseconds."""

KINDS = frozenset(kind.__name__ for kind in AnyEvent.__args__)


class EventsQuery(Struct, frozen=True, kw_only=True):
    """Which events are wanted, and how.

    Attributes:
        after: Only those behind this seq; `Last-Event-ID` goes before it.
        until: Only those up to this seq; the stream ends there.
        types: Only these types, with commas between.
        queue: Only what is about this queue or one below it.
        application: Only what is about this application.
        follow: Whether to go on with what is written later; where it is not given, `sse` does.
        limit: Most events of a batch of `cloudevents`.
        form: Goes before the `Accept` header.
    """

    after: Annotated[int, Meta(ge=0)] | None = None
    until: Annotated[int, Meta(ge=0)] | None = None
    types: tuple[str, ...] = ()
    queue: str | None = None
    application: str | None = None
    follow: bool | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = PAGE
    form: Literal["sse", "ndjson", "cloudevents"] | None = None


async def events(served: Served, call: Call) -> Reply:
    """Answer with the events that are wanted."""
    served.must_be_ready()
    query: EventsQuery = call.query
    media_type = FORMS[query.form] if query.form is not None else _accepted(call)
    after = await _after(served, call)
    for kind in query.types:
        if kind not in KINDS:
            raise ApiProblem(
                "parameter-invalid",
                f"types: there is no event type {kind}",
                in_query("types"),
                expected=tuple(sorted(KINDS)),
            )
    wanted = EventsWanted(
        types=frozenset(query.types), queue=query.queue, application=query.application
    )
    if media_type == CLOUD_EVENTS:
        return await _batch(served, call, wanted, after)
    follow = media_type == SSE if query.follow is None else query.follow
    chunks = _stream(served, call, wanted, after, follow=follow, sse=media_type == SSE)
    return Reply(chunks=chunks, media_type=media_type)


def _accepted(call: Call) -> str:
    """Return the media type of the answer; the first of ours that is accepted, a stream for whoever takes anything."""
    header = call.headers.get("accept", "*/*")
    accepted = [one.partition(";")[0].strip().lower() for one in header.split(",")]
    for one in accepted:
        if one in FORMS.values():
            return one
    if "*/*" in accepted:
        return SSE
    raise ApiProblem(
        "not-acceptable",
        f"accept: found {header}",
        place_of_header("accept"),
        expected=tuple(FORMS.values()),
    )


async def _after(served: Served, call: Call) -> int:
    """Return the seq behind which to begin, once the log is known up to there; 0: at the beginning.

    A reader may come from another server, which had read a little further.
    """
    last = call.headers.get("last-event-id")
    place: ProblemPlace = in_query("after")
    after = call.query.after or 0
    if last is not None:
        place = place_of_header("last-event-id")
        if not last.isascii() or not last.isdigit() or len(last) > len(str(2**63)):
            raise ApiProblem("parameter-invalid", f"last-event-id: found {last!r}", place)
        after = int(last)
    if not await served.past.tail.reached(after, NEARLY_S):
        raise ApiProblem(
            "moment-ahead",
            f"event {after}: the log ends at {served.past.tail.seq} now; is it the same log?",
            place,
        )
    return after


async def steps_behind(
    served: Served, after: int, *, narrow: bool, follow: bool
) -> AsyncIterator[list[ToldStep]]:
    """Yield the steps with events behind ``after``, some at a time, each once and in order.

    Yields an empty list now and then while nothing comes. Ends at the end of the log as it is then
    unless ``follow``, and when the server stops.
    """
    past, seq = served.past, after
    while not past.tail.stopped:
        steps = past.tail.behind(seq)
        if steps is None:
            steps = await past.ask(past.steps_behind(seq, narrow=narrow))
        if steps:
            # The one that `after` lies in the middle of may begin before it.
            if steps[0].first > seq + 1:
                raise RuntimeError(f"events: {steps[0].first} came behind {seq}")
            yield steps
            seq = steps[-1].last
        elif not follow:
            return
        else:
            await past.tail.changed(ALIVE_S)
            if past.tail.seq == seq:
                yield []


async def lines_of(
    served: Served, call: Call, steps: list[ToldStep], wanted: EventsWanted, after: int
) -> list[Line]:
    """Return the lines of steps that are wanted and seen."""
    if served.identities.open:
        return [line for step in steps for line in step.wanted(wanted, after, call.query.until)]
    if not steps:
        return []
    until = call.query.until
    found = await served.past.ask(served.past.lines(call.principal, steps, wanted, after))
    return [line for line in found if until is None or line.seq <= until]


async def _stream(
    served: Served,
    call: Call,
    wanted: EventsWanted,
    after: int,
    *,
    follow: bool,
    sse: bool,
) -> AsyncIterator[bytes]:
    until = call.query.until
    if sse:
        # Sent at once, so that a reader knows that it is connected.
        yield f": log {served.past.tail.head.log_id}\n".encode() + RETRY
    narrow = wanted.narrow or not served.identities.open
    async for steps in steps_behind(served, after, narrow=narrow, follow=follow):
        lines = await lines_of(served, call, steps, wanted, after)
        if lines:
            yield as_sse(lines) if sse else as_ndjson(lines)
        elif sse:
            yield ALIVE
        if until is not None and steps and steps[-1].last >= until:
            return


async def _batch(served: Served, call: Call, wanted: EventsWanted, after: int) -> Reply:
    """Return a batch of CloudEvents; a header says where the next one is."""
    query: EventsQuery = call.query
    found: list[CloudEvent] = []
    log_id = served.past.tail.head.log_id
    more = False
    narrow = wanted.narrow or not served.identities.open
    async for steps in steps_behind(served, after, narrow=narrow, follow=False):
        lines = await lines_of(served, call, steps, wanted, after)
        found += cloud_events(lines, log_id, served.partition)
        if len(found) > query.limit:
            more = True
            break
        if query.until is not None and steps and steps[-1].last >= query.until:
            break
    shown = found[: query.limit]
    headers = {}
    if more:
        headers["link"] = f'<{_next_address(query, int(shown[-1].sequence))}>; rel="next"'
    lasting = query.until is not None and query.until <= served.past.tail.seq
    return Reply(
        data=msgspec.json.encode(shown), media_type=CLOUD_EVENTS, lasting=lasting, headers=headers
    )


def _next_address(query: EventsQuery, after: int) -> str:
    given: dict[str, object] = {"after": after, "form": "cloudevents", "limit": query.limit}
    given |= {"types": ",".join(query.types)} if query.types else {}
    for name in ("until", "queue", "application"):
        value = getattr(query, name)
        if value is not None:
            given[name] = value
    return f"/v1/events?{urlencode(given)}"


OPERATIONS = (
    Operation(
        name="events",
        right="view",
        method="GET",
        path="/v1/events",
        handler=events,
        summary="The events of the log, as a stream that goes on, as lines, or as CloudEvents",
        query=EventsQuery,
        answers=(Answered(200, "The events", ToldEvent, (SSE, NDJSON, CLOUD_EVENTS)),),
        problems=("moment-ahead", "parameter-invalid", "not-acceptable"),
    ),
)

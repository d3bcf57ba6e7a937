"""What this server is and whether it can answer: health, readiness, the log it follows, its problems."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evsched.api.calls import Answered, Call, Operation, Reply
from evsched.api.event_routes import ALIVE, ALIVE_S, RETRY, SSE
from evsched.api.problems import PLACE, PROBLEM_TYPES, ApiProblem, ProblemDocument, in_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evsched.api.app import Served

PAUSE_S = 0.1
"""Between two messages about the end of the log."""

_FOLDER = Path(__file__).resolve().parent


class Health(Struct, frozen=True, kw_only=True):
    """That this process answers; ``status`` is ``ok``."""

    status: str


class LogFacts(Struct, frozen=True, kw_only=True):
    """The log that this server follows, as far as it has read it.

    Attributes:
        log_id: Empty: it has no frame yet.
        partition: Number of the cluster partition.
        seq, time, frame: Of its end.
        term, leader: Who wrote the end.
        ready: Whether all is read that was there when this server began.
        fault: Why it cannot be read now; empty: it can.
        release: Of this server.
    """

    log_id: str
    partition: int
    seq: int
    time: int
    frame: int
    term: int
    leader: str
    ready: bool
    fault: str
    release: str


async def live(_served: Served, _call: Call) -> Reply:
    """Say that this process answers."""
    return Reply(document=Health(status="ok"))


async def ready(served: Served, _call: Call) -> Reply:
    """Say whether questions can be answered."""
    served.must_be_ready()
    return Reply(document=Health(status="ok"))


async def log_facts(served: Served, _call: Call) -> Reply:
    """Say which log this is, and how far it goes."""
    return Reply(document=_facts(served))


def _facts(served: Served) -> LogFacts:
    tail = served.past.tail
    head = tail.head
    return LogFacts(
        log_id=head.log_id,
        partition=served.partition,
        seq=tail.seq,
        time=head.time,
        frame=head.frame,
        term=head.term,
        leader=head.leader,
        ready=tail.ready,
        fault=tail.fault,
        release=served.release,
    )


class LogStreamQuery(Struct, frozen=True, kw_only=True):
    """How long the stream is wanted.

    Attributes:
        until: It ends once the log has reached this seq; where none is given, it goes on.
    """

    until: Annotated[int, Meta(ge=0)] | None = None


async def log_stream(served: Served, call: Call) -> Reply:
    """Say the same now, and again whenever it has changed."""
    return Reply(chunks=_changes(served, call.query.until), media_type=SSE)


async def _changes(served: Served, until: int | None) -> AsyncIterator[bytes]:
    """Yield what is known of the log as server-sent events, the id being the seq of its end.

    Whoever comes back hears how it stands now, so nothing is owed to it. A busy log is told of a few
    times a second, whatever it grows by.
    """
    tail, told = served.past.tail, None
    yield RETRY
    while not tail.stopped:
        facts = _facts(served)
        if facts == told:
            await tail.changed(ALIVE_S)
            if _facts(served) == told:
                yield ALIVE
            continue
        told = facts
        yield b"id: %d\nevent: log\ndata: %s\n\n" % (facts.seq, msgspec.json.encode(facts))
        if until is not None and facts.seq >= until:
            return
        await asyncio.sleep(PAUSE_S)


async def problem_type(_served: Served, call: Call) -> Reply:
    """Say what a type of problem means."""
    name = call.path["name"]
    kind = PROBLEM_TYPES.get(name)
    if kind is None:
        raise ApiProblem(
            "not-found", f"problem {name}: there is none", in_path("name"),
            expected=tuple(PROBLEM_TYPES),
        )  # fmt: skip
    document = ProblemDocument(
        type=PLACE + name, title=kind.title, status=kind.status, detail=kind.title
    )
    return Reply(document=document)


async def openapi(_served: Served, _call: Call) -> Reply:
    """Answer with the OpenAPI document of this API."""
    return Reply(data=(_FOLDER / "openapi.json").read_bytes())


async def asyncapi(_served: Served, _call: Call) -> Reply:
    """Answer with the AsyncAPI document of the stream of events."""
    return Reply(data=(_FOLDER / "asyncapi.json").read_bytes())


OPERATIONS = (
    Operation(
        name="openapi",
        right="open",
        method="GET",
        path="/v1/openapi.json",
        handler=openapi,
        summary="This API described for programs (OpenAPI 3.1)",
        answers=(Answered(200, "The document", dict[str, Any]),),
    ),
    Operation(
        name="asyncapi",
        right="open",
        method="GET",
        path="/v1/asyncapi.json",
        handler=asyncapi,
        summary="The stream of events described for programs (AsyncAPI 3)",
        answers=(Answered(200, "The document", dict[str, Any]),),
    ),
    Operation(
        name="live",
        right="open",
        method="GET",
        path="/livez",
        handler=live,
        summary="Whether this process answers",
        answers=(Answered(200, "It does", Health),),
    ),
    Operation(
        name="ready",
        right="open",
        method="GET",
        path="/readyz",
        handler=ready,
        summary="Whether questions can be answered",
        answers=(Answered(200, "They can", Health),),
    ),
    Operation(
        name="log",
        right="any",
        method="GET",
        path="/v1/log",
        handler=log_facts,
        summary="Which log this is, and how far it goes",
        answers=(Answered(200, "The log", LogFacts),),
    ),
    Operation(
        name="logStream",
        right="any",
        method="GET",
        path="/v1/log/stream",
        handler=log_stream,
        summary="The same as a stream that goes on: now, and whenever it has changed",
        query=LogStreamQuery,
        answers=(Answered(200, "The log as server-sent events `log`", LogFacts, (SSE,)),),
    ),
    Operation(
        name="problem",
        right="open",
        method="GET",
        path="/v1/problems/{name}",
        handler=problem_type,
        summary="What a type of problem means",
        answers=(Answered(200, "Its title and status", ProblemDocument),),
        problems=("not-found",),
    ),
)

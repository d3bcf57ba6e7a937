"""The application: the routes of all operations, and what holds for every one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from events.errors import StreamError
from events.streams import Streams
from evsched.api import (
    audit_routes,
    configuration_routes,
    event_routes,
    job_routes,
    proposing_routes,
    question_routes,
    service_routes,
    state_routes,
    timeline_routes,
)
from evsched.api.asking import Asking
from evsched.api.calls import (
    NOBODY,
    Call,
    Operation,
    Principal,
    Right,
    parsed_body,
    parsed_query,
    place_of_header,
)
from evsched.api.guard import Guard, Hosts
from evsched.api.identity import Identities
from evsched.api.jobs import Jobs
from evsched.api.metrics import routes as metrics_routes
from evsched.api.problems import ApiProblem, ProblemPlace, in_body, in_path, what_failed
from evsched.api.rates import Rates
from evsched.api.responses import problem_response, response
from evsched.api.seen import SeenPast
from evsched.api.yunikorn import routes as yunikorn_routes
from evsched.api.yunikorn import web
from evsched.core.faults import place_of
from replays.checking.verify import VerifyAnswer

OPERATIONS: tuple[Operation, ...] = (
    *service_routes.OPERATIONS,
    *question_routes.OPERATIONS,
    *audit_routes.OPERATIONS,
    *configuration_routes.OPERATIONS,
    *proposing_routes.OPERATIONS,
    *job_routes.OPERATIONS,
    *state_routes.OPERATIONS,
    *event_routes.OPERATIONS,
    *timeline_routes.OPERATIONS,
)
"""Every route of the API; of two that fit an address, the first one answers."""

PAGE_FILES = Path(__file__).resolve().parents[1] / "page"
"""The static files of the web page."""

ANSWER_S = 60.0
"""How long a question may take."""

BODY_S = 20.0
"""How long a body may take to come."""

LARGEST_BODY = 4_000_000
"""Bytes; a configuration as large as an event may be fits."""

_log = structlog.get_logger(__name__)


class Served(Struct, kw_only=True):
    """What the handlers work on.

    Attributes:
        past: The log, and what is known of it.
        asking: What answers questions that read much of it.
        hosts: Under which names this server answers.
        partition: Number of the cluster partition.
        jobs: Long questions.
        identities: Who asks.
        rates: How much each has asked of late.
        release: Of evsched.
        open_streams: Opens log and inbox, to propose; None: the log can only be read.
        verified: What the last verification came to; None: there was none.
        streams: That were opened to propose.
        yunikorn_web: Folder with the files of YuniKorn's web interface; None: it is not served.
    """

    past: SeenPast
    asking: Asking
    jobs: Jobs
    hosts: Hosts
    identities: Identities = msgspec.field(default_factory=Identities)
    rates: Rates = msgspec.field(default_factory=Rates)
    partition: int = 0
    release: str = ""
    open_streams: Callable[[], Streams] | None = None
    verified: VerifyAnswer | None = None
    streams: Streams | None = None
    yunikorn_web: Path | None = None

    def must_be_ready(self) -> None:
        """Refuse where not all is read yet that was in the log at the start."""
        if not self.past.tail.ready:
            fault = self.past.tail.fault
            raise ApiProblem(
                "log-unreachable" if fault else "not-ready",
                fault or "the log is still being read",
                headers={"retry-after": "2"},
            )

    def inbox(self) -> Streams:
        """Return the streams to which proposals go; raise `ApiProblem` where there are none."""
        if self.open_streams is None:
            raise ApiProblem("read-only", "the log is an exported file: it has no inbox")
        if self.streams is None:
            self.streams = self.open_streams()
        return self.streams

    async def close(self) -> None:
        """Let go of everything."""
        await self.jobs.close()
        await self.past.close()
        await self.asking.close()
        if self.streams is not None:
            await self.streams.close()

    def reached(self, seq: int, place: ProblemPlace | None = None) -> int:
        """Return a ``seq`` that the log has reached; refuse a later one, whose answer is not known."""
        if seq > self.past.tail.seq:
            raise ApiProblem(
                "moment-ahead",
                f"event {seq}: the log ends at {self.past.tail.seq} now",
                place or in_path("moment"),
            )
        return seq


def application(served: Served) -> Starlette:
    """Return the application; it opens and closes what it serves."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        served.asking.open()
        await served.past.open()
        try:
            yield
        finally:
            await served.close()

    routes: list[Route | Mount] = [
        Route(one.path, _endpoint(served, one), methods=[one.method], name=one.name)
        for one in OPERATIONS
    ]
    # What these tell is about the whole partition, so whoever asks must see all of it.
    routes += [
        Route(one.path, _audited(served, one.endpoint), methods=list(one.methods or ()))
        for one in (*metrics_routes.routes(served), *yunikorn_routes.routes(served))
    ]
    routes += web.routes(served.yunikorn_web)
    if PAGE_FILES.is_dir():
        routes.append(Mount("/", StaticFiles(directory=PAGE_FILES, html=True)))
    handlers: dict[Any, Any] = {HTTPException: _http_problem, Exception: _fault}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.add_middleware(Guard, hosts=served.hosts)
    return app


def _endpoint(served: Served, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            who = await _allowed(served, operation.right, request)
            call = await _call(operation, request, who)
            async with asyncio.timeout(ANSWER_S):
                reply = await operation.handler(served, call)
        except ApiProblem as problem:
            return problem_response(problem)
        except TimeoutError:
            return problem_response(
                ApiProblem("timed-out", f"no answer was found in {ANSWER_S:.0f} s")
            )
        except StreamError as error:
            return problem_response(ApiProblem("log-unreachable", what_failed(error)))
        return response(reply, request, shared=served.identities.open)

    return endpoint


def _audited(
    served: Served, answer: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers only whoever may see everything."""

    async def endpoint(request: Request) -> Response:
        try:
            await _allowed(served, "audit", request)
        except ApiProblem as problem:
            return problem_response(problem)
        found = await answer(request)
        if not served.identities.open:
            found.headers["cache-control"] = "private, no-store"
        return found

    return endpoint


async def _allowed(served: Served, right: Right, request: Request) -> Principal:
    """Return who asks; raise `ApiProblem` for whoever may not."""
    if right == "open":
        return NOBODY
    who = await served.identities.principal(request.scope, request.headers)
    if served.identities.settings is not None:
        served.rates.take(who.subject, served.identities.settings.rate)
        if right in ("audit", "admin"):
            served.must_be_ready()
            await served.past.ask(served.past.require(who, right))
    return who


async def _call(operation: Operation, request: Request, who: Principal) -> Call:
    """Return a request as its operation names its parts; raise `ApiProblem`."""
    query = parsed_query(operation.query, request.query_params.multi_items())
    body = None
    if operation.body is not None:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in operation.body_types:
            raise ApiProblem(
                "media-type-unsupported",
                f"content-type: found {media_type!r}",
                place_of_header("content-type"),
                expected=operation.body_types,
            )
        data = await _body(request)
        body = data if operation.raw else parsed_body(operation.body, data)
    path = request.scope["raw_path"].decode("latin-1")
    address = f"{path}?{request.url.query}" if request.url.query else path
    return Call(
        path={name: str(value) for name, value in request.path_params.items()},
        query=query,
        body=body,
        address=address,
        headers=dict(request.headers),
        principal=who,
    )


async def _body(request: Request) -> bytes:
    """Return the body, up to the size that is taken."""
    parts = bytearray()
    async with asyncio.timeout(BODY_S):
        async for part in request.stream():
            parts += part
            if len(parts) > LARGEST_BODY:
                raise ApiProblem(
                    "body-too-large", f"body: has more than {LARGEST_BODY} bytes", in_body()
                )
    return bytes(parts)


async def _http_problem(_request: Request, error: Exception) -> Response:
    """Return what Starlette found wrong before any operation was asked, as a problem."""
    assert isinstance(error, HTTPException)
    name = (
        "method-not-allowed" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else "not-found"
    )
    return problem_response(
        ApiProblem(name, error.detail, in_path(""), headers=dict(error.headers or {}))
    )


async def _fault(_request: Request, error: Exception) -> Response:
    """Return a fault of ours; what it was is for the server's own lines."""
    if not isinstance(error, ClientDisconnect):
        _log.error("fault", cause=f"{type(error).__name__}: {error}", place=place_of(error))
    return problem_response(
        ApiProblem("internal", "a fault of evsched; the lines of the server say where")
    )

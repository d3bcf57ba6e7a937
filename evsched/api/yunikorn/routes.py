"""The addresses of YuniKorn's interface, of now and of any moment.

``/ws/v1/…`` is about the end of the log, ``/at/MOMENT/ws/v1/…`` about a moment: a ``seq``, or a time
that is answered with a redirect to its ``seq``. Errors have YuniKorn's form. There is no CORS header:
only pages of this server read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evsched.api.calls import Call, Reply
from evsched.api.problems import ApiProblem
from evsched.api.responses import response
from evsched.api.state_routes import standing
from evsched.api.yunikorn import answers, config
from evsched.api.yunikorn.moments import of_moment, records_of
from evsched.api.yunikorn.streaming import event_lines
from evsched.api.yunikorn.view import NotThere, OtherFamily, YunikornView
from evsched.config.errors import ConfigurationError
from evsched.config.loading import load_texts

if TYPE_CHECKING:
    from evsched.api.app import Served

ANSWER_S = 60.0
MOST_EVENTS = 10_000
LARGEST_CONFIGURATION = 4_000_000
"""Bytes of a queues.yaml that is checked."""

YAML = "application/x-yaml; charset=UTF-8"
ACTIVE = ("new", "accepted", "running", "completing", "failing", "resuming")
"""The states by which active applications can be narrowed."""


ESCAPED = frozenset({"queue", "user", "group"})
"""Names in an address that are escaped twice."""


class Asked(Struct, frozen=True):
    """A request: the names in its path and its query."""

    path: dict[str, str]
    query: dict[str, str]


class BadRequest(Exception):
    """A request that YuniKorn would refuse; the message is what it says."""


ViewQuestion = Callable[[YunikornView, Asked], Any]


def _applications(view: YunikornView, asked: Asked) -> Any:
    kind = asked.path["state"].lower()
    if kind not in {"active", "rejected", "completed"}:
        raise BadRequest(
            "Only following application states are allowed: active, rejected, completed"
        )
    return view.applications_in(asked.path["partition"], kind, _status(asked))


def _applications_of_queue(view: YunikornView, asked: Asked) -> Any:
    if asked.path.get("state", "active").lower() != "active":
        raise BadRequest("Only following application states are allowed: active")
    return view.applications_of(asked.path["partition"], asked.path["queue"], _status(asked))


def _status(asked: Asked) -> str:
    status = asked.query.get("status", "").lower()
    if status and status not in ACTIVE:
        raise BadRequest(f"Only following active statuses are allowed: {','.join(ACTIVE)}")
    return status


READ: dict[str, ViewQuestion] = {
    "clusters": lambda view, _: view.clusters(),
    "partitions": lambda view, _: view.partitions(),
    "partition/{partition}/queues": lambda view, asked: view.queues(asked.path["partition"]),
    "partition/{partition}/queue/{queue}": lambda view, asked: view.queue(
        asked.path["partition"], asked.path["queue"], subtree="subtree" in asked.query
    ),
    "partition/{partition}/queue/{queue}/applications": _applications_of_queue,
    "partition/{partition}/queue/{queue}/applications/{state}": _applications_of_queue,
    "partition/{partition}/queue/{queue}/application/{application}": lambda view, asked: (
        view.application(asked.path["partition"], asked.path["application"], asked.path["queue"])
    ),
    "partition/{partition}/application/{application}": lambda view, asked: view.application(
        asked.path["partition"], asked.path["application"]
    ),
    "partition/{partition}/applications/{state}": _applications,
    "partition/{partition}/nodes": lambda view, asked: view.nodes(asked.path["partition"]),
    "partition/{partition}/node/{node}": lambda view, asked: view.node(
        asked.path["partition"], asked.path["node"]
    ),
    "partition/{partition}/usage/users": lambda view, asked: view.users(asked.path["partition"]),
    "partition/{partition}/usage/user/{user}": lambda view, asked: view.user(
        asked.path["partition"], asked.path["user"]
    ),
    "partition/{partition}/usage/groups": lambda view, asked: view.groups(asked.path["partition"]),
    "partition/{partition}/usage/group/{group}": lambda view, asked: view.group(
        asked.path["partition"], asked.path["group"]
    ),
    "partition/{partition}/placementrules": lambda view, asked: view.placement_rules(
        asked.path["partition"]
    ),
    "history/apps": lambda view, _: view.app_history(),
    "history/containers": lambda view, _: view.container_history(),
    "scheduler/healthcheck": lambda view, _: view.health(),
    "scheduler/node-utilizations": lambda view, _: view.utilizations(),
    "fullstatedump": lambda view, _: view.dump(),
}
"""What reads one moment, by its path below ``/ws/v1/``."""


def routes(served: Served) -> list[Route]:
    """Return all routes, those of now before those of a moment."""
    found = [
        Route(f"{before}/ws/v1/{path}", _guarded(served, _reading(served, ask)))
        for path, ask in READ.items()
        for before in ("", "/at/{moment}")
    ]
    for before in ("", "/at/{moment}"):
        found += [
            Route(f"{before}/ws/v1/config", _guarded(served, _configuration(served))),
            Route(f"{before}/ws/v1/events/batch", _guarded(served, _batch(served))),
        ]
    found += [
        Route("/ws/v1/events/stream", _guarded(served, _stream(served))),
        Route("/ws/v1/validate-conf", _guarded(served, _validate), methods=["POST"]),
    ]
    return found


Endpoint = Callable[[Request], Awaitable[Response]]


def _guarded(served: Served, answer: Endpoint) -> Endpoint:
    """Return an endpoint whose errors have YuniKorn's form."""

    async def endpoint(request: Request) -> Response:
        try:
            if "/validate-conf" not in request.url.path:
                served.must_be_ready()
            async with asyncio.timeout(ANSWER_S):
                return await answer(request)
        except NotThere as error:
            return _problem(404, str(error))
        except BadRequest as error:
            return _problem(400, str(error))
        except OtherFamily as error:
            return _problem(404, _other(error.format))
        except ApiProblem as problem:
            return _problem(problem.status, str(problem), problem.headers)
        except TimeoutError:
            return _problem(503, f"no answer was found in {ANSWER_S:.0f} s")

    return endpoint


def _other(form: str) -> str:
    if not form:
        return "no configuration was applied yet"
    return (
        f"the configuration in force is of format {form}, expected yunikorn: "
        "ask /v1/at/latest/queues"
    )


def _problem(status: int, said: str, headers: dict[str, str] | None = None) -> Response:
    found = answers.ProblemInfo(status_code=status, message=said, description=said)
    return Response(
        msgspec.json.encode(found),
        status,
        {"cache-control": "no-store", **(headers or {})},
        media_type="application/json",
    )


async def _place(served: Served, request: Request) -> tuple[int | None, Reply | None]:
    """Return the ``seq`` that a request is about (None: the end), and a redirect where it names a time."""
    moment = request.path_params.get("moment")
    if moment is None:
        return None, None
    address = request.scope["raw_path"].decode("latin-1")
    if request.url.query:
        address += f"?{request.url.query}"
    call = Call(path={"moment": moment}, query=None, body=None, address=f"/v1{address}", headers={})
    place = await standing(served, call)
    if place.elsewhere is None:
        return place.seq, None
    location = place.elsewhere.headers["location"].removeprefix("/v1")
    return place.seq, msgspec.structs.replace(place.elsewhere, headers={"location": location})


def _asked(request: Request) -> Asked:
    # Clients escape a name that YuniKorn unescapes once more: a slash of a queue's name is %252F.
    path = {
        name: unquote_plus(value) if name in ESCAPED else value
        for name, value in request.path_params.items()
    }
    return Asked(path, dict(request.query_params))


def _reading(served: Served, ask: ViewQuestion) -> Endpoint:
    """Return an endpoint that answers from one moment."""

    async def endpoint(request: Request) -> Response:
        seq, elsewhere = await _place(served, request)
        if elsewhere is not None:
            return response(elsewhere, request)
        asked = _asked(request)

        def answer(view: YunikornView) -> tuple[bytes, int]:
            found = ask(view, asked)
            ill = isinstance(found, answers.HealthInfo) and not found.healthy
            return msgspec.json.encode(found), 503 if ill else 200

        data, status = await served.past.ask(of_moment(served.past, seq, answer))
        return response(Reply(data=data, status=status, lasting=seq is not None), request)

    return endpoint


def _configuration(served: Served) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        seq, elsewhere = await _place(served, request)
        if elsewhere is not None:
            return response(elsewhere, request)
        spec = await served.past.ask(of_moment(served.past, seq, lambda view: view.spec))
        headers = {"vary": "accept"}
        lasting = seq is not None
        if request.headers.get("accept") == "application/json":
            found = config.answer(spec)
            return response(Reply(document=found, lasting=lasting, headers=headers), request)
        data = config.as_yaml(spec).encode()
        return response(
            Reply(data=data, media_type=YAML, lasting=lasting, headers=headers), request
        )

    return endpoint


def _number(request: Request, name: str, default: int) -> int:
    """Return a number of the query, as Go's ``ParseUint`` takes it."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**64:
        raise BadRequest(f'strconv.ParseUint: parsing "{text[:40]}": invalid syntax')
    return int(text)


def _batch(served: Served) -> Endpoint:
    """Return an endpoint for the records of some events, the end of the log or of a moment being the last."""

    async def endpoint(request: Request) -> Response:
        seq, elsewhere = await _place(served, request)
        if elsewhere is not None:
            return response(elsewhere, request)
        count = min(_number(request, "count", MOST_EVENTS), MOST_EVENTS)
        if count == 0:
            raise BadRequest('0 is not a valid value for "count"')
        start = _number(request, "start", 0)
        last = served.past.tail.seq if seq is None else seq
        records = await records_of(served, start, min(last, start + count))
        found = answers.EventBatchInfo(
            instance_uuid=served.past.tail.head.log_id,
            lowest_id=0,
            highest_id=max(last - 1, 0),
            event_records=records,
        )
        return response(Reply(document=found, lasting=seq is not None), request)

    return endpoint


def _stream(served: Served) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        count = min(_number(request, "count", 0), MOST_EVENTS)
        return response(Reply(chunks=event_lines(served, count)), request)

    return endpoint


async def _validate(request: Request) -> Response:
    """Answer whether a queues.yaml could be applied."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_CONFIGURATION:
            raise BadRequest(f"body: has more than {LARGEST_CONFIGURATION} bytes")
    found = await asyncio.to_thread(_validated, bytes(body))
    return response(Reply(document=found), request)


def _validated(body: bytes) -> answers.ValidatedInfo:
    try:
        loaded = load_texts([("queues.yaml", body.decode())])
    except ConfigurationError as error:
        return answers.ValidatedInfo(allowed=False, reason=str(error))
    except UnicodeDecodeError as error:
        return answers.ValidatedInfo(allowed=False, reason=f"queues.yaml: is not UTF-8: {error}")
    for spec in loaded.configurations:
        if spec.__struct_config__.tag != "yunikorn":
            return answers.ValidatedInfo(
                allowed=False, reason=f"found {spec.__struct_config__.tag}, expected a queues.yaml"
            )
    return answers.ValidatedInfo(allowed=True)

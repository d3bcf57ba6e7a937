"""The state at any moment: `evsched at` over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote, urlencode

from msgspec import Meta, Struct
from msgspec.structs import replace

from evsched.api.calls import Answered, Call, Operation, Reply
from evsched.api.pages import LARGEST_PAGE, PAGE, StateRows
from evsched.api.problems import ApiProblem, in_path
from replays.history.loads import NodeLoads
from replays.history.moments import MomentInvalid, parse_moment
from replays.history.tabled import Narrowed
from replays.history.views import View

if TYPE_CHECKING:
    from evsched.api.app import Served

LATEST = "latest"
"""The word for the end of the log, beside `end`."""

VIEW_NAMES: dict[str, View] = {
    "queues": "queues",
    "nodes": "nodes",
    "applications": "apps",
    "asks": "asks",
    "allocations": "allocations",
    "timers": "timers",
    "config": "config",
}
"""The views by their names in addresses."""

Limit = Annotated[int, Meta(ge=1, le=LARGEST_PAGE)]


class StateQuery(Struct, frozen=True, kw_only=True):
    """Which rows of the state are wanted.

    Attributes:
        queue: Only what is in this queue or below it.
        application: Only what belongs to this application.
        node: Only what is on this node.
        after: Only what comes behind the row with this key; an earlier page named it in `next`.
        limit: Most rows.
    """

    queue: str | None = None
    application: str | None = None
    node: str | None = None
    after: str | None = None
    limit: Limit = PAGE


class LoadsQuery(Struct, frozen=True, kw_only=True):
    """Which figures of the nodes are wanted.

    Attributes:
        resource: Of this one; where none is given, or no node has it, of the first that nodes have.
        limit: Most nodes.
    """

    resource: str | None = None
    limit: Limit = LARGEST_PAGE


class Standing(Struct, frozen=True, kw_only=True):
    """A place of the log that a request names.

    Attributes:
        seq: None: the end of the log, wherever that is when the answer is made.
        elsewhere: Where the same is found for ever: the request named a time; None: here.
    """

    seq: int | None
    elsewhere: Reply | None = None


async def standing(served: Served, call: Call) -> Standing:
    """Return the place of the log that the path of a request names; raise `ApiProblem`."""
    text = call.path["moment"]
    try:
        moment = parse_moment("end" if text == LATEST else text)
    except MomentInvalid as error:
        raise ApiProblem("moment-invalid", str(error), in_path("moment")) from error
    served.must_be_ready()
    if moment.is_end:
        return Standing(seq=None)
    if moment.seq is not None:
        return Standing(seq=served.reached(moment.seq))
    seq = await served.past.seq_at(moment)
    # More may come with the very time at which the log ends now.
    lasting = moment.time is not None and moment.time < served.past.tail.head.time
    first, at, _, *rest = call.address.removeprefix("/").split("/", 3)
    location = "/" + "/".join((first, at, str(seq), *rest))
    return Standing(
        seq=seq,
        elsewhere=Reply(status=307, data=b"", lasting=lasting, headers={"location": location}),
    )


async def state_rows(served: Served, call: Call) -> Reply:
    """Answer with a page of rows."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    query: StateQuery = call.query
    wanted = Narrowed(
        queue=query.queue,
        application=query.application,
        node=query.node,
        after=query.after,
        limit=query.limit,
    )
    name = call.path["view"]
    found = await served.past.ask(served.past.rows(call.principal, place.seq, _view(name), wanted))
    if found.next is not None:
        found = replace(found, next=_next_page(name, found, query))
    return _stood(found, place)


async def state_row(served: Served, call: Call) -> Reply:
    """Answer with one row."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    wanted = Narrowed(key=call.path["key"], limit=1)
    found = await served.past.ask(
        served.past.rows(call.principal, place.seq, _view(call.path["view"]), wanted)
    )
    return _stood(found, place)


async def node_loads(served: Served, call: Call) -> Reply:
    """Answer with how full the nodes are, in columns."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    query: LoadsQuery = call.query
    seq = served.past.tail.seq if place.seq is None else place.seq
    found = await served.past.ask(served.past.loads(seq, query.resource, query.limit))
    return Reply(document=found, lasting=place.seq is not None)


def _view(name: str) -> View:
    if name not in VIEW_NAMES:
        raise ApiProblem(
            "not-found", f"view {name}: there is none", in_path("view"), expected=tuple(VIEW_NAMES)
        )
    return VIEW_NAMES[name]


def _stood(found: StateRows, place: Standing) -> Reply:
    """Return the answer; one about the end of the log says where the same will always be found."""
    return Reply(document=found, lasting=place.seq is not None)


def _next_page(name: str, found: StateRows, query: StateQuery) -> str:
    """Return the address of the next page, at the seq of this one."""
    given = {
        field: value
        for field in ("queue", "application", "node")
        if (value := getattr(query, field)) is not None
    }
    given |= {"after": found.next, "limit": str(query.limit)}
    return f"/v1/at/{found.seq}/{quote(name)}?{urlencode(given)}"


Views = Literal["queues", "nodes", "applications", "asks", "allocations", "timers", "config"]

OPERATIONS = (
    Operation(
        name="nodeLoads",
        right="view",
        method="GET",
        path="/v1/at/{moment}/loads",
        handler=node_loads,
        summary="How full the nodes were at a moment, in columns: what a grid of them is drawn from",
        query=LoadsQuery,
        answers=(
            Answered(200, "A value for each node, ascending by name", NodeLoads),
            Answered(307, "The same by its seq, where the moment was a time", None, ()),
        ),
        problems=("moment-invalid", "moment-ahead"),
    ),
    Operation(
        name="stateRows",
        right="view",
        method="GET",
        path="/v1/at/{moment}/{view}",
        handler=state_rows,
        summary="The state at a moment: queues, nodes, applications, asks, allocations, timers or settings",
        query=StateQuery,
        answers=(
            Answered(200, "A page of rows", StateRows),
            Answered(307, "The same by its seq, where the moment was a time", None, ()),
        ),
        problems=("moment-invalid", "moment-ahead", "unknown-name", "not-found"),
    ),
    Operation(
        name="stateRow",
        right="view",
        method="GET",
        path="/v1/at/{moment}/{view}/{key:path}",
        handler=state_row,
        summary="One row of the state at a moment",
        answers=(
            Answered(200, "The row", StateRows),
            Answered(307, "The same by its seq, where the moment was a time", None, ()),
        ),
        problems=("moment-invalid", "moment-ahead", "unknown-name", "not-found"),
    ),
)

"""A request as a handler sees it, what it answers, and the table entry that joins the two.

An `Operation` says everything about a route: its path, the types of what it takes and gives, and the
problems it may answer with. Requests are read by these types, and the OpenAPI document is made of them,
so the two cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from evsched.api.problems import ApiProblem, ProblemPlace, in_body, in_query

if TYPE_CHECKING:
    from evsched.api.app import Served

S = TypeVar("S", bound=Struct)

JSON = "application/json"


class Principal(Struct, frozen=True, kw_only=True):
    """Who asks.

    Attributes:
        subject: Name of the person or account; empty: unknown, on an open server.
        groups: Of which it is a member.
    """

    subject: str = ""
    groups: tuple[str, ...] = ()


NOBODY = Principal()
"""Whoever asks a server that is open."""


class Call(Struct, frozen=True, kw_only=True):
    """A request.

    Attributes:
        path: Parameters of the path.
        query: Parameters behind the question mark, of the type that the operation names.
        body: Of the type that the operation names; None: it takes none.
        address: Path and query, as they were asked for.
        headers: By their names in small letters.
        principal: Who asks.
    """

    path: dict[str, str]
    query: Any
    body: Any
    address: str
    headers: dict[str, str]
    principal: Principal = NOBODY


class Reply(Struct, frozen=True, kw_only=True):
    """An answer.

    Attributes:
        document: What is encoded as JSON; not used where there are ``data`` or ``chunks``.
        data: The bytes themselves.
        chunks: A stream of bytes.
        lasting: Whether it is the same for ever.
        headers: Further ones.
    """

    document: Any = None
    data: bytes | None = None
    chunks: AsyncIterator[bytes] | None = None
    status: int = 200
    media_type: str = JSON
    lasting: bool = False
    headers: dict[str, str] = {}


Right = Literal["open", "any", "view", "submit", "audit", "admin"]
"""What an operation asks for: nothing; to be known; a look at queues (what is foreign is left out or
masked); the right to propose what is in the body; to see everything; to propose anything."""

OperationHandler = Callable[["Served", Call], Awaitable[Reply]]


class Answered(NamedTuple):
    """One way in which an operation may answer.

    Attributes:
        kind: Type of the document; None: it has none, or no JSON.
        media_types: Of the answer.
    """

    status: int
    meaning: str
    kind: Any = None
    media_types: tuple[str, ...] = (JSON,)


class Operation(NamedTuple):
    """A route.

    Attributes:
        name: Of the operation, unique.
        path: With its parameters in braces.
        handler: What answers.
        summary: What it is for, a line.
        answers: What it may answer where nothing is wrong.
        problems: Names of the problems it may answer with, beside those that any may.
        query: Type of its parameters; None: it takes none.
        body: Type of its body; None: it takes none.
        body_types: Media types of the body.
        raw: The handler reads the body itself; its type is only told.
        right: What whoever asks must have; where nothing is said, a look at everything.
    """

    name: str
    method: Literal["GET", "POST", "DELETE"]
    path: str
    handler: OperationHandler
    summary: str
    answers: tuple[Answered, ...]
    problems: tuple[str, ...] = ()
    query: type[Struct] | None = None
    body: Any = None
    body_types: tuple[str, ...] = (JSON,)
    raw: bool = False
    right: Right = "audit"


def parsed_query(kind: type[S] | None, given: list[tuple[str, str]]) -> S | None:
    """Return the parameters behind the question mark; raise `ApiProblem`.

    Numbers and words become what the type says; a field with several values takes them with commas
    between, or as parameters of one name.
    """
    if kind is None:
        if given:
            name = given[0][0]
            raise ApiProblem("parameter-invalid", f"{name}: no parameter is taken", in_query(name))
        return None
    several = {
        field.name
        for field in msgspec.structs.fields(kind)
        if str(field.type).startswith(("tuple", "list"))
    }
    found: dict[str, Any] = {}
    for name, text in given:
        if name in several:
            found.setdefault(name, []).extend(part for part in text.split(",") if part)
        elif name in found:
            raise ApiProblem("parameter-invalid", f"{name}: is given twice", in_query(name))
        else:
            found[name] = text
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    for name in found:
        if name not in known:
            raise ApiProblem(
                "parameter-invalid",
                f"{name}: there is no such parameter",
                in_query(name),
                expected=tuple(sorted(known)),
            )
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        detail, name = _with_place(error)
        raise ApiProblem("parameter-invalid", detail, in_query(name)) from error


def parsed_body(kind: Any, data: bytes) -> Any:
    """Return the document in a body of JSON; raise `ApiProblem`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        detail, name = _with_place(error)
        raise ApiProblem("body-invalid", detail, in_body(name)) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ApiProblem("body-invalid", f"body: is no JSON: {error}", in_body()) from error


_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`")


def _with_place(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the sentence of an error with its place in front, and the place: `$.a.b` is `a.b`."""
    what, _, where = str(error).partition(" - at `")
    place = where.rstrip("`").removeprefix("$").removeprefix(".")
    field = _FIELD.fullmatch(what)
    if field is not None:
        place = ".".join(filter(None, (place, field[2])))
        what = "Is missing" if field[1].startswith("missing") else "There is no such field"
    return (f"{place}: {what[:1].lower()}{what[1:]}" if place else what), place


def place_of_header(name: str) -> ProblemPlace:
    """Return the place of a header."""
    return ProblemPlace(where="header", name=name)

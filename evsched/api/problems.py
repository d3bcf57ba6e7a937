"""What a client is told when it cannot be answered: RFC 9457 problems with types that stay.

A problem's ``type`` is a path of this server, ``/v1/problems/NAME``, where its meaning can be read. A
name once given keeps its meaning; clients may rely on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from evsched.config import Fault

MEDIA_TYPE = "application/problem+json"
PLACE = "/v1/problems/"


class ProblemType(NamedTuple):
    """One kind of problem.

    Attributes:
        status: Of the answer.
        title: What it means, the same for every occurrence.
    """

    status: int
    title: str


PROBLEM_TYPES = {
    "not-found": ProblemType(404, "There is no such resource."),
    "method-not-allowed": ProblemType(405, "The resource has no such method."),
    "not-acceptable": ProblemType(406, "None of the accepted media types is offered."),
    "unauthenticated": ProblemType(401, "Nothing that is taken here shows who asks."),
    "forbidden": ProblemType(403, "Whoever asks has no right to this."),
    "cross-site": ProblemType(403, "The request comes from a page of another site."),
    "too-many-requests": ProblemType(429, "Whoever asks has asked too much of late."),
    "moment-invalid": ProblemType(400, "The moment cannot be read."),
    "moment-ahead": ProblemType(404, "The log does not go that far yet."),
    "parameter-invalid": ProblemType(400, "A parameter of the address is not as it should be."),
    "body-invalid": ProblemType(400, "The body is not as it should be."),
    "body-too-large": ProblemType(413, "The body is larger than this server takes."),
    "media-type-unsupported": ProblemType(415, "The body has a media type that is not taken."),
    "unknown-name": ProblemType(404, "Nothing has that name there."),
    "read-only": ProblemType(409, "This log can only be read."),
    "inbox-refused": ProblemType(503, "The inbox did not take the proposal."),
    "configuration-invalid": ProblemType(422, "The configuration is not valid."),
    "too-many-jobs": ProblemType(429, "Too many jobs wait already."),
    "timed-out": ProblemType(503, "The question took longer than it may."),
    "not-ready": ProblemType(503, "The log is still being read."),
    "log-unreachable": ProblemType(503, "The log cannot be reached, or is damaged."),
    "host-refused": ProblemType(421, "This server does not answer under that host name."),
    "internal": ProblemType(500, "A fault of evsched."),
}
"""Every type, by name."""


class ProblemPlace(Struct, frozen=True, kw_only=True):
    """What is at fault.

    Attributes:
        where: The part of the request: ``path``, ``query``, ``header`` or ``body``.
        name: Of the parameter or header, or the path of a field in the body; empty: all of it.
    """

    where: str
    name: str = ""


class ProblemDocument(Struct, frozen=True, kw_only=True):
    """A problem as it is sent (RFC 9457).

    Attributes:
        type: Path that tells the type; it never changes its meaning.
        title: What the type means.
        status: Of the answer.
        detail: What is wrong here.
        place: What is at fault; left out where the request is not.
        expected: What would have been taken; left out where that is no list.
        faults: Of a configuration, all of them, each with its line.
    """

    type: str
    title: str
    status: int
    detail: str
    place: ProblemPlace | UnsetType = UNSET
    expected: tuple[str, ...] | UnsetType = UNSET
    faults: tuple[Fault, ...] | UnsetType = UNSET


class ApiProblem(Exception):
    """A request cannot be answered.

    Attributes:
        name: Of the type, a key of `PROBLEM_TYPES`.
        place: What is at fault; None: not the request.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        name: str,
        detail: str,
        place: ProblemPlace | None = None,
        *,
        expected: tuple[str, ...] = (),
        faults: tuple[Fault, ...] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        self.faults = faults
        self.name, self.detail, self.place, self.expected = name, detail, place, expected
        self.headers = headers or {}
        super().__init__(f"{name}: {detail}")

    @property
    def status(self) -> int:
        """Of the answer."""
        return PROBLEM_TYPES[self.name].status

    def document(self) -> ProblemDocument:
        """Return what is sent."""
        kind = PROBLEM_TYPES[self.name]
        return ProblemDocument(
            type=PLACE + self.name,
            title=kind.title,
            status=kind.status,
            detail=self.detail,
            place=self.place if self.place is not None else UNSET,
            expected=self.expected or UNSET,
            faults=self.faults or UNSET,
        )


def in_query(name: str) -> ProblemPlace:
    """Return the place of a parameter behind the question mark."""
    return ProblemPlace(where="query", name=name)


def in_path(name: str) -> ProblemPlace:
    """Return the place of a parameter of the path."""
    return ProblemPlace(where="path", name=name)


def in_body(name: str = "") -> ProblemPlace:
    """Return the place of a field of the body; empty: all of it."""
    return ProblemPlace(where="body", name=name)


def what_failed(error: Any) -> str:
    """Return an error's sentence in one line."""
    return " ".join(str(error).split())

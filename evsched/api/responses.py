"""Answers and problems as they are sent."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from evsched.api.calls import Reply
from evsched.api.problems import MEDIA_TYPE, ApiProblem

FOREVER = "max-age=31536000, immutable"
"""Of what belongs to a ``seq``: it never changes."""


def response(reply: Reply, request: Request, *, shared: bool = True) -> Response:
    """Return an answer as it is sent.

    Args:
        reply: The answer.
        request: What is answered.
        shared: Whether it is the same for everybody. What depends on rights is not kept by caches
            between, and asked for again, as a right may be taken away.
    """
    headers = dict(reply.headers)
    if reply.chunks is not None:
        return StreamingResponse(
            reply.chunks,
            reply.status,
            {"cache-control": "no-store", **headers},
            media_type=reply.media_type,
        )
    data = reply.data if reply.data is not None else msgspec.json.encode(reply.document)
    headers["cache-control"] = FOREVER if reply.lasting else "no-cache"
    if not shared:
        headers |= {"cache-control": "private, no-cache", "vary": "Authorization"}
    if reply.lasting and reply.status == HTTPStatus.OK:
        headers["etag"] = etag_of(data)
        if matches(request.headers.get("if-none-match", ""), headers["etag"]):
            return Response(status_code=304, headers=headers)
    return Response(data, reply.status, headers, media_type=reply.media_type if data else None)


def problem_response(problem: ApiProblem) -> Response:
    """Return a problem as it is sent."""
    return Response(
        msgspec.json.encode(problem.document()),
        problem.status,
        {"cache-control": "no-store", **problem.headers},
        media_type=MEDIA_TYPE,
    )


def etag_of(data: bytes) -> str:
    """Return the strong ETag of an answer: a hash of its bytes, so that it outlives this process."""
    return f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"'


def matches(header: str, etag: str) -> bool:
    """Tell whether an ``If-None-Match`` names an ETag (RFC 9110, 13.1.2: compared weakly)."""
    return any(one.strip().removeprefix("W/") in (etag, "*") for one in header.split(","))

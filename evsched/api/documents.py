"""The API described for programs: OpenAPI 3.1 for requests, AsyncAPI 3 for the stream of events.

Both are made of the table of operations and the types that requests are read by, lie beside this file,
and are served. ``python -m evsched.api.documents`` makes them anew, and a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct

from events.schemas import tidied
from events.vocabulary import AnyEvent
from evsched.api.app import OPERATIONS
from evsched.api.calls import Answered, Operation
from evsched.api.event_routes import CLOUD_EVENTS, NDJSON, SSE
from evsched.api.problems import MEDIA_TYPE, PROBLEM_TYPES, ProblemDocument
from evsched.api.state_routes import VIEW_NAMES
from evsched.api.told import CloudEvent, ServerSentEvent, ToldEvent

FOLDER = Path(__file__).resolve().parent
VERSION = "1"
"""Of the API; what is there keeps its meaning as long as it stays."""

_TEMPLATE = "#/components/schemas/{name}"
_KINDS = {SSE: ServerSentEvent, NDJSON: ToldEvent, CLOUD_EVENTS: list[CloudEvent]}
"""What the documents of media types other than JSON hold."""

_ALWAYS = (
    "parameter-invalid", "unauthenticated", "forbidden", "not-found", "host-refused",
    "too-many-requests", "internal", "not-ready", "timed-out", "log-unreachable",
)  # fmt: skip
"""Problems with which any operation may answer."""

_WITH_BODY = ("body-invalid", "body-too-large", "media-type-unsupported", "cross-site")
_ABOUT = {
    "moment": "a seq, `latest`, a time (2026-11-20T14:03:00Z), or time before the end (-15m)",
    "view": "what is looked at",
    "key": "of a row",
    "subject": "id of an ask or allocation",
    "name": "as it is listed",
    "id": "of the job",
}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = [kind for one in OPERATIONS for kind in _kinds(one)] + [ProblemDocument]
    refs, schemas = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    by_kind = {repr(kind): ref for kind, ref in zip(kinds, refs, strict=True)}
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        path = paths.setdefault(re.sub(r":path}", "}", one.path), {})
        path[one.method.lower()] = _operation(one, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "evsched",
            "version": VERSION,
            "description": "The past and the present of a cluster scheduler. An answer at a seq never changes.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": tidied(schemas),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _kinds(one: Operation) -> list[Any]:
    found = [one.body] if one.body is not None else []
    for answer in one.answers:
        found += [_KINDS.get(media, answer.kind) for media in answer.media_types]
    if one.query is not None:
        found += [field.type for field in msgspec.structs.fields(one.query)]
    return found


def _operation(one: Operation, refs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "x-right": one.right,
        "parameters": [*_path_parameters(one), *_query_parameters(one, refs)],
        "responses": {
            **{str(answer.status): _answer(answer, refs) for answer in one.answers},
            **_problems(one, refs),
        },
    }
    if one.right == "open":
        found["security"] = []
    if one.body is not None:
        schema = refs[repr(one.body)]
        found["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schema} for media in one.body_types},
        }
    return found


def _path_parameters(one: Operation) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)(?::path)?}", one.path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if name == "view":
            schema["enum"] = list(VIEW_NAMES)
        found.append(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": _ABOUT[name],
                "schema": schema,
            }
        )
    return found


def _query_parameters(one: Operation, refs: dict[str, Any]) -> list[dict[str, Any]]:
    if one.query is None:
        return []
    about = _attributes(one.query)
    found = []
    for field in msgspec.structs.fields(one.query):
        several = str(field.type).startswith("tuple")
        schema = _without_null(refs[repr(field.type)])
        if field.default not in (NODEFAULT, None, "", ()):
            schema = {**schema, "default": field.default}
        parameter: dict[str, Any] = {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "description": about.get(field.name, field.encode_name),
            "schema": schema,
        }
        if several:
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, which is left out rather than null."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if "enum" in schema:
        return {**schema, "enum": [one for one in schema["enum"] if one is not None]}
    return choices[0] if len(choices) == 1 else schema


def _attributes(kind: type[Struct]) -> dict[str, str]:
    """Return what the docstring of a type says of its attributes."""
    text = (kind.__doc__ or "").partition("Attributes:")[2]
    found: dict[str, str] = {}
    for name, meaning in re.findall(r"^ {8}([\w, ]+): ((?:.|\n {12})*)", text, re.MULTILINE):
        for one in name.split(", "):
            found[one] = " ".join(meaning.split())
    return found


def _answer(answer: Answered, refs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": answer.meaning}
    if answer.media_types:
        found["content"] = {
            media: {"schema": refs[repr(_KINDS.get(media, answer.kind))]}
            for media in answer.media_types
        }
    if answer.status == 307:  # noqa: PLR2004 - HTTP's number
        found["headers"] = {"location": {"schema": {"type": "string"}}}
    return found


def _problems(one: Operation, refs: dict[str, Any]) -> dict[str, Any]:
    names = dict.fromkeys((*_ALWAYS, *(_WITH_BODY if one.body is not None else ()), *one.problems))
    if one.method != "GET":
        names |= dict.fromkeys(("cross-site",))
    by_status: dict[int, list[str]] = {}
    for name in names:
        by_status.setdefault(PROBLEM_TYPES[name].status, []).append(name)
    schema = refs[repr(ProblemDocument)]
    return {
        str(status): {
            "description": "; ".join(PROBLEM_TYPES[name].title for name in found),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status, found in sorted(by_status.items())
    }


def asyncapi() -> dict[str, Any]:
    """Return the AsyncAPI document: the stream of events, a message for each type."""
    kinds = AnyEvent.__args__
    refs, schemas = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    messages = {
        kind.__name__: {
            "name": kind.__name__,
            "contentType": "application/json",
            "headers": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "description": "the seq of the event"},
                    "event": {"const": kind.__name__},
                },
            },
            "payload": {
                "type": "object",
                "properties": {
                    "time": {"type": "integer", "description": "milliseconds since the epoch"},
                    "frame": {"type": "integer"},
                    "event": ref,
                },
                "required": ["time", "frame", "event"],
            },
        }
        for kind, ref in zip(kinds, refs, strict=True)
    }
    named = [{"$ref": f"#/channels/events/messages/{name}"} for name in messages]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "evsched",
            "version": VERSION,
            "description": "The events of a log as server-sent events: each once, in the order of their seq.",
        },
        "channels": {
            "events": {
                "address": "/v1/events",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "tellEvents": {
                "action": "send",
                "channel": {"$ref": "#/channels/events"},
                "messages": named,
            }
        },
        "components": {"messages": messages, "schemas": tidied(schemas)},
    }


def written() -> dict[str, bytes]:
    """Return both documents by the names of their files, the same on every machine."""
    return {
        f"{name}.json": msgspec.json.format(
            msgspec.json.encode(made, order="deterministic"), indent=1
        )
        + b"\n"
        for name, made in (("openapi", openapi()), ("asyncapi", asyncapi()))
    }


if __name__ == "__main__":
    for name, data in written().items():
        (FOLDER / name).write_bytes(data)

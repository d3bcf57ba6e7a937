"""JSON Schemas of what travels, made from the types and kept beside this file for whoever has no Python.

``python -m events.schemas`` writes them anew. ``proposal`` is the value of an inbox record,
``frame`` that of a log record, ``event`` one of a frame's events.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from events.bounds import FRAME_DEPTH, MAX_DEPTH, MAX_FRAME_BYTES, MAX_PROPOSAL_BYTES
from events.frame import Frame
from events.unknown_fields import LOG_ONLY
from events.vocabulary import AnyEvent, AnyInput

DIALECT = "https://json-schema.org/draft/2020-12/schema"

VERSION = 2
"""Raised with the first release whose schemas differ from the last one's; 0.1.0 had 1, without saying so."""


def schemas() -> dict[str, bytes]:
    """Return each schema's file name and content, the same on every machine."""
    roots: dict[str, tuple[Any, int, int]] = {
        "event": (AnyEvent, FRAME_DEPTH, 0),
        "frame": (Frame, FRAME_DEPTH, MAX_FRAME_BYTES),
        "proposal": (AnyInput, MAX_DEPTH, MAX_PROPOSAL_BYTES),
    }
    made = {}
    for name, (root, deep, size) in roots.items():
        # No keyword of JSON Schema says either; an event that is larger than a frame comes in pieces.
        bounds = f"At most {deep} objects and lists within each other."
        if size:
            bounds = f"At most {size} bytes. {bounds}"
        made_of = msgspec.json.schema(root)
        if root is AnyInput:
            made_of = _as_proposed(made_of)
        document = tidied(
            {
                "$schema": DIALECT,
                "$id": f"urn:evsched:schema:{name}:{VERSION}",
                "title": name,
                "version": VERSION,
                "$comment": bounds,
                **made_of,
            }
        )
        made[f"{name}.json"] = (
            msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2)
            + b"\n"
        )
    return made


def _as_proposed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of inputs as a proposal may have them: closed, without what the log alone gives."""
    for definition in schema["$defs"].values():
        if "properties" in definition:
            definition["additionalProperties"] = False
            for name in LOG_ONLY:
                definition["properties"].pop(name, None)
    return schema


def tidied(part: Any) -> Any:
    """Return a part of a schema with its descriptions unindented: how a docstring is kept depends on the version of Python."""
    if isinstance(part, dict):
        return {
            name: inspect.cleandoc(value)
            if name == "description" and isinstance(value, str)
            else tidied(value)
            for name, value in part.items()
        }
    return [tidied(value) for value in part] if isinstance(part, list) else part

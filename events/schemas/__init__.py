"""JSON Schemas of what travels, made from the types and kept beside this file for whoever has no Python.

``python -m events.schemas`` writes them anew. ``proposal`` is the value of an inbox record,
``frame`` that of a log record, ``event`` one of a frame's events.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from events.frame import Frame
from events.vocabulary import AnyEvent, AnyInput

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, bytes]:
    """Return each schema's file name and content, the same on every machine."""
    roots: dict[str, Any] = {"event": AnyEvent, "frame": Frame, "proposal": AnyInput}
    made = {}
    for name, root in roots.items():
        document = _tidied({"$schema": DIALECT, "title": name, **msgspec.json.schema(root)})
        made[f"{name}.json"] = (
            msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2)
            + b"\n"
        )
    return made


def _tidied(part: Any) -> Any:
    """Return a part of a schema with its descriptions unindented: how a docstring is kept depends on the version of Python."""
    if isinstance(part, dict):
        return {
            name: inspect.cleandoc(value)
            if name == "description" and isinstance(value, str)
            else _tidied(value)
            for name, value in part.items()
        }
    return [_tidied(value) for value in part] if isinstance(part, list) else part

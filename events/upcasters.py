"""From event types that are no longer written to those that took their place.

An event type only ever gains optional fields. When its meaning has to change, the new meaning gets
a new type, and an upcaster turns what old logs hold into it while they are read; the log itself
stays as it was written, hashes included. An upcaster works on the JSON object, so the old type need
not exist as a class any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RawDocument = dict[str, Any]
Upcaster = Callable[[RawDocument], RawDocument]

UPCASTERS: dict[str, Upcaster] = {}
"""Old type name to the function that returns the same event in a newer type, ``type`` included."""


def upcast(document: RawDocument) -> RawDocument:
    """Return this event with every upcaster applied that its type, and then the result's type, asks for.

    ``seq``, ``cause``, ``due`` and ``proposal`` stay as they are whatever the upcaster does. Raises
    ValueError when upcasters go in a circle.
    """
    for _ in range(len(UPCASTERS) + 1):
        upcaster = UPCASTERS.get(document.get("type", ""))
        if upcaster is None:
            inner = document.get("input")
            return document | {"input": upcast(inner)} if isinstance(inner, dict) else document
        kept = {
            name: document[name] for name in ("seq", "cause", "due", "proposal") if name in document
        }
        document = upcaster(document) | kept
    raise ValueError(f"event type {document.get('type')}: its upcasters go in a circle")

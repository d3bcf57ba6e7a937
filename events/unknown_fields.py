"""Fields that no proposal has, found before a slip of the pen passes for a default.

An event in a log may hold fields that its reader does not know: a newer leader wrote them. A
proposal is the other way round: nobody has acted on it yet, and its producer waits for an answer.
So a proposal is compared with the types, all the way down, and a mapping whose keys are free
(amounts, labels, tags) is left alone.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

LOG_ONLY = ("seq", "cause", "due")
"""Fields of an input that only the log gives."""

MAX_SHOWN = 64
"""Characters of a stranger's field name that stand in a message."""


def unknown_field(kind: Any, document: Any) -> str:
    """Return what is wrong with the first unknown field below a value, as a phrase; empty: nothing.

    Args:
        kind: The type that the value was decoded as, or a union of such types.
        document: The value as JSON has it: dictionaries, lists and scalars. Its shape is that of
            the type, which decoding has proved.
    """
    return _below(kind, document, "$")


def _below(kind: Any, document: Any, path: str) -> str:
    """Return the phrase for a value at a path of the proposal."""
    if isinstance(document, dict):
        struct = _struct_of(kind, document)
        if struct is None:
            values = _values_of(kind)
            steps = [(values, value, f"{path}[...]") for value in document.values()]
            return _first(steps) if values is not None else ""
        fields = _fields(struct)
        for name in document:
            if name not in fields:
                return _phrase(name, path, tuple(fields))
        return _first(
            [
                (fields[name], value, f"{path}.{name}")
                for name, value in document.items()
                if isinstance(value, dict | list)
            ]
        )
    if isinstance(document, list):
        items = _items_of(kind)
        if items is not None:
            return _first(
                [(items, value, f"{path}[{index}]") for index, value in enumerate(document)]
            )
    return ""


def _first(steps: list[tuple[Any, Any, str]]) -> str:
    return next(filter(None, (_below(*step) for step in steps)), "")


def _phrase(name: str, path: str, known: tuple[str, ...]) -> str:
    shown = name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"
    place = f" at `{path}`" if path != "$" else ""
    near = get_close_matches(shown, known, n=1)
    hint = f"expected {near[0]!r}" if near else f"expected one of {', '.join(known)}"
    return f"found the unknown field {shown!a}{place}, {hint}"


@cache
def _fields(struct: type[Struct]) -> dict[str, Any]:
    """Return the fields that a proposal may have in a struct, with their types."""
    hints = get_type_hints(struct, include_extras=True)
    found = {name: hints[name] for name in struct.__struct_fields__ if name not in LOG_ONLY}
    tag = struct.__struct_config__.tag_field
    return found if tag is None else {tag: str, **found}


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the types that a type may be, without what is annotated to them."""
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return tuple(one for part in get_args(kind) for one in _alternatives(part))
    return (kind,)


@cache
def _structs(kind: Any) -> tuple[type[Struct], ...]:
    return tuple(
        one for one in _alternatives(kind) if isinstance(one, type) and issubclass(one, Struct)
    )


def _struct_of(kind: Any, document: dict[str, Any]) -> type[Struct] | None:
    """Return the struct that an object was decoded as; None: its keys are free."""
    found = _structs(kind)
    if len(found) > 1:
        return next(
            one
            for one in found
            if one.__struct_config__.tag == document.get(str(one.__struct_config__.tag_field))
        )
    return found[0] if found else None


@cache
def _values_of(kind: Any) -> Any:
    """Return the type of a mapping's values; None where it is no mapping."""
    return next(
        (get_args(one)[1] for one in _alternatives(kind) if get_origin(one) is dict),
        None,
    )


@cache
def _items_of(kind: Any) -> Any:
    """Return the type of a list's elements; None where it is no list."""
    return next(
        (get_args(one)[0] for one in _alternatives(kind) if get_origin(one) in {tuple, list}),
        None,
    )

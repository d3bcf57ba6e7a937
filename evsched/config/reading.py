"""Reading nodes by a schema: strict keys, typed scalars, and every fault collected instead of the first one raised.

A reader never stops: what is wrong is noted with its place, a harmless value stands in for it, and
the caller refuses the whole document in the end. What is null counts as absent, as it does for the
Go programs these formats come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from events.bounds import MAX_TEXT
from evsched.config.document import MAX_FAULTS, ParsedNode
from evsched.config.errors import ConfigurationError, Fault

Value = TypeVar("Value")

MAX_KEY = 253
"""The longest key of a mapping that may hold any."""

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,30})")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ABSENT = ParsedNode("", "", 0, "null")


class Reader:
    """Reads the parts of documents and keeps what was wrong with them.

    Attributes:
        faults: What is wrong, in the order in which it was found.
        warnings: What is accepted but worth knowing.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def refuse(self, node: ParsedNode, message: str) -> None:
        """Note a fault at a node."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(node.fault(message))

    def warn(self, node: ParsedNode, message: str) -> None:
        """Note something worth knowing at a node."""
        if len(self.warnings) < MAX_FAULTS:
            self.warnings.append(node.fault(message))

    def finish(self) -> None:
        """Raise `ConfigurationError` with all faults when there is one."""
        if self.faults:
            raise ConfigurationError(tuple(self.faults))

    def mapping(
        self, node: ParsedNode, keys: Iterable[str] | None = None, ignored: Iterable[str] = ()
    ) -> Mapping[str, ParsedNode]:
        """Return the fields of a mapping, those that are null left out.

        Args:
            node: The mapping; null is an empty one.
            keys: The keys there may be; None: any.
            ignored: Keys that are accepted, with a warning, and left out.
        """
        if node.kind == "null":
            return {}
        if node.kind != "mapping":
            self.refuse(node, f"found {node.found()}, expected a mapping")
            return {}
        allowed = None if keys is None else tuple(keys)
        left_out = tuple(ignored)
        fields = {}
        for key, value in node.fields.items():
            if key in left_out:
                self.warn(value, "is not modelled and has no effect")
            elif allowed is not None and key not in allowed:
                self.refuse(
                    value,
                    f"found the unknown key {key!r}, expected one of {', '.join(sorted(allowed))}",
                )
            elif allowed is None and (_CONTROL.search(key) or not 0 < len(key) <= MAX_KEY):
                self.refuse(
                    value,
                    f"found the key {key[:MAX_KEY]!r}, expected 1 to {MAX_KEY} characters, none of control",
                )
            elif value.kind != "null":
                fields[key] = value
        return fields

    def items(self, node: ParsedNode) -> list[ParsedNode]:
        """Return the elements of a list; null is an empty one."""
        if node.kind not in {"list", "null"}:
            self.refuse(node, f"found {node.found()}, expected a list")
        return node.items

    def text(self, node: ParsedNode, default: str = "") -> str:
        """Return a text; a plain decimal number is taken as it was written, other surprises of YAML are refused."""
        if node.kind == "null":
            return default
        number = node.kind in {"integer", "number"} and _DECIMAL.fullmatch(node.text)
        if node.kind != "text" and not number:
            hint = "" if node.kind in {"mapping", "list"} else f' (write "{node.text}" in quotes)'
            self.refuse(node, f"found {node.found()}, expected text{hint}")
        elif len(node.text) > MAX_TEXT:
            self.refuse(node, f"found {len(node.text)} characters, expected at most {MAX_TEXT}")
        elif _CONTROL.search(node.text):
            self.refuse(node, f"found control characters in {node.found()}, expected none")
        else:
            return node.text
        return default

    def word(
        self, node: ParsedNode, words: Mapping[str, Value], default: Value, *, fold: bool = False
    ) -> Value:
        """Return what one of some words stands for; ``fold``: upper case letters count as lower case ones."""
        if node.kind == "null":
            return default
        text = node.text if node.kind in {"text", "boolean"} else ""
        text = text.lower() if fold else text
        if text not in words:
            self.refuse(
                node,
                f"found {node.found()}, expected one of {', '.join(word or '(empty)' for word in words)}",
            )
            return default
        return words[text]

    def boolean(self, node: ParsedNode, *, default: bool) -> bool:
        """Return a boolean, written as true or false."""
        if node.kind == "null":
            return default
        if node.kind != "boolean" or node.text.lower() not in {"true", "false"}:
            self.refuse(node, f"found {node.found()}, expected true or false")
            return default
        return node.text.lower() == "true"

    def integer(self, node: ParsedNode, least: int, most: int, default: int = 0) -> int:
        """Return a decimal integer within its bounds."""
        if node.kind == "null":
            return default
        if (
            node.kind != "integer"
            or not _INTEGER.fullmatch(node.text)
            or not least <= int(node.text) <= most
        ):
            hint = (
                ", written in plain decimal digits"
                if node.kind == "integer" and not _INTEGER.fullmatch(node.text)
                else ""
            )
            self.refuse(
                node, f"found {node.found()}, expected an integer from {least} to {most}{hint}"
            )
            return default
        return int(node.text)

    def parsed(self, node: ParsedNode, parse: Callable[[str], Value], default: Value) -> Value:
        """Return what a parser makes of a text; its error becomes a fault."""
        before = len(self.faults)
        text = self.text(node)
        if node.kind == "null" or len(self.faults) > before:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.refuse(node, str(error))
            return default

    def texts(self, node: ParsedNode) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self.text(item) for item in self.items(node))

    def text_map(self, node: ParsedNode) -> dict[str, str]:
        """Return a mapping of texts, in its order."""
        return {key: self.text(value) for key, value in self.mapping(node).items()}


def get(fields: Mapping[str, ParsedNode], *keys: str) -> ParsedNode:
    """Return the first of some keys that is there, else a node that counts as absent."""
    return next((fields[key] for key in keys if key in fields), _ABSENT)

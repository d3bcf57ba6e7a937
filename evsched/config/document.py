"""Documents as trees of nodes that know their place.

A node keeps the text of a scalar as it was written beside the kind that YAML 1.1 gives it, so that
whoever reads it by a schema decides what it means: `no`, `010` and `12:30:00` are traps only for a
reader that takes YAML's word for it.

Documents come from untrusted hands. What makes YAML dangerous is refused on the way: anchors and
aliases (a few hundred bytes that stand for millions of nodes), tags, duplicate keys (the last one
would win silently), size and depth beyond a bound. The tree is built from the parser's events with
a stack of our own, so that no nesting can exhaust the interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from events.bounds import MAX_DEPTH, MAX_DOCUMENT
from evsched.config.errors import ConfigurationError, Fault

MAX_SHOWN = 64
"""So many characters of a text, or so many groups of four bits of a number, stand in a message."""

MAX_FAULTS = 100
"""After so many faults the rest is not looked for."""

NodeKind = Literal["mapping", "list", "text", "integer", "number", "boolean", "null", "other"]

_KINDS: dict[str, NodeKind] = {
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:timestamp": "other",
}
_RESOLVER = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_SCALARS: dict[NodeKind, Callable[[yaml.ScalarNode], Any]] = {
    "integer": _CONSTRUCTOR.construct_yaml_int,
    "number": _CONSTRUCTOR.construct_yaml_float,
    "boolean": _CONSTRUCTOR.construct_yaml_bool,
}


@dataclass(slots=True)
class ParsedNode:
    """A mapping, a list or a scalar of a document.

    Attributes:
        path: Place inside the document; empty at the top.
        line: Line of the file from 1; 0 when unknown.
        text: A scalar as it was written; empty for the others.
        fields: The values of a mapping by key, in their order.
        items: The elements of a list.
        literal: True for a scalar whose lines are those of the file below its own (a block, ``|``).
    """

    source: str
    path: str
    line: int
    kind: NodeKind
    text: str = ""
    fields: dict[str, ParsedNode] = field(default_factory=dict)
    items: list[ParsedNode] = field(default_factory=list)
    literal: bool = False

    def fault(self, message: str) -> Fault:
        """Return a fault at this place."""
        return Fault(self.source, self.line, self.path, message)

    def found(self) -> str:
        """Return what this is, for a message: ``a list``, ``'abc'``, ``the boolean no``."""
        match self.kind:
            case "mapping":
                return "a mapping"
            case "list":
                return "a list"
            case "null":
                return "nothing"
            case "text":
                return repr(
                    self.text if len(self.text) <= MAX_SHOWN else self.text[:MAX_SHOWN] + "…"
                )
            case kind:
                return f"the {kind if kind != 'other' else 'date'} {self.text}"


def parse_yaml(
    text: str, source: str, most: int = MAX_DOCUMENT, *, inside: ParsedNode | None = None
) -> tuple[ParsedNode, ...]:
    """Return the documents of a YAML (or JSON) text, empty ones left out.

    Args:
        text: Of the file.
        source: Its name, for faults.
        most: Bytes that it may have.
        inside: The scalar of a file that the text is, whose path and line faults begin with; None:
            the text is a file.

    Raises:
        ConfigurationError: The text is too large, no YAML, nested too deeply, or uses anchors,
            aliases, tags or a key twice.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > most:
        raise ConfigurationError(
            (Fault(source, 0, "", f"found {size} bytes, expected at most {most}"),)
        )
    builder = _Builder(source, inside)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigurationError(
            (
                Fault(
                    source,
                    builder.line_at(mark.line) if mark else 0,
                    builder.at,
                    f"is no YAML: {error.problem}",
                ),
            )
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigurationError(
            (Fault(source, 0, builder.at, f"is no YAML: {' '.join(str(error).split())}"),)
        ) from error
    if builder.faults:
        raise ConfigurationError(tuple(builder.faults))
    return tuple(document for document in builder.documents if document.kind != "null")


def read_value(text: str, source: str, most: int = MAX_DOCUMENT) -> Any:
    """Return the one document of a YAML (or JSON) text as plain values; dates and times stay text.

    Raises:
        ConfigurationError: As `parse_yaml`, or there are several documents, or none.
    """
    documents = parse_yaml(text, source, most)
    if len(documents) != 1:
        message = f"found {len(documents)} documents, expected one"
        raise ConfigurationError((Fault(source, 0, "", message),))
    return _value(documents[0])


def _value(node: ParsedNode) -> Any:
    match node.kind:
        case "mapping":
            return {key: _value(one) for key, one in node.fields.items()}
        case "list":
            return [_value(one) for one in node.items]
        case "null":
            return None
        case "text" | "other":
            return node.text
        case kind:
            return _SCALARS[kind](yaml.ScalarNode("", node.text))


def from_object(value: Any, source: str, path: str = "") -> ParsedNode:
    """Return a value that was parsed elsewhere (as JSON or YAML) as a tree.

    Raises:
        ConfigurationError: It is nested too deeply, or holds something that no JSON document holds.
    """
    return _node(value, source, path, 0)


def below(path: str, key: str) -> str:
    """Return the path of a key in the mapping at a path."""
    return f"{path}.{key}" if path else key


def _node(value: Any, source: str, path: str, depth: int) -> ParsedNode:
    """Return the tree of a parsed value."""
    if depth > MAX_DEPTH:
        raise ConfigurationError((Fault(source, 0, path, f"is nested more than {MAX_DEPTH} deep"),))
    match value:
        case None:
            return ParsedNode(source, path, 0, "null")
        case bool():
            return ParsedNode(source, path, 0, "boolean", "true" if value else "false")
        case int():
            # A number of thousands of digits cannot even be written; no bound is near that.
            return ParsedNode(
                source,
                path,
                0,
                "integer",
                str(value) if value.bit_length() <= MAX_SHOWN * 4 else hex(value),
            )
        case float():
            return ParsedNode(source, path, 0, "number", repr(value))
        case str():
            return ParsedNode(source, path, 0, "text", value)
        case dict():
            node = ParsedNode(source, path, 0, "mapping")
            for key, below_key in value.items():
                if not isinstance(key, str):
                    raise ConfigurationError((node.fault(f"found the key {key!r}, expected text"),))
                node.fields[key] = _node(below_key, source, below(path, key), depth + 1)
            return node
        case list() | tuple():
            items = [
                _node(item, source, f"{path}[{index}]", depth + 1)
                for index, item in enumerate(value)
            ]
            return ParsedNode(source, path, 0, "list", items=items)
        case _:
            raise ConfigurationError(
                (
                    Fault(
                        source, 0, path, f"found {type(value).__name__}, expected what JSON can say"
                    ),
                )
            )


class _Builder:
    """Makes trees of a parser's events.

    The stack holds the open mappings and lists, and for a mapping the key whose value comes next.
    """

    def __init__(self, source: str, inside: ParsedNode | None) -> None:
        self.source = source
        self.at = "" if inside is None else inside.path
        self._inside = inside
        self.documents: list[ParsedNode] = []
        self.faults: list[Fault] = []
        self._stack: list[tuple[ParsedNode, list[str]]] = []

    def take(self, event: yaml.Event) -> None:
        """Take the parser's next event."""
        match event:
            case yaml.AliasEvent():
                raise ConfigurationError(
                    (self._fault(event, "found an alias, expected the value itself"),)
                )
            case yaml.ScalarEvent():
                self._check(event)
                self._scalar(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._check(event)
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._stack.pop()
            case _:
                pass

    def _check(self, event: yaml.NodeEvent) -> None:
        """Refuse anchors and tags."""
        if event.anchor is not None:
            raise ConfigurationError(
                (self._fault(event, f"found the anchor &{event.anchor}, expected none"),)
            )
        tag = getattr(event, "tag", None)
        if tag not in {None, "!"}:
            raise ConfigurationError((self._fault(event, f"found the tag {tag}, expected none"),))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        """Add a scalar, which is a key where a mapping waits for one."""
        # A plain scalar is one that the parser leaves to be resolved; one in quotes is text.
        plain = bool(event.implicit[0])
        tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)) if plain else ""  # type: ignore[no-untyped-call]
        if self._stack and self._stack[-1][0].kind == "mapping" and not self._stack[-1][1]:
            self._key(event)
            return
        kind = _KINDS.get(tag, "text")
        node = ParsedNode(self.source, self._path(), self._line(event), kind, event.value)
        node.literal = event.style == "|"
        self._add(node)

    def _key(self, event: yaml.ScalarEvent) -> None:
        """Take a mapping's next key."""
        node, key = self._stack[-1]
        key.append(event.value)
        if event.value in node.fields and len(self.faults) < MAX_FAULTS:
            first = node.fields[event.value].line
            self.faults.append(
                self._fault(event, f"found a second time (first in line {first}), expected once")
            )

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        """Open a mapping or a list."""
        if len(self._stack) >= MAX_DEPTH:
            raise ConfigurationError((self._fault(event, f"is nested more than {MAX_DEPTH} deep"),))
        if self._stack and self._stack[-1][0].kind == "mapping" and not self._stack[-1][1]:
            raise ConfigurationError(
                (self._fault(event, "found a mapping or list as a key, expected text"),)
            )
        kind: NodeKind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = ParsedNode(self.source, self._path(), self._line(event), kind)
        self._add(node)
        self._stack.append((node, []))

    def _add(self, node: ParsedNode) -> None:
        """Put a node where it belongs."""
        if not self._stack:
            self.documents.append(node)
            return
        parent, key = self._stack[-1]
        if parent.kind == "list":
            parent.items.append(node)
        else:
            parent.fields[key.pop()] = node

    def _path(self) -> str:
        """Return the path of the node that comes next."""
        if not self._stack:
            return self.at
        parent, key = self._stack[-1]
        return (
            f"{parent.path}[{len(parent.items)}]"
            if parent.kind == "list"
            else below(parent.path, key[0] if key else "")
        )

    def _fault(self, event: yaml.Event, message: str) -> Fault:
        """Return a fault where the parser is."""
        return Fault(self.source, self._line(event), self._path(), message)

    def line_at(self, line: int) -> int:
        """Return the line of the file, from 1, that a line of the text is, from 0."""
        if self._inside is None:
            return line + 1
        # The lines of a block stand below its own; how those of another text were joined is lost.
        return self._inside.line + (line + 1 if self._inside.literal else 0)

    def _line(self, event: yaml.Event) -> int:
        """Return the line of an event, from 1."""
        return self.line_at(event.start_mark.line) if event.start_mark is not None else 0

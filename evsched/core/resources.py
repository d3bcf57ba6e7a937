"""Resource types and shapes: amounts without dictionaries on the hot path.

Every resource type that an event ever named has a dense index (its place in `ResourceTypes.names`,
by first appearance in the log), so that usage is a plain list of integers. Every distinct set of
amounts is interned as a `Shape`: tasks with equal requests share one object, compare by identity
and can be placed together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Pairs = tuple[tuple[int, int], ...]
"""(type index, amount), ascending by index, without zeros."""

written = msgspec.msgpack.Encoder().encode
"""Returns amounts as bytes: a key that is made and found in a third of the time that a tuple takes."""


class Shape:
    """A distinct set of amounts.

    Attributes:
        index: Its number, by first appearance.
        pairs: What is asked, by type index, without zeros.
        resources: The amounts by name as they were first written, zeros included; not to be
            changed.
    """

    __slots__ = ("index", "pairs", "resources")

    def __init__(self, index: int, pairs: Pairs, resources: dict[str, int]) -> None:
        """Make shape number ``index``; only `ResourceTypes.shape` does."""
        self.index = index
        self.pairs = pairs
        self.resources = resources

    def __repr__(self) -> str:
        """Return the amounts for people who debug."""
        return f"Shape({self.resources})"


class ResourceTypes:
    """The registry of types and shapes of one state.

    Attributes:
        names: Of the types, by index.
        index: Of the types, by name.
        shapes: By index.
        known: The same by the amounts as they were `written`, in every order that was met.
    """

    __slots__ = ("index", "known", "names", "shapes")

    def __init__(self) -> None:
        """Start empty."""
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.shapes: list[Shape] = []
        self.known: dict[bytes, Shape] = {}

    def type_index(self, name: str) -> int:
        """Return the index of a resource type, a new one for a new name."""
        index = self.index.get(name)
        if index is None:
            index = self.index[name] = len(self.names)
            self.names.append(name)
        return index

    def shape(self, resources: Mapping[str, int]) -> Shape:
        """Return the shape of these amounts; equal amounts give the same object, in whatever order they were written."""
        shape = self.known.get(written(resources))
        if shape is None:
            ordered = dict(sorted(resources.items()))
            shape = self.known.get(written(ordered))
            if shape is None:
                pairs = tuple(
                    sorted(
                        (self.type_index(name), amount)
                        for name, amount in ordered.items()
                        if amount
                    )
                )
                shape = Shape(len(self.shapes), pairs, ordered)
                self.shapes.append(shape)
                self.known[written(ordered)] = shape
            self.known[written(resources)] = shape
        return shape

    def limits(self, resources: Mapping[str, int] | None) -> dict[int, int]:
        """Return amounts by type index, zeros kept (a limit of 0 is not an unset one); None gives an empty mapping."""
        if not resources:
            return {}
        return {self.type_index(name): resources[name] for name in sorted(resources)}

    def named(self, pairs: Iterable[tuple[int, int]]) -> dict[str, int]:
        """Return amounts by name, sorted by name, zeros left out."""
        names = self.names
        return dict(sorted((names[index], amount) for index, amount in pairs if amount))


def add(vector: list[int], pairs: Pairs) -> None:
    """Add amounts to a usage vector, in place."""
    for index, amount in pairs:
        vector[index] += amount


def subtract(vector: list[int], pairs: Pairs) -> None:
    """Take amounts off a usage vector, in place."""
    for index, amount in pairs:
        vector[index] -= amount

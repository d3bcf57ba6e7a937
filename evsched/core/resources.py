"""Resource types and shapes: amounts without dictionaries on the hot path.

Every resource type that an event ever named has a dense index (its place in `ResourceTypes.names`,
by first appearance in the log), so that usage is a plain list of integers. Every distinct set of
amounts has a number for ever (`evsched.core.numbering`) and, while it is in use, a `Shape`: tasks with
equal requests share its number and can be placed together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evsched.core.numbering import Numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Pairs = tuple[tuple[int, int], ...]
"""(type index, amount), ascending by index, without zeros."""

written = msgspec.msgpack.Encoder().encode
"""Returns amounts as bytes: a key that is made and found in a third of the time that a tuple takes."""

_amounts = msgspec.msgpack.Decoder(dict[str, int]).decode


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


class Shapes(dict[int, Shape]):
    """The shapes that were used lately, by number; one that was forgotten is made anew when it is looked up."""

    __slots__ = ("_types",)

    def __init__(self, types: ResourceTypes) -> None:
        """Begin without shapes."""
        super().__init__()
        self._types = types

    def __missing__(self, number: int) -> Shape:
        """Make a shape from its amounts; raise IndexError when no amounts have this number."""
        shape = self[number] = self._types.made(number)
        return shape


class ResourceTypes:
    """The registry of types and shapes of one state.

    Attributes:
        names: Of the types, by index.
        index: Of the types, by name.
        numbers: Of all amounts that ever appeared.
        shapes: By number, as far as they were not forgotten; any may be looked up.
        known: Shapes by the amounts as they were `written`, in every order that was met.
    """

    __slots__ = ("index", "known", "names", "numbers", "shapes")

    def __init__(self) -> None:
        """Start empty."""
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.numbers = Numbers()
        self.shapes = Shapes(self)
        self.known: dict[bytes, Shape] = {}

    def type_index(self, name: str) -> int:
        """Return the index of a resource type, a new one for a new name."""
        index = self.index.get(name)
        if index is None:
            index = self.index[name] = len(self.names)
            self.names.append(name)
        return index

    def shape(self, resources: Mapping[str, int]) -> Shape:
        """Return the shape of these amounts; equal amounts give the same number, in whatever order they were written."""
        shape = self.known.get(written(resources))
        if shape is None:
            shape = self.known[written(resources)] = self.shapes[self.number(resources)]
        return shape

    def number(self, resources: Mapping[str, int]) -> int:
        """Return the number of these amounts, a new one for new amounts."""
        return self.numbers.of(written(dict(sorted(resources.items()))))

    def made(self, number: int) -> Shape:
        """Return a new shape of the amounts with a number."""
        resources = _amounts(self.numbers[number])
        pairs = ((self.type_index(name), amount) for name, amount in resources.items() if amount)
        return Shape(number, tuple(sorted(pairs)), resources)

    def forget(self) -> None:
        """Forget all shapes: those that are in use come back when they are looked up."""
        self.shapes.clear()
        self.known.clear()

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

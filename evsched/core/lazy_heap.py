"""A heap whose entries may be out of date: the owner of an entry knows whether it still is one.

Whatever changes gets a new entry, and its old one stays where it is until it comes to the top. So a
change costs one push, however deep the old entry lies. Entries are tuples that never compare equal,
or whose equals stand for the same thing. When most of them are out of date, the heap is cleaned, so
that its size stays in proportion to what it stands for.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

E = TypeVar("E", bound="tuple[Any, ...]")

SLACK = 4
"""So many entries may be there for each that is current."""

SPARE = 64
"""So many more may be there, that a small heap is not cleaned again and again."""


class LazyHeap(Generic[E]):
    """A heap of entries, smallest first.

    Attributes:
        entries: Current ones and others, as `heapq` arranges them.
    """

    __slots__ = ("_is_current", "entries")

    def __init__(self, is_current: Callable[[E], bool], entries: Iterable[E] = ()) -> None:
        """Take over the entries, in any order; ``is_current`` tells whether one still stands for anything."""
        self._is_current = is_current
        self.entries: list[E] = list(entries)
        heapify(self.entries)

    def push(self, entry: E, current: int) -> None:
        """Add an entry.

        Args:
            entry: It is current.
            current: An upper bound of how many current entries there are; decides when to clean.
        """
        heappush(self.entries, entry)
        if len(self.entries) > SLACK * current + SPARE:
            self.clean()

    def first(self) -> E | None:
        """Return the smallest current entry, None when there is none; those before it are dropped."""
        entries, is_current = self.entries, self._is_current
        while entries:
            entry = entries[0]
            if is_current(entry):
                return entry
            heappop(entries)
        return None

    def pop(self) -> None:
        """Take out the entry that `first` returned."""
        heappop(self.entries)

    def clean(self) -> None:
        """Drop every entry that is out of date, and every repetition."""
        self.entries = sorted(
            entry for entry in dict.fromkeys(self.entries) if self._is_current(entry)
        )

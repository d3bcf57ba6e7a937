"""A sorted list of entries whose owners have rows in a column: which of those that are marked comes first.

Owners that cannot be served stay in their place, so that nothing has to be moved when that changes.
A look for the first that is marked is one read of the column in the order of the list. Short lists,
and lists whose first entry is marked, are looked at one by one, as a vectorised look has a fixed
cost. `benchmarks.growth_yunikorn` ("asks all
different") measures what this saves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

E = TypeVar("E", bound="tuple[Any, ...]")

FEW = 24
"""So many entries are looked at one by one."""

SORT_SHARE = 16
"""When more than one in so many entries changes, all are sorted, which is cheaper by then."""


class Ranking(Generic[E]):
    """Entries in ascending order; no two are equal, and the last part of each is its owner, which has a ``row``.

    Attributes:
        entries: In order.
    """

    __slots__ = ("_rows", "entries")

    def __init__(self) -> None:
        """Start empty."""
        self.entries: list[E] = []
        self._rows: NDArray[np.int64] | None = None

    def change(self, changes: Sequence[tuple[E | None, E | None]]) -> None:
        """Replace entries.

        Args:
            changes: For each the entry that goes, None when none does, and the one that comes.
        """
        entries = self.entries
        if len(changes) > FEW and len(changes) * SORT_SHARE > len(entries):
            gone = {bisect_left(entries, old): None for old, _ in changes if old is not None}
            if gone:
                self.entries = entries = [
                    entry for place, entry in enumerate(entries) if place not in gone
                ]
            entries += [new for _, new in changes if new is not None]
            entries.sort()
            self._rows = None
        elif self._rows is not None:
            for old, new in changes:
                if old is not None:
                    self._remove(old)
                if new is not None:
                    self._add(new)
        else:
            for old, new in changes:
                if old is not None:
                    del entries[bisect_left(entries, old)]
                if new is not None:
                    insort(entries, new)

    def _add(self, entry: E) -> None:
        """Insert an entry at its place, and its row into the array of rows.

        All that lies behind it moves; `change` sorts instead where many entries change.
        """
        place = bisect_left(self.entries, entry)
        self.entries.insert(place, entry)
        assert self._rows is not None
        row = np.array([entry[-1].row])
        self._rows = np.concatenate((self._rows[:place], row, self._rows[place:]))

    def _remove(self, entry: E) -> None:
        """Take an entry out, which is there.

        It is found by its key, as entries are unique.
        """
        place = bisect_left(self.entries, entry)
        del self.entries[place]
        assert self._rows is not None
        self._rows = np.concatenate((self._rows[:place], self._rows[place + 1 :]))

    def first(self, marks: NDArray[np.bool_]) -> E | None:
        """Return the first entry whose owner's row is marked; None when there is none.

        Args:
            marks: By row; it covers the row of every owner.
        """
        entries = self.entries
        if len(entries) <= FEW or marks[entries[0][-1].row]:
            for entry in entries:
                if marks[entry[-1].row]:
                    return entry
            return None
        if self._rows is None:
            self._rows = np.fromiter((entry[-1].row for entry in entries), np.int64, len(entries))
        found = marks[self._rows]
        place = int(found.argmax())
        return entries[place] if found[place] else None

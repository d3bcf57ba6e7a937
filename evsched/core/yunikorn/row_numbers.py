"""Row numbers for columns whose owners come and go: small ones, used again when they are free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

T = TypeVar("T")

FEWEST = 64
"""So many rows a column has at least."""


class RowNumbers(Generic[T]):
    """The rows of one table.

    Attributes:
        owners: By row; None for one that is free.
    """

    __slots__ = ("_free", "owners")

    def __init__(self, owners: Iterable[T] = ()) -> None:
        """Start with these owners, in this order."""
        self.owners: list[T | None] = list(owners)
        self._free: list[int] = []

    def take(self, owner: T) -> int:
        """Return a row for an owner: the last one that became free, or a new one at the end."""
        if self._free:
            row = self._free.pop()
            self.owners[row] = owner
            return row
        self.owners.append(owner)
        return len(self.owners) - 1

    def give(self, row: int) -> None:
        """Take a row back."""
        self.owners[row] = None
        self._free.append(row)


def widened(column: NDArray) -> NDArray:  # type: ignore[type-arg]
    """Return a column, or a table of them, with twice as many rows; new ones are 0."""
    size = column.shape[-1]
    added = np.zeros((*column.shape[:-1], max(size, FEWEST)), column.dtype)
    return np.concatenate((column, added), axis=-1)

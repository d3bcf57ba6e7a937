"""The order of nodes by name, for rows that stay where they are while nodes join and leave."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from evsched.core.yunikorn.row_numbers import widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class NameRanks:
    """Ranks of names by row: of two rows, the one with the smaller name has the smaller rank.

    Ties between nodes are broken by name everywhere, so that decisions do not depend on the order
    in which nodes joined. Ranks are integers, so columns of them are compared at once.

    Attributes:
        ranks: By row; that of a row without a name means nothing.
    """

    __slots__ = ("_names", "ranks")

    def __init__(self, names: Sequence[str]) -> None:
        """Start with sorted names, whose rows are their places."""
        self._names = list(names)
        self.ranks: NDArray[np.int64] = np.arange(len(names))

    def add(self, row: int, name: str) -> None:
        """Give a row a name that no other row has.

        All later names move on by one: one pass over the column for a node that joins.
        """
        rank = bisect_left(self._names, name)
        self._names.insert(rank, name)
        while row >= len(self.ranks):
            self.ranks = widened(self.ranks)
        self.ranks[self.ranks >= rank] += 1
        self.ranks[row] = rank

    def remove(self, row: int, name: str) -> None:
        """Take the name of a row away."""
        rank = int(self.ranks[row])
        assert self._names[rank] == name
        del self._names[rank]
        self.ranks[self.ranks > rank] -= 1

    def first(self, rows: NDArray[np.int64]) -> int:
        """Return which of some rows has the smallest name; there is at least one."""
        return int(rows[self.ranks[rows].argmin()])

    def sorted(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows in the order of their names."""
        found: NDArray[np.int64] = rows[np.argsort(self.ranks[rows])]
        return found

"""How much a workload could get at best in each queue of a cohort tree, as columns (record 41).

One int64 array a type and quantity, one row a node of the tree, parents before children, so that
one pass over the levels answers for all queues at once. Two bounds, neither of which is ever below
what a cycle would find on the same state:

* **room**: what is available (`evsched.core.kueue.trial.QuotaOverlay.room`), the same number;
* **claim**: the largest amount for which workloads of other queues may be preempted. Classic: a
  cohort above, or the queue, could hold it within its own quota. Fair sharing: the share of a node
  on the way up would, with the amount counted, not exceed the largest share among its siblings.

Amounts beyond `LARGE` would overflow; a type that has any in a tree is *blind* there, and nothing is
ruled out. The truth are the plain integers of `evsched.core.kueue.model.Quota`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evsched.core.kueue.shares import SCALE_BITS, WEIGHTLESS, order_of, share_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from evsched.core.kueue.model import Quota

    Column = NDArray[np.int64]

LARGE = 1 << 55
"""A cohort tree is at most 65 levels deep, so that sums of so many amounts below it fit into int64."""

BOUNDLESS = 1 << 62
"""More than whatever fits anywhere in a tree that is not blind."""


class Siblings:
    """The shares of all nodes of a tree, and the largest one among the children of each cohort.

    Needed under fair sharing only. A node that does not borrow counts as share 0, so the largest
    one of a cohort is never negative.
    """

    def __init__(self, nodes: list[Quota], rows: dict[Quota, int]) -> None:
        """Compute the share of every node."""
        self._rows = rows
        self._shares = [order_of(share_of(node, node.usage)) for node in nodes]
        self._largest: dict[Quota, int] = {}
        for node in nodes:
            if node.parent is not None:
                best = self._largest.get(node.parent, 0)
                self._largest[node.parent] = max(best, self._shares[rows[node]])

    def update(self, node: Quota) -> bool:
        """Note that the usage of a node changed.

        A larger share replaces the largest one at once. Only when the largest one itself fell are
        all siblings compared again.

        Returns:
            Whether the largest share among the siblings is another now, which matters to all.
        """
        parent, row = node.parent, self._rows[node]
        if parent is None:
            return False
        before, share = self._shares[row], order_of(share_of(node, node.usage))
        self._shares[row] = share
        largest = self._largest[parent]
        if share >= largest:
            self._largest[parent] = share
        elif before == largest:
            rows, shares = self._rows, self._shares
            children = (*parent.cohorts, *parent.queues)
            self._largest[parent] = max(shares[rows[child]] for child in children)
        return self._largest[parent] != largest

    def allowance(self, node: Quota, index: int) -> int:
        """Return how much of a type a node may add within the largest share among its siblings.

        It solves the inequality of shares for the amount, rounding in favour of the node. Negative
        where it is above that already; `BOUNDLESS` in size at most.
        """
        parent = node.parent
        assert parent is not None  # the top of a tree has no share
        resource, largest = node.resource_of.get(index, ""), self._largest[parent]
        lendable = parent.lendable(resource)
        if lendable <= 0:
            return BOUNDLESS  # its share stays 0, whatever it borrows
        if node.weight_nano:
            most = ((largest + 1) * lendable * node.weight_nano - 1) >> SCALE_BITS
        elif largest >= WEIGHTLESS:
            most = ((largest - WEIGHTLESS + 1) * lendable - 1) >> SCALE_BITS
        else:
            most = 0
        # What the node borrows of other types is not counted: victims of its own may give that back.
        rest = most + node.subtree.get(index, 0) - node.usage.get(index, 0)
        return max(-BOUNDLESS, min(rest, BOUNDLESS))


class TypeColumns:
    """One type in one tree, an entry a node.

    Attributes:
        index: Of the type.
        quota: Subtree quota, capped at `LARGE`.
        local: The part of it that is never lent, capped alike.
        limit: Borrowing limit; `BOUNDLESS` where there is none.
        usage: Mirrors `Quota.usage`, capped alike.
        base: Of each node, the amount that may be claimed because of this node.
        room_and_claim: The two bounds; None until asked for after a change.
    """

    __slots__ = (
        "_fixed", "_large", "base", "index", "limit", "local", "quota", "room_and_claim", "usage",
    )  # fmt: skip

    def __init__(self, index: int, nodes: list[Quota]) -> None:
        """Read the quotas and the usage of all nodes; quotas do not change while a tree lasts."""

        def column(value: Callable[[Quota], int]) -> Column:
            return np.array([value(node) for node in nodes], dtype=np.int64)

        self.index = index
        self._fixed = any(node.subtree.get(index, 0) >= LARGE for node in nodes)
        self._large: dict[int, None] = {}
        self.quota = column(lambda node: min(node.subtree.get(index, 0), LARGE))
        self.local = column(lambda node: min(node.local.get(index, 0), LARGE))
        self.limit = column(lambda node: min(node.borrowing.get(index, BOUNDLESS), BOUNDLESS))
        self.usage = np.zeros(len(nodes), dtype=np.int64)
        self.base = np.full(len(nodes), -BOUNDLESS)
        self.room_and_claim: tuple[Column, Column] | None = None
        for row, node in enumerate(nodes):
            self.update(row, node)

    @property
    def blind(self) -> bool:
        """Whether an amount is too large to calculate with.

        A quota that is makes it so for good, usage as long as it lasts.
        """
        return self._fixed or bool(self._large)

    def update(self, row: int, node: Quota) -> None:
        """Read the usage of a node; the bounds of the whole tree have to be computed anew."""
        used = node.usage.get(self.index, 0)
        if used >= LARGE:
            self._large[row] = None
        elif self._large:
            self._large.pop(row, None)
        self.usage[row] = min(used, LARGE)
        self.room_and_claim = None


class TreeReach:
    """The columns of one cohort tree; those of a type are made when it is first asked about.

    Attributes:
        rows: Row by node.
    """

    def __init__(self, top: Quota, *, fair: bool) -> None:
        """Lay out the tree, level by level, so that every parent's row comes before its children's.

        Args:
            top: The cohort, or the ClusterQueue without one, at the top.
            fair: Whether shares limit what may be claimed.
        """
        levels = [[top]]
        while below := [child for node in levels[-1] for child in (*node.cohorts, *node.queues)]:
            levels.append(below)
        self._nodes = [node for level in levels for node in level]
        self.rows = {node: row for row, node in enumerate(self._nodes)}
        ends = np.cumsum([len(level) for level in levels]).tolist()
        self._levels = [slice(start, end) for start, end in pairwise(ends)]
        self._above = [
            np.array([self.rows[node.parent] for node in level if node.parent], dtype=np.intp)
            for level in levels[1:]
        ]
        self._types: dict[int, TypeColumns] = {}
        self._siblings = Siblings(self._nodes, self.rows) if fair else None
        self._touched: dict[Quota, None] = {}

    def touch(self, queue: Quota) -> None:
        """Note that the usage of a ClusterQueue changed, and with it that of the cohorts above.

        Nothing is computed yet: many changes may come between two questions.
        """
        self._touched[queue] = None

    def is_blind(self, index: int) -> bool:
        """Tell whether nothing can be ruled out for a type.

        A quota near the end of int64, which is as good as unlimited, makes it so in its whole
        tree.
        """
        return self._columns(index).blind

    def slack(self, index: int) -> Column:
        """Return what each node leaves of its own quota of a type, negative where it borrows."""
        columns = self._columns(index)
        return columns.quota - columns.usage

    def room_and_claim(self, index: int) -> tuple[Column, Column]:
        """Return the two bounds of every node for a type (see the module); not to be changed."""
        columns = self._columns(index)
        if columns.room_and_claim is None:
            columns.room_and_claim = self._descend(columns)
        return columns.room_and_claim

    def _columns(self, index: int) -> TypeColumns:
        """Return the columns of a type, up to date; made when it is first asked about."""
        self._refresh()
        columns = self._types.get(index)
        if columns is None:
            columns = self._types[index] = TypeColumns(index, self._nodes)
            for node in self._nodes:
                self._base(columns, node)
        return columns

    def _refresh(self) -> None:
        """Read what changed since the last question.

        Changed are the touched queues and the cohorts above them. Where that changes the largest
        share of a cohort, all its children may claim another amount.
        """
        if not self._touched:
            return
        changed = dict.fromkeys(node for queue in self._touched for node in queue.down)
        self._touched.clear()
        again = dict(changed)
        if self._siblings is not None:
            for node in changed:
                if self._siblings.update(node) and node.parent is not None:
                    again.update(dict.fromkeys((*node.parent.cohorts, *node.parent.queues)))
        for columns in self._types.values():
            for node in changed:
                columns.update(self.rows[node], node)
            for node in again:
                self._base(columns, node)

    def _base(self, columns: TypeColumns, node: Quota) -> None:
        """Compute what may be claimed because of one node.

        Classic: what it leaves of its own quota. Under fair sharing: the amount up to the largest
        share of its siblings; a ClusterQueue may claim its nominal quota whatever the shares are.
        The top has no siblings and nothing above it to claim from, so it keeps its boundless
        negative base.
        """
        if node.parent is None:
            return
        row = self.rows[node]
        base = int(columns.quota[row] - columns.usage[row])
        if self._siblings is not None:
            allowed = self._siblings.allowance(node, columns.index)
            # Within its nominal quota a ClusterQueue reclaims without regard to shares.
            base = allowed if node.spec is None else max(base, allowed)
        columns.base[row] = base

    def _descend(self, columns: TypeColumns) -> tuple[Column, Column]:
        """Compute both bounds of a type, from the top of the tree down.

        Room goes down as in `evsched.core.kueue.trial.QuotaOverlay.room`: bounded by the borrowing
        limit, plus what the node keeps for itself. A claim of a cohort is one of all below it, to
        which each adds what it keeps free.

        Returns:
            Room and claim, an entry a node; room is negative where a node is overcommitted.
        """
        used, quota, kept = columns.usage, columns.quota, columns.local
        free = np.maximum(kept - used, 0)
        most = quota - kept - np.maximum(used - kept, 0) + columns.limit
        room, claim = quota - used, columns.base.copy()
        for level, above in zip(self._levels, self._above, strict=True):
            room[level] = np.minimum(room[above], most[level]) + free[level]
            claim[level] = np.maximum(claim[level], claim[above] + free[level])
        return room, claim

"""What would be if: a quota tree in which some workloads are gone and some have come, without touching the state.

A trial lies over the real tree. The usage of a node is copied when the trial first changes it;
everything else is read through. A change and its opposite cancel exactly
(`evsched.core.kueue.model`), which is how searches take victims out and put them back.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evsched.core.kueue.model import Quota

    Amounts = Iterable[tuple[int, int]]


class QuotaOverlay:
    """An overlay over the usage of a quota tree.

    Attributes:
        changed: Nodes whose usage differs (or differed) from the tree's, with their usage here.
        gone: Ids of the workloads that an enclosing decision has taken out, by ClusterQueue;
            searches do not see them.
        looked: At so many queues and cohorts searches have looked.
    """

    __slots__ = ("_below", "changed", "gone", "looked")

    def __init__(self) -> None:
        """Start with the tree as it is."""
        self.changed: dict[Quota, dict[int, int]] = {}
        self.gone: dict[Quota, dict[str, None]] = {}
        self.looked = 0
        # By cohort, the children whose usage was changed here, or that lead to such ClusterQueues.
        self._below: dict[Quota, dict[Quota, None]] = {}

    def copy(self) -> QuotaOverlay:
        """Return a trial that starts where this one stands."""
        other = QuotaOverlay()
        other.changed = {node: dict(usage) for node, usage in self.changed.items()}
        other.gone = {queue: dict(gone) for queue, gone in self.gone.items()}
        other._below = {cohort: dict(below) for cohort, below in self._below.items()}
        return other

    # --------------------------------------------------------------------------------------- change

    def add(self, queue: Quota, pairs: Amounts) -> None:
        """Count amounts in a ClusterQueue."""
        for index, amount in pairs:
            self._shift(queue, index, amount)

    def remove(self, queue: Quota, pairs: Amounts) -> None:
        """Take amounts off a ClusterQueue."""
        for index, amount in pairs:
            self._shift(queue, index, -amount)

    def _shift(self, queue: Quota, index: int, delta: int) -> None:
        """Change the usage of a queue and, as far as it is not local, that of the cohorts above.

        The walk ends where nothing changes any more.
        """
        changed, node = self.changed, queue
        while delta:
            usage = changed.get(node)
            if usage is None:
                usage = changed[node] = dict(node.usage)
                if node.spec is not None:
                    self._lead_to(node)
            before = usage.get(index, 0)
            after = usage[index] = before + delta
            if node.parent is None:
                return
            kept = node.local.get(index, 0)
            delta = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            node = node.parent

    def _lead_to(self, queue: Quota) -> None:
        """Note in the cohorts above a ClusterQueue that it is changed here."""
        for cohort, child in pairwise(queue.down):
            self._below.setdefault(cohort, {})[child] = None

    # ----------------------------------------------------------------------------------------- look

    def usage(self, node: Quota) -> dict[int, int]:
        """Return the usage of a node by type index; not to be changed."""
        found = self.changed.get(node)
        return node.usage if found is None else found

    def room(self, queue: Quota, index: int) -> int:
        """Return what is available to a ClusterQueue of a type (reference section 2).

        It is negative when its tree is overcommitted. The walk goes from the top down: at each
        level what is left above is bounded by the borrowing limit, and what the node keeps for
        itself is added.
        """
        changed = self.changed
        rest = 0
        for node in queue.down:
            usage = changed.get(node)
            used = (node.usage if usage is None else usage).get(index, 0)
            quota = node.subtree.get(index, 0)
            if node.parent is None:
                rest = quota - used
                continue
            kept = node.local.get(index, 0)
            limit = node.borrowing.get(index)
            if limit is not None:
                rest = min(rest, quota - kept - max(0, used - kept) + limit)
            if used < kept:
                rest += kept - used
        return rest

    def available(self, queue: Quota, index: int) -> int:
        """Return what a ClusterQueue may still use of a type, at least 0."""
        return max(0, self.room(queue, index))

    def kept_free(self, node: Quota, index: int) -> int:
        """Return what is free of the part that a node never lends."""
        return max(0, node.local.get(index, 0) - self.usage(node).get(index, 0))

    def fits(self, queue: Quota, amounts: Amounts, *, borrowing: bool = True) -> bool:
        """Tell whether amounts fit into a ClusterQueue, type by type.

        Args:
            queue: The ClusterQueue.
            amounts: (type index, amount); an amount of 0 fits wherever borrowing is allowed.
            borrowing: False: usage must stay within the nominal quota as well.
        """
        usage = self.usage(queue)
        for index, amount in amounts:
            if not borrowing and usage.get(index, 0) + amount > queue.nominal.get(index, 0):
                return False
            if amount > max(0, self.room(queue, index)):
                return False
        return True

    def above(self, node: Quota, contested: Iterable[int]) -> bool:
        """Tell whether a node uses more than its subtree quota of any of these types.

        If not it is *within nominal*, and what runs below it is spared.
        """
        usage, quota = self.usage(node), node.subtree
        for index in contested:  # noqa: SIM110 - a loop costs half of a generator here, and this is hot
            if usage.get(index, 0) > quota.get(index, 0):
                return True
        return False

    def borrowing_with(self, node: Quota, index: int, amount: int) -> bool:
        """Tell whether a node would use more than its (subtree) quota of a type with this much more."""
        return self.usage(node).get(index, 0) + amount > node.subtree.get(index, 0)

    def borrow_level(self, queue: Quota, index: int, amount: int) -> tuple[int, bool]:
        """Return how high an amount must reach (section 6).

        The level is 0 when the queue's own quota holds it, else the height of the first cohort
        above whose quota holds what is not free below; the height of the top when none does.

        Returns:
            The level, and whether the subtree that holds the amount is less than the whole tree.
        """
        if queue.parent is None:
            return 0, False
        if not self.borrowing_with(queue, index, amount):
            return 0, True
        rest, node = amount - self.kept_free(queue, index), queue
        while node.parent is not None:
            node = node.parent
            if not self.borrowing_with(node, index, rest):
                return node.height, node.parent is not None
            rest -= self.kept_free(node, index)
        return node.height, False

    def borrowers(self, cohort: Quota, contested: Iterable[int]) -> Iterator[Quota]:
        """Yield the children of a cohort that borrow any of these types or lead to such, each once.

        Those are ClusterQueues above their nominal quota, and cohorts that lead to such queues, or to
        one that was changed here. The tree keeps them by type; only queues that this trial changed
        are looked at themselves.
        """
        seen: dict[Quota, None] = {}
        for index in contested:
            seen.update(cohort.borrowers.get(index, {}))
        seen.update(self._below.get(cohort, {}))
        self.looked += len(seen)
        changed = self.changed
        for node in seen:
            # The tree's own index is right about every queue whose usage is as it was.
            if node.spec is None or node not in changed or self.above(node, contested):
                yield node

    def usage_without(self, queue: Quota, node: Quota, pairs: Amounts) -> dict[int, int]:
        """Return what a node would use with amounts taken off a ClusterQueue below it."""
        usage = dict(self.usage(node))
        for index, amount in pairs:
            delta, below = -amount, queue
            while delta and below is not node and below.parent is not None:
                used, kept = self.usage(below).get(index, 0), below.local.get(index, 0)
                delta = max(used + delta - kept, 0) - max(used - kept, 0)
                below = below.parent
            if delta:
                usage[index] = usage.get(index, 0) + delta
        return usage

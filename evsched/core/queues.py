"""The queue tree: one model for both policy families.

A YuniKorn queue and a Kueue ClusterQueue are leaves, parent queues and cohorts are inner nodes.
Amounts are kept along the path to the root as events are applied; nothing is ever recomputed by a
scan. The sums here are plain; what a lending limit keeps back from a cohort is the matter of
`Queue.quota`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.settings import QueueSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from events.configuration import LimitSpec, TemplateSpec
    from evsched.core.kueue.model import Quota
    from evsched.core.resources import Pairs
    from evsched.core.workloads import Application


class Queue:
    """A node of the queue tree.

    Attributes:
        path: Full path (``root.a.b``); for Kueue the name of the ClusterQueue or ``cohort/NAME``.
        lineage: From this queue up to the root, both included.
        guaranteed, maximum: By resource type index; a type that is not there has none.
        usage: What runs here and below, by type index, allocations that were told to go included.
        pending: What waits here and below.
        preempting: The part of ``usage`` that was told to go.
        usages, pendings: Those vectors of all queues of ``lineage``, for the reducer; vectors are
            only ever changed in place.
        claimed: What asks in flight (their victims were told to go) will use.
        applications: Of a leaf, by id.
        draining: No longer in the configuration, but still in use.
        quota: (Kueue) its quotas; None for YuniKorn.
    """

    __slots__ = (
        "admin_acl", "applications", "children", "claimed", "depth", "draining", "dynamic", "guaranteed", "leaf", "limits",
        "lineage", "max_applications", "maximum", "name", "order", "parent", "path", "pending", "pending_asks", "pendings",
        "preempting", "quota", "settings", "submit_acl", "template", "usage", "usages",
    )  # fmt: skip

    def __init__(self, path: str, name: str, parent: Queue | None, *, leaf: bool) -> None:
        """Make an empty queue below ``parent``; None for the root."""
        self.path = path
        self.name = name
        self.parent = parent
        self.leaf = leaf
        self.children: dict[str, Queue] = {}
        self.lineage: tuple[Queue, ...] = (self, *(parent.lineage if parent is not None else ()))
        self.depth = len(self.lineage) - 1
        self.order = 0
        self.settings = QueueSettings()
        self.guaranteed: dict[int, int] = {}
        self.maximum: dict[int, int] = {}
        self.max_applications = 0
        self.submit_acl = ""
        self.admin_acl = ""
        self.template: TemplateSpec | None = None
        self.limits: tuple[LimitSpec, ...] = ()
        self.dynamic = False
        self.draining = False
        self.usage: list[int] = []
        self.pending: list[int] = []
        self.preempting: list[int] = []
        self.claimed: list[int] = []
        self.usages: tuple[list[int], ...] = (
            self.usage,
            *(parent.usages if parent is not None else ()),
        )
        self.pendings: tuple[list[int], ...] = (
            self.pending,
            *(parent.pendings if parent is not None else ()),
        )
        self.pending_asks = 0
        self.applications: dict[str, Application] = {}
        self.quota: Quota | None = None

    def __repr__(self) -> str:
        """Return the path for people who debug."""
        return f"Queue({self.path})"

    def widen(self, width: int) -> None:
        """Make room for ``width`` resource types."""
        for vector in (self.usage, self.pending, self.preempting, self.claimed):
            vector.extend([0] * (width - len(vector)))

    def clear(self) -> None:
        """Forget all that is counted here."""
        for vector in (self.usage, self.pending, self.preempting, self.claimed):
            vector[:] = [0] * len(vector)
        self.pending_asks = 0
        if self.quota is not None:
            self.quota.clear()

    def walk(self) -> Iterator[Queue]:
        """Yield this queue and all below it, parents first, children in the order of the configuration."""
        stack = [self]
        while stack:
            queue = stack.pop()
            yield queue
            stack.extend(reversed(queue.children.values()))

    def leaves(self) -> Iterator[Queue]:
        """Yield the leaves here and below, in the order of the configuration."""
        return (queue for queue in self.walk() if queue.leaf)

    def contains(self, other: Queue) -> bool:
        """Tell whether ``other`` is this queue or below it."""
        return other.depth >= self.depth and other.lineage[other.depth - self.depth] is self

    def common_ancestor(self, other: Queue) -> Queue:
        """Return the lowest queue that contains both; raise LookupError when they are in different trees (Kueue cohorts)."""
        for queue in self.lineage:
            if queue.contains(other):
                return queue
        message = f"queue {self.path}: shares no ancestor with {other.path}"
        raise LookupError(message)


def use(leaf: Queue, pairs: Pairs) -> None:
    """Count an allocation in ``leaf`` along its path to the root."""
    for index, amount in pairs:
        for usage in leaf.usages:
            usage[index] += amount
    if leaf.quota is not None:
        leaf.quota.use(pairs)


def release(leaf: Queue, pairs: Pairs) -> None:
    """Take an allocation in ``leaf`` off along its path to the root."""
    for index, amount in pairs:
        for usage in leaf.usages:
            usage[index] -= amount
    if leaf.quota is not None:
        leaf.quota.release(pairs)


def wait(leaf: Queue, pairs: Pairs, asks: int = 1) -> None:
    """Count an ask that waits in ``leaf`` along its path to the root; or several, with what they want together."""
    for queue in leaf.lineage:
        queue.pending_asks += asks
    for index, amount in pairs:
        for pending in leaf.pendings:
            pending[index] += amount


def unwait(leaf: Queue, pairs: Pairs) -> None:
    """Take an ask that no longer waits in ``leaf`` off along its path to the root."""
    for queue in leaf.lineage:
        queue.pending_asks -= 1
    for index, amount in pairs:
        for pending in leaf.pendings:
            pending[index] -= amount


def begin(leaf: Queue, pairs: Pairs) -> None:
    """Count an ask that was bound with the amounts it asked for: `unwait` and `use` in one go."""
    for queue in leaf.lineage:
        queue.pending_asks -= 1
        pending, usage = queue.pending, queue.usage
        for index, amount in pairs:
            pending[index] -= amount
            usage[index] += amount


def tell(leaf: Queue, pairs: Pairs, sign: int) -> None:
    """Count (``sign`` 1, or so many) or uncount (-1) allocations that were told to go, along their path."""
    for queue in leaf.lineage:
        preempting = queue.preempting
        for index, amount in pairs:
            preempting[index] += sign * amount


def claim(leaf: Queue, pairs: Pairs, sign: int) -> None:
    """Count (``sign`` 1) or uncount (-1) an ask in flight, along its path."""
    for queue in leaf.lineage:
        claimed = queue.claimed
        for index, amount in pairs:
            claimed[index] += sign * amount

"""The queue tree and the applications in it: one model for all policy families.

A YuniKorn queue and a Kueue ClusterQueue are leaves, parent queues and cohorts are inner nodes.
Amounts are kept along the path to the root as events are applied; nothing is ever recomputed by a
scan. The sums here are plain; what a lending limit keeps back from a cohort is the matter of
`Queue.quota`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from events.configuration import LimitSpec, TemplateSpec
    from evsched.core.resources import Pairs
    from evsched.core.workloads import Allocation, Ask


DEFAULT_PREEMPTION_DELAY_MS = 30_000
DEFAULT_BACKOFF_DELAY_MS = 30_000

PreemptionPolicy = Literal["default", "fence", "disabled"]
SortPolicy = Literal["fifo", "fair", "stateaware"]


class QueueSettings(Struct, frozen=True, kw_only=True, gc=False):
    """The properties of one queue, resolved.

    Attributes:
        preemption_policy: ``fence``: tasks below preempt nobody outside; ``disabled``: nobody
            preempts tasks of the queue.
        preemption_delay_ms: How old an ask must be before it preempts; of meaning on a leaf only,
            30 s elsewhere.
        priority_fence: The priorities below are not seen above; the offset stands in their place.
        priority_offset: Added to the priority on its way up, int32.
        sort_priority: Priority comes before everything else in the order of queues and
            applications.
        sort_policy: The order of a leaf's applications; parents order their queues fairly, always.
        quota_preemption_delay_ms: Time from a change of the maximum to its enforcement; 0: it is
            not enforced.
        backoff_asks: Unplaceable asks after which an application pauses; 0: never.
        backoff_delay_ms: How long it pauses.
        inherited: What queues below take over, as written.
    """

    preemption_policy: PreemptionPolicy = "default"
    preemption_delay_ms: int = DEFAULT_PREEMPTION_DELAY_MS
    priority_fence: bool = False
    priority_offset: int = 0
    sort_priority: bool = True
    sort_policy: SortPolicy = "fair"
    quota_preemption_delay_ms: int = 0
    backoff_asks: int = 0
    backoff_delay_ms: int = DEFAULT_BACKOFF_DELAY_MS
    inherited: dict[str, str] = {}


class SharedUsage(Protocol):
    """What a family counts beside the plain sums of a queue: usage of what a tree of queues shares (Kueue's quotas)."""

    @property
    def tree(self) -> str:
        """Path of the top of that tree."""

    def use(self, pairs: Pairs) -> None:
        """Count an allocation in this leaf."""

    def release(self, pairs: Pairs) -> None:
        """Take an allocation in this leaf off."""

    def clear(self) -> None:
        """Forget all usage."""


class Queue:
    """A node of the queue tree.

    Attributes:
        path: Full path (``root.a.b``); for Kueue the name of the ClusterQueue or ``cohort/NAME``.
        lineage: From this queue up to the root, both included.
        guaranteed, maximum: By resource type index; a type that is not there has none.
        usage: What runs here and below, by type index, allocations that are being evicted included.
        pending: What waits here and below.
        preempting: The part of ``usage`` that is being evicted.
        usages, pendings: Those vectors of all queues of ``lineage``, for the reducer; vectors are
            only ever changed in place.
        claimed: What asks in flight (their victims are being evicted) will use.
        applications: Of a leaf, by id.
        draining: No longer in the configuration, but still in use.
        quota: What the family counts here beside the plain sums; None where it counts nothing.
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
        self.quota: SharedUsage | None = None

    def __repr__(self) -> str:
        """Return the path for people who debug."""
        return f"Queue({self.path})"

    def grow_vectors(self, width: int) -> None:
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


class Tree(NamedTuple):
    """All queues of a configuration.

    Attributes:
        root: The queue above all others.
        queues: By path.
        local_queues: Other names of leaves, by which asks may name them (Kueue's LocalQueues).
    """

    root: Queue
    queues: dict[str, Queue]
    local_queues: dict[str, str]


class Application:
    """An application and what it has.

    Attributes:
        created: For FIFO order: the earliest creation of it, its asks and its allocations, gone
            ones included; milliseconds.
        seq: Of the event that brought it in; the last tie-break.
        usage: By resource type index.
        asks, allocations: By id.
        running: How many allocations it has, also while none are counted (`evsched.core.tallies`).
        closing: True when it goes with the last thing it has: it was removed, or came with its
            first ask and no submission.
        priorities: How many of its asks wait, by priority; the largest key is the seed's
            ``askMaxPriority``.
    """

    __slots__ = (
        "allocations", "asks", "closing", "created", "groups", "id", "leaf", "priorities", "running", "seq", "tags", "usage",
        "user",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - a record
        self,
        *,
        id: str,  # noqa: A002
        leaf: Queue,
        user: str,
        groups: tuple[str, ...],
        created: int,
        seq: int,
        width: int,
    ) -> None:
        """Make an application without asks or allocations."""
        self.id = id
        self.leaf = leaf
        self.user = user
        self.groups = groups
        self.tags: dict[str, str] = {}
        self.created = created
        self.seq = seq
        self.usage = [0] * width
        self.asks: dict[str, Ask] = {}
        self.allocations: dict[str, Allocation] = {}
        self.priorities: dict[int, int] = {}
        self.running = 0
        self.closing = False


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
    """Count (``sign`` 1, or so many) or uncount (-1) allocations that are being evicted, along their path."""
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

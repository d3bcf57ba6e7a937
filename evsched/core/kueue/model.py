"""The quota tree: what cohorts and ClusterQueues may use, and what they use of it (reference section 2).

Amounts belong to a (flavor, resource), which is one type index. A queue's *subtree* quota is what
it and all below it brought; the part it keeps for itself because of a lending limit is *local*.
Usage up to the local quota stays with the queue, what is above counts as usage of its cohort, so
that the usage of a cohort is always the sum over its children of ``max(0, usage - local)``. That
makes adding and removing exact inverses of each other, in any order.

Kept as things happen, and never rebuilt for a decision: usage along the path, and in each cohort
which of its children are above their nominal quota or lead to such ClusterQueues
(`Quota.borrowers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.bounds import MAX_INT64
from events.configuration import ClusterQueueSpec, CohortSpec
from evsched.core.queues import Queue, QueueSettings, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.configuration import KueueSpec, ResourceGroupSpec
    from evsched.core.resources import Pairs, ResourceTypes
    from evsched.core.state import State

COHORT_PREFIX = "cohort/"
"""Before the name of a cohort in a queue's path; ClusterQueues have their name alone."""

UNLIMITED = MAX_INT64
"""Sums of quotas saturate here, as int64 does in the real scheduler."""


class FlavorGroup:
    """Resources of a ClusterQueue that get one flavor together.

    Attributes:
        resources: Names of the covered resources.
        flavors: Flavor name and the type index of each covered resource, in the order of the
            manifest.
    """

    __slots__ = ("flavors", "resources")

    def __init__(self, spec: ResourceGroupSpec, types: ResourceTypes) -> None:
        """Register the types of a resource group, each pair of flavor and resource."""
        self.resources = frozenset(spec.resources)
        self.flavors = tuple(
            (
                one.flavor,
                {name: types.type_index(f"{one.flavor}/{name}") for name in spec.resources},
            )
            for one in spec.flavors
        )


class Quota:
    """The quotas of one ClusterQueue or cohort and what counts against them; amounts by type index.

    Amounts are base units of each resource. A node is as old as its configuration: quotas are set
    once, while the tree is built, and only usage changes after that.

    Attributes:
        path: Of the queue it belongs to.
        name: Of the ClusterQueue or cohort, without prefix.
        parent: The cohort above; None at the top.
        order: Place in the configuration, which breaks ties.
        nominal: Its own quota; a type that is not there has none.
        borrowing, lending: Limits; a type that is not there has none.
        subtree: Quota of this node and all below it that they share.
        local: The part of ``subtree`` that is never lent.
        usage: What counts here; a type that is not there is not used.
        height: 0 for a ClusterQueue, 1 for a cohort that holds queues only.
        weight_nano: Fair sharing weight in billionths; 0 is allowed.
        top: The node at the top of the tree.
        down: From the top of the tree to this node, both included.
        borrowers: (cohorts) By type, the children that borrow: ClusterQueues that use more than
            their nominal quota, and cohorts with such queues below them.
        groups: (ClusterQueues) Resources that get their flavor together.
        spec: Of a ClusterQueue; None for a cohort.
        resource_of: Type index to resource name, of all types that the configuration names.
    """

    __slots__ = (
        "_lendable", "_potential", "borrowers", "borrowing", "cohorts", "down", "groups", "height", "lending", "local", "name",
        "nominal", "order", "parent", "path", "queues", "resource_of", "spec", "subtree", "top", "usage", "weight_nano",
    )  # fmt: skip

    def __init__(self, path: str, name: str, parent: Quota | None, order: int) -> None:
        """Make a node without quotas below ``parent``; None for the top of a tree."""
        self.path = path
        self.name = name
        self.parent = parent
        self.order = order
        self.queues: list[Quota] = []
        self.cohorts: list[Quota] = []
        self.top: Quota = self if parent is None else parent.top
        self.down: tuple[Quota, ...] = (self,) if parent is None else (*parent.down, self)
        self.nominal: dict[int, int] = {}
        self.borrowing: dict[int, int] = {}
        self.lending: dict[int, int] = {}
        self.subtree: dict[int, int] = {}
        self.local: dict[int, int] = {}
        self.usage: dict[int, int] = {}
        self.height = 0
        self.weight_nano = 1_000_000_000
        self.groups: tuple[FlavorGroup, ...] = ()
        self.spec: ClusterQueueSpec | None = None
        self.borrowers: dict[int, dict[Quota, None]] = {}
        self.resource_of: dict[int, str] = {}
        self._potential: dict[int, int] = {}
        self._lendable: dict[str, int] = {}

    def __repr__(self) -> str:
        """Return the path for people who debug."""
        return f"Quota({self.path})"

    @property
    def tree(self) -> str:
        """Path of the node at the top of the tree."""
        return self.top.path

    # ---------------------------------------------------------------------------------------- usage

    def use(self, pairs: Pairs) -> None:
        """Count amounts in this ClusterQueue and, as far as they are not local, above it."""
        self._shift(pairs, 1)

    def release(self, pairs: Pairs) -> None:
        """Take amounts off this ClusterQueue and, as far as they were not local, above it."""
        self._shift(pairs, -1)

    def clear(self) -> None:
        """Forget all usage; of a whole tree, or it does not add up."""
        self.usage.clear()
        self.borrowers.clear()

    def _shift(self, pairs: Pairs, sign: int) -> None:
        """Add amounts (``sign`` 1) or take them off (-1), here and above.

        What lies within the local quota stays with this node. What is above it counts at the
        parent, and from there in the same way. The walk up ends where nothing changes.
        """
        usage, nominal = self.usage, self.nominal
        for index, amount in pairs:
            before = usage.get(index, 0)
            after = before + sign * amount
            if after:
                usage[index] = after
            else:
                del usage[index]
            quota = nominal.get(index, 0)
            if (before > quota) is not (after > quota):
                self._borrows(index, borrows=after > quota)
            kept, node = self.local.get(index, 0), self.parent
            passed = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            while passed and node is not None:
                before = node.usage.get(index, 0)
                after = node.usage[index] = before + passed
                kept = node.local.get(index, 0)
                passed = (after - kept if after > kept else 0) - (
                    before - kept if before > kept else 0
                )
                node = node.parent

    def _borrows(self, index: int, *, borrows: bool) -> None:
        """Note in the cohort that this ClusterQueue borrows a type, or no longer does.

        A cohort that has its first such child, or lost its last, is noted in the one above in the
        same way; else the walk ends.
        """
        child, node = self, self.parent
        while node is not None:
            known = node.borrowers.setdefault(index, {})
            if borrows:
                known[child] = None
            else:
                del known[child]
            if len(known) > (1 if borrows else 0):
                return
            child, node = node, node.parent

    # ----------------------------------------------------------------------------- what is possible

    def potential(self, index: int) -> int:
        """Return the most of a type that could ever be used here.

        That is when nothing is used anywhere and everything is lent. A request above it never
        fits, whatever is preempted. It depends on the manifests alone and is kept.
        """
        found = self._potential.get(index)
        if found is None:
            quota = self.subtree.get(index, 0)
            if self.parent is None:
                found = quota
            else:
                found = self.local.get(index, 0) + self.parent.potential(index)
                limit = self.borrowing.get(index)
                if limit is not None:
                    found = min(found, quota + limit)
            found = self._potential[index] = min(found, UNLIMITED)
        return found

    def lendable(self, resource: str) -> int:
        """Return what could be used here of a resource, all flavors together (reference section 5).

        It is what shares are measured by, so flavors count together. It depends on the manifests
        alone and is kept; it saturates at `UNLIMITED`.
        """
        found = self._lendable.get(resource)
        if found is None:
            name_of = self.resource_of
            found = sum(
                self.potential(index) for index in self.top.subtree if name_of[index] == resource
            )
            found = self._lendable[resource] = min(found, UNLIMITED)
        return found

    def walk(self) -> Iterator[Quota]:
        """Yield this node and all below it, parents first, cohorts before queues."""
        yield self
        for cohort in self.cohorts:
            yield from cohort.walk()
        yield from self.queues

    def tree_path(self) -> str:
        """Return the names from the top of the tree to here, as in the message to a victim: ``/org/team/queue``."""
        return "/" + "/".join(node.name for node in self.down)


def quota_of(queue: Queue) -> Quota:
    """Return the quotas of a Kueue queue.

    One that is draining has none, and it is an error of the caller to ask for them.
    """
    quota = queue.quota
    assert isinstance(quota, Quota), queue.path
    return quota


def quota_in(queue: Queue) -> Quota | None:
    """Return the quotas of a queue; None for one that is draining, or is none of Kueue's."""
    quota = queue.quota
    return quota if isinstance(quota, Quota) else None


# ------------------------------------------------------------------------------------- construction


def build(spec: KueueSpec, types: ResourceTypes) -> Tree:
    """Return the queue above all cohort trees (path empty, no quota), all queues and LocalQueues.

    Cohorts exist by being named. The order of trees and children is that of the manifests: cohort
    objects first, then cohorts that only ClusterQueues name.
    """
    root = Queue("", "", None, leaf=False)
    queues: dict[str, Queue] = {}
    resource_of: dict[int, str] = {}
    manifests = {one.name: one for one in spec.cohorts}
    for cohort in (
        *(one.name for one in spec.cohorts),
        *(one.cohort for one in spec.cluster_queues if one.cohort is not None),
    ):
        _cohort(cohort, manifests, root, queues)
    for one in spec.cluster_queues:
        above = None if one.cohort is None else queues[COHORT_PREFIX + one.cohort]
        queue = _add(one.name, one.name, above, root, queues, leaf=True)
        quota = quota_of(queue)
        quota.spec, quota.weight_nano = one, one.weight_nano
        quota.groups = tuple(FlavorGroup(group, types) for group in one.groups)
        _set_quotas(quota, one.groups, types, resource_of)
        queue.maximum = quota.nominal
        queue.settings = QueueSettings(quota_preemption_delay_ms=one.quota_preemption_delay_ms)
    for name, manifest in manifests.items():
        quota = quota_of(queues[COHORT_PREFIX + name])
        quota.weight_nano = manifest.weight_nano
        _set_quotas(quota, manifest.groups, types, resource_of)
    for queue in root.children.values():
        _sum_up(quota_of(queue))
    for queue in queues.values():
        quota_of(queue).resource_of = resource_of
    local_queues = {f"{one.namespace}/{one.name}": one.cluster_queue for one in spec.local_queues}
    return Tree(root, queues, local_queues)


def add_queue(state: State, path: str, *, parent: bool, draining: bool) -> Queue:
    """Add a queue that the configuration does not name, without quota, and return it.

    Names of ClusterQueues may hold dots, which say nothing about their place: it hangs at the root.
    """
    known = state.queues.get(path)
    if known is not None:
        return known
    queue = Queue(path, path, state.root, leaf=not parent)
    queue.draining, queue.dynamic = draining, not draining
    state.attach(queue, state.root)
    return queue


def _cohort(
    name: str, manifests: dict[str, CohortSpec], root: Queue, queues: dict[str, Queue]
) -> Queue:
    """Return the queue of a cohort, which is made with those above it when it is first named.

    A cohort without an object of its own is a root without quota.
    """
    path = COHORT_PREFIX + name
    known = queues.get(path)
    if known is not None:
        return known
    manifest = manifests.get(name)
    above = (
        None
        if manifest is None or manifest.parent is None
        else _cohort(manifest.parent, manifests, root, queues)
    )
    return _add(path, name, above, root, queues, leaf=False)


def _add(
    path: str, name: str, above: Queue | None, root: Queue, queues: dict[str, Queue], *, leaf: bool
) -> Queue:
    """Add a queue with its quota to the tree, below ``above`` or at root.

    The order of adding is that of the manifests (``order``). It breaks ties where Kueue's own
    order is that of names in a map, and so is any.
    """
    parent = root if above is None else above
    queue = Queue(path, name, parent, leaf=leaf)
    queue.order = len(queues)
    parent.children[path] = queue
    queues[path] = queue
    upper = None if above is None else quota_of(above)
    quota = queue.quota = Quota(path, name, upper, queue.order)
    if quota.parent is not None:
        (quota.parent.queues if leaf else quota.parent.cohorts).append(quota)
    return queue


def _set_quotas(
    quota: Quota,
    groups: Iterable[ResourceGroupSpec],
    types: ResourceTypes,
    resource_of: dict[int, str],
) -> None:
    """Enter nominal quotas and limits by type index, in base units."""
    for group in groups:
        for flavor in group.flavors:
            for resource, limits in flavor.quotas.items():
                index = types.type_index(f"{flavor.flavor}/{resource}")
                resource_of[index] = resource
                quota.nominal[index] = limits.nominal
                if limits.borrowing_limit is not None:
                    quota.borrowing[index] = limits.borrowing_limit
                if limits.lending_limit is not None:
                    quota.lending[index] = limits.lending_limit


def _sum_up(quota: Quota) -> None:
    """Fill in subtree and local quotas and heights, from the leaves up.

    What a child lends is its subtree's quota without its local part. Sums saturate as Kueue's do,
    so that a tree of unlimited quotas stays unlimited.
    """
    subtree = dict(quota.nominal)
    heights = [1] if quota.queues else [0]
    for child in (*quota.cohorts, *quota.queues):
        _sum_up(child)
        if child.spec is None:
            heights.append(child.height + 1)
        for index, amount in child.subtree.items():
            lent = amount - child.local.get(index, 0)
            subtree[index] = min(subtree.get(index, 0) + lent, UNLIMITED)
    quota.subtree = subtree
    quota.height = max(heights)
    for index, limit in quota.lending.items():
        quota.local[index] = max(0, subtree.get(index, 0) - limit)

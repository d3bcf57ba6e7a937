"""What the order of waiting asks is made of: demands, groups of asks, buckets, applications, queues.

Records of `evsched.core.yunikorn.waiting`, which says how they work together. An entry is current
as long as its owner points to it; heaps hold outdated ones too. Entries of heaps carry a serial
number before their owner, so that owners are never compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.lazy_heap import LazyHeap
from evsched.core.yunikorn.ordering import (
    ApplicationKey,
    AskKey,
    Denominators,
    QueueKey,
    shown_priority,
)
from evsched.core.yunikorn.ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import UnsetType

    from evsched.core.queues import Application, Queue
    from evsched.core.resources import Shape


class Demand:
    """What asks of one shape, with one required node and pods that are alike, have in common.

    Attributes:
        pod: What decides where it may run besides (`evsched.core.pods`); UNSET: nothing.
        required: The only node for them; None: any.
        groups: How many groups have it.
        row: In the columns of `evsched.core.yunikorn.bindable`.
        watched: Its groups in applications that are watched.
    """

    __slots__ = ("groups", "pod", "required", "row", "shape", "watched")

    def __init__(self, shape: Shape, required: str | None, pod: bytes | UnsetType) -> None:
        """Make a demand of which nothing is known yet."""
        self.shape = shape
        self.required = required
        self.pod = pod
        self.groups = 0
        self.row = -1
        self.watched: dict[AskGroup, None] = {}


class AskGroup:
    """The asks of one application with one demand.

    Attributes:
        waiting: How many there are, those in flight included.
        heap: Those that may be next; may hold some that are gone.
        entry: The current entry in the bucket of the leaf; None when there is none.
        limited: A limit of its user or application holds it back.
        row: That of its bucket.
    """

    __slots__ = (
        "app_node",
        "bucket",
        "demand",
        "entry",
        "heap",
        "limited",
        "row",
        "waiting",
    )

    def __init__(
        self,
        app_node: ApplicationNode,
        demand: Demand,
        bucket: DemandBucket,
        is_next: Callable[[AskKey], bool],
    ) -> None:
        """Make an empty group; ``is_next`` tells whether a key is that of an ask that may be next."""
        self.app_node = app_node
        self.demand = demand
        self.bucket = bucket
        self.row = bucket.row
        self.waiting = 0
        self.heap: LazyHeap[AskKey] = LazyHeap(is_next)
        self.entry: GroupEntry | None = None
        self.limited = False


GroupEntry = tuple[ApplicationKey, AskKey, int, AskGroup]
"""Key of the application, key of its first ask of that demand, a serial number so that groups are never compared, group."""


Peers = tuple[str, tuple[str, ...], bool] | None
"""Whom limits treat alike in a leaf: user, groups, whether the application runs already; None where nothing is limited."""


class DemandBucket:
    """The groups of one leaf with one demand and, where there are limits, of peers.

    Attributes:
        groups: How many there are.
        row: In the columns of `evsched.core.yunikorn.bindable`.
        top: The entry that stands for this bucket in the ranking of the leaf; None when none does.
        limited: A limit on users, groups or the number of applications holds all of it back.
    """

    __slots__ = ("demand", "groups", "heap", "leaf", "limited", "peers", "row", "top")

    def __init__(self, leaf: QueueNode, demand: Demand, peers: Peers) -> None:
        """Make an empty bucket."""
        self.leaf = leaf
        self.demand = demand
        self.peers = peers
        self.groups = 0
        self.row = -1
        self.heap: LazyHeap[GroupEntry] = LazyHeap(_is_of_group)
        self.top: GroupEntry | None = None
        self.limited = False


class ApplicationNode:
    """An application with asks that wait.

    Attributes:
        highest: The highest priority of its waiting asks (the seed's ``askMaxPriority``).
        open: False while it is paused, and for a new application of a stateaware leaf while another
            one is considered.
        paused: It is not looked at for a while.
        watched: It has so many asks that it is to be paused when no node has room for them.
        ticket: Its current entry among the new applications of a stateaware leaf.
        peers: Whom limits treat like it.
    """

    __slots__ = (
        "application",
        "groups",
        "highest",
        "key",
        "open",
        "paused",
        "peers",
        "queue_node",
        "ticket",
        "watched",
    )

    def __init__(self, application: Application, queue_node: QueueNode, highest: int) -> None:
        """Make the node of an application that has no asks yet."""
        self.application = application
        self.queue_node = queue_node
        self.highest = highest
        self.groups: dict[Demand, AskGroup] = {}
        self.key: ApplicationKey | None = None
        self.open = True
        self.paused = False
        self.watched = False
        self.ticket: Ticket | None = None
        self.peers: Peers = None


class QueueNode:
    """A queue in the order of asks.

    Attributes:
        row: In the columns of `evsched.core.yunikorn.bindable`.
        lineage: The nodes from this queue up to the root.
        maxima: Those of them that have a maximum.
        levels: Of a leaf: how many asks wait, by priority; of a parent: how many children show a
            priority.
        highest: The largest of them (the seed's ``currentPriority``, before offset and fence); None
            when nothing waits.
        entry: The current entry in the ranking of its parent; None when nothing waits.
        children: Of a parent: in their order.
        changed_children: Of a parent: those whose keys may have changed.
        tops: Of a leaf: the tops of its buckets in their order.
        changed_applications, changed_groups, changed_buckets: Of a leaf: what may have other keys.
        choosing: Of a stateaware leaf: its new application is to be chosen again.
        buckets: By demand and peers.
        limits: Whether users, groups or the number of applications are limited here or above.
        backoff: Of a leaf: how many asks that no node has room for pause an application; 0: none
            do.
        chosen: Of a stateaware leaf: the new application that is considered.
    """

    __slots__ = (
        "app_nodes", "backoff", "buckets", "changed_applications", "changed_buckets", "changed_children", "changed_groups",
        "children", "choosing", "chosen", "compared_with", "entry", "highest", "levels", "limits", "lineage", "maxima",
        "newcomers", "parent", "queue", "row", "tops",
    )  # fmt: skip

    def __init__(self, queue: Queue, parent: QueueNode | None, compared_with: Denominators) -> None:
        """Make the node of a queue in which nothing waits."""
        self.queue = queue
        self.parent = parent
        self.row = -1
        self.lineage: tuple[QueueNode, ...] = (
            self,
            *(parent.lineage if parent is not None else ()),
        )
        self.maxima = tuple(above for above in self.lineage if above.queue.maximum)
        self.compared_with = compared_with
        self.levels: dict[int, int] = {}
        self.highest: int | None = None
        self.entry: QueueEntry | None = None
        self.children: Ranking[QueueEntry] = Ranking()
        self.changed_children: dict[QueueNode, None] = {}
        self.tops: Ranking[GroupEntry] = Ranking()
        self.changed_applications: dict[ApplicationNode, None] = {}
        self.changed_groups: dict[AskGroup, None] = {}
        self.changed_buckets: dict[DemandBucket, None] = {}
        self.choosing = False
        self.buckets: dict[Demand, dict[Peers, DemandBucket]] = {}
        self.backoff = queue.settings.backoff_asks
        self.limits = any(above.limits or above.max_applications for above in queue.lineage)
        self.app_nodes: dict[str, ApplicationNode] = {}
        self.newcomers: LazyHeap[Ticket] = LazyHeap(_is_of_application)
        self.chosen: ApplicationNode | None = None


QueueEntry = tuple[QueueKey, QueueNode]
"""Key of the queue, which ends in its path, and the queue."""
Ticket = tuple[ApplicationKey, int, ApplicationNode]


def _is_of_group(entry: GroupEntry) -> bool:
    """Tell whether an entry is the current one of its group.

    By identity: an equal entry that was replaced meanwhile is out of date.
    """
    return entry[3].entry is entry


def _is_of_application(ticket: Ticket) -> bool:
    """Tell whether a ticket is the current one of its application, by identity."""
    return ticket[2].ticket is ticket


def shift(queue_node: QueueNode, gone: int | None, come: int | None) -> None:
    """Count a priority in or out (or both) and carry a changed maximum up as far as it is seen.

    O(1) while the maximum stays; when it leaves, a look at the distinct priorities (seed,
    "Scheduler storage object changes").
    """
    at: QueueNode | None = queue_node
    while at is not None:
        levels, highest = at.levels, at.highest
        if come is not None:
            levels[come] = levels.get(come, 0) + 1
            if highest is None or come > highest:
                highest = come
        if gone is not None:
            left = levels[gone] - 1
            if left:
                levels[gone] = left
            else:
                del levels[gone]
                if gone == highest:
                    highest = max(levels, default=None)
        if highest == at.highest:
            return
        gone = None if at.highest is None else shown_priority(at.queue, at.highest)
        come = None if highest is None else shown_priority(at.queue, highest)
        at.highest = highest
        if gone == come:
            return
        at = at.parent

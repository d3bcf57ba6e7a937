"""What the order of waiting asks is made of: demands, groups of asks, buckets, applications, queues.

Records of `evsched.core.yunikorn.waiting`, which says how they work together. An entry is current
as long as its owner points to it; heaps hold outdated ones too. Entries carry a serial number
before their owner, so that owners are never compared.
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.queues import Application, Queue
    from evsched.core.resources import Shape


class Demand:
    """What asks of one shape and with one required node have in common.

    Attributes:
        required: The only node for them; None: any.
        blocked: No node has room for them now.
        candidate_nodes: The only nodes, by row of the columns, that can have room: the others had none and
            have not grown; None: any.
        capped_at: The queues whose maximum they would pass.
        watched: Its groups in applications that are watched.
    """

    __slots__ = ("blocked", "candidate_nodes", "capped_at", "required", "shape", "watched")

    def __init__(self, shape: Shape, required: str | None) -> None:
        """Make a demand of which nothing is known yet."""
        self.shape = shape
        self.required = required
        self.blocked = False
        self.candidate_nodes: list[int] | None = None
        self.capped_at: dict[QueueNode, None] = {}
        self.watched: dict[AskGroup, None] = {}


class AskGroup:
    """The asks of one application with one demand.

    Attributes:
        waiting: How many there are, those in flight included.
        heap: Those that may be next; may hold some that are gone.
        entry: The current entry in the bucket of the leaf; None when there is none.
        limited: A limit of its user or application holds it back.
        marked: It is on the list of what must be looked at.
    """

    __slots__ = (
        "app_node",
        "bucket",
        "demand",
        "entry",
        "heap",
        "limited",
        "marked",
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
        self.waiting = 0
        self.heap: LazyHeap[AskKey] = LazyHeap(is_next)
        self.entry: GroupEntry | None = None
        self.limited = False
        self.marked = False


GroupEntry = tuple[ApplicationKey, AskKey, int, AskGroup]
"""Key of the application, key of its first ask of that demand, a serial number so that groups are never compared, group."""


Peers = tuple[str, tuple[str, ...], bool] | None
"""Whom limits treat alike in a leaf: user, groups, whether the application runs already; None where nothing is limited."""


class DemandBucket:
    """The groups of one leaf with one demand and, where there are limits, of peers.

    Attributes:
        groups: How many there are.
        top: The entry that stands for this bucket among the tops of the leaf; None when none does.
        asleep: Nothing here can be bound, as far as is known.
        limited: A limit on users, groups or the number of applications holds all of it back (then
            it is asleep).
    """

    __slots__ = ("asleep", "demand", "groups", "heap", "leaf", "limited", "peers", "top")

    def __init__(self, leaf: QueueNode, demand: Demand, peers: Peers) -> None:
        """Make an empty bucket."""
        self.leaf = leaf
        self.demand = demand
        self.peers = peers
        self.groups = 0
        self.heap: LazyHeap[GroupEntry] = LazyHeap(_is_of_group)
        self.top: GroupEntry | None = None
        self.asleep = False
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
        "marked",
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
        self.marked = False
        self.peers: Peers = None


class QueueNode:
    """A queue in the order of asks.

    Attributes:
        lineage: The nodes from this queue up to the root.
        levels: Of a leaf: how many asks wait, by priority; of a parent: how many children show a
            priority.
        highest: The largest of them (the seed's ``currentPriority``, before offset and fence); None
            when nothing waits.
        demands: How many asks wait here and below, by demand.
        capped: Demands that would pass the maximum of this queue.
        heap: Of a parent: its children; of a leaf: the tops of its buckets.
        read: Up to where this queue has read the list of demands that may have become possible.
        sleeping: Children that have nothing to offer.
        buckets: By demand and peers; ``bucket_count`` is their number.
        limits: Whether users, groups or the number of applications are limited here or above.
        backoff: Of a leaf: how many asks that no node has room for pause an application; 0: none
            do.
        witness: A demand that can be tried here, as far as was known last.
        chosen: Of a stateaware leaf: the new application that is considered.
    """

    __slots__ = (
        "app_nodes",
        "asleep",
        "backoff",
        "bucket_count",
        "buckets",
        "capped",
        "chosen",
        "compared_with",
        "demands",
        "entry",
        "heap",
        "highest",
        "levels",
        "limits",
        "lineage",
        "marked",
        "newcomers",
        "parent",
        "queue",
        "read",
        "sleeping",
        "tops",
        "witness",
    )  # fmt: skip

    def __init__(self, queue: Queue, parent: QueueNode | None, compared_with: Denominators) -> None:
        """Make the node of a queue in which nothing waits."""
        self.queue = queue
        self.parent = parent
        self.lineage: tuple[QueueNode, ...] = (
            self,
            *(parent.lineage if parent is not None else ()),
        )
        self.compared_with = compared_with
        self.levels: dict[int, int] = {}
        self.highest: int | None = None
        self.demands: dict[Demand, int] = {}
        self.capped: dict[Demand, None] = {}
        self.heap: LazyHeap[QueueEntry] = LazyHeap(_is_of_queue)
        self.entry: QueueEntry | None = None
        self.tops: LazyHeap[GroupEntry] = LazyHeap(_is_of_bucket)
        self.buckets: dict[Demand, dict[Peers, DemandBucket]] = {}
        self.bucket_count = 0
        self.backoff = queue.settings.backoff_asks
        self.limits = any(above.limits or above.max_applications for above in queue.lineage)
        self.app_nodes: dict[str, ApplicationNode] = {}
        self.read = 0
        self.asleep = False
        self.sleeping: dict[QueueNode, None] = {}
        self.witness: Demand | None = None
        self.newcomers: LazyHeap[Ticket] = LazyHeap(_is_of_application)
        self.chosen: ApplicationNode | None = None
        self.marked = False

    def offers(self) -> bool:
        """Tell whether some demand here is neither blocked nor capped at this very queue."""
        witness, capped = self.witness, self.capped
        if (
            witness is not None
            and not witness.blocked
            and witness not in capped
            and witness in self.demands
        ):
            return True
        for demand in self.demands:
            if not demand.blocked and demand not in capped:
                self.witness = demand
                return True
        self.witness = None
        return False


QueueEntry = tuple[QueueKey, int, QueueNode]
Ticket = tuple[ApplicationKey, int, ApplicationNode]


def _is_of_group(entry: GroupEntry) -> bool:
    return entry[3].entry is entry


def _is_of_bucket(entry: GroupEntry) -> bool:
    return entry[3].bucket.top is entry


def _is_of_queue(entry: QueueEntry) -> bool:
    return entry[2].entry is entry


def _is_of_application(ticket: Ticket) -> bool:
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

"""What runs, what waits and what is set aside: nodes, asks, allocations, preemptions under way, suspensions.

`Ask`, `Allocation` and `Preemption` hold plain values only (ids, numbers), so that they are at once
the truth in memory and the record in a snapshot; a field that got another name since keeps the
first one there, as digests cover it. `Node` keeps indices beside its own, and so does
`evsched.core.queues.Application`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType, field

from events.decisions import Suspended
from events.vocabulary import AskSubmitted, PodSet
from evsched.core.timers import Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.pods import Taint
    from evsched.core.resources import Pairs, Shape, Shapes


class Ask(Struct, gc=False):
    """A task that waits.

    Attributes:
        queue: Path of its leaf.
        shape: Index of its amounts in `ResourceTypes.shapes` (Kueue: of all podsets together, by
            resource name, without flavors).
        created: When its owner created it, or when it was submitted; milliseconds.
        seq: Of the event that submitted it; what it causes names it.
        may_preempt: False for the policy ``Never``.
        podsets: (Kueue) its podsets as submitted; empty for a plain ask.
        local_queue: (Kueue) ``namespace/name`` of the LocalQueue it came through; empty when it
            named its ClusterQueue.
        failed: The reason last written in a PreemptionFailed for it; empty when none was.
        preempted: It has preempted, and its node was not lost since: it may not do so again.
        patient_until: How long it waits for room that is being freed for others, before it may
            preempt elsewhere; 0: not begun.
        pod: What its pod says of where it may run (`evsched.core.pods`); UNSET: nothing.
    """

    id: str
    application: str
    queue: str
    shape: int
    priority: int
    created: int
    seq: int
    allow_preemption: bool = True
    may_preempt: bool = True
    originator: bool = False
    required_node: str | None = None
    uid: str = ""
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None
    preempt_resources: tuple[str, ...] | None = None
    failed: str = ""
    local_queue: str = ""
    preempted: bool = False
    patient_until: int = 0
    pod: bytes | UnsetType = UNSET


class Allocation(Struct, gc=False):
    """A task that runs.

    Attributes:
        node: None where admission is by quota alone.
        shape: Index of its amounts (Kueue: by ``flavor/resource``).
        bound: When it was bound (Kueue: when its quota was reserved); milliseconds.
        seq: Of the event that bound or restored it.
        eviction_requested: When its eviction was requested; 0 while it was not.
        victim_of: The ask that it makes room for; empty when it does not.
        quota_of: The queue whose quota enforcement evicts it; empty when none did.
        eviction_decided_by: ``seq`` of the decision to evict it; 0 when it was found so.
        attempts: How often its agent was asked to evict it.
        evicted: (Kueue) it carries the condition Evicted.
        podsets: (Kueue) with their flavors; empty for a plain one.
        local_queue: (Kueue) The LocalQueue it came through; empty when it named its ClusterQueue.
        ask_shape: Index of the amounts as they were asked for, which is ``shape`` but for Kueue.
        pod: As that of its ask.
    """

    id: str
    application: str
    queue: str
    node: str | None
    shape: int
    priority: int
    created: int
    bound: int
    seq: int
    allow_preemption: bool = True
    originator: bool = False
    required_node: str | None = None
    uid: str = ""
    ask_shape: int = 0
    eviction_requested: int = field(default=0, name="told")
    victim_of: str = ""
    quota_of: str = ""
    attempts: int = 0
    eviction_decided_by: int = field(default=0, name="told_by")
    evicted: bool = False
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None
    local_queue: str = ""
    pod: bytes | UnsetType = UNSET


def is_victim(allocation: Allocation) -> bool:
    """Tell whether the eviction of an allocation was requested, so that its room is to be free."""
    return bool(allocation.eviction_requested)


class Preemption(Struct, gc=False, kw_only=True):
    """An ask in flight: victims are being evicted for it and it has not been bound yet.

    Attributes:
        node: Reserved for it; None where admission is by quota alone.
        waiting_for: Victims that have not left yet.
        seq: Of the PreemptionDecided.
    """

    ask: str
    node: str | None
    waiting_for: list[str]
    decided: int
    seq: int


class Node:
    """A node and what runs there.

    Attributes:
        capacity, used: By resource type index.
        reserved: The asks for which it is kept, with what each will use.
        ready: As its kubelet says; no decision depends on it.
    """

    __slots__ = (
        "allocations",
        "capacity",
        "labels",
        "name",
        "ready",
        "reserved",
        "resources",
        "schedulable",
        "taints",
        "used",
    )

    def __init__(self, name: str, width: int) -> None:
        """Make an empty node."""
        self.name = name
        self.resources: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.schedulable = True
        self.taints: tuple[Taint, ...] = ()
        self.ready = True
        self.capacity = [0] * width
        self.used = [0] * width
        self.allocations: dict[str, Allocation] = {}
        self.reserved: dict[str, Shape] = {}

    def free(self, index: int) -> int:
        """Return what is free of a resource type, reservations not subtracted; negative when the node shrank."""
        return self.capacity[index] - self.used[index]

    def available(self, index: int, ask: str = "") -> int:
        """Return what an ask may use of a type: free space less what is reserved for others."""
        rest = self.capacity[index] - self.used[index]
        for other, shape in self.reserved.items():
            if other != ask:
                for kind, amount in shape.pairs:
                    if kind == index:
                        rest -= amount
        return rest

    def room_after(
        self,
        shapes: Shapes,
        ask: str = "",
        *,
        kept: Iterable[str] | None = None,
        leaves: Callable[[Allocation], bool] = is_victim,
    ) -> list[int]:
        """Return what an ask may use of each type once the victims on this node are gone.

        Args:
            shapes: Those of the state, by index.
            ask: Its own reservation is no obstacle to it; empty: what any ask may use.
            kept: The asks whose reservations stay; None: all.
            leaves: Tells which allocations go.
        """
        room = [capacity - used for capacity, used in zip(self.capacity, self.used, strict=True)]
        for other in self.reserved if kept is None else kept:
            if other != ask:
                for index, amount in self.reserved[other].pairs:
                    room[index] -= amount
        for allocation in self.allocations.values():
            if leaves(allocation):
                for index, amount in shapes[allocation.shape].pairs:
                    room[index] += amount
        return room

    def fits(self, pairs: Pairs, ask: str = "") -> bool:
        """Tell whether these amounts fit into what the ask may use now."""
        if not self.reserved:
            capacity, used = self.capacity, self.used
            return all(capacity[index] - used[index] >= amount for index, amount in pairs)
        return all(self.available(index, ask) >= amount for index, amount in pairs)


class Suspension(Struct, frozen=True, kw_only=True):
    """One thing that is set aside.

    Attributes:
        kind, subject, place: As in the DecisionSuspended.
        seq: Of that event.
        since: Its time, milliseconds.
        ask: The ask as it was submitted, when it is one.
        timer: The timer when it is one. Another one of the same id is not set aside.
    """

    kind: Suspended
    subject: str
    place: str
    seq: int
    since: int
    ask: AskSubmitted | None = None
    timer: Timer | None = None

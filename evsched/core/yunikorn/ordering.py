"""Who is next: the sort keys of queues, applications and asks (seed priority_scheduling).

The next ask is found by walking down from root: at each parent the first child that has something
to offer, in the leaf the first application, in it the first ask. Each level has its own order;
smaller keys come first:

============  ===================================================================================
queues        priority (highest first), share (lowest first), pending (largest first), path; with
              ``application.sort.priority: disabled`` on their parent: share, priority, pending,
              path
applications  priority (highest first), share (policy ``fair``), age (oldest first), log order,
              id; with priorities disabled on the leaf: share or age, priority, the rest as before
asks          priority (highest first), age (oldest first), log order, id: whatever is set on the
              leaf ("Change AllocationAsk sorting within an application" is no goal of the seed)
============  ===================================================================================

**Priority.** An application has the highest priority of its waiting asks (the seed's
``askMaxPriority``), a leaf the highest of its applications, a parent the highest of its children
(``currentPriority``). What a queue shows to its parent is that plus its ``priority.offset``, held
within int32 ("Priority offset"); behind a ``priority.policy: fence`` it is the offset alone
("Priority fencing"). A queue in which nothing waits has none, and is not considered.

**Share** is the dominant share: the largest ratio of usage to guarantee over the resource types. A
type without a guarantee is compared with the fair maximum: the cluster's total, in place of which
stands what the nearest queue on the path sets as maximum. A denominator of 0 counts as used up by
any usage, and as not used by none. A type that has no denominator is left out. Ratios are compared
exactly: the integer ``(usage << 128) // denominator`` keeps the order of ratios of numbers below
2**63, because two different ones differ by more than 2**-126.

**Pending** amounts compare type by type, in the order in which types first appeared in the log:
where one queue waits for more of everything, that is the same as the seed's "highest pending
requests", and where it does not, the order is still total.

**Age** of an application is the earliest creation of itself, its asks and its allocations, those
that are gone included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evsched.core.queues import Application, Queue
    from evsched.core.workloads import Ask

MIN_PRIORITY = -(2**31)
MAX_PRIORITY = 2**31 - 1

RATIO_BITS = 128
USED_UP = 1 << RATIO_BITS
"""The ratio 1."""

Denominators = tuple[tuple[int, int], ...]
"""(type index, what usage is compared with), ascending by index."""
AskKey = tuple[int, int, int, str]
ApplicationKey = tuple[int, int, int, int, str]
QueueKey = tuple[int, int, tuple[int, ...], str]


def shown_priority(queue: Queue, highest: int) -> int:
    """Return the priority that a queue shows to its parent when ``highest`` is the highest priority inside (int32, clamped)."""
    settings = queue.settings
    if settings.priority_fence:
        return settings.priority_offset
    return max(MIN_PRIORITY, min(MAX_PRIORITY, highest + settings.priority_offset))


def fair_maximum(queue: Queue, total: list[int]) -> dict[int, int]:
    """Return what usage is compared with where there is no guarantee, by type index.

    Args:
        queue: Root, or a queue below.
        total: Capacity of all nodes, by type index.
    """
    limits = {index: amount for index, amount in enumerate(total) if amount > 0}
    for above in reversed(queue.lineage):
        limits.update(above.maximum)
    return limits


def denominators(queue: Queue, total: list[int]) -> Denominators:
    """Return what usage in a queue is compared with: its guarantee, for types without one the fair maximum."""
    return tuple(sorted({**fair_maximum(queue, total), **queue.guaranteed}.items()))


def share(usage: list[int], compared_with: Denominators) -> int:
    """Return the dominant share as an integer that keeps the order of the exact ratios; 0 when nothing is used."""
    dominant = 0
    for index, denominator in compared_with:
        used = usage[index]
        if used > 0:
            ratio = (used << RATIO_BITS) // denominator if denominator else USED_UP
            dominant = max(dominant, ratio)
    return dominant


def ask_key(ask: Ask) -> AskKey:
    """Return the sort key of an ask among those of its application."""
    return (-ask.priority, ask.created, ask.seq, ask.id)


def application_key(
    application: Application, highest: int, compared_with: Denominators
) -> ApplicationKey:
    """Return the sort key of an application in its leaf.

    Args:
        application: One that has an ask that waits.
        highest: The highest priority of its waiting asks.
        compared_with: The `denominators` of its leaf.
    """
    settings = application.leaf.settings
    created = application.created
    policy = share(application.usage, compared_with) if settings.sort_policy == "fair" else created
    if settings.sort_priority:
        return (-highest, policy, created, application.seq, application.id)
    return (policy, -highest, created, application.seq, application.id)


def queue_key(queue: Queue, highest: int, compared_with: Denominators) -> QueueKey:
    """Return the sort key of a queue among the children of its parent.

    Args:
        queue: One in which an ask waits; not root.
        highest: The highest priority inside, as seen there.
        compared_with: Its `denominators`.
    """
    assert queue.parent is not None
    priority = -shown_priority(queue, highest)
    fair = share(queue.usage, compared_with)
    pending = tuple([-amount for amount in queue.pending])
    if queue.parent.settings.sort_priority:
        return (priority, fair, pending, queue.path)
    return (fair, priority, pending, queue.path)


def is_new(application: Application) -> bool:
    """Tell whether an application has yet to start: of those the policy ``stateaware`` considers only the first at a time.

    Seed priority_scheduling, "Extended application sorting": the filter comes before the sorting,
    and with priorities the one new application that is considered is the first by priority and then
    age, no longer the oldest.
    """
    return not application.allocations

"""Possible victims: per ClusterQueue the admitted workloads in the order in which they would be chosen (section 3).

Workloads of one queue that use the same (flavor, resource) types form a group. In a group, those
that are on their way out already stand apart, and each part is sorted by priority, then by the time
its quota was reserved (latest first), then by uid; the id makes the order total. A search needs no
sorting then: it merges the groups that use something contested.

It exists from the first search on and is told of every change (`evsched.core.kueue.index`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from evsched.core.kueue.model import quota_in

if TYPE_CHECKING:
    from collections.abc import Container

    from evsched.core.kueue.model import Quota
    from evsched.core.resources import Pairs, Shape
    from evsched.core.state import State
    from evsched.core.workloads import Allocation

    Entry = tuple[int, int, str, str, Allocation]
    """(priority, -time of reservation, uid, id, workload): smaller goes first."""


def is_leaving(allocation: Allocation) -> bool:
    """Tell whether a workload is on its way out: it is being evicted, or came with the condition Evicted."""
    return bool(allocation.eviction_requested) or allocation.evicted


def entry_of(allocation: Allocation) -> Entry:
    """Return the place of a workload among those of its group (reference section 3).

    Lower priority first, then the latest reservation, which loses the least work; uid and id make
    it total.
    """
    return (allocation.priority, -allocation.bound, allocation.uid, allocation.id, allocation)


class WorkloadGroup:
    """Workloads of one queue that use the same types.

    Attributes:
        types: Type indices of all that they have flavors for, amounts of 0 included.
        staying, leaving: Sorted, smallest first.
    """

    __slots__ = ("leaving", "staying", "types")

    def __init__(self, types: frozenset[int]) -> None:
        """Make an empty group."""
        self.types = types
        self.staying: list[Entry] = []
        self.leaving: list[Entry] = []

    def without(self, gone: Container[str]) -> WorkloadGroup:
        """Return a copy in which the workloads with these ids are missing."""
        rest = WorkloadGroup(self.types)
        rest.staying = [entry for entry in self.staying if entry[3] not in gone]
        rest.leaving = [entry for entry in self.leaving if entry[3] not in gone]
        return rest


class Candidates:
    """All admitted workloads of a partition, by ClusterQueue and group.

    Workloads of a queue that left the configuration are not there: to preempt them frees no quota.
    """

    def __init__(self, state: State) -> None:
        """Build the index from what runs."""
        self._shapes = state.types.shapes
        self._index = state.types.index
        self._queues = state.queues
        self._types: dict[int, frozenset[int]] = {}
        self._groups: dict[Quota, dict[frozenset[int], WorkloadGroup]] = {}
        for allocation in state.allocations.values():
            group = self._group(allocation)
            if group is not None:
                (group.leaving if is_leaving(allocation) else group.staying).append(
                    entry_of(allocation)
                )
        for groups in self._groups.values():
            for group in groups.values():
                group.staying.sort()
                group.leaving.sort()

    def groups(self, queue: Quota) -> list[WorkloadGroup]:
        """Return the groups of a ClusterQueue, in the order in which they came about."""
        found = self._groups.get(queue)
        return list(found.values()) if found is not None else []

    def pairs(self, allocation: Allocation) -> tuple[tuple[int, int], ...]:
        """Return what a workload uses, by type index."""
        return self._shapes[allocation.shape].pairs

    def started(self, allocation: Allocation, pairs: Pairs) -> None:  # noqa: ARG002 - as the other parts of the index
        """A workload was admitted."""
        self._add(allocation)

    def ended(self, allocation: Allocation, pairs: Pairs) -> None:  # noqa: ARG002
        """A workload is gone."""
        self._remove(allocation)

    def changed(self, allocation: Allocation) -> None:
        """The eviction of a workload was requested, or withdrawn: it changes its part."""
        self._remove(allocation)
        self._add(allocation)

    def _add(self, allocation: Allocation) -> None:
        group = self._group(allocation)
        if group is not None:
            insort(group.leaving if is_leaving(allocation) else group.staying, entry_of(allocation))

    def _remove(self, allocation: Allocation) -> None:
        """Take a workload out of its group, in whichever part it stands."""
        group = self._group(allocation)
        if group is not None:
            _take_out(group, entry_of(allocation))

    def _group(self, allocation: Allocation) -> WorkloadGroup | None:
        """Return the group of a workload, made if need be; None when its queue has no quota."""
        quota = quota_in(self._queues[allocation.queue])
        if quota is None:
            return None  # its queue is no longer in the configuration and has no quota to give back
        shape = self._shapes[allocation.shape]
        types = self._types.get(shape.index)
        if types is None:
            types = self._types[shape.index] = self._types_of(shape)
        groups = self._groups.setdefault(quota, {})
        group = groups.get(types)
        if group is None:
            group = groups[types] = WorkloadGroup(types)
        return group

    def _types_of(self, shape: Shape) -> frozenset[int]:
        """Return the types that workloads of a shape use, amounts of 0 included."""
        return frozenset(self._index[name] for name in shape.resources if name in self._index)


def _take_out(group: WorkloadGroup, entry: Entry) -> None:
    """Remove an entry from a group.

    Both parts are looked at: when an eviction is requested the workload may have changed already,
    and stands in the part where it was before.
    """
    for entries in (group.staying, group.leaving):
        # Ids are unique, so the comparison never reaches the workload at the end.
        place = bisect_left(entries, entry)
        if place < len(entries) and entries[place][3] == entry[3]:
            del entries[place]
            return

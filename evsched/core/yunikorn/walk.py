"""The walk to the ask that is next, through the heaps of queues, demands and groups.

The lower half of `evsched.core.yunikorn.waiting`, which says how it works and decides when what is
looked at.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from evsched.core.yunikorn.ordering import queue_key
from evsched.core.yunikorn.standing import Bin, Demand, Group, Standing

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.yunikorn.ordering import AskKey


class Walk:
    """The heaps below one root, and what has been freed since each of them was last looked at."""

    def __init__(self, state: State, root: Standing) -> None:
        """Start with nobody who waits."""
        self.state = state
        self.root = root
        self._serial = 0
        self._freed: dict[Demand, int] = {}
        self._freed_last = 0

    # ------------------------------------------------------------------------------------- the walk

    def walk(self) -> Group | None:
        """Return the group whose first ask is next; None when nobody is left who could be tried."""
        standing = self.root
        while True:
            if standing.queue.leaf:
                group = self._first_group(standing)
                if group is not None:
                    return group
            else:
                below = self._first_child(standing)
                if below is not None:
                    standing = below
                    continue
            parent = standing.parent
            if parent is None:
                return None
            standing.asleep = True
            standing.entry = None
            parent.sleeping[standing] = None
            standing = parent

    def _first_child(self, parent: Standing) -> Standing | None:
        if parent.read != self._freed_last:
            self._wake_children(parent)
        heap = parent.heap
        while heap:
            entry = heap[0]
            child = entry[2]
            if child.entry is not entry:
                heappop(heap)
            elif child.offers():
                return child
            else:
                child.asleep = True
                child.entry = None
                parent.sleeping[child] = None
        return None

    def _first_group(self, leaf: Standing) -> Group | None:
        if leaf.read != self._freed_last:
            self._wake_bins(leaf)
        tops = leaf.tops
        while tops:
            entry = tops[0]
            group = entry[3]
            bin_ = group.bin
            if bin_.top is not entry:
                heappop(tops)
                continue
            demand = bin_.demand
            if demand.blocked or (
                demand.capped_at and any(demand in above.capped for above in leaf.lineage)
            ):
                heappop(tops)
                bin_.top = None
                bin_.asleep = True
                continue
            heap = bin_.heap
            while heap and heap[0][3].entry is not heap[0]:
                heappop(heap)
            if not heap:
                heappop(tops)
                bin_.top = None
            elif heap[0] is not entry:
                bin_.top = heap[0]
                heapreplace(tops, heap[0])
            elif entry[1][3] in self.state.preemptions:
                self._settle_group(group)
            else:
                return group
        return None

    # -------------------------------------------------------------------------------------- entries

    def _waits(self, key: AskKey) -> bool:
        """Tell whether this key is that of an ask that waits and is not in flight."""
        ask = self.state.asks.get(key[3])
        return ask is not None and ask.seq == key[2] and ask.id not in self.state.preemptions

    def _settle_group(self, group: Group) -> None:
        """Give a group the entry that it should have, or none."""
        heap, line = group.heap, group.line
        while heap and not self._waits(heap[0]):
            heappop(heap)
        if not heap or not line.open or line.key is None or group.limited:
            group.entry = None
            return
        head, entry = heap[0], group.entry
        if entry is not None and entry[1] == head and entry[0] == line.key:
            return
        self._serial += 1
        entry = group.entry = (line.key, head, self._serial, group)
        bin_ = group.bin
        heappush(bin_.heap, entry)
        if len(bin_.heap) > 4 * bin_.groups + 64:
            bin_.heap = sorted(one for one in bin_.heap if one[3].entry is one)
        if bin_.heap[0] is entry and not bin_.asleep:
            self._lift(line.standing, bin_)

    @staticmethod
    def _lift(leaf: Standing, bin_: Bin) -> None:
        """Let the first entry of a bin stand for it among the tops of the leaf."""
        bin_.top = bin_.heap[0]
        heappush(leaf.tops, bin_.top)
        if len(leaf.tops) > 4 * leaf.bin_count + 64:
            leaf.tops = sorted(one for one in leaf.tops if one[3].bin.top is one)

    def _settle_standing(self, standing: Standing) -> None:
        """Give a queue the entry that it should have in the heap of its parent, or none."""
        parent = standing.parent
        if parent is None:
            return
        if standing.highest is None or standing.asleep:
            standing.entry = None
            return
        key = queue_key(standing.queue, standing.highest, standing.compared_with)
        if standing.entry is None or standing.entry[0] != key:
            self._serial += 1
            standing.entry = (key, self._serial, standing)
            heappush(parent.heap, standing.entry)
            if len(parent.heap) > 4 * len(parent.queue.children) + 64:
                parent.heap = sorted(entry for entry in parent.heap if entry[2].entry is entry)

    # -------------------------------------------------------------------------------------- wakings

    def _free(self, demand: Demand) -> None:
        """Put a demand at the end of the list of those that may have become possible."""
        self._freed.pop(demand, None)
        self._freed_last += 1
        self._freed[demand] = self._freed_last

    def _fresh(self, standing: Standing) -> list[Demand]:
        """Return what came to that list since a queue read it last."""
        fresh = []
        for demand in reversed(self._freed):
            if self._freed[demand] <= standing.read:
                break
            fresh.append(demand)
        standing.read = self._freed_last
        return fresh

    def _wake(self, standing: Standing) -> None:
        if standing.asleep:
            standing.asleep = False
            if standing.parent is not None:
                del standing.parent.sleeping[standing]
            self._settle_standing(standing)

    def _wake_children(self, parent: Standing) -> None:
        fresh = self._fresh(parent)
        for child in tuple(parent.sleeping):
            demands, capped = child.demands, child.capped
            if any(
                demand in demands and not demand.blocked and demand not in capped
                for demand in fresh
            ):
                self._wake(child)

    def _wake_bins(self, leaf: Standing) -> None:
        for demand in self._fresh(leaf):
            for bin_ in leaf.bins.get(demand, {}).values():
                if bin_.asleep and not bin_.limited:
                    self._wake_bin(leaf, bin_)

    def _wake_bin(self, leaf: Standing, bin_: Bin) -> None:
        """Put a bin back among the tops of its leaf."""
        bin_.asleep = False
        bin_.top = None
        heap = bin_.heap
        while heap and heap[0][3].entry is not heap[0]:
            heappop(heap)
        if heap:
            self._lift(leaf, bin_)

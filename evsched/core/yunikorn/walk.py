"""The walk to the ask that is next, through the heaps of queues, demands and groups.

A part of `evsched.core.yunikorn.waiting`, which says how it works and decides when what is looked
at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.ordering import queue_key
from evsched.core.yunikorn.standing import Bin, Demand, Group, Standing

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.yunikorn.ordering import AskKey


class Walk:
    """The heaps below one root, and what has been freed since each of them was last looked at.

    Attributes:
        root: The top.
        retry_needed: Whether anything happened that could let an ask be bound.
    """

    def __init__(self, state: State, root: Standing) -> None:
        """Start with no ask."""
        self.state = state
        self.root = root
        self.retry_needed = True
        self._serial = 0
        self._freed: dict[Demand, int] = {}
        self._freed_last = 0

    # ------------------------------------------------------------------------------------- the walk

    def first(self) -> Group | None:
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
        while (entry := parent.heap.first()) is not None:
            child = entry[2]
            if child.offers():
                return child
            child.asleep = True
            child.entry = None
            parent.sleeping[child] = None
        return None

    def _first_group(self, leaf: Standing) -> Group | None:
        if leaf.read != self._freed_last:
            self._wake_bins(leaf)
        while (entry := leaf.tops.first()) is not None:
            group = entry[3]
            bin_ = group.bin
            demand = bin_.demand
            if demand.blocked or (
                demand.capped_at and any(demand in above.capped for above in leaf.lineage)
            ):
                bin_.top = None
                bin_.asleep = True
            elif bin_.heap.first() is not entry:
                self._lift(leaf, bin_)
            elif entry[1][3] in self.state.preemptions:
                self.settle_group(group)
            else:
                return group
        return None

    # -------------------------------------------------------------------------------------- entries

    def is_next(self, key: AskKey) -> bool:
        """Tell whether this key is that of an ask that waits and is not in flight."""
        ask = self.state.asks.get(key[3])
        return ask is not None and ask.seq == key[2] and ask.id not in self.state.preemptions

    def next_serial(self) -> int:
        """Return a number that no entry has."""
        self._serial += 1
        return self._serial

    def settle_group(self, group: Group) -> None:
        """Give a group the entry that it should have, or none."""
        line = group.line
        head = group.heap.first()
        if head is None or not line.open or line.key is None or group.limited:
            group.entry = None
            return
        entry = group.entry
        if entry is not None and entry[1] == head and entry[0] == line.key:
            return
        entry = group.entry = (line.key, head, self.next_serial(), group)
        bin_ = group.bin
        bin_.heap.push(entry, bin_.groups)
        if bin_.heap.entries[0] is entry and not bin_.asleep:
            self._lift(line.standing, bin_)

    @staticmethod
    def _lift(leaf: Standing, bin_: Bin) -> None:
        """Let the first entry of a bin stand for it among the tops of the leaf; an empty bin has none."""
        bin_.top = bin_.heap.first()
        if bin_.top is not None:
            leaf.tops.push(bin_.top, leaf.bin_count)

    def settle_queue(self, standing: Standing) -> None:
        """Give a queue the entry that it should have in the heap of its parent, or none."""
        parent = standing.parent
        if parent is None:
            return
        if standing.highest is None or standing.asleep:
            standing.entry = None
            return
        key = queue_key(standing.queue, standing.highest, standing.compared_with)
        if standing.entry is None or standing.entry[0] != key:
            standing.entry = (key, self.next_serial(), standing)
            parent.heap.push(standing.entry, len(parent.queue.children))

    # -------------------------------------------------------------------------------------- wakings

    def free(self, demand: Demand) -> None:
        """Put a demand at the end of the list of those that may have become possible."""
        self._freed.pop(demand, None)
        self._freed_last += 1
        self._freed[demand] = self._freed_last

    def forget(self, demand: Demand) -> None:
        """Take a demand off that list: no ask has it any more."""
        self._freed.pop(demand, None)

    def _fresh(self, standing: Standing) -> list[Demand]:
        """Return what came to that list since a queue read it last."""
        fresh = []
        for demand in reversed(self._freed):
            if self._freed[demand] <= standing.read:
                break
            fresh.append(demand)
        standing.read = self._freed_last
        return fresh

    def wake(self, standing: Standing) -> None:
        """Put a queue that has something to offer back into the heap of its parent."""
        if standing.asleep:
            standing.asleep = False
            if standing.parent is not None:
                del standing.parent.sleeping[standing]
            self.settle_queue(standing)

    def _wake_children(self, parent: Standing) -> None:
        fresh = self._fresh(parent)
        for child in tuple(parent.sleeping):
            demands, capped = child.demands, child.capped
            if any(
                demand in demands and not demand.blocked and demand not in capped
                for demand in fresh
            ):
                self.wake(child)

    def _wake_bins(self, leaf: Standing) -> None:
        for demand in self._fresh(leaf):
            for bin_ in leaf.bins.get(demand, {}).values():
                if bin_.asleep and not bin_.limited:
                    self.wake_bin(leaf, bin_)

    def wake_bin(self, leaf: Standing, bin_: Bin) -> None:
        """Put a bin back among the tops of its leaf."""
        bin_.asleep = False
        self._lift(leaf, bin_)

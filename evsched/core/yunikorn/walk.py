"""The walk to the ask that is next, through the heaps of queues, demands and groups.

A part of `evsched.core.yunikorn.waiting`, which says how it works and decides when what is looked
at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.order_nodes import AskGroup, Demand, DemandBucket, QueueNode
from evsched.core.yunikorn.ordering import queue_key

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.yunikorn.ordering import AskKey


class Walk:
    """The heaps below one root, and what has been freed since each of them was last looked at.

    Attributes:
        root: The top.
        retry_needed: Whether anything happened that could let an ask be bound.
    """

    def __init__(self, state: State, root: QueueNode) -> None:
        """Start with no ask."""
        self.state = state
        self.root = root
        self.retry_needed = True
        self._serial = 0
        self._freed: dict[Demand, int] = {}
        self._freed_last = 0

    # ------------------------------------------------------------------------------------- the walk

    def first(self) -> AskGroup | None:
        """Return the group whose first ask is next; None when nobody is left who could be tried."""
        queue_node = self.root
        while True:
            if queue_node.queue.leaf:
                group = self._first_group(queue_node)
                if group is not None:
                    return group
            else:
                below = self._first_child(queue_node)
                if below is not None:
                    queue_node = below
                    continue
            parent = queue_node.parent
            if parent is None:
                return None
            queue_node.asleep = True
            queue_node.entry = None
            parent.sleeping[queue_node] = None
            queue_node = parent

    def _first_child(self, parent: QueueNode) -> QueueNode | None:
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

    def _first_group(self, leaf: QueueNode) -> AskGroup | None:
        if leaf.read != self._freed_last:
            self._wake_buckets(leaf)
        while (entry := leaf.tops.first()) is not None:
            group = entry[3]
            bucket = group.bucket
            demand = bucket.demand
            if demand.blocked or (
                demand.capped_at and any(demand in above.capped for above in leaf.lineage)
            ):
                bucket.top = None
                bucket.asleep = True
            elif bucket.heap.first() is not entry:
                self._lift(leaf, bucket)
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

    def settle_group(self, group: AskGroup) -> None:
        """Give a group the entry that it should have, or none."""
        app_node = group.app_node
        head = group.heap.first()
        if head is None or not app_node.open or app_node.key is None or group.limited:
            group.entry = None
            return
        entry = group.entry
        if entry is not None and entry[1] == head and entry[0] == app_node.key:
            return
        entry = group.entry = (app_node.key, head, self.next_serial(), group)
        bucket = group.bucket
        bucket.heap.push(entry, bucket.groups)
        if bucket.heap.entries[0] is entry and not bucket.asleep:
            self._lift(app_node.queue_node, bucket)

    @staticmethod
    def _lift(leaf: QueueNode, bucket: DemandBucket) -> None:
        """Let the first entry of a bucket stand for it among the tops of the leaf; an empty bucket has none."""
        bucket.top = bucket.heap.first()
        if bucket.top is not None:
            leaf.tops.push(bucket.top, leaf.bucket_count)

    def settle_queue(self, queue_node: QueueNode) -> None:
        """Give a queue the entry that it should have in the heap of its parent, or none."""
        parent = queue_node.parent
        if parent is None:
            return
        if queue_node.highest is None or queue_node.asleep:
            queue_node.entry = None
            return
        key = queue_key(queue_node.queue, queue_node.highest, queue_node.compared_with)
        if queue_node.entry is None or queue_node.entry[0] != key:
            queue_node.entry = (key, self.next_serial(), queue_node)
            parent.heap.push(queue_node.entry, len(parent.queue.children))

    # -------------------------------------------------------------------------------------- wakings

    def free(self, demand: Demand) -> None:
        """Put a demand at the end of the list of those that may have become possible."""
        self._freed.pop(demand, None)
        self._freed_last += 1
        self._freed[demand] = self._freed_last

    def forget(self, demand: Demand) -> None:
        """Take a demand off that list: no ask has it any more."""
        self._freed.pop(demand, None)

    def _fresh(self, queue_node: QueueNode) -> list[Demand]:
        """Return what came to that list since a queue read it last."""
        fresh = []
        for demand in reversed(self._freed):
            if self._freed[demand] <= queue_node.read:
                break
            fresh.append(demand)
        queue_node.read = self._freed_last
        return fresh

    def wake(self, queue_node: QueueNode) -> None:
        """Put a queue that has something to offer back into the heap of its parent."""
        if queue_node.asleep:
            queue_node.asleep = False
            if queue_node.parent is not None:
                del queue_node.parent.sleeping[queue_node]
            self.settle_queue(queue_node)

    def _wake_children(self, parent: QueueNode) -> None:
        fresh = self._fresh(parent)
        for child in tuple(parent.sleeping):
            demands, capped = child.demands, child.capped
            if any(
                demand in demands and not demand.blocked and demand not in capped
                for demand in fresh
            ):
                self.wake(child)

    def _wake_buckets(self, leaf: QueueNode) -> None:
        for demand in self._fresh(leaf):
            for bucket in leaf.buckets.get(demand, {}).values():
                if bucket.asleep and not bucket.limited:
                    self.wake_bucket(leaf, bucket)

    def wake_bucket(self, leaf: QueueNode, bucket: DemandBucket) -> None:
        """Put a bucket back among the tops of its leaf."""
        bucket.asleep = False
        self._lift(leaf, bucket)

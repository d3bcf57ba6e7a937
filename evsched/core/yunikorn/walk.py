"""The walk to the ask that is next: from root down through what can be bound, as far as is known.

A part of `evsched.core.yunikorn.waiting`, which says how it works and decides when what is looked
at. Keys are computed when a queue is looked at, and only for what changed there.

A walk that ends in a leaf with nothing to offer closes that queue and goes on from its parent. So
each dead end is walked into once, and a look costs a level of the tree where there are none. The
row "equal nodes, 20 shapes" of the benchmarks measures it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.order_nodes import AskGroup, DemandBucket, GroupEntry, QueueNode
from evsched.core.yunikorn.ordering import queue_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.state import State
    from evsched.core.yunikorn.bindable import Bindable
    from evsched.core.yunikorn.order_nodes import QueueEntry
    from evsched.core.yunikorn.ordering import AskKey


class Walk:
    """The rankings below one root.

    Attributes:
        state: Only read.
        root: The top.
        bindable: What is worth a look.
        retry_needed: Whether anything happened that could let an ask be bound.
    """

    def __init__(
        self,
        state: State,
        root: QueueNode,
        bindable: Bindable,
        settle: Callable[[QueueNode], None],
    ) -> None:
        """Start with no ask; ``settle`` computes the keys of what changed in a leaf.

        The first cycle has to look, so ``retry_needed`` starts as True.
        """
        self.state = state
        self.root = root
        self.bindable = bindable
        self.retry_needed = True
        self._settle = settle
        self._serial = 0

    # ------------------------------------------------------------------------------------- the walk

    def first(self) -> AskGroup | None:
        """Return the group whose first ask is next; None when there is none that could be bound.

        It ends: each time round it goes down to a child that is marked, or closes a queue and goes
        up.
        """
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
            # Its mark was wrong. Without it the parent offers its next child, if it has one.
            self.bindable.close(queue_node)
            if queue_node.parent is None:
                return None
            queue_node = queue_node.parent

    def _first_child(self, parent: QueueNode) -> QueueNode | None:
        """Return the child that comes first of those that are marked; None when none is.

        Keys of children are computed here and nowhere else in a walk, for those that changed
        alone.
        """
        if parent.changed_children:
            self.settle_children(parent)
        entry = parent.children.first(self.bindable.queues)
        return None if entry is None else entry[1]

    def _first_group(self, leaf: QueueNode) -> AskGroup | None:
        """Return the first group of a leaf that is worth a try; None when there is none.

        Two kinds of tops prove wrong and are passed over. The first ask may have come to be in
        flight since the entry was made, which no event reports to the order. And the demand may be
        blocked although the mark of its bucket is still set, as a block reaches no buckets.
        """
        while True:
            self._settle(leaf)
            entry = leaf.tops.first(self.bindable.buckets)
            if entry is None:
                return None
            group = entry[3]
            # It came to be in flight; the group has another first ask now, or none.
            if entry[1][3] in self.state.preemptions:
                self.settle_group(group)
            elif not self.bindable.demands[group.demand.row]:
                self.bindable.fail(group.bucket)
            else:
                return group

    # -------------------------------------------------------------------------------------- entries

    def is_next(self, key: AskKey) -> bool:
        """Tell whether this key is that of an ask that waits and is not in flight.

        An id may have been used again since: the number of the event in the log tells the two asks
        apart.
        """
        ask = self.state.asks.get(key[3])
        return ask is not None and ask.seq == key[2] and ask.id not in self.state.preemptions

    def next_serial(self) -> int:
        """Return a number that no entry has.

        It stands before the owner in an entry, so that a comparison never comes to the owners. It
        breaks no ties that matter: the keys before it end in ids.
        """
        self._serial += 1
        return self._serial

    def settle_group(self, group: AskGroup) -> None:
        """Give a group the entry that it should have, or none.

        A group has none while it has no ask that may be next, while its application is closed or
        has no key yet, and while a limit holds it back. Where key and first ask are the same as
        before, the entry stays, which saves a push. The bucket is noted only where its top may be
        another one.
        """
        app_node, bucket = group.app_node, group.bucket
        head = group.heap.first()
        entry = group.entry
        if head is None or not app_node.open or app_node.key is None or group.limited:
            group.entry = None
            if entry is not None and bucket.top is entry:
                bucket.leaf.changed_buckets[bucket] = None
            return
        if entry is not None and entry[1] == head and entry[0] == app_node.key:
            return
        group.entry = fresh = (app_node.key, head, self.next_serial(), group)
        bucket.heap.push(fresh, bucket.groups)
        # Behind the top, a new entry changes nothing that the ranking sees.
        if bucket.heap.entries[0] is fresh or bucket.top is entry:
            bucket.leaf.changed_buckets[bucket] = None

    @staticmethod
    def settle_buckets(leaf: QueueNode) -> None:
        """Let the first entry of each bucket that changed stand for it; an empty bucket has none.

        All changes of a leaf go into its ranking together, which sorts once where they are many.
        """
        changes: list[tuple[GroupEntry | None, GroupEntry | None]] = []
        for bucket in leaf.changed_buckets:
            before, bucket.top = bucket.top, bucket.heap.first() if bucket.groups else None
            if before is not bucket.top:
                changes.append((before, bucket.top))
        leaf.changed_buckets.clear()
        leaf.tops.change(changes)

    @staticmethod
    def settle_children(parent: QueueNode) -> None:
        """Give children of a queue the entries that they should have, or none.

        A child in which nothing waits has none, and is not considered. A key that came out the
        same keeps its entry and its place.
        """
        changes: list[tuple[QueueEntry | None, QueueEntry | None]] = []
        for child in parent.changed_children:
            before, after = child.entry, None
            if child.highest is not None:
                key = queue_key(child.queue, child.highest, child.compared_with)
                after = before if before is not None and before[0] == key else (key, child)
            if after is not before:
                child.entry = after
                changes.append((before, after))
        parent.changed_children.clear()
        parent.children.change(changes)

    @staticmethod
    def note(bucket: DemandBucket) -> None:
        """Note that a group left a bucket; an empty one that stands in no ranking is forgotten.

        An empty bucket that still stands in the ranking is kept until its entry is taken out
        there.
        """
        if bucket.groups or bucket.top is not None:
            bucket.leaf.changed_buckets[bucket] = None
        else:
            bucket.leaf.changed_buckets.pop(bucket, None)

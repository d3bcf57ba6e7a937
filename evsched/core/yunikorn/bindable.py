"""Which waiting asks can be bound, as far as is known: a mark for each demand, bucket and queue.

A mark that is set may be wrong, as nodes fill up and queues reach their maxima while asks are
bound: what is tried and fails loses its mark. A mark that is not set is right. So whatever is
freed must set the marks of all that it may help. That is one vectorised comparison of what demands
ask for with what a few nodes have left, and with the room below the maxima on the path of each
leaf: a step costs one read of the columns, however many asks could be helped, and none of them is
touched.

**Nodes.** A demand is *blocked* while no node has room for it. What is blocked can only be helped
by the nodes that have grown since (``grown``). While there are few of them, each is compared
exactly, and a demand that they help stays blocked, because as a rule the first ask that is bound
takes the room away again. When there are many, a demand that fits into the largest amounts of all
of them is no longer blocked: it is tried once.

**Maxima.** The room of a queue is what is left below its maximum and below those above it, type by
type. It is computed from the root down, one level at a time.

Marks are computed anew when something was freed, and when many of them proved wrong.

`benchmarks.growth_yunikorn` ("asks all different") measures what this saves. Of the rows in
`docs/performance.md` it is "every ask and application different" for nodes, and "1,000 leaves at
their maximum" for maxima.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from evsched.core.yunikorn.row_numbers import RowNumbers, widened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evsched.core.yunikorn.columns import NodeColumns
    from evsched.core.yunikorn.order_nodes import Demand, DemandBucket, QueueNode

    Bools = NDArray[np.bool_]
    Longs = NDArray[np.int64]

UNLIMITED = 2**63 - 1

FEW = 16
"""So many nodes that have grown are compared one by one."""

WRONG_MARKS = 8
"""So many marks may prove wrong before they are computed anew, and one more for every
`BUCKETS_A_MARK` buckets."""

BUCKETS_A_MARK = 1024


class Bindable:
    """The marks of one order of waiting asks.

    Each demand, bucket and queue has a row in its table as long as it exists. Rows are used again,
    so a table grows with the largest number there was at once.

    Attributes:
        demands, buckets, queues: Whether something there can be bound, by row.
        grown: Nodes, by row of their columns, that have grown since; they alone can have room for
            what is blocked.
        stale: Something was freed, so that marks may be missing until all are computed again.
    """

    def __init__(self, width: int) -> None:
        """Begin without demands, for so many resource types."""
        self.demands: Bools = np.zeros(0, np.bool_)
        self.buckets: Bools = np.zeros(0, np.bool_)
        self.queues: Bools = np.zeros(0, np.bool_)
        self.grown: list[int] = []
        self.stale = False
        self._columns: NodeColumns | None = None
        # Of demands, by row: amounts by type, not tied to a node, not blocked.
        self._demand_rows: RowNumbers[Demand] = RowNumbers()
        self._amounts: Longs = np.zeros((width, 0), np.int64)
        self._anywhere: Bools = np.zeros(0, np.bool_)
        # Of demands: their pods may run where others may not, or may not where others may.
        self._choosy: Bools = np.zeros(0, np.bool_)
        self._roomy: Bools = np.zeros(0, np.bool_)
        # Demands that require a node, by its name.
        self._required: dict[str, dict[Demand, None]] = {}
        # Of buckets: the rows of their demand and leaf, and that no limit holds them back.
        self._bucket_rows: RowNumbers[DemandBucket] = RowNumbers()
        self._bucket_demand: Longs = np.zeros(0, np.int64)
        self._bucket_leaf: Longs = np.zeros(0, np.int64)
        self._unlimited: Bools = np.zeros(0, np.bool_)
        # Of queues: the row of the parent, and their rows by level; None: to be computed again.
        self._queue_rows: RowNumbers[QueueNode] = RowNumbers()
        self._parent: Longs = np.zeros(0, np.int64)
        self._levels: list[Longs] | None = None
        # Room below a queue's own maximum, and below all on its path; None: to be computed again.
        self._room: Longs = np.zeros((width, 0), np.int64)
        self._below: Longs | None = None
        # How many queues have a maximum of a type.
        self._limits: dict[int, int] = {}
        # Queues with a maximum whose room is to be computed again.
        self._changed: dict[QueueNode, None] = {}
        self._wrong = 0
        self._bound = False

    # ----------------------------------------------------------------------------------------- rows

    def add_demand(self, demand: Demand) -> None:
        """Give a demand a row; it may fit anywhere.

        Its amounts are written out for every type, 0 where it asks for none, so that the
        comparison with a node is one operation a type over all demands.
        """
        row = demand.row = self._demand_rows.take(demand)
        if row >= len(self._roomy):
            for name in ("demands", "_roomy", "_anywhere", "_choosy", "_amounts"):
                setattr(self, name, widened(getattr(self, name)))
        self._amounts[:, row] = 0
        for index, amount in demand.shape.pairs:
            self._amounts[index, row] = amount
        self.demands[row] = self._roomy[row] = True
        self._anywhere[row] = demand.required is None
        self._choosy[row] = demand.pod is not UNSET
        if demand.required is not None:
            self._required.setdefault(demand.required, {})[demand] = None

    def drop_demand(self, demand: Demand) -> None:
        """Take the row of a demand back: no ask has it any more.

        Its marks go with it, so that no comparison finds a row without an owner.
        """
        row = demand.row
        self._demand_rows.give(row)
        self.demands[row] = self._roomy[row] = self._anywhere[row] = False
        if demand.required is not None:
            here = self._required[demand.required]
            del here[demand]
            if not here:
                del self._required[demand.required]

    def add_bucket(self, bucket: DemandBucket) -> None:
        """Give a bucket a row; nothing in it is bindable before `offer`.

        The rows of its demand and of its leaf are kept beside it. So marks of demands are carried
        to buckets, and those of buckets to leaves, by indexing alone.
        """
        row = bucket.row = self._bucket_rows.take(bucket)
        if row >= len(self.buckets):
            for name in ("buckets", "_bucket_demand", "_bucket_leaf", "_unlimited"):
                setattr(self, name, widened(getattr(self, name)))
        self._bucket_demand[row] = bucket.demand.row
        self._bucket_leaf[row] = bucket.leaf.row
        self.buckets[row], self._unlimited[row] = False, True

    def drop_bucket(self, bucket: DemandBucket) -> None:
        """Take the row of an empty bucket back."""
        self._bucket_rows.give(bucket.row)
        self.buckets[bucket.row] = self._unlimited[bucket.row] = False

    def add_queue(self, queue_node: QueueNode) -> None:
        """Give a queue a row; its parent has one.

        Root is its own parent. A queue without a maximum has unlimited room of its own. One with a
        maximum is noted as changed, so that its room is computed before it is first read.
        """
        row = queue_node.row = self._queue_rows.take(queue_node)
        if row >= len(self.queues):
            for name in ("queues", "_parent", "_room"):
                setattr(self, name, widened(getattr(self, name)))
        self.queues[row] = False
        self._parent[row] = row if queue_node.parent is None else queue_node.parent.row
        self._levels = self._below = None
        self._room[:, row] = UNLIMITED
        if queue_node.queue.maximum:
            for index in queue_node.queue.maximum:
                self._limits[index] = self._limits.get(index, 0) + 1
            self._changed[queue_node] = None

    def drop_queue(self, queue_node: QueueNode) -> None:
        """Take the row of a queue back in which nothing waits.

        A type that no queue limits any more is not looked at again (`_limits`).
        """
        self._queue_rows.give(queue_node.row)
        self.queues[queue_node.row] = False
        self._levels = None
        self._changed.pop(queue_node, None)
        for index in queue_node.queue.maximum:
            self._limits[index] -= 1
            if not self._limits[index]:
                del self._limits[index]

    # ---------------------------------------------------------------------------------------- marks

    def offer(self, bucket: DemandBucket) -> None:
        """Mark a bucket that has something new to offer, and the queues above it.

        Not where its demand has no mark or a limit holds it back. Whether a maximum is in the way
        is not asked: one try finds that out.
        """
        if self.demands[bucket.demand.row] and not bucket.limited:
            self.buckets[bucket.row] = True
            self.look_at(bucket.leaf)

    def look_at(self, leaf: QueueNode) -> None:
        """Mark a leaf and the queues above it.

        All of them, as a walk only comes to a leaf whose every ancestor is marked.
        """
        for queue_node in leaf.lineage:
            self.queues[queue_node.row] = True

    def limit(self, bucket: DemandBucket, *, limited: bool) -> None:
        """Note that a limit holds a bucket back, or does so no longer.

        Limits are not in the columns. So this stands until it is taken back, however often the
        marks are computed meanwhile.
        """
        bucket.limited = limited
        self._unlimited[bucket.row] = not limited
        if limited:
            self.fail(bucket)
        else:
            self.offer(bucket)

    def close(self, queue_node: QueueNode) -> None:
        """Note that nothing below a queue is marked.

        The walk came there and found nothing, so its mark counts as one that proved wrong.
        """
        self.queues[queue_node.row] = False
        self._count_wrong()

    def fail(self, bucket: DemandBucket) -> None:
        """Note that a bucket proved not to be bindable.

        A maximum or a limit holds it back, its demand is blocked, or it is empty.
        """
        self.buckets[bucket.row] = False
        self._count_wrong()

    def block(self, demand: Demand) -> None:
        """Note that no node has room for a demand.

        Its buckets keep their marks until those are computed again, or until the walk meets them.
        """
        self._roomy[demand.row] = self.demands[demand.row] = False
        self._count_wrong()

    def blocked(self, demand: Demand) -> bool:
        """Tell whether no node had room for a demand when it was last tried.

        It may be marked all the same: then a node that has grown since may have room for it.
        """
        return not self._roomy[demand.row]

    def unblock(self, demand: Demand) -> None:
        """Note that a node may have room for a demand."""
        self._roomy[demand.row] = self.demands[demand.row] = True
        self.stale = True

    def changed(self, queue_node: QueueNode, *, freed: bool) -> None:
        """Note that what a queue with a maximum uses, or what is promised there, changed.

        Its room is computed again when it is next read. Less usage (``freed``) may set marks that
        are missing; more usage only makes marks wrong, which is allowed.
        """
        self._changed[queue_node] = None
        self._bound = True
        self.stale = self.stale or freed

    def bound(self) -> None:
        """Note that an ask was bound, so that a node has less room.

        A mark that proves wrong lets the grown nodes be compared again, but only after this: until
        then they have the room that they had.
        """
        self._bound = True

    # --------------------------------------------------------------------------------- what is freed

    def begin(self, columns: NodeColumns) -> list[Demand]:
        """Mark what nodes that have grown, and queues in which usage shrank, may help.

        A demand that requires one node is compared with that node alone, and unblocked where it
        fits. For the others see above: up to `FEW` grown nodes are kept and compared exactly, more
        are taken together.

        Args:
            columns: Up to date; what they noted as grown is taken over, and cleared there.

        Returns:
            The demands that were blocked and are no longer.
        """
        self._columns = columns
        if not columns.grown and not self.stale:
            return []  # nothing was freed, which most steps begin with
        rows, freed = list(columns.grown), []
        columns.grown.clear()
        for row in rows:
            for demand in self._required.get(columns.names[row] or "", ()):
                if self.blocked(demand) and columns.fits_in(row, demand.shape.pairs, demand.pod):
                    self.unblock(demand)
                    freed.append(demand)
        if rows:
            self.grown = list(dict.fromkeys((*self.grown, *rows)))
            if len(self.grown) > FEW:
                freed += self._unblock(self._below_largest())
                self.grown = []
                self.stale = True
        fits = self._helped() if rows and self.grown else None
        if self.stale or fits is not None:
            self._mark(only_fewer=False, fits=fits)
        return freed

    def end(self) -> list[Demand]:
        """Note that all that is marked was tried; return the demands that are unblocked by that.

        They fit on a grown node and were not bound: a maximum or a limit held them back. The nodes
        that have room for them are forgotten here, so from now on the demands count as ones that a
        node may have room for.
        """
        freed: list[Demand] = []
        if self.grown:
            freed = self._unblock(self._fitting())
            self.grown = []
            # Of pods only amounts were compared: a node may have room and not take them. Without
            # one more try they would count as held back by a limit, and no node would help them.
            self.stale = self.stale or any(self._choosy[demand.row] for demand in freed)
        self.demands = self._roomy.copy()
        return freed

    def revive(self) -> list[Demand]:
        """Forget what is known about nodes; return the demands that were blocked.

        Needed when the columns are other ones than before: what has grown until then is not known.
        """
        freed = self._unblock(np.ones(len(self._roomy), np.bool_))
        self.grown = []
        self.stale = True
        return freed

    def _unblock(self, which: Bools) -> list[Demand]:
        """Let demands count as not blocked; return those that were blocked, by row.

        The marks are not set by this: they are computed from `_roomy` afterwards.
        """
        owners = self._demand_rows.owners
        rows = (which & ~self._roomy)[: len(owners)].nonzero()[0]
        found = [demand for row in rows.tolist() if (demand := owners[row]) is not None]
        for demand in found:
            self._roomy[demand.row] = True
        return found

    # --------------------------------------------------------------------------------------- columns

    def _fitting(self) -> Bools:
        """Return which demands one of the grown nodes has room for.

        What a node has left may be negative, when it shrank below its usage. Demands without that
        type do fit there, so it is held at 0. Those that require one node are left out
        (`_anywhere`). Of a demand with a pod only the amounts are compared: a mark may be wrong.
        """
        assert self._columns is not None
        fits: Bools | None = None
        for row in self.grown:
            rest, one = self._columns.rest(row), self._anywhere
            if rest is None:  # no ask may run there, but for those that tolerate its taints
                rest, one = self._columns.rest(row, tolerant=True), one & self._choosy
            if rest is not None:
                one = one.copy()
                for amounts, left in zip(self._amounts, rest, strict=True):
                    one &= amounts <= max(0, left)
                fits = one if fits is None else fits | one
        return np.zeros(len(self._roomy), np.bool_) if fits is None else fits

    def _helped(self) -> Bools | None:
        """Return which demands the grown nodes have room for, as `_fitting` does; None where they help nothing.

        Without room for any blocked demand the nodes are forgotten. They cost nothing more then,
        and nothing is lost: they could help only what is blocked.
        """
        self._bound = False
        fits = self._fitting()
        if np.count_nonzero(fits > self._roomy):
            return fits
        self.grown = []
        return None

    def _below_largest(self) -> Bools:
        """Return which demands fit into the largest amounts of the grown nodes.

        No other demand fits any of them. It is one comparison a type, however many nodes have
        grown. The largest amounts may be those of different nodes, so a demand that passes may
        still fit none.
        """
        assert self._columns is not None
        fits = self._anywhere.copy()
        for amounts, available in zip(self._amounts, self._columns.available, strict=True):
            fits &= amounts <= max(int(available[self.grown].max()), 0)
        return fits

    def _count_wrong(self) -> None:
        """Compute the marks anew when many were wrong.

        At once when the grown nodes have no room left for anything.

        The bound grows with the number of buckets, as what it costs to compute them does. So the
        cost for each wrong mark stays bounded.
        """
        self._wrong += 1
        spent = bool(self.grown) and self._bound and self._helped() is None
        if spent or self._wrong > WRONG_MARKS + len(self.buckets) // BUCKETS_A_MARK:
            self._mark(only_fewer=True)

    def _mark(self, *, only_fewer: bool, fits: Bools | None = None) -> None:
        """Compute all marks.

        First the demands that a node may have room for; then the buckets of those, as far as no
        limit holds them and every maximum on their path leaves room; then the queues above these,
        from the lowest level up.

        Args:
            only_fewer: What was found not to be bindable stays so: marks are only taken away. False
                after something was freed, which is the only reason to set one.
            fits: Which demands the grown nodes have room for, where that is known already.
        """
        self._wrong = 0
        if fits is None and self.grown:
            fits = self._fitting()
        demands = self._roomy.copy() if fits is None else self._roomy | fits
        if only_fewer:
            demands &= self.demands
        else:
            self.stale = False
        self.demands = demands
        if not np.count_nonzero(demands):
            self.buckets.fill(False)
            self.queues.fill(False)
            return
        buckets = demands[self._bucket_demand]
        buckets &= self._unlimited
        if self._limits and np.count_nonzero(buckets):
            room = self._rooms()
            for index in self._limits:
                asked = self._amounts[index][self._bucket_demand]
                buckets &= asked <= room[index][self._bucket_leaf]
        if only_fewer:
            buckets &= self.buckets
        queues = np.zeros(len(self.queues), np.bool_)
        queues[self._bucket_leaf[buckets]] = True
        for rows in reversed(self._by_level()[1:]):
            queues[self._parent[rows[queues[rows]]]] = True
        if only_fewer:
            queues &= self.queues
        self.buckets[:] = buckets
        self.queues[:] = queues

    def _by_level(self) -> list[Longs]:
        """Return the rows of the queues by their depth, root first.

        They are kept until a queue comes or goes.

        A level at a time is how values are carried down the tree, or up, without walking it.
        """
        if self._levels is None:
            levels: list[list[int]] = []
            for queue_node in self._queue_rows.owners:
                if queue_node is not None:
                    depth = queue_node.queue.depth
                    levels.extend([] for _ in range(depth + 1 - len(levels)))
                    levels[depth].append(queue_node.row)
            self._levels = [np.array(rows, np.int64) for rows in levels]
        return self._levels

    def _rooms(self) -> Longs:
        """Return what is left below the maxima on the path of each queue, by type and row.

        Not below 0; `UNLIMITED` where no queue on the path has a maximum of the type. What is
        promised to asks in flight counts as used. Only queues that changed are read, but the
        minima are carried down the whole tree.
        """
        if self._changed or self._below is None:
            for queue_node in self._changed:
                queue = queue_node.queue
                for index, limit in queue.maximum.items():
                    left = limit - queue.usage[index] - queue.claimed[index]
                    self._room[index, queue_node.row] = max(left, 0)
            self._changed.clear()
            below = self._room.copy()
            for rows in self._by_level()[1:]:
                below[:, rows] = np.minimum(below[:, rows], below[:, self._parent[rows]])
            self._below = below
        return self._below

"""Who is next, kept up to date: the order of `evsched.core.yunikorn.ordering` as heaps that follow the events.

The walk from root to the next ask costs a look at one heap a level, and a binding costs new keys
along one path. Three ideas carry it.

**Lazy heaps.** Each parent has a heap of its children and each leaf heaps of its applications.
Whoever changes gets a new entry; the old one stays where it is and is recognised by not being its
owner's current entry. What changed is only marked while events are applied, and keys are computed
once, before the next walk.

**Demands.** Asks of one shape (with one required node, if any) share a `Demand`: where one of them
does not fit on any node, none does, and where one would pass the maximum of a queue, none below
that queue will do. So a failure is noted at the demand (`blocked`) or at the queue and the demand
(`capped`), and cuts off everything that it holds for. A leaf has one heap for each demand, and a
heap of their tops.

**Asleep until woken.** What has nothing to offer leaves the heap above it: a demand in a leaf, a
queue in its parent. It comes back when an ask arrives, or when something was freed that could help:
then the demand goes to the end of a list, and each queue, when it is next looked at, reads what is
new there and wakes those of its children that wait with such a demand. Nothing else is tried again,
so a cycle in which nothing can be done costs nothing.

None of this is truth: a new index built from the state gives the same answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.maxima import exceeded
from evsched.core.yunikorn.openings import Openings
from evsched.core.yunikorn.order_nodes import (
    ApplicationNode,
    AskGroup,
    Demand,
    DemandBucket,
    QueueNode,
    shift,
)
from evsched.core.yunikorn.ordering import application_key, ask_key, denominators
from evsched.core.yunikorn.walk import Walk

if TYPE_CHECKING:
    from evsched.core.queues import Application, Queue
    from evsched.core.state import State
    from evsched.core.workloads import Ask
    from evsched.core.yunikorn.index import Columns


FEWEST_SWEPT = 4096
"""So many marks at least are there before those of who is gone are looked for."""


class WaitingOrder:
    """The incremental order of one state (protocol `evsched.core.yunikorn.index.Order`).

    Attributes:
        openings: Which applications are looked at.
        blocked: Demands for which no node has room.
        narrowed: Demands for which it is known which nodes alone can have room.
        total: Capacity of the nodes at the time when the keys were computed.
        columns: The columns from which ``blocked`` is known.
    """

    def __init__(self, state: State) -> None:
        """Build the order of all asks that wait."""
        self.total = list(state.total)
        self.queue_nodes: dict[str, QueueNode] = {}
        self.state = state
        self._walk = Walk(state, self._queue_node(state.root))
        self.openings = Openings(self._walk)
        self.app_nodes: dict[str, ApplicationNode] = {}
        self.demands: dict[tuple[int, str | None], Demand] = {}
        self.blocked: dict[Demand, None] = {}
        self.narrowed: dict[Demand, None] = {}
        self.columns: Columns | None = None
        self._marked: list[QueueNode] = []
        self._marked_applications: list[ApplicationNode] = []
        self._marked_groups: list[AskGroup] = []
        self._sweep_at = FEWEST_SWEPT
        self._loosened: dict[QueueNode, None] = {}
        self._limited: dict[AskGroup | DemandBucket, None] = {}
        self._group_limits = any(
            limit.groups for queue in state.queues.values() for limit in queue.limits
        )
        for ask in state.asks.values():
            self.asked(ask)

    def _queue_node(self, queue: Queue) -> QueueNode:
        queue_node = self.queue_nodes.get(queue.path)
        if queue_node is None:
            parent = self._queue_node(queue.parent) if queue.parent is not None else None
            queue_node = self.queue_nodes[queue.path] = QueueNode(
                queue, parent, denominators(queue, self.total)
            )
        return queue_node

    @property
    def retry_needed(self) -> bool:
        """Whether anything happened since it was last set to False that could let an ask be bound."""
        return self._walk.retry_needed

    @retry_needed.setter
    def retry_needed(self, value: bool) -> None:
        self._walk.retry_needed = value

    # --------------------------------------------------------------------------- what events report

    def asked(self, ask: Ask) -> None:
        """An ask started to wait."""
        app_node = self.app_nodes.get(ask.application) or self._app_node(ask)
        queue_node = app_node.queue_node
        demand = self._demand(ask)
        group = app_node.groups.get(demand)
        if group is None:
            group = app_node.groups[demand] = AskGroup(
                app_node, demand, self._bucket(app_node, demand), self._walk.is_next
            )
        group.waiting += 1
        for above in queue_node.lineage:
            above.demands[demand] = above.demands.get(demand, 0) + 1
        app_node.highest = max(app_node.highest, ask.priority)
        shift(queue_node, None, ask.priority)
        self._mark_application(app_node)
        self.returned(ask)

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again."""
        group = self.app_nodes[ask.application].groups[self._demand(ask)]
        if group.app_node.queue_node.backoff:
            self.openings.watch_application(group.app_node)
            self.openings.watch_group(group)
        if ask.id not in self.state.preemptions:
            group.heap.push(ask_key(ask), group.waiting)
            self._mark_group(group)
            self.openings.offer(group)

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits (it is already gone from the state)."""
        app_node = self.app_nodes[ask.application]
        queue_node = app_node.queue_node
        demand = self._demand(ask)
        group = app_node.groups[demand]
        group.waiting -= 1
        for above in queue_node.lineage:
            left = above.demands[demand] - 1
            if left:
                above.demands[demand] = left
            else:
                del above.demands[demand]
        if not group.waiting:
            group.entry = None
            group.heap.entries.clear()
            self._limited.pop(group, None)
            self._leave(group.bucket)
            del app_node.groups[demand]
            demand.watched.pop(group, None)
            if demand not in self._walk.root.demands:
                self._forget(demand)
        else:
            self._mark_group(group)
        shift(queue_node, ask.priority, None)
        if queue_node.backoff:
            self.openings.watch_application(app_node)
        if not app_node.groups:
            del self.app_nodes[ask.application]
            del queue_node.app_nodes[ask.application]
            app_node.ticket = None
            if app_node is queue_node.chosen:
                self.openings.choosing[queue_node] = None
        elif (
            ask.priority == app_node.highest and ask.priority not in app_node.application.priorities
        ):
            app_node.highest = max(app_node.application.priorities)
        self._mark_application(app_node)

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended."""
        app_node = self.app_nodes.get(application.id)
        if app_node is not None:
            app_node.paused = application.id in self.state.paused
            self.openings.watch_application(app_node)
            if app_node.queue_node.queue.settings.sort_policy == "stateaware":
                self._mark_application(app_node)
            else:
                self.openings.set_open(app_node, is_open=not app_node.paused)

    def used(self, application: Application) -> None:
        """Usage grew along the path of an application."""
        self._changed(application)

    def _changed(self, application: Application) -> None:
        app_node = self.app_nodes.get(application.id)
        if app_node is not None:
            if app_node.peers is not None and app_node.peers[2] is not bool(
                application.allocations
            ):
                self._regroup(app_node)
            self._mark_application(app_node)
        else:
            self._mark(self._queue_node(application.leaf))

    def freed(self, application: Application) -> None:
        """Usage, or what was promised to an ask in flight, shrank along the path of an application."""
        self._changed(application)
        for queue_node in self._queue_node(application.leaf).lineage:
            if queue_node.capped:
                self._loosened[queue_node] = None
                self._walk.retry_needed = True
        if self._limited:
            all_of_them = self._group_limits or not application.allocations
            for held in tuple(self._limited):
                peers = held.peers if isinstance(held, DemandBucket) else held.app_node.peers
                if all_of_them or (peers is not None and peers[0] == application.user):
                    self._unlimit(held)

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""
        queue_node = self.queue_nodes.pop(path, None)
        if queue_node is not None and queue_node.parent is not None:
            queue_node.entry = None
            queue_node.parent.sleeping.pop(queue_node, None)

    def _app_node(self, ask: Ask) -> ApplicationNode:
        application = self.state.applications[ask.application]
        queue_node = self._queue_node(application.leaf)
        app_node = self.app_nodes[application.id] = queue_node.app_nodes[application.id] = (
            ApplicationNode(application, queue_node, ask.priority)
        )
        app_node.paused = application.id in self.state.paused
        app_node.open = not app_node.paused
        if queue_node.limits:
            app_node.peers = (
                application.user,
                application.groups,
                bool(application.allocations),
            )
        return app_node

    def _bucket(self, app_node: ApplicationNode, demand: Demand) -> DemandBucket:
        """Return the bucket for one more group of an application."""
        queue_node = app_node.queue_node
        here = queue_node.buckets.setdefault(demand, {})
        bucket = here.get(app_node.peers)
        if bucket is None:
            bucket = here[app_node.peers] = DemandBucket(queue_node, demand, app_node.peers)
            queue_node.bucket_count += 1
        bucket.groups += 1
        if bucket.limited and any(
            self.state.asks[name].application == app_node.application.id
            for name in self.state.preemptions
        ):
            self._unlimit(bucket)  # judged by itself, see `limit`
        return bucket

    def _leave(self, bucket: DemandBucket) -> None:
        """Note that a group left its bucket; the last one takes the bucket with it."""
        bucket.groups -= 1
        if not bucket.groups:
            here = bucket.leaf.buckets[bucket.demand]
            del here[bucket.peers]
            if not here:
                del bucket.leaf.buckets[bucket.demand]
            bucket.leaf.bucket_count -= 1
            self._limited.pop(bucket, None)

    def _regroup(self, app_node: ApplicationNode) -> None:
        """Move an application that runs now, or no longer, to those whom limits treat like it."""
        application = app_node.application
        app_node.peers = (
            application.user,
            application.groups,
            bool(application.allocations),
        )
        for demand, group in app_node.groups.items():
            before = group.bucket
            group.entry = None
            group.bucket = self._bucket(app_node, demand)
            if not before.asleep and before.top is not None and before.top[3] is group:
                self._walk.wake_bucket(
                    before.leaf, before
                )  # it no longer stands for those that it leaves
            self._leave(before)
            self._limited.pop(group, None)
            group.limited = False
            self._mark_group(group)
            self.openings.offer(group)

    def _demand(self, ask: Ask) -> Demand:
        demand = self.demands.get((ask.shape, ask.required_node))
        if demand is None:
            demand = Demand(self.state.types.shapes[ask.shape], ask.required_node)
            self.demands[ask.shape, ask.required_node] = demand
        return demand

    def _forget(self, demand: Demand) -> None:
        """Drop a demand that nobody waits with any more."""
        del self.demands[demand.shape.index, demand.required]
        self.blocked.pop(demand, None)
        self.narrowed.pop(demand, None)
        self.openings.unsure.pop(demand, None)
        for queue_node in demand.capped_at:
            del queue_node.capped[demand]
        demand.capped_at.clear()
        self._walk.forget(demand)

    # -------------------------------------------------------------------------------------- marking

    def _mark(self, queue_node: QueueNode) -> None:
        for above in queue_node.lineage:
            if above.marked:
                break
            above.marked = True
            self._marked.append(above)

    def _mark_application(self, app_node: ApplicationNode) -> None:
        if not app_node.marked:
            app_node.marked = True
            self._marked_applications.append(app_node)
            self._mark(app_node.queue_node)
            if app_node.queue_node.queue.settings.sort_policy == "stateaware":
                self._walk.retry_needed = (
                    True  # another new application may be the one that is considered
                )

    def _mark_group(self, group: AskGroup) -> None:
        if not group.marked:
            group.marked = True
            self._marked_groups.append(group)
            if len(self._marked_groups) > self._sweep_at:
                self._sweep()

    def _sweep(self) -> None:
        """Drop the marks of who is gone: nothing is settled while nobody waits at the end of a step, or while another leads."""
        self._marked_applications = [
            app_node for app_node in self._marked_applications if app_node.groups
        ]
        self._marked_groups = [group for group in self._marked_groups if group.waiting]
        self._marked = [
            queue_node
            for queue_node in self._marked
            if self.queue_nodes.get(queue_node.queue.path) is queue_node
        ]
        self._sweep_at = max(FEWEST_SWEPT, 2 * len(self._marked_groups))

    def first(self) -> AskGroup | None:
        """Return the group whose first ask is next; None when nobody is left who could be tried."""
        self.settle()
        return self._walk.first()

    def settle(self) -> None:
        """Compute the keys of what was marked."""
        for app_node in self._marked_applications:
            app_node.marked = False
            self._settle_application(app_node)
        self._marked_applications.clear()
        for group in self._marked_groups:
            group.marked = False
            self._walk.settle_group(group)
        self._marked_groups.clear()
        for queue_node in self.openings.choosing:
            self.openings.choose(queue_node)
        self.openings.choosing.clear()
        for queue_node in self._marked:
            queue_node.marked = False
            self._walk.settle_queue(queue_node)
        self._marked.clear()

    def _settle_application(self, app_node: ApplicationNode) -> None:
        if not app_node.groups:
            return
        queue_node = app_node.queue_node
        key = application_key(app_node.application, app_node.highest, queue_node.compared_with)
        changed = key != app_node.key
        app_node.key = key
        if queue_node.queue.settings.sort_policy == "stateaware":
            self.openings.enter_new(app_node, key)
        if changed:
            for group in app_node.groups.values():
                self._walk.settle_group(group)

    # ------------------------------------------------------------------------- failures and wakings

    def block(self, demand: Demand) -> None:
        """Note that no node has room for a demand; nobody with it is tried before one grows."""
        demand.blocked = True
        demand.candidate_nodes = None
        self.narrowed.pop(demand, None)
        self.blocked[demand] = None
        if demand.watched:
            self.openings.unsure.pop(demand, None)
            self.openings.crowded.update((group.app_node, None) for group in demand.watched)

    def cap(self, path: str, demand: Demand) -> None:
        """Note that a demand would pass the maximum of a queue; nobody with it is tried below before usage there shrinks."""
        queue_node = self.queue_nodes[path]
        queue_node.capped[demand] = None
        demand.capped_at[queue_node] = None

    def limit(self, group: AskGroup) -> None:
        """Note that a limit on users, groups or the number of applications holds a group back, and with it its peers.

        They are tried again when their user has used less, or when another application has ended
        (with limits on groups: when anybody has used less). An application with an ask in flight is
        judged by itself: its own start does not count against it.
        """
        bucket = group.bucket
        if any(self._in_bucket(name, bucket) for name in self.state.preemptions):
            group.entry = None
            group.limited = True
            self._limited[group] = None
        else:
            bucket.top = None
            bucket.asleep = bucket.limited = True
            self._limited[bucket] = None

    def _in_bucket(self, ask: str, bucket: DemandBucket) -> bool:
        """Tell whether the application of an ask waits in a bucket."""
        app_node = self.app_nodes.get(self.state.asks[ask].application)
        group = app_node.groups.get(bucket.demand) if app_node is not None else None
        return group is not None and group.bucket is bucket

    def _unlimit(self, held: AskGroup | DemandBucket) -> None:
        held.limited = False
        del self._limited[held]
        if isinstance(held, AskGroup):
            self._mark_group(held)
            self.openings.offer(held)
        else:
            self.openings.offer_bucket(held)

    def unblock(self, demand: Demand, candidate_nodes: list[int] | None = None) -> None:
        """Note that a demand may fit on a node again, on which ones if that is known."""
        if demand.blocked:
            demand.blocked = False
            demand.candidate_nodes = candidate_nodes
            if candidate_nodes is not None:
                self.narrowed[demand] = None
            del self.blocked[demand]
            if demand.watched:
                self.openings.unsure[demand] = None
            self._walk.free(demand)

    def forget_candidate_nodes(self) -> None:
        """Note that other nodes may have room too."""
        for demand in self.narrowed:
            demand.candidate_nodes = None
        self.narrowed.clear()

    def revive(self, columns: Columns) -> None:
        """Note that there are new columns, so that everything known about nodes is void."""
        self.columns = columns
        self._walk.retry_needed = True
        self.forget_candidate_nodes()
        for demand in tuple(self.blocked):
            self.unblock(demand)

    def loosen(self) -> None:
        """Let demands be tried again that fit the maximum of a queue in which usage shrank."""
        for queue_node in self._loosened:
            for demand in tuple(queue_node.capped):
                if not exceeded(queue_node.queue, demand.shape.pairs):
                    del queue_node.capped[demand]
                    del demand.capped_at[queue_node]
                    self._walk.free(demand)
        self._loosened.clear()

    def rescale(self) -> None:
        """Compare usage with a new total of the cluster."""
        self.total = list(self.state.total)
        for queue_node in self.queue_nodes.values():
            queue_node.compared_with = denominators(queue_node.queue, self.total)
            self._mark(queue_node)
            if queue_node.queue.settings.sort_policy == "fair":
                for app_node in queue_node.app_nodes.values():
                    self._mark_application(app_node)

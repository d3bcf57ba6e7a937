"""The order of waiting asks, kept up to date: that of `evsched.core.yunikorn.ordering`, as rankings that follow the events.

The walk from root to the next ask costs a look at one ranking a level, and a binding costs new keys
along one path. Three ideas carry it.

**Rankings.** Each parent has its children in order, and each leaf the tops of its buckets. What
changed is only noted while events are applied, at the leaf or the parent where it matters, and its
key is computed when that is looked at next.

**Demands.** Asks of one shape (with one required node, if any, and one kind of pod) share a
`Demand`: where one of them does not fit on any node, none does. So a failure is noted at the demand,
and cuts off everything that it holds for. A leaf has one bucket for each demand, and a ranking of
their tops.

**Marks.** What has nothing to offer keeps its place and loses its mark (`Bindable`); the walk goes
to what is marked alone. An ask that arrives marks its path; when something was freed, the marks of
all that it may help are set at once. So a cycle in which nothing can be done costs nothing, and one
in which a single task ended costs the same whether one ask could take its place or all could.

None of this is truth: a new index built from the state gives the same answers. The rows "a step in
which one task ends" of `benchmarks.allocation` measure all three together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from evsched.core.yunikorn.bindable import Bindable
from evsched.core.yunikorn.held_back import HeldBack
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
    from msgspec import UnsetType

    from evsched.core.queues import Application, Queue
    from evsched.core.state import State
    from evsched.core.workloads import Ask
    from evsched.core.yunikorn.columns import NodeColumns


class WaitingOrder:
    """The incremental order of one state (protocol `evsched.core.yunikorn.index.Order`).

    An application has a node exactly while it has an ask that waits, those in flight included. A
    demand has a row in `bindable` exactly while a group has it.

    Attributes:
        total: Capacity of the nodes at the time when the keys were computed, by type.
        queue_nodes, app_nodes: By path of the queue, and by id of the application.
        demands: By index of the shape, required node (None: any) and pod.
        openings: Which applications are looked at.
        bindable: What is worth a look.
        columns: Those that `bindable` follows; None before the first cycle.
    """

    def __init__(self, state: State) -> None:
        """Build the order of all asks that wait; each is reported as if it had just arrived.

        Nothing is known of nodes yet: every demand is worth a try.
        """
        self.total = list(state.total)
        self.queue_nodes: dict[str, QueueNode] = {}
        self.state = state
        self.bindable = Bindable(state.width)
        self._walk = Walk(state, self._queue_node(state.root), self.bindable, self._settle_leaf)
        self.openings = Openings(self._walk)
        self.app_nodes: dict[str, ApplicationNode] = {}
        self.demands: dict[tuple[int, str | None, bytes | UnsetType], Demand] = {}
        self._node_rules = state.rules.node_rules
        self.columns: NodeColumns | None = None
        self._held_back = HeldBack(state)
        for ask in state.asks.values():
            self.asked(ask)

    def _queue_node(self, queue: Queue) -> QueueNode:
        """Return the node of a queue, made when it is first needed; parents are made first."""
        queue_node = self.queue_nodes.get(queue.path)
        if queue_node is None:
            parent = self._queue_node(queue.parent) if queue.parent is not None else None
            queue_node = self.queue_nodes[queue.path] = QueueNode(
                queue, parent, denominators(queue, self.total)
            )
            self.bindable.add_queue(queue_node)
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
        """An ask started to wait; group, application and queue are made where they are missing."""
        app_node = self.app_nodes.get(ask.application) or self._app_node(ask)
        queue_node = app_node.queue_node
        demand = self.demand_of(ask)
        group = app_node.groups.get(demand)
        if group is None:
            group = app_node.groups[demand] = AskGroup(
                app_node, demand, self._bucket(app_node, demand), self._walk.is_next
            )
            demand.groups += 1
        group.waiting += 1
        app_node.highest = max(app_node.highest, ask.priority)
        shift(queue_node, None, ask.priority)
        self._mark_application(app_node)
        self.returned(ask)

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again; also the second half of `asked`.

        When the order is built from a state, asks in flight are counted, but stay out of the heap.
        """
        group = self.app_nodes[ask.application].groups[self.demand_of(ask)]
        queue_node = group.app_node.queue_node
        if queue_node.backoff:
            self.openings.watch_application(group.app_node)
            self.openings.watch_group(group)
        # An ask in flight is bound on its node alone (`evsched.core.yunikorn.allocation`).
        if ask.id not in self.state.preemptions:
            group.heap.push(ask_key(ask), group.waiting)
            queue_node.changed_groups[group] = None
            self.openings.offer(group)

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits (it is already gone from the state).

        Its entry stays in the heap of its group, out of date, until it comes to the top.
        """
        app_node = self.app_nodes[ask.application]
        queue_node = app_node.queue_node
        demand = self.demand_of(ask)
        group = app_node.groups[demand]
        group.waiting -= 1
        if group.waiting:
            queue_node.changed_groups[group] = None
        else:
            self._drop_group(group)
        shift(queue_node, ask.priority, None)
        if queue_node.backoff:
            self.openings.watch_application(app_node)
        if not app_node.groups:
            self._drop_application(app_node)
        elif (
            ask.priority == app_node.highest and ask.priority not in app_node.application.priorities
        ):
            app_node.highest = max(app_node.application.priorities)
        self._mark_application(app_node)

    def _drop_group(self, group: AskGroup) -> None:
        """Forget a group without asks, and with the last group of a demand the demand."""
        app_node, demand = group.app_node, group.demand
        group.entry = None
        group.heap.entries.clear()
        app_node.queue_node.changed_groups.pop(group, None)
        self._held_back.forget(group)
        self._leave(group.bucket)
        del app_node.groups[demand]
        demand.watched.pop(group, None)
        demand.groups -= 1
        if not demand.groups:
            del self.demands[demand.shape.index, demand.required, demand.pod]
            self.openings.unsure.pop(demand, None)
            self.bindable.drop_demand(demand)

    def _drop_application(self, app_node: ApplicationNode) -> None:
        """Forget an application without asks; a stateaware leaf chooses another new one."""
        queue_node = app_node.queue_node
        del self.app_nodes[app_node.application.id]
        del queue_node.app_nodes[app_node.application.id]
        app_node.ticket = None
        if app_node is queue_node.chosen:
            queue_node.choosing = True

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended.

        In a stateaware leaf it may make way for another new one, so the choice is made again.
        """
        app_node = self.app_nodes.get(application.id)
        if app_node is not None:
            app_node.paused = application.id in self.state.paused
            self.openings.watch_application(app_node)
            if app_node.queue_node.queue.settings.sort_policy == "stateaware":
                self._mark_application(app_node)
            else:
                self.openings.set_open(app_node, is_open=not app_node.paused)

    def used(self, application: Application) -> None:
        """Usage grew along the path of an application.

        Marks are not lowered for that: what is tried and fails loses its mark.
        """
        self._changed(application)
        self.bindable.bound()
        for above in self._queue_node(application.leaf).maxima:
            self.bindable.changed(above, freed=False)

    def _changed(self, application: Application) -> None:
        """Note that usage on the path of an application changed, and with it the shares there.

        One that got its first allocation, or lost its last, has other peers from then on.
        """
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
        """Usage, or what was promised to an ask in flight, shrank on an application's path.

        What a limit held back is tried again where that may help it.
        """
        self._changed(application)
        for above in self._queue_node(application.leaf).maxima:
            self.bindable.changed(above, freed=True)
            self._walk.retry_needed = True
        for held in self._held_back.helped_by(application):
            self._unlimit(held)

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""
        queue_node = self.queue_nodes.pop(path, None)
        if queue_node is not None and queue_node.parent is not None:
            parent = queue_node.parent
            parent.changed_children.pop(queue_node, None)
            parent.children.change([(queue_node.entry, None)])
            self.bindable.drop_queue(queue_node)

    def _app_node(self, ask: Ask) -> ApplicationNode:
        """Return a new node for the application of an ask.

        Peers are told apart only where the leaf or a queue above has limits. Elsewhere all
        applications of the leaf share a bucket for each demand.
        """
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
            self.bindable.add_bucket(bucket)
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
            self._held_back.forget(bucket)
            self.bindable.drop_bucket(bucket)
        self._walk.note(bucket)

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
            group.row = group.bucket.row
            self._leave(before)
            self._held_back.forget(group)
            group.limited = False
            app_node.queue_node.changed_groups[group] = None
            self.openings.offer(group)

    def demand_of(self, ask: Ask) -> Demand:
        """Return what an ask shares with others, made when the first ask has it."""
        key = (ask.shape, ask.required_node, ask.pod if self._node_rules else UNSET)
        demand = self.demands.get(key)
        if demand is None:
            demand = self.demands[key] = Demand(self.state.types.shapes[key[0]], *key[1:])
            self.bindable.add_demand(demand)
        return demand

    # ----------------------------------------------------------------------------- what has new keys

    def _mark(self, queue_node: QueueNode) -> None:
        """Note that the keys of a queue, and of those above it, may have changed.

        Usage and pending amounts are summed up to root, so it reaches every key above.
        """
        for above in queue_node.lineage:
            if above.parent is not None:
                above.parent.changed_children[above] = None

    def _mark_application(self, app_node: ApplicationNode) -> None:
        """Note that the keys of an application, and of the queues above, may have changed."""
        queue_node = app_node.queue_node
        if app_node.groups:
            queue_node.changed_applications[app_node] = None
        else:
            queue_node.changed_applications.pop(app_node, None)
        self._mark(queue_node)
        if queue_node.queue.settings.sort_policy == "stateaware":
            # Another new application may be the one that is considered.
            self._walk.retry_needed = True
            self.bindable.look_at(queue_node)

    def first(self) -> AskGroup | None:
        """Return the group whose first ask is next; None when there is none that could be bound.

        It stays the same until the ask is bound, or `cap`, `limit` or `block` is told of it.
        """
        return self._walk.first()

    def settle(self) -> None:
        """Compute all keys; the walk computes only those that it looks at."""
        for queue_node in self.queue_nodes.values():
            if queue_node.queue.leaf:
                self._settle_leaf(queue_node)
            else:
                self._walk.settle_children(queue_node)

    def _settle_leaf(self, leaf: QueueNode) -> None:
        """Compute the keys of what changed in a leaf, in this order.

        Keys of applications are part of the entries of groups, the choice among new applications
        opens and closes groups, and the top of a bucket is one of their entries.
        """
        if leaf.changed_applications:
            changed = tuple(leaf.changed_applications)
            leaf.changed_applications.clear()
            for app_node in changed:
                self._settle_application(app_node)
        if leaf.choosing:
            leaf.choosing = False
            self.openings.choose(leaf)
        if leaf.changed_groups:
            for group in leaf.changed_groups:
                self._walk.settle_group(group)
            leaf.changed_groups.clear()
        if leaf.changed_buckets:
            self._walk.settle_buckets(leaf)

    def _settle_application(self, app_node: ApplicationNode) -> None:
        """Compute the key of an application; a new one begins the entry of each of its groups."""
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

    # ----------------------------------------------------------------------------- what fails and what is freed

    def block(self, demand: Demand) -> None:
        """Note that no node has room for a demand; nothing with it is tried before one grows."""
        self.bindable.block(demand)
        self.openings.blocked(demand)

    def cap(self, path: str, group: AskGroup) -> None:
        """Note that a group, and all of its bucket, would pass the maximum of a queue.

        The queue's room is computed again: promises to asks in flight take of it, unreported.
        """
        self.bindable.changed(self.queue_nodes[path], freed=False)
        self.bindable.fail(group.bucket)

    def limit(self, group: AskGroup) -> None:
        """Note that a limit on users, groups or applications holds a group and its peers back.

        They are tried again when their user has used less, or when another application has ended
        (with limits on groups: when any user has used less). An application with an ask in flight
        is judged by itself: its own start does not count against it.
        """
        bucket = group.bucket
        if any(self._in_bucket(name, bucket) for name in self.state.preemptions):
            group.limited = True
            self._walk.settle_group(group)
            held: AskGroup | DemandBucket = group
        else:
            self.bindable.limit(bucket, limited=True)
            held = bucket
        self._held_back.add(held)

    def _in_bucket(self, ask: str, bucket: DemandBucket) -> bool:
        """Tell whether the application of an ask waits in a bucket."""
        app_node = self.app_nodes.get(self.state.asks[ask].application)
        group = app_node.groups.get(bucket.demand) if app_node is not None else None
        return group is not None and group.bucket is bucket

    def _unlimit(self, held: AskGroup | DemandBucket) -> None:
        """Let a group or a bucket be tried again: whether the limit still holds is found out so."""
        self._held_back.forget(held)
        self._walk.retry_needed = True
        if isinstance(held, AskGroup):
            held.limited = False
            held.app_node.queue_node.changed_groups[held] = None
            self.openings.offer(held)
        else:
            self.bindable.limit(held, limited=False)

    def begin(self, columns: NodeColumns) -> None:
        """Let asks be tried again that grown nodes, or less usage below a maximum, may help.

        Columns that were rebuilt do not know what has grown, so every demand is tried again then.
        """
        columns.settle()
        if self.columns is not columns:
            self.columns = columns
            self.openings.freed(self.bindable.revive())
        self.openings.freed(self.bindable.begin(columns))

    def end(self) -> None:
        """Note that all asks that could be bound were tried."""
        self.openings.freed(self.bindable.end())

    def rescale(self) -> None:
        """Compare usage with a new total of the cluster.

        Only queues and applications for which that makes a difference get new keys.
        """
        self.total = list(self.state.total)
        for queue_node in self.queue_nodes.values():
            compared_with = denominators(queue_node.queue, self.total)
            if compared_with != queue_node.compared_with:
                queue_node.compared_with = compared_with
                self._mark(queue_node)
                if queue_node.queue.settings.sort_policy == "fair":
                    for app_node in queue_node.app_nodes.values():
                        self._mark_application(app_node)

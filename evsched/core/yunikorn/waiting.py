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
from evsched.core.yunikorn.ordering import application_key, ask_key, denominators
from evsched.core.yunikorn.standing import Bin, Demand, Group, Line, Standing, shift
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
        hoping: Demands for which it is known which nodes alone can have room.
        total: Capacity of the nodes at the time when the keys were computed.
        columns: The columns from which ``blocked`` is known.
    """

    def __init__(self, state: State) -> None:
        """Build the order of all asks that wait."""
        self.total = list(state.total)
        self.standings: dict[str, Standing] = {}
        self.state = state
        self._walk = Walk(state, self._stand(state.root))
        self.openings = Openings(self._walk)
        self.lines: dict[str, Line] = {}
        self.demands: dict[tuple[int, str | None], Demand] = {}
        self.blocked: dict[Demand, None] = {}
        self.hoping: dict[Demand, None] = {}
        self.columns: Columns | None = None
        self._marked: list[Standing] = []
        self._marked_lines: list[Line] = []
        self._marked_groups: list[Group] = []
        self._sweep_at = FEWEST_SWEPT
        self._loosened: dict[Standing, None] = {}
        self._limited: dict[Group | Bin, None] = {}
        self._group_limits = any(
            limit.groups for queue in state.queues.values() for limit in queue.limits
        )
        for ask in state.asks.values():
            self.asked(ask)

    def _stand(self, queue: Queue) -> Standing:
        standing = self.standings.get(queue.path)
        if standing is None:
            parent = self._stand(queue.parent) if queue.parent is not None else None
            standing = self.standings[queue.path] = Standing(
                queue, parent, denominators(queue, self.total)
            )
        return standing

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
        line = self.lines.get(ask.application) or self._line(ask)
        standing = line.standing
        demand = self._demand(ask)
        group = line.groups.get(demand)
        if group is None:
            group = line.groups[demand] = Group(
                line, demand, self._bin(line, demand), self._walk.is_next
            )
        group.waiting += 1
        for above in standing.lineage:
            above.demands[demand] = above.demands.get(demand, 0) + 1
        line.highest = max(line.highest, ask.priority)
        shift(standing, None, ask.priority)
        self._mark_line(line)
        self.returned(ask)

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again."""
        group = self.lines[ask.application].groups[self._demand(ask)]
        if group.line.standing.backoff:
            self.openings.watch_application(group.line)
            self.openings.watch_group(group)
        if ask.id not in self.state.preemptions:
            group.heap.push(ask_key(ask), group.waiting)
            self._mark_group(group)
            self.openings.offer(group)

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits (it is already gone from the state)."""
        line = self.lines[ask.application]
        standing = line.standing
        demand = self._demand(ask)
        group = line.groups[demand]
        group.waiting -= 1
        for above in standing.lineage:
            left = above.demands[demand] - 1
            if left:
                above.demands[demand] = left
            else:
                del above.demands[demand]
        if not group.waiting:
            group.entry = None
            group.heap.entries.clear()
            self._limited.pop(group, None)
            self._leave(group.bin)
            del line.groups[demand]
            demand.watched.pop(group, None)
            if demand not in self._walk.root.demands:
                self._forget(demand)
        else:
            self._mark_group(group)
        shift(standing, ask.priority, None)
        if standing.backoff:
            self.openings.watch_application(line)
        if not line.groups:
            del self.lines[ask.application]
            del standing.lines[ask.application]
            line.ticket = None
            if line is standing.chosen:
                self.openings.choosing[standing] = None
        elif ask.priority == line.highest and ask.priority not in line.application.priorities:
            line.highest = max(line.application.priorities)
        self._mark_line(line)

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended."""
        line = self.lines.get(application.id)
        if line is not None:
            line.paused = application.id in self.state.paused
            self.openings.watch_application(line)
            if line.standing.queue.settings.sort_policy == "stateaware":
                self._mark_line(line)
            else:
                self.openings.set_open(line, is_open=not line.paused)

    def used(self, application: Application) -> None:
        """Usage grew along the path of an application."""
        self._changed(application)

    def _changed(self, application: Application) -> None:
        line = self.lines.get(application.id)
        if line is not None:
            if line.peers is not None and line.peers[2] is not bool(application.allocations):
                self._regroup(line)
            self._mark_line(line)
        else:
            self._mark(self._stand(application.leaf))

    def freed(self, application: Application) -> None:
        """Usage, or what was promised to an ask in flight, shrank along the path of an application."""
        self._changed(application)
        for standing in self._stand(application.leaf).lineage:
            if standing.capped:
                self._loosened[standing] = None
                self._walk.retry_needed = True
        if self._limited:
            all_of_them = self._group_limits or not application.allocations
            for held in tuple(self._limited):
                peers = held.peers if isinstance(held, Bin) else held.line.peers
                if all_of_them or (peers is not None and peers[0] == application.user):
                    self._unlimit(held)

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""
        standing = self.standings.pop(path, None)
        if standing is not None and standing.parent is not None:
            standing.entry = None
            standing.parent.sleeping.pop(standing, None)

    def _line(self, ask: Ask) -> Line:
        application = self.state.applications[ask.application]
        standing = self._stand(application.leaf)
        line = self.lines[application.id] = standing.lines[application.id] = Line(
            application, standing, ask.priority
        )
        line.paused = application.id in self.state.paused
        line.open = not line.paused
        if standing.limits:
            line.peers = (application.user, application.groups, bool(application.allocations))
        return line

    def _bin(self, line: Line, demand: Demand) -> Bin:
        """Return the bin for one more group of a line."""
        standing = line.standing
        here = standing.bins.setdefault(demand, {})
        bin_ = here.get(line.peers)
        if bin_ is None:
            bin_ = here[line.peers] = Bin(standing, demand, line.peers)
            standing.bin_count += 1
        bin_.groups += 1
        if bin_.limited and any(
            self.state.asks[name].application == line.application.id
            for name in self.state.preemptions
        ):
            self._unlimit(bin_)  # judged by itself, see `limit`
        return bin_

    def _leave(self, bin_: Bin) -> None:
        """Note that a group left its bin; the last one takes the bin with it."""
        bin_.groups -= 1
        if not bin_.groups:
            here = bin_.leaf.bins[bin_.demand]
            del here[bin_.peers]
            if not here:
                del bin_.leaf.bins[bin_.demand]
            bin_.leaf.bin_count -= 1
            self._limited.pop(bin_, None)

    def _regroup(self, line: Line) -> None:
        """Move an application that runs now, or no longer, to those whom limits treat like it."""
        application = line.application
        line.peers = (application.user, application.groups, bool(application.allocations))
        for demand, group in line.groups.items():
            before = group.bin
            group.entry = None
            group.bin = self._bin(line, demand)
            if not before.asleep and before.top is not None and before.top[3] is group:
                self._walk.wake_bin(
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
        self.hoping.pop(demand, None)
        self.openings.unsure.pop(demand, None)
        for standing in demand.capped_at:
            del standing.capped[demand]
        demand.capped_at.clear()
        self._walk.forget(demand)

    # -------------------------------------------------------------------------------------- marking

    def _mark(self, standing: Standing) -> None:
        for above in standing.lineage:
            if above.marked:
                break
            above.marked = True
            self._marked.append(above)

    def _mark_line(self, line: Line) -> None:
        if not line.marked:
            line.marked = True
            self._marked_lines.append(line)
            self._mark(line.standing)
            if line.standing.queue.settings.sort_policy == "stateaware":
                self._walk.retry_needed = (
                    True  # another new application may be the one that is considered
                )

    def _mark_group(self, group: Group) -> None:
        if not group.marked:
            group.marked = True
            self._marked_groups.append(group)
            if len(self._marked_groups) > self._sweep_at:
                self._sweep()

    def _sweep(self) -> None:
        """Drop the marks of who is gone: nothing is settled while nobody waits at the end of a step, or while another leads."""
        self._marked_lines = [line for line in self._marked_lines if line.groups]
        self._marked_groups = [group for group in self._marked_groups if group.waiting]
        self._marked = [
            standing
            for standing in self._marked
            if self.standings.get(standing.queue.path) is standing
        ]
        self._sweep_at = max(FEWEST_SWEPT, 2 * len(self._marked_groups))

    def first(self) -> Group | None:
        """Return the group whose first ask is next; None when nobody is left who could be tried."""
        self.settle()
        return self._walk.first()

    def settle(self) -> None:
        """Compute the keys of what was marked."""
        for line in self._marked_lines:
            line.marked = False
            self._settle_line(line)
        self._marked_lines.clear()
        for group in self._marked_groups:
            group.marked = False
            self._walk.settle_group(group)
        self._marked_groups.clear()
        for standing in self.openings.choosing:
            self.openings.choose(standing)
        self.openings.choosing.clear()
        for standing in self._marked:
            standing.marked = False
            self._walk.settle_queue(standing)
        self._marked.clear()

    def _settle_line(self, line: Line) -> None:
        if not line.groups:
            return
        standing = line.standing
        key = application_key(line.application, line.highest, standing.compared_with)
        changed = key != line.key
        line.key = key
        if standing.queue.settings.sort_policy == "stateaware":
            self.openings.enter_new(line, key)
        if changed:
            for group in line.groups.values():
                self._walk.settle_group(group)

    # ------------------------------------------------------------------------- failures and wakings

    def block(self, demand: Demand) -> None:
        """Note that no node has room for a demand; nobody with it is tried before one grows."""
        demand.blocked = True
        demand.hope = None
        self.hoping.pop(demand, None)
        self.blocked[demand] = None
        if demand.watched:
            self.openings.unsure.pop(demand, None)
            self.openings.crowded.update((group.line, None) for group in demand.watched)

    def cap(self, path: str, demand: Demand) -> None:
        """Note that a demand would pass the maximum of a queue; nobody with it is tried below before usage there shrinks."""
        standing = self.standings[path]
        standing.capped[demand] = None
        demand.capped_at[standing] = None

    def limit(self, group: Group) -> None:
        """Note that a limit on users, groups or the number of applications holds a group back, and with it its peers.

        They are tried again when their user has used less, or when another application has ended
        (with limits on groups: when anybody has used less). An application with an ask in flight is
        judged by itself: its own start does not count against it.
        """
        bin_ = group.bin
        if any(self._in_bin(name, bin_) for name in self.state.preemptions):
            group.entry = None
            group.limited = True
            self._limited[group] = None
        else:
            bin_.top = None
            bin_.asleep = bin_.limited = True
            self._limited[bin_] = None

    def _in_bin(self, ask: str, bin_: Bin) -> bool:
        """Tell whether the application of an ask waits in a bin."""
        line = self.lines.get(self.state.asks[ask].application)
        group = line.groups.get(bin_.demand) if line is not None else None
        return group is not None and group.bin is bin_

    def _unlimit(self, held: Group | Bin) -> None:
        held.limited = False
        del self._limited[held]
        if isinstance(held, Group):
            self._mark_group(held)
            self.openings.offer(held)
        else:
            self.openings.offer_bin(held)

    def unblock(self, demand: Demand, hope: list[int] | None = None) -> None:
        """Note that a demand may fit on a node again, on which ones if that is known."""
        if demand.blocked:
            demand.blocked = False
            demand.hope = hope
            if hope is not None:
                self.hoping[demand] = None
            del self.blocked[demand]
            if demand.watched:
                self.openings.unsure[demand] = None
            self._walk.free(demand)

    def forget_hopes(self) -> None:
        """Note that other nodes may have room too."""
        for demand in self.hoping:
            demand.hope = None
        self.hoping.clear()

    def revive(self, columns: Columns) -> None:
        """Note that there are new columns, so that everything known about nodes is void."""
        self.columns = columns
        self._walk.retry_needed = True
        self.forget_hopes()
        for demand in tuple(self.blocked):
            self.unblock(demand)

    def loosen(self) -> None:
        """Let demands be tried again that fit the maximum of a queue in which usage shrank."""
        for standing in self._loosened:
            for demand in tuple(standing.capped):
                if not exceeded(standing.queue, demand.shape.pairs):
                    del standing.capped[demand]
                    del demand.capped_at[standing]
                    self._walk.free(demand)
        self._loosened.clear()

    def rescale(self) -> None:
        """Compare usage with a new total of the cluster."""
        self.total = list(self.state.total)
        for standing in self.standings.values():
            standing.compared_with = denominators(standing.queue, self.total)
            self._mark(standing)
            if standing.queue.settings.sort_policy == "fair":
                for line in standing.lines.values():
                    self._mark_line(line)

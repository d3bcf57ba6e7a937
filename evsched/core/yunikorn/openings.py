"""Which applications of a leaf are looked at.

Of the new ones of a stateaware leaf the first alone, and none that is paused. A part of
`evsched.core.yunikorn.waiting`, which says how it works. An application that is closed keeps its
groups, but they have no entries, so the walk does not meet them. A new application that is paused
makes way for the next new one.

What pauses have to know is kept here as well, so that `evsched.core.yunikorn.pauses` need not
count the asks of every application after every step: only applications with enough asks are
*watched*.

The rows "applications of a stateaware leaf" and "applications watched for a pause" of
`benchmarks.allocation` measure both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.ordering import is_new
from evsched.core.yunikorn.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.yunikorn.order_nodes import ApplicationNode, AskGroup, Demand, QueueNode
    from evsched.core.yunikorn.ordering import ApplicationKey


class Openings:
    """The applications below one root, open and closed.

    Attributes:
        crowded: Applications that may have too many asks that no node has room for, so that they
            are to be paused.
        unsure: Demands of applications that are watched for that, for which a node may have room.
    """

    def __init__(self, walk: Walk) -> None:
        """Start with no application."""
        self._walk = walk
        self.crowded: dict[ApplicationNode, None] = {}
        self.unsure: dict[Demand, None] = {}

    def enter_new(self, app_node: ApplicationNode, key: ApplicationKey) -> None:
        """Put a new application of a stateaware leaf in line with the other new ones.

        One that runs, or is paused, is taken off the line. The ticket is what stands in line; it
        is current while the application points to it. The leaf chooses again at its next look.
        """
        queue_node = app_node.queue_node
        if is_new(app_node.application) and not app_node.paused:
            if app_node.ticket is None or app_node.ticket[0] != key:
                app_node.ticket = (key, self._walk.next_serial(), app_node)
                queue_node.newcomers.push(app_node.ticket, len(queue_node.app_nodes))
            self.set_open(app_node, is_open=app_node is queue_node.chosen)
        else:
            app_node.ticket = None
            self.set_open(app_node, is_open=not app_node.paused)
        queue_node.choosing = True

    def set_open(self, app_node: ApplicationNode, *, is_open: bool) -> None:
        """Let the walk meet an application, or not.

        Its groups get entries when it opens, and are offered, as they may have been passed over
        meanwhile.
        """
        if app_node.open is not is_open:
            app_node.open = is_open
            for group in app_node.groups.values():
                self._walk.settle_group(group)
                if is_open:
                    self.offer(group)

    def choose(self, queue_node: QueueNode) -> None:
        """Choose the one new application of a stateaware leaf that is considered.

        The one that was considered before closes only while it is still in line: one that runs by
        now stays open.
        """
        ticket = queue_node.newcomers.first()
        first = ticket[2] if ticket is not None else None
        before = queue_node.chosen
        queue_node.chosen = first
        # Without a ticket it is gone, or `enter_new` has decided: it is paused, or no longer new.
        if before is not None and before is not first and before.ticket is not None:
            self.set_open(before, is_open=False)
        if first is not None:
            self.set_open(first, is_open=True)

    def watch_application(self, app_node: ApplicationNode) -> None:
        """Watch an application that has enough asks to be paused for them.

        Asks in flight count here; `evsched.core.yunikorn.pauses` leaves them
        out.
        """
        watched = (
            0 < app_node.queue_node.backoff <= len(app_node.application.asks)
            and not app_node.paused
        )
        if watched:
            self.crowded[app_node] = None
        if watched is not app_node.watched:
            app_node.watched = watched
            for group in app_node.groups.values():
                self.watch_group(group)

    def watch_group(self, group: AskGroup) -> None:
        """Watch the demand of a group whose application is watched.

        Whether a node has room for it is not known when nothing has tried it: then it is noted as
        unsure.
        """
        demand = group.demand
        if not group.app_node.watched:
            demand.watched.pop(group, None)
        elif group not in demand.watched:
            demand.watched[group] = None
            if not self._walk.bindable.blocked(demand):
                self.unsure[demand] = None

    def offer(self, group: AskGroup) -> None:
        """Let the walk look at a group that has something new to offer."""
        self._walk.retry_needed = True
        self._walk.bindable.offer(group.bucket)

    def blocked(self, demand: Demand) -> None:
        """Note that no node has room for a demand.

        Each application that waits with it, and is watched, may have too many such asks now.
        """
        if demand.watched:
            self.unsure.pop(demand, None)
            self.crowded.update((group.app_node, None) for group in demand.watched)

    def freed(self, demands: Iterable[Demand]) -> None:
        """Note that a node may have room for demands that had none."""
        self.unsure.update((demand, None) for demand in demands if demand.watched)

"""Which applications of a leaf are looked at: of the new ones of a stateaware leaf the first, and nobody who is paused.

A part of `evsched.core.yunikorn.waiting`, which says how it works. A line that is closed keeps
its groups, but they have no entries, so the walk does not meet them. A new application that is
paused makes way for the next new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.ordering import is_new
from evsched.core.yunikorn.walk import Walk

if TYPE_CHECKING:
    from evsched.core.yunikorn.ordering import ApplicationKey
    from evsched.core.yunikorn.standing import Bin, Demand, Group, Line, Standing


class Openings:
    """The lines below one root, open and closed.

    Attributes:
        crowded: Lines that may have too many asks that no node has room for, so that their
            applications are to be paused.
        choosing: Stateaware leaves whose new application is to be chosen anew.
        unsure: Demands of lines that are watched for that, for which a node may have room.
    """

    def __init__(self, walk: Walk) -> None:
        """Start with no application."""
        self._walk = walk
        self.crowded: dict[Line, None] = {}
        self.unsure: dict[Demand, None] = {}
        self.choosing: dict[Standing, None] = {}

    def enter_new(self, line: Line, key: ApplicationKey) -> None:
        """Put a new application of a stateaware leaf in line with the other new ones; take any other off, and who is paused."""
        standing = line.standing
        if is_new(line.application) and not line.paused:
            if line.ticket is None or line.ticket[0] != key:
                line.ticket = (key, self._walk.next_serial(), line)
                standing.newcomers.push(line.ticket, len(standing.lines))
            self.set_open(line, is_open=line is standing.chosen)
        else:
            line.ticket = None
            self.set_open(line, is_open=not line.paused)
        self.choosing[standing] = None

    def set_open(self, line: Line, *, is_open: bool) -> None:
        """Let the walk meet an application, or not."""
        if line.open is not is_open:
            line.open = is_open
            for group in line.groups.values():
                self._walk.settle_group(group)
                if is_open:
                    self.offer(group)

    def choose(self, standing: Standing) -> None:
        """Choose the one new application of a stateaware leaf that is considered."""
        ticket = standing.newcomers.first()
        first = ticket[2] if ticket is not None else None
        before = standing.chosen
        standing.chosen = first
        if before is not None and before is not first and before.ticket is not None:
            self.set_open(before, is_open=False)
        if first is not None:
            self.set_open(first, is_open=True)

    def watch_application(self, line: Line) -> None:
        """Watch an application that has enough asks to be paused for them; nobody else has to be counted."""
        watched = 0 < line.standing.backoff <= len(line.application.asks) and not line.paused
        if watched:
            self.crowded[line] = None
        if watched is not line.watched:
            line.watched = watched
            for group in line.groups.values():
                self.watch_group(group)

    def watch_group(self, group: Group) -> None:
        """Watch the demand of a group whose application is watched."""
        demand = group.demand
        if not group.line.watched:
            demand.watched.pop(group, None)
        elif group not in demand.watched:
            demand.watched[group] = None
            if not demand.blocked:
                self.unsure[demand] = None

    def offer(self, group: Group) -> None:
        """Wake the path of a group that has something new to offer."""
        self.offer_bin(group.bin)

    def offer_bin(self, bin_: Bin) -> None:
        """Wake the path of a bin that has something new to offer."""
        self._walk.retry_needed = True
        demand = bin_.demand
        lineage = bin_.leaf.lineage
        if (
            demand.blocked
            or bin_.limited
            or (demand.capped_at and any(demand in above.capped for above in lineage))
        ):
            return
        if bin_.asleep:
            self._walk.wake_bin(bin_.leaf, bin_)
        for standing in lineage:
            self._walk.wake(standing)

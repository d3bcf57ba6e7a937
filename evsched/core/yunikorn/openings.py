"""Which applications of a leaf are looked at: of the new ones of a stateaware leaf the first, and nobody who is paused.

The middle of `evsched.core.yunikorn.waiting`, which says how it works. A line that is closed keeps
its groups, but they have no entries, so the walk does not meet them. A new application that is
paused makes way for the next new one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from evsched.core.yunikorn.ordering import is_new
from evsched.core.yunikorn.walk import Walk

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.yunikorn.ordering import ApplicationKey
    from evsched.core.yunikorn.standing import Bin, Demand, Group, Line, Standing


class Openings(Walk):
    """The lines below one root, open and closed.

    Attributes:
        stirred: Whether anything happened since `settled` that could let an ask be bound.
        crowded: Lines that may have too many asks that no node has room for, so that their
            applications are to be paused.
        unsure: Demands of lines that are watched for that, for which a node may have room.
    """

    def __init__(self, state: State, root: Standing) -> None:
        """Start with nobody who waits."""
        super().__init__(state, root)
        self.stirred = True
        self.crowded: dict[Line, None] = {}
        self.unsure: dict[Demand, None] = {}
        self._choosing: dict[Standing, None] = {}

    def _ticket(self, line: Line, key: ApplicationKey) -> None:
        """Put a new application of a stateaware leaf in line with the other new ones; take any other off, and who is paused."""
        standing = line.standing
        if is_new(line.application) and not line.paused:
            if line.ticket is None or line.ticket[0] != key:
                self._serial += 1
                line.ticket = (key, self._serial, line)
                heappush(standing.newcomers, line.ticket)
                if len(standing.newcomers) > 4 * len(standing.lines) + 64:
                    standing.newcomers = sorted(
                        one for one in standing.newcomers if one[2].ticket is one
                    )
            self._open(line, is_open=line is standing.chosen)
        else:
            line.ticket = None
            self._open(line, is_open=not line.paused)
        self._choosing[standing] = None

    def _open(self, line: Line, *, is_open: bool) -> None:
        if line.open is not is_open:
            line.open = is_open
            for group in line.groups.values():
                self._settle_group(group)
                if is_open:
                    self._rouse(group)

    def _choose(self, standing: Standing) -> None:
        """Choose the one new application of a stateaware leaf that is considered."""
        heap = standing.newcomers
        while heap and heap[0][2].ticket is not heap[0]:
            heappop(heap)
        first = heap[0][2] if heap else None
        before = standing.chosen
        standing.chosen = first
        if before is not None and before is not first and before.ticket is not None:
            self._open(before, is_open=False)
        if first is not None:
            self._open(first, is_open=True)

    def _regard(self, line: Line) -> None:
        """Watch an application that has enough asks to be paused for them; nobody else has to be counted."""
        watched = 0 < line.standing.backoff <= len(line.application.asks) and not line.paused
        if watched:
            self.crowded[line] = None
        if watched is not line.watched:
            line.watched = watched
            for group in line.groups.values():
                self._watch(group)

    def _watch(self, group: Group) -> None:
        demand = group.demand
        if not group.line.watched:
            demand.watched.pop(group, None)
        elif group not in demand.watched:
            demand.watched[group] = None
            if not demand.blocked:
                self.unsure[demand] = None

    def _rouse(self, group: Group) -> None:
        """Wake the path of a group that has something new to offer."""
        self._rouse_bin(group.bin)

    def _rouse_bin(self, bin_: Bin) -> None:
        self.stirred = True
        demand = bin_.demand
        lineage = bin_.leaf.lineage
        if (
            demand.blocked
            or bin_.limited
            or (demand.capped_at and any(demand in above.capped for above in lineage))
        ):
            return
        if bin_.asleep:
            self._wake_bin(bin_.leaf, bin_)
        for standing in lineage:
            self._wake(standing)

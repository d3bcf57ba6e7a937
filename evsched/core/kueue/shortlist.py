"""The waiting workloads of one cohort tree in columns: which of them a cycle could do anything for, and in which order.

Workloads of one queue and priority form a *class*; what they could get at best
(`evsched.core.kueue.prospects`) is computed once a class. The amounts of all workloads stand in
columns, one row each, so that one comparison a type answers for the whole tree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from evsched.core.kueue.reach import LARGE, TreeReach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from evsched.core.kueue.model import Quota
    from evsched.core.workloads import Ask

    Column = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Types = tuple[int, ...]
    Groups = list[list[dict[int, int]]]
    """For each resource group that a workload asks in, the flavors that it takes, each with the amounts by type."""

UNASKED = (1 << 63) - 1
"""Stands for the amount of a workload that does not ask in these types: nothing is enough."""

ANYTHING = UNASKED - 1
"""What a class could get about which nothing is known."""

VACANT = -1
IMPOSSIBLE = 1 << 30
"""So many groups are to have a flavor where a resource has no quota at all."""

FEWEST_ROWS = 16


class OwnUsage:
    """What the workloads of one queue use of one type, by priority.

    Attributes:
        priorities: Those in use, ascending, each once.
        amounts: What all workloads of the priority at the same place use together, never 0.
    """

    __slots__ = ("amounts", "priorities")

    def __init__(self) -> None:
        """Start empty."""
        self.priorities: list[int] = []
        self.amounts: list[int] = []

    def add(self, priority: int, amount: int) -> None:
        """Count an amount, or take it off again when it is negative.

        A priority of which nothing is left is forgotten, so that the lists stay as short as what
        runs is diverse.
        """
        place = bisect_left(self.priorities, priority)
        if place == len(self.priorities) or self.priorities[place] != priority:
            self.priorities.insert(place, priority)
            self.amounts.insert(place, 0)
        self.amounts[place] += amount
        if not self.amounts[place]:
            del self.priorities[place], self.amounts[place]

    def below(self, priority: int, *, equal: bool) -> int:
        """Return what workloads of a lower (or equal) priority use together.

        Workloads on their way out are included: a search may choose them too.
        """
        find = bisect_right if equal else bisect_left
        return sum(self.amounts[: find(self.priorities, priority)])


class Classes:
    """The classes of one tree: workloads of one queue and priority that may preempt, or may not.

    What a class could get depends on nothing else, so thousands of workloads cost as much as their
    classes. Numbers of classes are rows of columns; the number of an empty class is used again, as
    priorities come and go.
    """

    def __init__(
        self, reach: TreeReach, own: dict[Quota, dict[int, OwnUsage]], *, fair: bool
    ) -> None:
        """Start with none.

        Args:
            reach: What the queues of the tree could get, whichever class asks.
            own: By queue and type what its workloads use, kept by
                `evsched.core.kueue.prospects.Prospects`; read here only.
            fair: Whether shares decide, and not borrowing alone.
        """
        self._reach = reach
        self._own = own
        self._fair = fair
        self._numbers: dict[tuple[Quota, int, bool], int] = {}
        self._keys: list[tuple[Quota, int, bool]] = []
        self._members: list[int] = []
        self._free: list[int] = []
        self._of_queue: dict[Quota, dict[int, None]] = {}
        self._rows = np.zeros(FEWEST_ROWS, dtype=np.intp)
        self._reclaims = np.zeros(FEWEST_ROWS, dtype=np.bool_)
        self._open = np.zeros(FEWEST_ROWS, dtype=np.bool_)
        self._given_up: dict[int, Column] = {}
        self._stale: dict[int, None] = {}

    def join(self, queue: Quota, ask: Ask) -> int:
        """Return the class of a workload, with one member more; it begins with its first."""
        key = (queue, ask.priority, ask.may_preempt)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._begin(key)
        self._members[number] += 1
        return number

    def leave(self, number: int) -> None:
        """Take one member off a class; the number of an empty one is given out again.

        Its entries in the columns stay as they are until then: no workload that waits refers to
        them.
        """
        self._members[number] -= 1
        if not self._members[number]:
            key = self._keys[number]
            del self._numbers[key], self._of_queue[key[0]][number]
            self._free.append(number)

    def used(self, queue: Quota) -> None:
        """Note that what the workloads of a queue use changed.

        Only the classes of that queue depend on it, and they are computed anew at the next
        question.
        """
        self._stale.update(self._of_queue.get(queue, {}))

    def reach(self, index: int) -> Column:
        """Return what each class could get of a type at best, one entry a class.

        That is the larger of two ways. Without other queues: the room, and what workloads of its
        own queue could give up. By reclaiming: the claim, which victims of the own queue may
        raise. Both are bounds from above, as no way is ruled out that a search might find (record
        41).
        """
        if self._reach.is_blind(index):
            return np.full(len(self._rows), ANYTHING)
        room, claim = self._reach.room_and_claim(index)
        rows, own = self._rows, self._own_of(index)
        best = room[rows] + own
        # Classic: within its nominal quota a queue takes from all that borrow, after its own victims.
        after_own = claim if self._fair else self._reach.slack(index)
        claimed = np.maximum(claim[rows], after_own[rows] + own)
        best = np.where(self._reclaims, np.maximum(best, claimed), best)
        return np.where(self._open, ANYTHING, best)

    def _begin(self, key: tuple[Quota, int, bool]) -> int:
        """Give a new class a number, and note what its queue's policies allow it.

        Returns:
            Its number: one that an empty class left, or the next one.
        """
        if self._free:
            number = self._free.pop()
            self._keys[number] = key
        else:
            number = len(self._keys)
            self._keys.append(key)
            self._members.append(0)
            if number == len(self._rows):
                self._grow()
        queue, _, may_preempt = key
        spec = queue.spec
        assert spec is not None  # workloads wait in ClusterQueues alone
        self._of_queue.setdefault(queue, {})[number] = None
        self._rows[number] = self._reach.rows[queue]
        reclaims = (
            may_preempt and queue.parent is not None and spec.reclaim_within_cohort != "Never"
        )
        self._reclaims[number] = reclaims
        # Preemption while borrowing depends on the priorities of all that borrow: not looked into.
        self._open[number] = reclaims and not self._fair and spec.borrow_within_cohort != "Never"
        self._stale[number] = None
        return number

    def _grow(self) -> None:
        """Make room for as many classes again."""
        more = len(self._rows)
        self._rows = np.hstack([self._rows, np.zeros(more, dtype=np.intp)])
        self._reclaims = np.hstack([self._reclaims, np.zeros(more, dtype=np.bool_)])
        self._open = np.hstack([self._open, np.zeros(more, dtype=np.bool_)])
        for index, own in self._given_up.items():
            self._given_up[index] = np.hstack([own, np.zeros(more, dtype=np.int64)])

    def _own_of(self, index: int) -> Column:
        """Return how much of a type each class may take from workloads of its own queue.

        The column of a type is filled when it is first asked for; after that only stale classes
        are.
        """
        if self._stale:
            for known, column in self._given_up.items():
                for number in self._stale:
                    column[number] = self._preemptible(number, known)
            self._stale.clear()
        own = self._given_up.get(index)
        if own is None:
            own = self._given_up[index] = np.zeros(len(self._rows), dtype=np.int64)
            for number in range(len(self._keys)):
                own[number] = self._preemptible(number, index)
        return own

    def _preemptible(self, number: int, index: int) -> int:
        """Return how much of a type one class may take from its own queue.

        ``LowerOrNewerEqualPriority`` gives up equal priorities by age. Ages are not kept here, so
        all that is equal counts: the bound may only be too high. It is capped at `LARGE`, to be
        added up safely.
        """
        queue, priority, may_preempt = self._keys[number]
        policy = queue.spec.within_cluster_queue if queue.spec is not None else "Never"
        usage = self._own.get(queue, {}).get(index)
        if usage is None or policy == "Never" or not may_preempt:
            return 0
        return min(usage.below(priority, equal=policy == "LowerOrNewerEqualPriority"), LARGE)


class Shortlist:
    """The waiting workloads of one cohort tree.

    A workload has a row as long as it waits; a vacant row is used again. Amounts stand in tables,
    one for each place of a group in the request and each set of types of a flavor: a line a type,
    a column a workload. The answer for all rows is kept until a workload comes or goes, or usage
    changes.
    """

    def __init__(self, reach: TreeReach, classes: Classes) -> None:
        """Start with nothing waiting."""
        self._reach = reach
        self._classes = classes
        self._rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._vacant: list[int] = []
        # Negative priority, the cycle that looked at it last, creation, seq.
        self._keys = np.zeros((4, FEWEST_ROWS), dtype=np.int64)
        self._class = np.zeros(FEWEST_ROWS, dtype=np.intp)
        self._groups = np.full(FEWEST_ROWS, VACANT, dtype=np.int64)
        self._amounts: dict[tuple[int, Types], Column] = {}
        self._passes: Flags | None = None

    # --------------------------------------------------------------------------------------- change

    def add(self, ask: Ask, queue: Quota, groups: Groups | None, tried: int) -> None:
        """Take in a workload.

        Args:
            ask: The workload.
            queue: Its ClusterQueue.
            groups: What it asks for; None when some of it has no quota at all.
            tried: The cycle that looked at it last; 0: none did.
        """
        if self._vacant:
            row = self._vacant.pop()
            self._ids[row] = ask.id
        else:
            row = len(self._ids)
            self._ids.append(ask.id)
            if row == len(self._class):
                self._grow()
        self._rows[ask.id] = row
        self._keys[:, row] = (-ask.priority, tried, ask.created, ask.seq)
        self._class[row] = self._classes.join(queue, ask)
        self._groups[row] = IMPOSSIBLE if groups is None else len(groups)
        for number, flavors in enumerate(groups or ()):
            for amounts in flavors:
                key = (number, tuple(amounts))
                if key not in self._amounts:
                    self._amounts[key] = np.full((len(amounts), len(self._class)), UNASKED)
                self._amounts[key][:, row] = tuple(amounts.values())
        self._passes = None

    def remove(self, name: str) -> None:
        """Forget a workload; its row becomes vacant and matches nothing."""
        row = self._rows.pop(name)
        self._vacant.append(row)
        self._groups[row] = VACANT
        for table in self._amounts.values():
            table[:, row] = UNASKED
        self._classes.leave(int(self._class[row]))
        self._passes = None

    def tried(self, name: str, cycle: int) -> None:
        """Note that a cycle looked at a workload.

        Args:
            name: Its id.
            cycle: The number of that cycle, from 1 on.
        """
        self._keys[1, self._rows[name]] = cycle

    def used(self, queue: Quota) -> None:
        """Note that the usage of a queue changed, and with it what classes may get."""
        self._reach.touch(queue)
        self._classes.used(queue)
        self._passes = None

    def _grow(self) -> None:
        """Make room for as many rows again."""
        more = len(self._class)
        self._keys = np.hstack([self._keys, np.zeros((4, more), dtype=np.int64)])
        self._class = np.hstack([self._class, np.zeros(more, dtype=np.intp)])
        self._groups = np.hstack([self._groups, np.full(more, VACANT, dtype=np.int64)])
        for key, table in self._amounts.items():
            self._amounts[key] = np.hstack([table, np.full((len(table), more), UNASKED)])

    # ----------------------------------------------------------------------------------------- look

    def passes(self, name: str) -> bool:
        """Tell whether a cycle could do anything for a workload.

        True promises nothing; False is certain on the state as it is.
        """
        return bool(self._all_passes()[self._rows[name]])

    def order(self, since: int | None) -> Iterator[str]:
        """Yield the workloads that are worth a look, in turn.

        Those are the ones that no cycle looked at yet, and those for which a cycle could do
        anything. Higher priority first, then not looked at for longest, then older, then submitted
        first. They are sorted a priority at a time, as far as they are asked for.

        Args:
            since: Leave out those that a later cycle than this one looked at; None: leave out none.
        """
        tried = self._keys[1]
        again = self._all_passes()
        if since is not None:
            again = again & (tried <= since)
        rows = np.flatnonzero((again | (tried == 0)) & (self._groups != VACANT))
        urgency = self._keys[0, rows]
        for priority in np.unique(urgency).tolist():
            equal = rows[urgency == priority]
            _, last, created, seq = self._keys[:, equal]
            for row in equal[np.lexsort((seq, created, last))].tolist():
                yield self._ids[row]

    def _all_passes(self) -> Flags:
        """Return for every row whether it passes, compared anew only where something changed."""
        if self._passes is None:
            self._passes = self._compare()
        return self._passes

    def _compare(self) -> Flags:
        """Compare what every workload asks for with what its class could get.

        A flavor is enough when all its types are, a group when one of its flavors is. A workload
        passes when so many groups are enough as it asks in: all of them. Vacant and impossible
        rows carry a number of groups that no count reaches.
        """
        reaches: dict[int, Column] = {}
        enough: dict[int, Flags] = {}
        for (number, types), table in self._amounts.items():
            fits = np.ones(len(self._class), dtype=np.bool_)
            for index, amounts in zip(types, table, strict=True):
                if index not in reaches:
                    reaches[index] = self._classes.reach(index)[self._class]
                fits &= amounts <= reaches[index]
            known = enough.get(number)
            enough[number] = fits if known is None else known | fits
        found = np.zeros(len(self._class), dtype=np.int64)
        for fits in enough.values():
            found += fits
        passes: Flags = found == self._groups
        return passes

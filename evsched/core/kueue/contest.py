"""Which queue gives the next victim under fair sharing: from the top of the tree down, the largest share (reference section 5).

On each level the best queue and the best cohort are compared; a cohort whose share is not smaller
is entered. A queue drops out when it no longer borrows (the ask's own excepted) or has no candidate
left, a cohort when it no longer borrows (those above the ask excepted) or nothing is left in it.
A level is laid out when the contest first comes to it. A cohort beside the ask's path whose share is
too small for any of its workloads to be preempted is dropped as a whole.

Equal shares: among queues the better first candidate wins (`evsched.core.kueue.candidates`), among
cohorts the last of the configuration, between both the cohort. Queues stand in a heap by level;
taking a victim changes the share of its queue and of the cohorts above it, and no other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from evsched.core.kueue.shares import order_of, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evsched.core.kueue.candidates import Entry
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay

NOTHING = -1
"""Less than every share."""


class Cursor:
    """The remaining candidates of one queue, in their order: those on their way out first.

    Attributes:
        head: The next one; None when there is none.
        leaving: Whether the next one is on its way out.
        popped_leaving: Whether the last one was.
    """

    __slots__ = ("_end", "_leaving", "_place", "_staying", "head", "leaving", "popped_leaving")

    def __init__(self, leaving: list[Entry], staying: list[Entry], limit: int | None) -> None:
        """Start before sorted lists; workloads whose priority is ``limit`` or more are left out."""
        self._leaving, self._staying = leaving, staying
        if limit is not None:
            # A tuple of the limit alone comes before every entry of that priority.
            key = (limit,)
            if leaving:
                self._leaving = leaving[: bisect_left(leaving, key)]
            self._end = bisect_left(staying, key)
        else:
            self._end = len(staying)
        self._place = -len(self._leaving)
        self.popped_leaving = False
        self.head: Entry | None = None
        self.leaving = False
        self._look()

    def _look(self) -> None:
        """Note what comes next at the place where the cursor stands."""
        place = self._place
        self.leaving = place < 0
        if place < 0:
            self.head = self._leaving[place]
        else:
            self.head = self._staying[place] if place < self._end else None

    def pop(self) -> Entry:
        """Return the next candidate and step past it."""
        entry = self.head
        assert entry is not None
        self.popped_leaving = self.leaving
        self._place += 1
        self._look()
        return entry

    def end(self) -> None:
        """Step past all that is left."""
        self._place = self._end
        self._look()

    def rest(self) -> Iterator[Entry]:
        """Yield all that is left, without stepping."""
        place = self._place
        if place < 0:
            yield from self._leaving[place:]
            place = 0
        yield from self._staying[place : self._end]


Levels = Callable[["Quota"], "tuple[list[Quota], list[Quota]]"]
"""From a cohort to the ClusterQueues right below it that have candidates, and the cohorts below it that may lead to some."""


def levels_of(cursors: Iterable[Quota]) -> Levels:
    """Return the levels of a tree that hold these ClusterQueues.

    For a contest whose queues are all known at the start, as in the second strategy.
    """
    below: dict[Quota, dict[Quota, None]] = {}
    for queue in cursors:
        for cohort, child in pairwise(queue.down):
            below.setdefault(cohort, {})[child] = None

    def level(cohort: Quota) -> tuple[list[Quota], list[Quota]]:
        children = below.get(cohort, ())
        cohorts = [child for child in children if child.spec is None]
        return [child for child in children if child.spec is not None], cohorts

    return level


class Contest:
    """The queues that still have candidates, by level of the tree.

    A level is laid out when it is first looked into, so branches that are never entered cost
    nothing. Shares are kept until usage below a node changes.
    """

    def __init__(
        self,
        trial: QuotaOverlay,
        own: Quota,
        cursors: dict[Quota, Cursor],
        levels: Levels,
        refuses: Callable[[Quota], bool] | None = None,
    ) -> None:
        """Start above all candidates.

        Args:
            trial: What is already decided; its usage may only fall while this lasts.
            own: The queue of the ask.
            cursors: The candidates by queue; ``levels`` may add to it.
            levels: What lies below a cohort.
            refuses: Whether a cohort beside the path of the ask is dropped with all below it; None:
                none is.
        """
        self._trial = trial
        self._own = own
        self._cursors = cursors
        self._levels = levels
        self._refuses = refuses
        self._path = dict.fromkeys(own.down)
        self._shares: dict[Quota, int] = {}
        self._queues: dict[Quota, list[tuple[int, bool, bool, Entry, Quota]]] = {}
        self._cohorts: dict[Quota, list[Quota]] = {}
        self._root: Quota | None = None if own.parent is None else own.top

    def _open(self, level: Quota) -> None:
        """Lay a level out: its queues in a heap, its cohorts in the order of the configuration."""
        queues, cohorts = self._levels(level)
        heap = [place for queue in queues if (place := self._place(queue)) is not None]
        heapify(heap)
        self._queues[level] = heap
        self._cohorts[level] = sorted(cohorts, key=lambda node: node.order)

    def _place(self, queue: Quota) -> tuple[int, bool, bool, Entry, Quota] | None:
        """Return where a queue stands among its siblings, smallest first; None when it drops out.

        The largest share comes first. Of equal ones a queue with candidates on their way out, then
        a queue other than the ask's, then the one whose first candidate is the better victim.
        """
        cursor = self._cursors[queue]
        head = cursor.head
        if head is None:
            return None
        share = self.share(queue)
        own = queue is self._own
        if share < 0 and not own:
            return None
        return (-order_of(share), not cursor.leaving, own, head, queue)

    def share(self, node: Quota) -> int:
        """Return the share of a node in the trial (`evsched.core.kueue.shares`).

        It is negative where the node does not borrow; `order_of` makes it comparable.
        """
        found = self._shares.get(node)
        if found is None:
            found = self._shares[node] = share_of(node, self._trial.usage(node))
        return found

    def used_less(self, queue: Quota) -> None:
        """Note that the usage of a queue fell, and with it that of the cohorts above.

        Their shares are computed anew when they are next asked for.
        """
        for node in queue.down:
            self._shares.pop(node, None)

    def update(self, queue: Quota) -> None:
        """Put a queue whose candidates or usage changed to its new place.

        It is the first of its heap nearly always; where it is not, the heap is made anew.
        """
        if queue.parent is None:
            return
        heap = self._queues[queue.parent]
        if heap and heap[0][4] is queue:
            heappop(heap)
        else:
            heap[:] = [place for place in heap if place[4] is not queue]
            heapify(heap)
        place = self._place(queue)
        if place is not None:
            heappush(heap, place)

    def next(self) -> Quota | None:
        """Return the queue that gives the next victim; None when no queue is left.

        It stays where it is: `update` has to follow once its candidates or usage changed. Without
        a cohort there is the ask's own queue alone.
        """
        if self._own.parent is None:
            cursor = self._cursors.get(self._own)
            return self._own if cursor is not None and cursor.head is not None else None
        while self._root is not None:
            found = self._descend(self._root)
            if found is not None:
                return found
        return None

    def _descend(self, level: Quota) -> Quota | None:
        """Return the best queue below a level; None after a level without any was dropped.

        A cohort that no longer borrows goes out of the list for good, because usage only falls
        during a search.
        """
        while True:
            if level not in self._queues:
                self._open(level)
            heap = self._queues[level]
            best, best_share = None, NOTHING
            cohorts = self._cohorts.get(level)
            if cohorts:
                kept = []
                for cohort in cohorts:
                    share = self.share(cohort)
                    if share < 0 and cohort not in self._path:
                        continue
                    kept.append(cohort)
                    if order_of(share) >= best_share:
                        best, best_share = cohort, order_of(share)
                self._cohorts[level] = kept
            if best is not None and (not heap or best_share >= -heap[0][0]):
                beside = level in self._path and best not in self._path
                if beside and self._refuses is not None and self._refuses(best):
                    self._cohorts[level].remove(best)
                else:
                    level = best
            elif heap:
                return heap[0][4]
            else:
                self._drop(level)
                return None

    def _drop(self, level: Quota) -> None:
        """Take a level out in which nothing is left; without the top the contest is over."""
        if level.parent is None:
            self._root = None
        else:
            self._cohorts[level.parent].remove(level)

"""Which queue gives the next victim under fair sharing: from the top of the tree down, the largest share (reference section 5).

On each level the best queue and the best cohort are compared; a cohort whose share is not smaller
is entered. A queue drops out when it no longer borrows (the ask's own excepted) or has no candidate
left, a cohort when it no longer borrows (those above the ask excepted) or nothing is left in it.
Cohorts that hold no candidate at all would only be entered and dropped, so they are left out.

Equal shares: among queues the better first candidate wins (`evsched.core.kueue.candidates`), among
cohorts the last of the configuration, between both the cohort. Queues stand in a heap by level;
taking a victim changes the share of its queue and of the cohorts above it, of nobody else.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from evsched.core.kueue.shares import order_of, share_of

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def rest(self) -> Iterator[Entry]:
        """Yield all that is left, without stepping."""
        place = self._place
        if place < 0:
            yield from self._leaving[place:]
            place = 0
        yield from self._staying[place : self._end]


class Contest:
    """The queues that still have candidates, by level of the tree.

    Each cohort has a heap of its queues by share and a list of its cohorts. The next victim is
    found by one walk down from the top. Shares are kept until usage on their path changes.
    """

    def __init__(self, trial: QuotaOverlay, own: Quota, cursors: dict[Quota, Cursor]) -> None:
        """Start with the candidates of these queues; ``own`` is the queue of the ask."""
        self._trial = trial
        self._own = own
        self._cursors = cursors
        self._path = dict.fromkeys(own.down)
        self._shares: dict[Quota, int] = {}
        self._queues: dict[Quota, list[tuple[int, bool, bool, Entry, Quota]]] = {}
        self._cohorts: dict[Quota, list[Quota]] = {}
        self._root: Quota | None = None if own.parent is None else own.top
        for queue in cursors:
            if queue.parent is not None:
                self._enter(queue, queue.parent)
        for heap in self._queues.values():
            heapify(heap)
        for cohorts in self._cohorts.values():
            cohorts.sort(key=lambda node: node.order)

    def _enter(self, queue: Quota, cohort: Quota) -> None:
        """Put a queue into the heap of its cohort, and the cohorts above it where they can be found from the top."""
        node = cohort
        while node not in self._queues:
            self._queues[node] = []
            if node.parent is None:
                break
            self._cohorts.setdefault(node.parent, []).append(node)
            node = node.parent
        place = self._place(queue)
        if place is not None:
            self._queues[cohort].append(place)

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
        """Return the share of a node in the trial (`evsched.core.kueue.shares`)."""
        found = self._shares.get(node)
        if found is None:
            found = self._shares[node] = share_of(node, self._trial.usage(node))
        return found

    def used_less(self, queue: Quota) -> None:
        """Note that the usage of a queue changed, and with it that of the cohorts above."""
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

        Without a cohort there is the ask's own queue alone.
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
            heap = self._queues.get(level, [])
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

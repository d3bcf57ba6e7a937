"""Whose turn it is within a cycle (reference section 7).

Classic: less borrowing first, then higher priority, then older, then uid and id. Fair: in every
cohort the nominees of its children meet, and the best one goes up: one whose side does not borrow
the flavors it asks for, then the lower share with the nominee counted, then higher priority, then
older. Each turn changes shares, so the tournament is played anew for the next.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from evsched.core.kueue.shares import order_of, share_of
from evsched.core.kueue.waiting import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.configuration import KueueSpec
    from evsched.core.kueue.cycle import Nominee
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay

    Standing = tuple[bool, int, tuple[int, int, str, str]]


def turns(kueue: KueueSpec, trial: QuotaOverlay, nominees: list[Nominee]) -> Iterator[Nominee]:
    """Yield the nominees in their order; each must be handled before the next is asked for.

    The classic order depends on the nominees alone and is fixed at the start. That of fair sharing
    depends on what those before were given.
    """
    if kueue.fair_sharing:
        return _tournaments(kueue, trial, nominees)
    return iter(
        sorted(nominees, key=lambda nominee: (nominee.assignment.level, *place_of(nominee.ask)))
    )


def _tournaments(
    kueue: KueueSpec, trial: QuotaOverlay, nominees: Iterable[Nominee]
) -> Iterator[Nominee]:
    """Yield the nominees tree by tree, in the order of the configuration.

    Trees have no quota in common, so it does not matter which comes first; a fixed order makes
    logs comparable.
    """
    trees: dict[Quota, dict[Quota, Nominee]] = {}
    for nominee in nominees:
        trees.setdefault(nominee.queue.top, {})[nominee.queue] = nominee
    for top, entered in sorted(trees.items(), key=lambda item: item[0].order):
        if top in entered:
            yield entered[top]  # a queue without cohort has nobody to meet
        else:
            yield from _Tournament(kueue, trial, entered).winners(top)


class _Tournament:
    """The tournaments of one tree, one after the other.

    Every cohort has a heap of its children by how the best nominee below each stands. Handling the
    winner changes usage on its way to the top and nowhere else, so that only the children on that
    way have to be judged anew.
    """

    def __init__(
        self, kueue: KueueSpec, trial: QuotaOverlay, entered: dict[Quota, Nominee]
    ) -> None:
        """Judge every nominee among its siblings, and the best of each cohort among the cohort's."""
        self._kueue = kueue
        self._trial = trial
        self._entered = entered
        self._heaps: dict[Quota, list[tuple[Standing, int, Quota, Quota]]] = {}
        for queue in entered:
            for cohort in queue.down[:-1]:
                self._heaps.setdefault(cohort, [])
            self._enter(queue, queue)
        for cohort in sorted(self._heaps, key=lambda node: -len(node.down)):
            heapify(self._heaps[cohort])
            if cohort.parent is not None:
                self._enter(cohort, self._heaps[cohort][0][3])

    def winners(self, top: Quota) -> Iterator[Nominee]:
        """Yield the winner of each tournament; it must be handled before the next is asked for."""
        while self._heaps[top]:
            queue = self._heaps[top][0][3]
            yield self._entered[queue]
            for node in reversed(queue.down[1:]):
                assert node.parent is not None  # only the first of `down` has none
                heappop(self._heaps[node.parent])
                below = self._heaps.get(node)
                if below:
                    heappush(self._heaps[node.parent], self._place(node, below[0][3]))

    def _enter(self, node: Quota, queue: Quota) -> None:
        """Note that the nominee of a queue stands for a node among its siblings.

        The heap of the siblings is made once all have entered.
        """
        assert node.parent is not None  # the top of a tree is no node's child
        self._heaps[node.parent].append(self._place(node, queue))

    def _place(self, node: Quota, queue: Quota) -> tuple[Standing, int, Quota, Quota]:
        """Return how a node stands with the nominee of a queue counted, smallest first.

        The usage is added for the comparison and taken off again. The id of the ask makes the
        place unique, so that nodes are never compared.
        """
        nominee, trial = self._entered[queue], self._trial
        usage = nominee.assignment.usage
        trial.add(queue, usage.items())
        borrows = self._kueue.prioritize_non_borrowing and trial.above(node, usage)
        share = order_of(share_of(node, trial.usage(node)))
        trial.remove(queue, usage.items())
        return (borrows, share, place_of(nominee.ask)), node.order, node, queue

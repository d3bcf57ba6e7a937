"""Whose turn it is within a cycle (reference section 7).

Classic: less borrowing first, then higher priority, then older, then uid and id. Fair: in every cohort the nominees of its
children meet, and the best one goes up: one whose side does not borrow the flavors it asks for, then the lower share with the
nominee counted, then higher priority, then older. Each turn changes shares, so the tournament is played anew for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.kueue.shares import order_of, share_of
from evsched.core.kueue.waiting import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.configuration import KueueSpec
    from evsched.core.kueue.cycle import Nominee
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import Trial

    Standing = tuple[bool, int, tuple[int, int, str, str]]


def turns(kueue: KueueSpec, trial: Trial, nominees: list[Nominee]) -> Iterator[Nominee]:
    """Yield the nominees in their order; each must be handled before the next is asked for."""
    if kueue.fair_sharing:
        return _tournaments(kueue, trial, nominees)
    return iter(sorted(nominees, key=lambda nominee: (nominee.assignment.level, *place_of(nominee.ask))))


def _tournaments(kueue: KueueSpec, trial: Trial, nominees: Iterable[Nominee]) -> Iterator[Nominee]:
    trees: dict[Quota, dict[Quota, Nominee]] = {}
    for nominee in nominees:
        trees.setdefault(nominee.queue.top, {})[nominee.queue] = nominee
    for top, entered in sorted(trees.items(), key=lambda item: item[0].order):
        while entered:
            best = _Tournament(kueue, trial, entered).winner(top)
            yield best
            del entered[best.queue]


class _Tournament:
    """One tournament in one tree."""

    def __init__(self, kueue: KueueSpec, trial: Trial, entered: dict[Quota, Nominee]) -> None:
        """Note for every nominee how each node on its way to the top stands with the nominee counted."""
        self._entered = entered
        self._standings: dict[tuple[Quota, Quota], Standing] = {}
        self._children: dict[Quota, dict[Quota, None]] = {}
        for queue, nominee in entered.items():
            usage = nominee.assignment.usage
            trial.add(queue, usage.items())
            for node in queue.down[1:]:
                borrows = kueue.prioritize_non_borrowing and trial.above(node, usage)
                share = order_of(share_of(node, trial.usage(node)))
                self._standings[node, queue] = (borrows, share, place_of(nominee.ask))
                assert node.parent is not None
                self._children.setdefault(node.parent, {})[node] = None
            trial.remove(queue, usage.items())

    def winner(self, node: Quota) -> Nominee:
        """Return the nominee that wins below a node."""
        if node in self._entered:
            return self._entered[node]
        meeting = [(child, self.winner(child)) for child in self._children[node]]
        return min(meeting, key=lambda one: self._standings[one[0], one[1].queue])[1]

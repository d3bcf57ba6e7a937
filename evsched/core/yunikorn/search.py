"""The cheapest set of victims on one node: a small exact search.

A plan must cover what is lacking (space of each type on the node, and room below each maximum on
the asker's path) and must not take more than the guarantees leave (law 2, which couples victims).
The search is depth-first over the candidates from the cheapest on, with three ways to cut a branch,
none of which can lose the best plan:

- what is still lacking needs at least so many more victims, and even the cheapest so many cost too
  much;
- of candidates that are alike (same leaf, amounts and flags) the cheaper ones go first, so a later
  one is never taken without those before it;
- a candidate that would take more than a guarantee leaves is passed over, and with it all that are
  like it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import NamedTuple

from evsched.core.workloads import Allocation


class Candidate(NamedTuple):
    """An allocation that may be a victim, prepared for the search.

    Attributes:
        weight: Its cost; the sum over a plan is the plan's cost.
        covers: (number of the need, amount): what its loss gives.
        takes: (number of the slack, amount): what its loss takes from guarantees.
        kind: Equal for candidates that differ in weight alone.
    """

    allocation: Allocation
    weight: int
    covers: tuple[tuple[int, int], ...]
    takes: tuple[tuple[int, int], ...]
    kind: Hashable


class SearchResult(NamedTuple):
    """What a search came to.

    Attributes:
        plan: The cheapest plan, in the order of the candidates; None when there is none.
        expanded: How many candidates were looked at.
        cut: The budget ended the search.
    """

    plan: tuple[Candidate, ...] | None
    expanded: int
    cut: bool


def cheapest(
    candidates: Sequence[Candidate],
    needs: Sequence[int],
    slacks: Sequence[int],
    most: int,
    budget: int,
) -> SearchResult:
    """Return the cheapest plan of at most ``most`` victims.

    Args:
        candidates: Sorted by weight.
        needs: What is lacking, each above 0; a plan covers every one of them.
        slacks: What may be taken, each from 0 up; for less there are no candidates.
        most: Largest number of victims.
        budget: Most candidates to look at.
    """
    return _Search(candidates, needs, slacks, most, budget).run()


class _Search:
    """One search while it runs; it is depth-first, and undoes each step on its way back.

    Attributes:
        needs, slacks: What is still lacking, and what may still be taken, with the chosen gone.
        banned: Kinds of which a cheaper candidate was passed over on the way here.
        tops: For each place, what the largest candidates from there on cover together.
        prefix: Weight of the first so many candidates.
        expanded: How many candidates were looked at.
    """

    __slots__ = (
        "banned", "best", "best_weight", "budget", "candidates", "chosen", "expanded", "most", "needs", "prefix", "slacks",
        "tops",
    )  # fmt: skip

    def __init__(
        self,
        candidates: Sequence[Candidate],
        needs: Sequence[int],
        slacks: Sequence[int],
        most: int,
        budget: int,
    ) -> None:
        self.candidates = candidates
        self.needs = list(needs)
        self.slacks = list(slacks)
        self.most = min(most, len(candidates))
        self.budget = budget
        self.expanded = 0
        self.chosen: list[Candidate] = []
        self.best: tuple[Candidate, ...] | None = None
        self.best_weight: int | None = None
        self.banned: dict[Hashable, None] = {}
        self.tops = _tops(candidates, len(needs), self.most)
        # prefix[i]: weight of the first i candidates.
        self.prefix = [0]
        for candidate in candidates:
            self.prefix.append(self.prefix[-1] + candidate.weight)

    def run(self) -> SearchResult:
        """Return the cheapest plan, or within the budget the best that was found.

        Without any when the budget ends, some plan is made greedily: an ask that has a plan should
        not go without one because there are many. It is made minimal, but need not be the
        cheapest.
        """
        self._extend(0, 0)
        plan, cut = self.best, self.expanded >= self.budget
        if cut:
            plan = plan if plan is not None else self._largest_first()
            plan = None if plan is None else _without_superfluous(plan, self.needs)
        return SearchResult(plan, self.expanded, cut)

    def _largest_first(self) -> tuple[Candidate, ...] | None:
        """Return some plan: whatever covers most of what is still lacking, one after the other.

        Shares of different needs are added in 2**-64ths, in integers. A plan that is dead-ended by
        a guarantee is no plan, and None is returned; it may exist all the same.
        """
        left = list(self.candidates)
        needs, slacks = self.needs.copy(), self.slacks.copy()
        plan: list[Candidate] = []
        while any(lacking > 0 for lacking in needs):
            best, most = None, (0, 0)
            for candidate in left:
                if all(amount <= slacks[slack] for slack, amount in candidate.takes):
                    lacking = [
                        (amount, needs[need])
                        for need, amount in candidate.covers
                        if needs[need] > 0
                    ]
                    share = sum((min(amount, need) << 64) // need for amount, need in lacking)
                    if best is None or (share, -candidate.weight) > most:
                        best, most = candidate, (share, -candidate.weight)
            if best is None or not most[0]:
                return None
            left.remove(best)
            plan.append(best)
            for need, amount in best.covers:
                needs[need] -= amount
            for slack, amount in best.takes:
                slacks[slack] -= amount
        return tuple(sorted(plan, key=lambda candidate: candidate.weight))

    def _more_needed(self, start: int) -> int | None:
        """Return the least number of further victims; None when all are too few.

        Those from ``start`` on are left.

        It is the largest number over the needs, each by the largest amounts that are left for it.
        """
        more = 0
        tops = self.tops[start]
        for need, lacking in enumerate(self.needs):
            if lacking > 0:
                top = tops[need]
                if not top or top[-1] < lacking:
                    return None
                more = max(more, bisect_left(top, lacking) + 1)
        return more

    def _extend(self, start: int, weight: int) -> None:
        """Try every candidate from ``start`` on as the next victim."""
        newly_banned: list[Hashable] = []
        candidates, prefix, chosen, banned = self.candidates, self.prefix, self.chosen, self.banned
        for index in range(start, len(candidates)):
            if self.expanded >= self.budget:
                break
            self.expanded += 1
            more = self._more_needed(index)
            if more is None or len(chosen) + more > self.most or index + more > len(candidates):
                break
            if (
                self.best_weight is not None
                and weight + prefix[index + more] - prefix[index] >= self.best_weight
            ):
                break
            candidate = candidates[index]
            if candidate.kind in banned:
                continue
            if all(amount <= self.slacks[slack] for slack, amount in candidate.takes):
                self._take(candidate, 1)
                if all(lacking <= 0 for lacking in self.needs):
                    self._keep(weight + candidate.weight)
                else:
                    self._extend(index + 1, weight + candidate.weight)
                self._take(candidate, -1)
            banned[candidate.kind] = None
            newly_banned.append(candidate.kind)
        for kind in newly_banned:
            del banned[kind]

    def _take(self, candidate: Candidate, sign: int) -> None:
        """Take a candidate into the plan (``sign`` 1) or out of it again (-1)."""
        for need, amount in candidate.covers:
            self.needs[need] -= sign * amount
        for slack, amount in candidate.takes:
            self.slacks[slack] -= sign * amount
        if sign > 0:
            self.chosen.append(candidate)
        else:
            self.chosen.pop()

    def _keep(self, weight: int) -> None:
        """Keep the plan that was reached if it is cheaper than the best so far."""
        if self.best_weight is None or weight < self.best_weight:
            self.best, self.best_weight = tuple(self.chosen), weight


def _tops(candidates: Sequence[Candidate], needs: int, most: int) -> list[list[list[int]]]:
    """Return what the largest candidates cover together, for each place and each need.

    ``result[i][n]`` lists what the 1, 2, … largest amounts for need ``n`` among the candidates
    from ``i`` on add up to. Rows that do not change are shared.
    """
    largest: list[list[int]] = [[] for _ in range(needs)]
    row: list[list[int]] = [[] for _ in range(needs)]
    rows = [row]
    for candidate in reversed(candidates):
        row = row.copy()
        for need, amount in candidate.covers:
            values = largest[need]
            if len(values) < most or amount > -values[-1]:
                insort(values, -amount)
                del values[most:]
                row[need] = [-total for total in accumulate(values)]
        rows.append(row)
    rows.reverse()
    return rows


def _without_superfluous(plan: Sequence[Candidate], needs: Sequence[int]) -> tuple[Candidate, ...]:
    """Return a plan without the victims that it can do without, the dearest left out first.

    The cheapest plan has none; one that was cut short may.
    """
    given = [0] * len(needs)
    for candidate in plan:
        for need, amount in candidate.covers:
            given[need] += amount
    kept = list(plan)
    for candidate in reversed(plan):
        if all(given[need] - amount >= needs[need] for need, amount in candidate.covers):
            kept.remove(candidate)
            for need, amount in candidate.covers:
                given[need] -= amount
    return tuple(kept)

"""Flavors: which one each resource of an ask gets, and whether it fits there, needs preemption, or never fits (section 6).

One resource group after the other, its flavors in the order of the manifest. How good a flavor is
for one resource is a mode and a borrow level; for a group the worst of its resources counts. Where
the real scheduler takes (preempt, without borrowing) beside (fit, with borrowing) for a fit under
``PreemptionOverBorrowing``, here a flavor only fits when all its resources do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.configuration import ClusterQueueSpec
    from evsched.core.kueue.model import FlavorGroup, Quota
    from evsched.core.kueue.search import Searcher
    from evsched.core.kueue.trial import QuotaOverlay
    from evsched.core.kueue.wanted import Target
    from evsched.core.workloads import Ask

NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM, FIT = range(5)
"""Modes, worst first."""


class Rank(NamedTuple):
    """How good a flavor is.

    Attributes:
        mode: One of the five, `FIT` at best.
        level: How high it has to borrow: 0 within nominal quota, else the height of a cohort.
    """

    mode: int
    level: int


class FlavorAssignment(NamedTuple):
    """The flavors of one ask.

    Attributes:
        mode: `NO_FIT`, `PREEMPT` (victims must be searched, perhaps in vain) or `FIT`.
        level: The highest borrow level of any resource.
        flavors: Resource to flavor, for each podset; as far as it got when nothing fits.
        usage: By type index, zeros included.
        contested: Types for which room must be made.
        reason: Why it does not simply fit; empty when it does.
    """

    mode: int
    level: int
    flavors: tuple[dict[str, str], ...]
    usage: dict[int, int]
    contested: tuple[int, ...]
    reason: str


class PodSetWish(NamedTuple):
    """What one podset asks for.

    Attributes:
        resources: Resource to amount, in base units.
        fixed: Resource to the only flavor that it takes; one that is missing takes any. None: all
            of them do.
    """

    resources: Mapping[str, int]
    fixed: Mapping[str, str] | None


def is_better(one: Rank, other: Rank, spec: ClusterQueueSpec) -> bool:
    """Tell whether a rank is strictly preferred to another.

    Where one of them cannot be used, the mode decides. Else it is the mode first and then the
    level, or the level first under ``PreemptionOverBorrowing``, which prefers to preempt at home.
    """
    if one.mode <= NO_CANDIDATES or other.mode <= NO_CANDIDATES:
        return one.mode > other.mode or (
            one.mode == other.mode == NO_CANDIDATES and one.level < other.level
        )
    if spec.preference == "PreemptionOverBorrowing":
        return (one.level, -one.mode) < (other.level, -other.mode)
    return (-one.mode, one.level) < (-other.mode, other.level)


def may_stop(rank: Rank, spec: ClusterQueueSpec) -> bool:
    """Tell whether a flavor of this rank is taken without looking at those after it.

    ``whenCanPreempt`` and ``whenCanBorrow`` say so, for flavors that need it; one that fits
    without either is always taken.
    """
    if rank.mode <= NO_CANDIDATES:
        return False
    if rank.mode < FIT and spec.when_can_preempt == "TryNextFlavor":
        return False
    return not (rank.level > 0 and spec.when_can_borrow == "TryNextFlavor")


class Assigner:
    """Assigns the flavors of one ask.

    Attributes:
        searcher: Searches victims where a flavor has no room.
        trial: What is already decided.
        ask: The ask.
        queue: Its ClusterQueue.
        spec: The manifest of that.
        usage: What the podsets so far take, by type index.
        contested: Types for which room must be made.
        level: The highest borrow level so far.
        mode: The worst mode so far.
    """

    def __init__(
        self,
        searcher: Searcher,
        trial: QuotaOverlay,
        ask: Ask,
        queue: Quota,
        *,
        searches: bool = True,
    ) -> None:
        """Look at an ask in its ClusterQueue; the trial is left as it is.

        Args:
            searcher: Searches victims where a flavor has no room.
            trial: What is already decided.
            ask: The ask.
            queue: Its ClusterQueue.
            searches: False: no victims are searched; a flavor without room counts as one without
                candidates.
        """
        assert queue.spec is not None
        self._searches = searches
        self.searcher = searcher
        self.trial = trial
        self.ask = ask
        self.queue = queue
        self.spec = queue.spec
        self.usage: dict[int, int] = {}
        self.contested: dict[int, None] = {}
        self.level = 0
        self.mode = FIT
        self._searched: dict[tuple[int, int], list[Target]] = {}

    def assign(self, podsets: tuple[PodSetWish, ...]) -> FlavorAssignment:
        """Return the best flavors for all podsets; the second podset sees what the first one takes.

        All or nothing: where one podset finds no flavor the whole ask does not fit. The reason
        names what is short in the words of the manifest.
        """
        flavors: list[dict[str, str]] = []
        reason = ""
        for podset in podsets:
            found = self._podset(podset)
            if isinstance(found, str):
                return FlavorAssignment(NO_FIT, self.level, tuple(flavors), self.usage, (), found)
            flavors.append(found)
        if self.contested:
            reason = "not enough unused quota for " + ", ".join(
                self._named(index) for index in self.contested
            )
        return FlavorAssignment(
            self.mode, self.level, tuple(flavors), self.usage, tuple(self.contested), reason
        )

    def targets(self, assignment: FlavorAssignment) -> list[Target]:
        """Return the victims for all that an assignment uses; empty when none help.

        An ask for one (flavor, resource) was searched for when that flavor was tried: the question
        is the same, on the same picture, so the answer is. A tracer hears of the whole all the
        same.
        """
        if self.searcher.tracer is None and len(assignment.usage) == 1:
            ((index, amount),) = assignment.usage.items()
            found = self._searched.get((index, amount))
            if found is not None and assignment.contested == (index,):
                return found
        return self.searcher.search(
            self.trial, self.ask, self.queue, assignment.usage, assignment.contested
        )

    def _named(self, index: int) -> str:
        """Return a type as people know it: its resource and its flavor."""
        for group in self.queue.groups:
            for flavor, indices in group.flavors:
                for resource, found in indices.items():
                    if found == index:
                        return f"{resource} in flavor {flavor}"
        return str(index)

    def _podset(self, podset: PodSetWish) -> dict[str, str] | str:
        """Return the flavors of a podset, or why it has none.

        Resources come in the order of their names, as in Kueue, and bring the others of their
        group along. With all flavors known, what the podset takes joins the usage. A resource that
        no group covers is refused unless nothing of it is asked for.
        """
        flavors: dict[str, str] = {}
        taken: list[tuple[dict[int, Rank], dict[int, int]]] = []
        for resource, amount in sorted(podset.resources.items()):
            if resource in flavors:
                continue
            group = next(
                (group for group in self.queue.groups if resource in group.resources), None
            )
            if group is None:
                if amount:
                    return f"resource {resource} has no quota in ClusterQueue {self.queue.name}"
                continue
            found = self._group(group, podset)
            if found is None:
                return f"no flavor of ClusterQueue {self.queue.name} can hold the request for {resource}"
            flavor, ranks, amounts = found
            flavors.update(
                dict.fromkeys(
                    (name for name in podset.resources if name in group.resources), flavor
                )
            )
            taken.append((ranks, amounts))
        for ranks, amounts in taken:
            for index, rank in ranks.items():
                self.usage[index] = self.usage.get(index, 0) + amounts[index]
                self.level = max(self.level, rank.level)
                if rank.mode < FIT:
                    self.contested[index] = None
                    self.mode = PREEMPT
        return flavors

    def _group(
        self, group: FlavorGroup, podset: PodSetWish
    ) -> tuple[str, dict[int, Rank], dict[int, int]] | None:
        """Return the best flavor of a group.

        Flavors are tried in the order of the manifest, and the first that is good enough ends the
        search. Of equals the earlier one stays. A tracer hears of every flavor that was looked at.

        Returns:
            The flavor, the rank of each of its types and the amount of each; None when no flavor
            can hold them.
        """
        names = sorted(name for name in podset.resources if name in group.resources)
        best: tuple[str, dict[int, Rank], dict[int, int]] | None = None
        best_rank = Rank(NO_FIT, 0)
        for flavor, indices in group.flavors:
            if podset.fixed is not None and any(
                podset.fixed.get(name, flavor) != flavor for name in names
            ):
                continue
            amounts = {indices[name]: podset.resources[name] for name in names}
            ranks = {
                index: self._rank(index, amount + self.usage.get(index, 0))
                for index, amount in amounts.items()
            }
            rank = self._worst(ranks)
            if self.searcher.tracer is not None:
                total = {
                    name: podset.resources[name] + self.usage.get(indices[name], 0)
                    for name in names
                }
                facts = {
                    "flavor": flavor,
                    "resources": total,
                    "mode": MODE_NAMES[rank.mode],
                    "level": rank.level,
                }
                self.searcher.tracer.note(self.ask.id, "flavor", **facts)
            if is_better(rank, best_rank, self.spec):
                best, best_rank = (flavor, ranks, amounts), rank
            if may_stop(rank, self.spec):
                return flavor, ranks, amounts
        return best

    def _worst(self, ranks: dict[int, Rank]) -> Rank:
        """Return the rank of a flavor: the least preferred of its resources.

        The preference for a level over a mode may call a fit with borrowing worse than preemption
        without. Then the mode is the worst of all the same.
        """
        worst = Rank(FIT, 0)
        for rank in ranks.values():
            if rank.mode == NO_FIT:
                return rank
            if is_better(worst, rank, self.spec):
                worst = rank
        mode = min((rank.mode for rank in ranks.values()), default=FIT)
        return Rank(mode, worst.level) if worst.mode == FIT else worst

    def _rank(self, index: int, amount: int) -> Rank:
        """Return how good one (flavor, resource) is for an amount.

        The cheap answers come first: never possible, room right now, not permitted to preempt.
        Only then are victims searched, on the trial, and the level is what it is without them.
        Preemption counts as reclaim when no victim is of the ask's own queue.

        Args:
            index: Of the type.
            amount: With what the podsets before take of it.
        """
        trial, queue, spec = self.trial, self.queue, self.spec
        if amount > queue.potential(index):
            return Rank(NO_FIT, 0)
        level, inner = trial.borrow_level(queue, index, amount)
        if amount <= trial.available(queue, index):
            return Rank(FIT, level)
        fair = self.searcher.kueue.fair_sharing and spec.reclaim_within_cohort != "Never"
        if not (
            amount <= queue.nominal.get(index, 0)
            or inner
            or spec.borrow_within_cohort != "Never"
            or fair
        ):
            return Rank(NO_FIT, level)
        if not self._searches:
            return Rank(NO_CANDIDATES, level)
        targets = self.searcher.search(
            trial, self.ask, queue, {index: amount}, (index,), quiet=True
        )
        self._searched[index, amount] = targets
        if not targets:
            return Rank(NO_CANDIDATES, level)
        for target in targets:
            trial.remove(target.queue, target.pairs)
        level, _ = trial.borrow_level(queue, index, amount)
        for target in targets:
            trial.add(target.queue, target.pairs)
        own = any(target.queue is queue for target in targets)
        return Rank(PREEMPT if own else RECLAIM, level)


MODE_NAMES = ("noFit", "noCandidates", "preempt", "reclaim", "fit")
"""Names of the modes, for explanations."""

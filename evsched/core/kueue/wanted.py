"""What a victim search is asked, and what it answers: common words of the classic and the fair search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from events.configuration import ClusterQueueSpec, KueueSpec
    from evsched.core.kueue.candidates import Candidates, Entry, WorkloadGroup
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay
    from evsched.core.rules import Rules
    from evsched.core.step import Tracer
    from evsched.core.workloads import Allocation, Ask

MANY = 200
"""After so many victims without success a search looks whether taking all of them would be enough."""


class Target(NamedTuple):
    """A chosen victim: the workload, its queue, what it uses, and the reason that its owner reads."""

    allocation: Allocation
    queue: Quota
    pairs: tuple[tuple[int, int], ...]
    reason: str


class PreemptionRequest(NamedTuple):
    """What one search is about.

    Attributes:
        request: (type index, amount), zeros included: all that has to fit.
        contested: Types for which room must be made; only workloads that use one of them are
            candidates.
        spec: Of the ask's ClusterQueue.
        rules: In force.
        tracer: None in production and in trials of flavors.
    """

    ask: Ask
    queue: Quota
    request: tuple[tuple[int, int], ...]
    contested: tuple[int, ...]
    spec: ClusterQueueSpec
    kueue: KueueSpec
    candidates: Candidates
    rules: Rules
    tracer: Tracer | None = None

    def can_ever_fit(self) -> bool:
        """Tell whether the request fits into the queue when nothing at all is used.

        Where it does not, no set of victims helps, and none is searched.
        """
        queue = self.queue
        return all(amount <= queue.potential(index) for index, amount in self.request)

    def groups(self, trial: QuotaOverlay, queue: Quota) -> Iterator[WorkloadGroup]:
        """Yield the groups of a queue whose workloads use something contested.

        What an enclosing decision has taken out already is left out of them.
        """
        contested = self.contested
        gone = trial.gone.get(queue)
        for group in self.candidates.groups(queue):
            types = group.types
            for index in contested:
                if index in types:
                    yield group if gone is None else group.without(gone)
                    break

    def target(self, entry: Entry, queue: Quota, reason: str) -> Target:
        """Return the victim that an entry stands for."""
        return Target(entry[4], queue, self.candidates.pairs(entry[4]), reason)

    # ------------------------------------------------------------------------- who may be preempted

    @property
    def reclaims(self) -> bool:
        """Whether workloads of other queues may be preempted at all."""
        return self.queue.parent is not None and self.spec.reclaim_within_cohort != "Never"

    @property
    def reclaim_limit(self) -> int | None:
        """The priority from which on workloads of other queues are spared; None: no priority is."""
        return self.ask.priority if self.spec.reclaim_within_cohort == "LowerPriority" else None

    @property
    def borrow_limit(self) -> int:
        """The priority from which on others are spared while borrowing.

        ``maxPriorityThreshold`` lowers it: only workloads up to the threshold, and below the ask,
        are taken then.
        """
        threshold = self.spec.max_priority_threshold
        return self.ask.priority if threshold is None else min(self.ask.priority, threshold + 1)

    def own_entries(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yield the workloads of the ask's own queue that its policy gives up, in order.

        ``LowerPriority`` gives up what has a lower priority. ``LowerOrNewerEqualPriority`` gives
        up equal ones as well that were created later than the ask.
        """
        policy, priority, created = (
            self.spec.within_cluster_queue,
            self.ask.priority,
            self.ask.created,
        )
        if policy == "Never":
            return
        for entry in entries:
            if entry[0] > priority or (entry[0] == priority and policy == "LowerPriority"):
                return
            if entry[0] < priority or created < entry[4].created:
                yield entry


def minimise(
    trial: QuotaOverlay, wanted: PreemptionRequest, targets: list[Target], *, borrowing: bool
) -> list[Target]:
    """Put back every target but the last that is not needed.

    The one taken last is tried first, and the gap is filled by the end of the list: that is
    Kueue's order, in which victims are listed. The last one is needed, as the request fitted with
    it for the first time.
    """
    queue, request = wanted.queue, wanted.request
    for place in range(len(targets) - 2, -1, -1):
        target = targets[place]
        trial.add(target.queue, target.pairs)
        if trial.fits(queue, request, borrowing=borrowing):
            if wanted.tracer is not None:
                wanted.tracer.note(target.allocation.id, "not-needed", ask=wanted.ask.id)
            targets[place] = targets[-1]
            targets.pop()
        else:
            trial.remove(target.queue, target.pairs)
    return targets


def put_back(trial: QuotaOverlay, targets: list[Target]) -> None:
    """Undo the removal of all targets."""
    for target in targets:
        trial.add(target.queue, target.pairs)

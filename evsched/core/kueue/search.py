"""The victim search that the configuration chose, and what it is asked for an ask whose flavors are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import ClusterQueueSpec, KueueSpec
from evsched.core.kueue import classic, fair, tracing
from evsched.core.kueue.candidates import Candidates
from evsched.core.kueue.index import candidates_of
from evsched.core.kueue.wanted import PreemptionRequest, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay
    from evsched.core.state import State
    from evsched.core.step import Tracer
    from evsched.core.workloads import Ask


class Searcher:
    """Searches victims in one state; it keeps what does not change within a decision.

    Attributes:
        kueue: The configuration, which chooses classic or fair sharing.
        candidates: Of all queues, in the order of choice.
        tracer: Hears why workloads are spared; None: that is not told.
        work: What was done so far, in the units of `evsched.core.rules.Rules.cycle_budget`.
    """

    def __init__(self, state: State, tracer: Tracer | None = None) -> None:
        """Take a look at a Kueue partition."""
        assert isinstance(state.configuration, KueueSpec)
        self.kueue = state.configuration
        self._in_flight = state.preemptions
        self._rules = state.rules
        self.candidates: Candidates = candidates_of(state)
        self.tracer = tracer
        self.work = 0

    def consider(self) -> None:
        """Count the work of considering one workload.

        Every look at a workload is counted, whatever comes of it, so that a cycle of many that fit
        nowhere ends in bounded time, too.
        """
        self.work += self._rules.look_cost

    def search(
        self,
        trial: QuotaOverlay,
        ask: Ask,
        queue: Quota,
        request: Mapping[int, int],
        contested: Iterable[int],
        *,
        quiet: bool = False,
    ) -> list[Target]:
        """Return the victims for an ask, in the order in which they were chosen.

        Args:
            trial: What is already decided; left as it was.
            ask: The preemptor.
            queue: Its ClusterQueue.
            request: All that has to fit, by type index.
            contested: The types for which room must be made.
            quiet: Do not tell the tracer (a flavor is only tried).

        Returns:
            At least one victim; empty when none help or none may be taken.
        """
        spec = queue.spec
        if not ask.may_preempt or spec is None:
            return []
        if ask.preempted and ask.id not in self._in_flight:
            return []  # its victims would not leave and may stay: it had its turn (`evsched.core.evictions`)
        tracer = None if quiet else self.tracer
        if tracer is None and _gives_nobody_up(queue, spec):
            return []
        contested = tuple(contested)
        self.consider()
        looked = trial.looked
        amounts = tuple(request.items())
        wanted = PreemptionRequest(
            ask,
            queue,
            amounts,
            contested,
            spec,
            self.kueue,
            self.candidates,
            self._rules,
            tracer,
        )
        if tracer is not None:
            tracing.note_spared(trial, wanted, tracer)
        found = fair.search if self.kueue.fair_sharing else classic.search
        targets = found(trial, wanted)
        self.work += trial.looked - looked
        return targets


def _gives_nobody_up(queue: Quota, spec: ClusterQueueSpec) -> bool:
    """Tell whether the policies of a queue leave no candidate at all.

    Then nothing need be looked at. With a tracer it is looked at all the same, for the reasons.
    """
    return spec.within_cluster_queue == "Never" and (
        spec.reclaim_within_cohort == "Never" or queue.parent is None
    )

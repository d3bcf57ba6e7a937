"""What scenario files want of Kueue beyond what a leader does: single cycles, single searches, the order of consideration.

A single search is for asks whose flavors are given; whether the ask may preempt there is not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.kueue.admission import Run, bound, decide
from evsched.core.kueue.cycle import Nominee
from evsched.core.kueue.family import KueueFamily
from evsched.core.kueue.flavors import PREEMPT, FlavorAssignment
from evsched.core.kueue.model import quota_in
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.trial import QuotaOverlay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.kueue.model import Quota
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.workloads import Ask

FlavoredPart = tuple[dict[str, int], dict[str, str], "tuple[str, ...] | None"]
"""Of one podset: amounts, flavors, and the resources that need preemption (None: those that do not fit now)."""


class OrderedKueue(KueueFamily):
    """Kueue's policies, with an ear for the order of consideration.

    Attributes:
        order: The asks that the last cycle considered, in that order, one list a cohort tree.
    """

    def __init__(self) -> None:
        """Start before the first cycle."""
        self.order: list[list[str]] = []

    def cycle(self, step: Step) -> None:
        """Run cycles until nothing more can be done."""
        run = Run(step)
        run.until_quiet()
        self.order = run.order

    def cycle_once(self, step: Step) -> None:
        """Run exactly one cycle, one head per ClusterQueue, whoever was looked at before."""
        run = Run(step)
        run.once()
        self.order = run.order

    def search_once(self, step: Step) -> None:
        """Search victims once for every ask whose flavors are given."""
        self.order = search_all(step)


def search_all(step: Step) -> list[list[str]]:
    """Search victims once for every ask that has its flavors and was not looked at before; return the order, one list an ask."""
    state = step.state
    order, tried = [], []
    for ask in list(state.asks.values()):
        parts = parts_of(state, ask)
        if parts is None or ask.id in state.unschedulable_since or ask.id in state.preemptions:
            continue
        order.append([ask.id])
        if not search_one(step, ask, parts):
            tried.append(ask.id)
    if tried:
        step.emit(v.CycleStarted, cause=state.seq, kind="admission", tried=tuple(tried))
    return order


def search_one(step: Step, ask: Ask, parts: list[FlavoredPart]) -> bool:
    """Admit one ask if nothing is in its way, else search victims and write them; tell whether it got on."""
    state = step.state
    queue = quota_in(state.queues[ask.queue])
    if queue is None:
        return False
    trial = QuotaOverlay()
    request, contested = requirements(state, trial, queue, parts)
    if request is None:
        return False
    if not contested and trial.fits(queue, request.items()):
        flavors = tuple(flavors for _, flavors, _ in parts)
        step.emit(v.AllocationBound, cause=ask.seq, ask=ask.id, **bound(ask, flavors))
        return True
    targets = Searcher(state, step.tracer).search(trial, ask, queue, request, contested)
    if not targets:
        reason = "no victims help in the given flavors"
        if contested and ask.failed != reason:
            step.emit(v.PreemptionFailed, cause=ask.seq, ask=ask.id, reason=reason)
        return False
    decide(
        step, Nominee(ask, queue, FlavorAssignment(PREEMPT, 0, (), request, contested, ""), targets)
    )
    return True


def requirements(
    state: State, trial: QuotaOverlay, queue: Quota, parts: Iterable[FlavoredPart]
) -> tuple[dict[int, int] | None, tuple[int, ...]]:
    """Return what has to fit by type index, and the contested types; None when an amount has no quota anywhere."""
    index_of = state.types.index
    request: dict[int, int] = {}
    named: dict[int, None] = {}
    open_types: dict[int, None] = {}
    for resources, flavors, wanted in parts:
        for name, amount in resources.items():
            index = index_of.get(f"{flavors[name]}/{name}") if name in flavors else None
            if index is None:
                if amount:
                    return None, ()
                continue
            request[index] = request.get(index, 0) + amount
            if wanted is None:
                open_types[index] = None
            elif name in wanted:
                named[index] = None
    for index in open_types:
        if request[index] > trial.available(queue, index):
            named[index] = None
    return request, tuple(named)


def parts_of(state: State, ask: Ask) -> list[FlavoredPart] | None:
    """Return the parts of an ask whose flavors are all given; None when some are open."""
    if ask.podsets:
        return (
            [
                (podset.resources, podset.flavors, podset.preempt_resources)
                for podset in ask.podsets
                if podset.flavors is not None
            ]
            if all(podset.flavors is not None for podset in ask.podsets)
            else None
        )
    if ask.flavors is None:
        return None
    return [(state.types.shapes[ask.shape].resources, ask.flavors, ask.preempt_resources)]

"""The reducer: what each event does to the state. Deciding and replaying share this one path.

One function a type, found by a dictionary. An event in the log was valid when it was written, so
nothing is checked here and nothing is decided here; a function that raises has met a defect or a
damaged log. The module is hot: no copies, no ``isinstance``, amounts as pairs of indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from events import vocabulary as v
from evsched.core import suspension
from evsched.core.folding import (
    allocations,
    applications,
    asks,
    cluster,
    pauses,
    preemptions,
    reservations,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evsched.core.state import State


def apply(state: State, event: v.AnyEvent) -> None:
    """Apply one event; ``state.time`` must already be the time of its frame."""
    apply_all(state, (event,))


def apply_all(
    state: State,
    events: Iterable[v.AnyEvent],
    check: Callable[[v.CheckpointRecorded], None] | None = None,
) -> None:
    """Apply the events of one step; ``state.time`` must already be the time of its frame.

    Args:
        state: Of right before them.
        events: In order.
        check: Called before each checkpoint is applied; it may raise.
    """
    folds = _FOLDS
    for event in events:
        fold, has_proposal = folds[type(event)]
        if check is not None and fold is _checkpoint_recorded:
            check(event)  # type: ignore[arg-type]
        state.seq = event.seq
        fold(state, event)
        if has_proposal and event.proposal:  # type: ignore[union-attr]
            state.remember(event.proposal)  # type: ignore[union-attr]


def _leader_started(state: State, event: v.LeaderStarted) -> None:
    """A term began.

    Its cadence of checkpoints holds from here on, so that a later reader knows when one is due.
    """
    state.term = event.term
    state.leader = event.leader
    state.checkpoint_every = event.checkpoint_every
    state.observed = event.observes


def _nothing(
    state: State,
    event: v.InputRejected | v.EvictionRefused | v.InboxAttached | v.ObservationGap,
) -> None:
    """Leave the state as it is.

    A gap is a note: what came of it is proposed beside it. A refused eviction is repeated when its
    grace timer fires. The inbox is the chain's matter.
    """


def _cycle_started(state: State, event: v.CycleStarted) -> None:
    """A cycle is over: the asks it tried in vain are remembered with its number.

    How many cycles ran since then is how often an ask missed an opportunity. ``again`` says that
    the next cycle must come even if nothing changes until then.
    """
    state.last_cycle = state.time
    state.cycles += 1
    state.retry_needed = event.again
    # Where something ended in the meantime the pass begins with the cycle that was cut; where only
    # new asks came it asks nobody again (-1: no cycle is that old).
    state.unfinished = {
        path: state.cycles - 1 if path in state.dirty_cohorts else state.unfinished.get(path, -1)
        for path in event.unfinished
    }
    state.dirty_cohorts.clear()
    for name in event.tried:
        state.unschedulable_since[name] = state.cycles
    if state.index is not None:
        state.index.tried(event.tried)


def _checkpoint_recorded(state: State, event: v.CheckpointRecorded) -> None:
    """A digest of the state was written; the next one is due so many events after this one.

    Whether it is right has been compared before: applying it changes nothing that it covers.
    """
    state.last_checkpoint = event.seq


_APPLY: dict[type, Callable[[State, Any], None]] = {
    v.ConfigurationApplied: cluster.configuration_applied,
    v.NodeRegistered: cluster.node_registered,
    v.NodeUpdated: cluster.node_updated,
    v.NodeRemoved: cluster.node_removed,
    v.ApplicationSubmitted: applications.application_submitted,
    v.ApplicationRemoved: applications.application_removed,
    v.AskSubmitted: asks.ask_submitted,
    v.AskWithdrawn: asks.ask_withdrawn,
    v.AllocationRestored: allocations.allocation_restored,
    v.AllocationReleased: allocations.allocation_released,
    v.EvictionRefused: _nothing,
    v.ReservationRestored: reservations.reserved,
    v.RulesAdopted: cluster.rules_adopted,
    v.BindingObserved: allocations.binding_observed,
    v.EvictionObserved: preemptions.eviction_observed,
    v.ObservationGap: _nothing,
    v.LeaderStarted: _leader_started,
    v.InboxAttached: _nothing,
    v.InputRejected: _nothing,
    v.QueueCreated: cluster.queue_created,
    v.QueueRemoved: cluster.queue_removed,
    v.ApplicationPlaced: applications.application_placed,
    v.AllocationBound: allocations.allocation_bound,
    v.ApplicationPaused: pauses.application_paused,
    v.ApplicationResumed: pauses.application_resumed,
    v.NodeReserved: reservations.reserved,
    v.ReservationReleased: reservations.reservation_released,
    v.PreemptionDecided: preemptions.preemption_decided,
    v.AskNominated: preemptions.ask_nominated,
    v.PreemptionFailed: preemptions.preemption_failed,
    v.EvictionRepeated: preemptions.eviction_repeated,
    v.PreemptionWithdrawn: preemptions.preemption_withdrawn,
    v.QuotaPreemptionScheduled: preemptions.quota_scheduled,
    v.QuotaPreemptionCancelled: preemptions.quota_cancelled,
    v.QuotaPreemptionDecided: preemptions.quota_decided,
    v.QuotaPreemptionUnhelpful: preemptions.quota_unhelpful,
    v.DecisionSuspended: suspension.suspended,
    v.DecisionResumed: suspension.resumed,
    v.CycleStarted: _cycle_started,
    v.CheckpointRecorded: _checkpoint_recorded,
}

_PROPOSED = frozenset((*v.AnyInput.__args__, v.InputRejected))
"""Types that carry the id of a proposal, which is remembered so that a repetition is recognised."""

_FOLDS = {kind: (fold, kind in _PROPOSED) for kind, fold in _APPLY.items()}
"""What applies a type, and whether it carries the id of a proposal."""

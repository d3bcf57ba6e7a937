"""What preemptions, evictions and quota enforcement do to the state.

A preemption has a life of several events. Its decision names the victims and the ask; from then on
the ask is *in flight* (`State.preemptions`), each victim carries who asked for its room, and one
timer for the whole decision says when the agent is asked again. Victims leave one by one by
`AllocationReleased`. The ask is bound, withdrawn, or its preemption is called off, and what is
left of the victims may then stay.

Three things are kept so that no event has to search for them:

=====================  ===================================================================
`State.preemptions`    by ask: the node, and the victims that have not left yet
`State.leaving`        by ``seq`` of a decision: its victims that have not left yet
`State.quota_runs`     by queue: the victims of its quota enforcement that have not left
=====================  ===================================================================

All three are truth. They shrink in `left`, in one place, whatever the reason is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from evsched.core import queues as q
from evsched.core import tallies
from evsched.core.folding.cluster import mark_dirty
from evsched.core.folding.reservations import reserve, unreserve
from evsched.core.registry import admits_by_quota, family_of
from evsched.core.timers import NOMINATION, Timer, nomination_of
from evsched.core.workloads import Preemption

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask


def preemption_decided(state: State, event: v.PreemptionDecided) -> None:
    """Victims are being evicted for an ask, which is in flight from here on.

    An ask that is in flight already may get further victims (Kueue, a node that shrank): those it
    waited for stay on its list, in front, and what it claims along its path is not counted twice.
    A node, where one is named, is kept for the ask until it is bound there or the preemption is
    called off (seed preemption_design: all victims of an ask run on one node).
    """
    told = tell(state, event.victims, event.seq, ask=event.ask)
    ask = state.asks[event.ask]
    ask.failed = ""
    ask.preempted = True
    state.unschedulable_since.pop(event.ask, None)
    known = state.preemptions.get(event.ask)
    if known is None and state.counting:
        tallies.claims(state, ask, 1)
    if known is not None:
        told = [*known.waiting_for, *told]
    state.preemptions[event.ask] = Preemption(
        ask=event.ask, node=event.node, waiting_for=told, decided=state.time, seq=event.seq
    )
    if event.node is not None:
        reserve(state, event.ask, event.node)


def ask_nominated(state: State, event: v.AskNominated) -> None:
    """An ask is in flight to room that others' victims leave (rules 2).

    It has no victims of its own. What it will use counts along its path as if it ran, so that the
    same room is not promised twice. The timer is the end of its patience: whoever has not left by
    then has used up the grace time, and the ask may preempt elsewhere.
    """
    ask = state.asks[event.ask]
    ask.failed = ""
    ask.patient_until = event.until
    state.unschedulable_since.pop(event.ask, None)
    if state.counting:
        tallies.claims(state, ask, 1)
    state.preemptions[event.ask] = Preemption(
        ask=event.ask, node=event.node, waiting_for=[], decided=state.time, seq=event.seq
    )
    reserve(state, event.ask, event.node)
    name = nomination_of(event.ask)
    state.timers.arm(Timer(event.until, name, NOMINATION, event.ask, event.seq))


def preemption_failed(state: State, event: v.PreemptionFailed) -> None:
    """The reason of a failed try was written down.

    ``until``, where it is given, is when room that is leaving already should be there: the ask is
    not tried again before, however much changes meanwhile.
    """
    ask = state.asks[event.ask]
    ask.failed = event.reason
    if event.until is not None:
        ask.patient_until = event.until
        if state.index is not None:
            state.index.patient(ask)


def eviction_repeated(state: State, event: v.EvictionRepeated) -> None:
    """The agent was asked again to evict a victim that did not leave within its grace time.

    All victims of one decision share one timer; the first of them that is asked again moves it,
    and the others find it moved.
    """
    allocation = state.allocations[event.allocation]
    allocation.attempts = event.attempt
    due, name = state.time + grace_ms(state), f"evict:{allocation.eviction_decided_by}"
    armed = state.timers.armed.get(name)
    if armed is None or armed.due != due:
        state.timers.arm(Timer(due, name, "evict", str(allocation.eviction_decided_by), event.seq))


def preemption_withdrawn(state: State, event: v.PreemptionWithdrawn) -> None:
    """A preemption was called off: the victims that are still there may stay.

    Without an ask it is an eviction for a quota that is given up. With one, the ask is no longer
    in flight: its node is free for others and it waits like any other ask. Whether it may preempt
    again depends on why: the loss of its node gives it another turn, a victim that never left does
    not, since it would evict one after the other for ever ("no storm", docs/adr/0007).
    """
    for name in event.victims:
        allocation = state.allocations[name]
        left(state, allocation)
        mark_dirty(state, state.queues[allocation.queue])
        if state.counting:
            q.tell(state.queues[allocation.queue], state.types.shapes[allocation.shape].pairs, -1)
        allocation.eviction_requested = allocation.attempts = allocation.eviction_decided_by = 0
        allocation.victim_of = allocation.quota_of = ""
        if state.index is not None:
            state.index.changed(allocation)
    if event.ask is not None and event.ask in state.preemptions:
        del state.preemptions[event.ask]
        ask = state.asks[event.ask]
        if state.counting:
            tallies.claims(state, ask, -1)
        if event.ask in state.reservations:
            unreserve(state, event.ask)
        if event.node_lost:
            ask.preempted = False
        if nomination_of(ask.id) in state.timers.armed:
            # It waited for others once, and may preempt elsewhere from now on.
            state.timers.cancel(nomination_of(ask.id))
            ask.patient_until = state.time
        if state.index is not None:
            state.index.freed(state.applications[ask.application])
            state.index.returned(ask)
    state.retry_needed = True


def quota_scheduled(state: State, event: v.QuotaPreemptionScheduled) -> None:
    """A maximum was lowered: its delay runs from here (seed quota_enforcement)."""
    state.timers.arm(Timer(event.at, f"quota:{event.queue}", "quota", event.queue, event.seq))


def quota_cancelled(state: State, event: v.QuotaPreemptionCancelled) -> None:
    """A delay ended before it was over: the maximum was raised, or enforcement switched off."""
    state.timers.cancel(f"quota:{event.queue}")


def quota_decided(state: State, event: v.QuotaPreemptionDecided) -> None:
    """Victims are being evicted for a maximum.

    They are the *run* of the queue. As long as one of them is there no further run begins in it,
    so that two enforcements never evict for the same excess.
    """
    state.timers.cancel(f"quota:{event.queue}")
    told = tell(state, event.victims, event.seq, queue=event.queue)
    if told:
        # One and the same: who has not left of the decision has not left of the run.
        state.quota_runs[event.queue] = state.leaving[event.seq]


def quota_unhelpful(state: State, event: v.QuotaPreemptionUnhelpful) -> None:
    """A delay ended and nothing was evicted.

    The queue was within its maximum by then, or no allocation in it may be evicted. The timer is
    gone; a further change of the maximum starts another one.
    """
    state.timers.cancel(f"quota:{event.queue}")


def tell(
    state: State, victims: tuple[v.Victim, ...], seq: int, *, ask: str = "", queue: str = ""
) -> list[str]:
    """Mark victims as being evicted for an ask or for the quota of a queue.

    Args:
        state: Each victim runs in it.
        victims: In the order of the decision, which is the order they are waited for.
        seq: Of the decision; it names the timer that they share.
        ask: That gets their room; empty for a quota.
        queue: Whose maximum is enforced; empty for an ask.

    Returns:
        The ids of those that were not being evicted before (with YuniKorn: all of them, as a plan
        never takes a victim twice).
    """
    now = state.time
    told = [victim.id for victim in victims]
    if admits_by_quota(state.configuration):
        # A victim that is on its way out already is counted on by whoever else needs its room, and
        # not asked again.
        told = [
            name
            for name in told
            if not (state.allocations[name].eviction_requested or state.allocations[name].evicted)
        ]
    allocations = list(map(state.allocations.__getitem__, told))
    # A quota enforcement tells thousands at once, leaf by leaf: equal ones are counted first, and
    # along the paths only then.
    leaves: dict[str, defaultdict[int, int]] = {}
    leaf, counts = "", defaultdict[int, int](int)
    for allocation in allocations:
        if not allocation.eviction_requested:
            if allocation.queue != leaf:
                leaf = allocation.queue
                counts = leaves.setdefault(leaf, defaultdict(int))
            counts[allocation.shape] += 1
        allocation.eviction_requested = now
        allocation.victim_of = ask
        allocation.quota_of = queue
        allocation.eviction_decided_by = seq
        allocation.attempts = 1
    for leaf, counts in leaves.items() if state.counting else ():
        for shape, count in counts.items():
            q.tell(state.queues[leaf], state.types.shapes[shape].pairs, count)
    if state.index is not None:
        for allocation in allocations:
            state.index.changed(allocation)
    if told:
        state.leaving[seq] = dict.fromkeys(told)
        state.timers.arm(Timer(now + grace_ms(state), f"evict:{seq}", "evict", str(seq), seq))
    return told


def eviction_observed(state: State, event: v.EvictionObserved) -> None:
    """The cluster evicts an allocation: it counts as leaving until it is gone.

    No timer is armed, as whether it is asked again is the peer's to say. One that is leaving
    already stays whose victim it is. Where the ask that it makes room for is known and waits, that
    ask is in flight, with the node of its victim, as `nominatedNodeName` says it in Kubernetes;
    else it is a victim of nobody, as one that was found leaving.
    """
    allocation = state.allocations[event.allocation]
    if allocation.eviction_requested:
        return
    allocation.eviction_requested = state.time
    ask = state.asks.get(event.preemptor)
    if ask is not None and allocation.node is not None:  # with Kueue no node is promised
        _makes_room(state, allocation, ask, event.seq)
    if state.counting:
        q.tell(state.queues[allocation.queue], state.types.shapes[allocation.shape].pairs, 1)
    if state.index is not None:
        state.index.changed(allocation)
    state.retry_needed = True


def _makes_room(state: State, allocation: Allocation, ask: Ask, seq: int) -> None:
    """Note that an allocation is evicted by others for an ask, which is in flight from its first victim on."""
    known = state.preemptions.get(ask.id)
    if known is None:
        ask.failed, ask.preempted = "", True
        state.unschedulable_since.pop(ask.id, None)
        if state.counting:
            tallies.claims(state, ask, 1)
        known = state.preemptions[ask.id] = Preemption(
            ask=ask.id, node=allocation.node, waiting_for=[], decided=state.time, seq=seq
        )
        if allocation.node is not None:
            reserve(state, ask.id, allocation.node)
    known.waiting_for.append(allocation.id)
    allocation.victim_of = ask.id


def left(state: State, allocation: Allocation) -> None:
    """Note that a victim is gone, or may stay, wherever something waits for that.

    The last victim of a decision takes the timer with it; the last one of a quota's run ends the
    run. An ask whose last victim has left stays in flight until it is bound.
    """
    leaving = state.leaving.get(allocation.eviction_decided_by)
    if leaving is not None:
        leaving.pop(allocation.id, None)
        if not leaving:
            del state.leaving[allocation.eviction_decided_by]
            state.timers.cancel(f"evict:{allocation.eviction_decided_by}")
    preemption = state.preemptions.get(allocation.victim_of)
    if preemption is not None and allocation.id in preemption.waiting_for:
        preemption.waiting_for.remove(allocation.id)
    run = state.quota_runs.get(allocation.quota_of)
    if run is not None:
        run.pop(allocation.id, None)
        if not run:
            del state.quota_runs[allocation.quota_of]


def grace_ms(state: State) -> int:
    """Return the time a victim has to leave before the agent is asked again, in milliseconds.

    It is the configuration's of now, not of the decision: a grace time that was raised holds from
    the next request on.
    """
    spec = state.configuration
    assert spec is not None  # victims have queues, and queues a configuration
    grace, _ = family_of(spec).evictions(spec)
    return grace

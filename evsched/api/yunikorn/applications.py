"""Applications, asks and allocations as YuniKorn shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.api.yunikorn import answers
from evsched.api.yunikorn.amounts import vector
from evsched.api.yunikorn.answers import NS
from evsched.core.yunikorn.ordering import ask_key
from projections.lives import Life
from replays.history.moments import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.queues import Application
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask
    from projections.lives import Lives

ACTIVE = ("New", "Accepted", "Running", "Resuming", "Completing", "Failing")
"""The states of an application that has not ended; YuniKorn has two that evsched does not know (Resuming, Failing)."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
UNKNOWN_TYPE = "UNKNOWN"
"""YuniKorn's word for the type of a node that does not name one, and of one that is gone."""


def state_of(application: Application, life: Life) -> str:
    """Return the state of an application in YuniKorn's words.

    It is new until its first ask, accepted until its first allocation, and completes while nothing
    of it runs or waits.
    """
    if application.allocations:
        return "Running"
    if life.started is not None:
        return "Running" if application.asks else "Completing"
    return "New" if life.asked is None else "Accepted"


def application(
    state: State, partition: str, one: Application, lives: Lives
) -> answers.ApplicationInfo:
    """Return an application that has not ended."""
    life = lives.of(one.id)
    names = state.types.names
    pending: dict[str, int] = {}
    for ask_of_it in one.asks.values():
        for name, amount in state.types.shapes[ask_of_it.shape].resources.items():
            pending[name] = pending.get(name, 0) + amount
    reserved = sorted(
        f"{state.reservations[name]}|{name}" for name in one.asks if name in state.reservations
    )
    submitted = life.submitted if life.submitted is not None else one.created
    paused = state.paused.get(one.id)
    return answers.ApplicationInfo(
        application_id=one.id,
        used_resource=vector(names, one.usage),
        pending_resource={name: amount for name, amount in sorted(pending.items()) if amount},
        partition=partition,
        queue_name=one.leaf.path,
        submission_time=submitted * NS,
        requests=[ask(state, found, lives) for found in sorted(one.asks.values(), key=ask_key)],
        allocations=[allocation(state, found) for _, found in sorted(one.allocations.items())],
        application_state=state_of(one, life),
        user=one.user,
        groups=list(one.groups),
        state_log=_changes(submitted, life),
        has_reserved=bool(reserved),
        reservations=reserved,
        max_request_priority=max(one.priorities, default=0),
        start_time=life.started or 0,
        resource_history=_history(state, life),
        backoff_deadline="" if paused is None else format_time(paused),
    )


def ended(state: State, partition: str, life: Life) -> answers.ApplicationInfo:
    """Return an application that completed or was rejected; what it had is known from its past alone."""
    rejected = life.rejected
    submitted = life.submitted or 0
    last = "Rejected" if rejected else "Completed"
    finished = life.ended or 0
    return answers.ApplicationInfo(
        application_id=life.application,
        partition=partition,
        queue_name=life.queue,
        submission_time=submitted * NS,
        finished_time=finished * NS,
        application_state=last,
        user=life.user,
        groups=list(life.groups),
        rejected_message=life.reason,
        state_log=[
            *_changes(submitted, life),
            answers.StateChangeInfo(time=finished * NS, application_state=last),
        ],
        start_time=life.started or 0,
        resource_history=_history(state, life),
    )


def ask(state: State, one: Ask, lives: Lives) -> answers.AskInfo:
    """Return an ask that waits."""
    said = [
        answers.SaidInfo(message=reason, last_occurrence=last * NS, count=count)
        for reason, last, count in lives.said(one.id, one.seq)
    ]
    return answers.AskInfo(
        allocation_key=one.id,
        request_time=one.created * NS,
        resource=_amounts(state.types.shapes[one.shape].resources),
        priority=str(one.priority),
        required_node_id=one.required_node or "",
        application_id=one.application,
        allocation_log=said,
        triggered_preemption=one.preempted or one.id in state.preemptions,
        originator=one.originator,
        scheduling_attempted=bool(one.failed) or one.id in state.unschedulable_since,
    )


def allocation(state: State, one: Allocation) -> answers.AllocationInfo:
    """Return an allocation; YuniKorn counts its delay from its request."""
    return answers.AllocationInfo(
        allocation_key=one.id,
        request_time=one.created * NS,
        allocation_time=one.bound * NS,
        allocation_delay=(one.bound - one.created) * NS,
        resource=_amounts(state.types.shapes[one.shape].resources),
        priority=str(one.priority),
        node_id=one.node or "",
        application_id=one.application,
        preempted=bool(one.eviction_requested),
        originator=one.originator,
    )


def _amounts(resources: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(resources.items()))


def _changes(submitted: int, life: Life) -> list[answers.StateChangeInfo]:
    """Return when an application came into its states, up to running."""
    times = (("New", submitted), ("Accepted", life.asked), ("Running", life.started))
    return [
        answers.StateChangeInfo(time=time * NS, application_state=name)
        for name, time in times
        if time is not None
    ]


def _history(state: State, life: Life) -> answers.ResourceHistoryInfo:
    """Return what an application used so far, in amount-seconds by the type of the nodes."""

    def by_type(used: Mapping[str | None, Mapping[str, int]]) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for name, amounts in used.items():
            node = None if name is None else state.nodes.get(name)
            kind = UNKNOWN_TYPE if node is None else node.labels.get(INSTANCE_TYPE, UNKNOWN_TYPE)
            into = found.setdefault(kind, {})
            for resource, milliseconds in amounts.items():
                into[resource] = into.get(resource, 0) + milliseconds
        return {
            kind: {resource: amount // 1000 for resource, amount in sorted(into.items())}
            for kind, into in sorted(found.items())
        }

    if not life.used:
        return answers.NOTHING_USED
    return answers.ResourceHistoryInfo(
        resource_usage=by_type(life.used), preempted_resource=by_type(life.preempted)
    )

"""Queues that are stopped (``stopPolicy``): on hold they admit nobody, with ``HoldAndDrain`` who is admitted has to go as well.

A stopped LocalQueue is a matter of the workloads that came through it, a stopped ClusterQueue one
of all that are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core.kueue import messages
from evsched.core.kueue.candidates import entry_of, is_leaving
from evsched.core.kueue.model import quota_in
from evsched.core.resources import add

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.workloads import Allocation


def held_local_queues(state: State) -> dict[str, None]:
    """Return the LocalQueues on hold, as ``namespace/name``."""
    spec = state.configuration
    if not isinstance(spec, KueueSpec):
        return {}
    return {
        f"{one.namespace}/{one.name}": None
        for one in spec.local_queues
        if one.stop_policy != "None"
    }


def drain_all(step: Step, cause: int) -> None:
    """Tell everybody to go who runs in a queue that is to be drained, one decision a queue."""
    state = step.state
    spec = state.configuration
    if not isinstance(spec, KueueSpec):
        return
    running = [
        allocation for allocation in state.allocations.values() if not is_leaving(allocation)
    ]
    by_queue: dict[str, list[Allocation]] = {}
    by_local: dict[str, list[Allocation]] = {}
    for allocation in running:
        by_queue.setdefault(allocation.queue, []).append(allocation)
        by_local.setdefault(allocation.local_queue, []).append(allocation)
    for queue in spec.cluster_queues:
        if queue.stop_policy == "HoldAndDrain":
            _tell(step, queue.name, by_queue.get(queue.name, ()), messages.STOPPED, cause)
    for local in spec.local_queues:
        if local.stop_policy == "HoldAndDrain":
            found = by_local.get(f"{local.namespace}/{local.name}", ())
            _tell(
                step,
                local.cluster_queue,
                [one for one in found if not is_leaving(one)],
                messages.LOCAL_STOPPED,
                cause,
            )


def drain_one(step: Step, name: str, cause: int) -> None:
    """Tell a workload to go that was found running in a queue that is to be drained."""
    state = step.state
    spec, allocation = state.configuration, state.allocations[name]
    quota = quota_in(state.queues[allocation.queue])
    if not isinstance(spec, KueueSpec) or is_leaving(allocation):
        return
    if quota is not None and quota.spec is not None and quota.spec.stop_policy == "HoldAndDrain":
        _tell(step, allocation.queue, (allocation,), messages.STOPPED, cause)
    elif allocation.local_queue and any(
        one.stop_policy == "HoldAndDrain"
        and f"{one.namespace}/{one.name}" == allocation.local_queue
        for one in spec.local_queues
    ):
        _tell(step, allocation.queue, (allocation,), messages.LOCAL_STOPPED, cause)


def _tell(step: Step, queue: str, going: Iterable[Allocation], reason: str, cause: int) -> None:
    state = step.state
    chosen = sorted(going, key=entry_of)
    if not chosen:
        return
    target = [0] * state.width
    for allocation in chosen:
        add(target, state.types.shapes[allocation.shape].pairs)
    victims = tuple(
        v.Victim(id=one.id, queue=one.queue, reason=reason, message=messages.TEXTS[reason])
        for one in chosen
    )
    step.emit(
        v.QuotaPreemptionDecided,
        cause=cause,
        queue=queue,
        victims=victims,
        target=state.types.named(enumerate(target)),
    )

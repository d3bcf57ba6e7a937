"""Queues that are stopped (``stopPolicy``).

On ``Hold`` a queue admits nothing; with ``HoldAndDrain`` what is admitted is evicted as well. A
stopped LocalQueue is a matter of the workloads that came through it, a stopped ClusterQueue one of
all that are in it.

Draining has no delay and asks for no room, so guarantees, priorities and shares play no part in
it. Its events are those of a quota enforcement whose target is all that runs. Workloads go in the
order in which preemption would choose them, so that lists read alike.
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
    """Return the LocalQueues on hold, as ``namespace/name``; none with another family.

    What waits in one of them is passed over, while others of the same ClusterQueue are served.
    """
    spec = state.configuration
    if not isinstance(spec, KueueSpec):
        return {}
    return {
        f"{one.namespace}/{one.name}": None
        for one in spec.local_queues
        if one.stop_policy != "None"
    }


def drain_all(step: Step, cause: int) -> None:
    """Evict everything that runs in queues that are to be drained, one decision a queue.

    ClusterQueues come first. What one of them has evicted is leaving, and is not evicted again for
    its LocalQueue. Called when a configuration came into force.
    """
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
    """Evict a workload that was found running in a queue that is to be drained.

    The agent reports what runs in any order; a queue may have been stopped before. A ClusterQueue
    comes before a LocalQueue, as in `drain_all`, so that the same reason is told.

    Args:
        step: Which takes the event.
        name: Id of the allocation.
        cause: The ``seq`` of the event that reported it.
    """
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
    """Write the decision to evict these workloads of a queue; without any, nothing is written.

    The target is the sum of what they use, so that the event reads as enforcement of a maximum of
    0.

    Args:
        step: Which takes the event.
        queue: Path of the ClusterQueue, for a LocalQueue too: it is the one with the quota.
        going: In any order; they are sorted as preemption would.
        reason: A key of `evsched.core.kueue.messages.TEXTS`.
        cause: The ``seq`` that the event names as its cause.
    """
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

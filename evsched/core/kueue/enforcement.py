"""Quota enforcement for ClusterQueues: after a nominal quota was lowered, and the delay has passed, usage comes down.

Timers, delays and the choice of victims are those of `evsched.core.quota.enforcement`, with the
nominal quota in the place of the maximum. Usage above a nominal quota is not wrong in itself in a
cohort, it is borrowed; so only what the tree cannot hold any more has to go: the smaller of what
the queue uses above nominal and what its tree is short of. A queue without a cohort comes down to
its nominal quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.kueue.model import quota_in
from evsched.core.kueue.trial import QuotaOverlay
from evsched.core.quota import enforcement as quota

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer


def excess_of(state: State, queue: Queue) -> dict[int, int]:
    """Return what has to go from a ClusterQueue, by type index, positive amounts only.

    What is being evicted, or is evicted already, counts as gone, everywhere in the tree.
    """
    own = quota_in(queue)
    if own is None:
        return {}
    trial = QuotaOverlay()
    for other in state.root.leaves():
        quota = quota_in(other)
        if quota is not None and quota.top is own.top:
            trial.remove(
                quota,
                [(index, amount) for index, amount in enumerate(other.preempting) if amount],
            )
            for application in other.applications.values():
                for one in application.allocations.values():
                    if one.evicted and not one.eviction_requested:
                        trial.remove(quota, state.types.shapes[one.shape].pairs)
    found = {}
    for index, nominal in own.nominal.items():
        used = trial.usage(own).get(index, 0)
        excess = min(used - nominal, -trial.room(own, index))
        if excess > 0:
            found[index] = excess
    return found


def enforce(step: Step, timer: Timer) -> None:
    """Enforce the quota of a ClusterQueue whose delay has passed.

    A queue that the state no longer has is told as not there any more.
    """
    queue = step.state.queues.get(timer.subject)
    if queue is None:
        quota.enforce(step, timer)
        return
    quota.enforce_target(step, queue, excess_of(step.state, queue), cause=timer.cause)

"""What a victim and its owner read (reference section 8).

A reason is a word of Kueue's interface: programs compare it. A message stands in the conditions
Evicted and Preempted and is for people. Both are Kueue's to the letter, so that what was written
for Kueue, a dashboard or an alert, reads them unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.vocabulary import Victim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.wanted import Target
    from evsched.core.workloads import Ask

IN_CLUSTER_QUEUE = "InClusterQueue"
RECLAMATION = "InCohortReclamation"
FAIR_SHARING = "InCohortFairSharing"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
STOPPED = "ClusterQueueStopped"
LOCAL_STOPPED = "LocalQueueStopped"

DUE_TO = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    RECLAMATION: "reclamation within the cohort",
    FAIR_SHARING: "Fair Sharing within the cohort",
    WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
"""The words that the message has for a reason."""

TEXTS = {STOPPED: "The ClusterQueue is stopped", LOCAL_STOPPED: "The LocalQueue is stopped"}
"""The messages of reasons that have no preemptor."""

UNKNOWN = "UNKNOWN"


def preempted(ask: Ask, preemptor: Quota, target: Target) -> str:
    """Return the message to a victim.

    The id of the job behind a workload is not known to the scheduler and is UNKNOWN, as it is in
    Kueue where the job's label is missing. The paths are those of the tree of cohorts, from the
    top.
    """
    return (
        f"Preempted to accommodate a workload (UID: {ask.uid or UNKNOWN}, JobUID: {UNKNOWN}) due to {DUE_TO[target.reason]}; "
        f"preemptor path: {preemptor.tree_path()}; preemptee path: {target.queue.tree_path()}"
    )


def victims(ask: Ask, preemptor: Quota, targets: Iterable[Target]) -> tuple[Victim, ...]:
    """Return the victims of a decision, in the order of the targets.

    The order is that in which they were chosen, which the event keeps.
    """
    return tuple(
        Victim(
            id=one.allocation.id,
            queue=one.queue.path,
            reason=one.reason,
            message=preempted(ask, preemptor, one),
        )
        for one in targets
    )

"""Why workloads are spared and requests do not fit, for explanations.

The searches rule most workloads out by whole queues and never look at them. Here the same rules
are asked for each workload by itself, so that each has an answer. Only a tracer pays for this;
nothing here decides, and the overlay that is passed in is left as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.kueue.shares import status

if TYPE_CHECKING:
    from evsched.core.kueue.candidates import Entry
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay
    from evsched.core.kueue.wanted import PreemptionRequest
    from evsched.core.step import Tracer


def note_spared(trial: QuotaOverlay, wanted: PreemptionRequest, tracer: Tracer) -> None:
    """Tell which limit keeps a request out, and why each workload is no candidate.

    Reasons are asked from the general to the particular: whether the request could ever fit,
    whether the workload uses anything contested, whether its queue may be taken from, whether it
    may itself.
    """
    for index, amount in wanted.request:
        if amount > trial.available(wanted.queue, index):
            note_limit(trial, wanted.queue, index, amount, wanted.ask.id, tracer)
    if not wanted.can_ever_fit():
        tracer.note(wanted.ask.id, "never-fits", queue=wanted.queue.path)
        return
    for queue in wanted.queue.top.walk():
        if queue.spec is None:
            continue
        why = None if queue is wanted.queue else _queue_spared(trial, wanted, queue)
        for group in wanted.candidates.groups(queue):
            contested = any(index in group.types for index in wanted.contested)
            for entry in (*group.leaving, *group.staying):
                code = (
                    "uses-nothing-contested"
                    if not contested
                    else why or _entry_spared(wanted, queue, entry)
                )
                tracer.note(entry[3], code, ask=wanted.ask.id, queue=queue.path, priority=entry[0])


def _queue_spared(trial: QuotaOverlay, wanted: PreemptionRequest, queue: Quota) -> str | None:
    """Return why nothing may be reclaimed from a queue of the tree; None where something may.

    Classic preemption takes from queues above their nominal quota, below cohorts that are above
    theirs; the cohorts that the asker lies in do not count. Fair sharing compares shares instead
    of cohorts.
    """
    if wanted.spec.reclaim_within_cohort == "Never":
        return "reclaimWithinCohort-Never"
    if not trial.above(queue, wanted.contested):
        return "queue-within-nominal"
    if wanted.kueue.fair_sharing:
        return None
    node = queue.parent
    while node is not None and node not in wanted.queue.down:
        if not trial.above(node, wanted.contested):
            return "cohort-within-nominal"
        node = node.parent
    return None


def _entry_spared(wanted: PreemptionRequest, queue: Quota, entry: Entry) -> str:
    """Return why one workload is spared by its priority or its queue's policy, or ``candidate``.

    In the asker's own queue ``withinClusterQueue`` decides, elsewhere ``reclaimWithinCohort``. A
    candidate is not yet a victim: the search may spare it for other reasons, which are told there.
    """
    if queue is wanted.queue:
        if wanted.spec.within_cluster_queue == "Never":
            return "withinClusterQueue-Never"
        return (
            "candidate"
            if any(True for _ in wanted.own_entries([entry]))
            else "withinClusterQueue-priority"
        )
    limit = wanted.reclaim_limit
    return "candidate" if limit is None or entry[0] < limit else "reclaimWithinCohort-priority"


def note_limit(
    trial: QuotaOverlay, queue: Quota, index: int, amount: int, ask: str, tracer: Tracer
) -> None:
    """Tell at which level of the tree a request for one type does not fit, and by which limit.

    The walk goes up as borrowing does. What a node keeps for itself because of its lending limit
    covers a part of the request; only the rest is asked of the cohort above. At the top there is
    nothing to borrow from, so the quota itself is the limit.
    """
    node: Quota | None = queue
    resource = queue.resource_of.get(index, "")
    while node is not None:
        used, quota = trial.usage(node).get(index, 0), node.subtree.get(index, 0)
        limit = node.borrowing.get(index)
        facts = {
            "queue": node.path,
            "resource": resource,
            "used": used,
            "quota": quota,
            "asked": amount,
        }
        if node.parent is None:
            if used + amount > quota:
                tracer.note(ask, "quota", **facts)
            return
        if limit is not None and used + amount > quota + limit:
            tracer.note(ask, "borrowing-limit", **facts, limit=limit)
            return
        kept = trial.kept_free(node, index)
        if amount <= kept:
            return
        amount -= kept
        node = node.parent


def note_share(
    trial: QuotaOverlay,
    wanted: PreemptionRequest,
    sides: tuple[Quota, Quota, Quota],
    entry: Entry,
    tracer: Tracer,
) -> None:
    """Tell that a workload is spared by the shares of the two sides.

    They are shown as the status of a queue would show them.

    Args:
        trial: With the ask in and the victims so far gone.
        wanted: What is asked for.
        sides: The almost lowest common cohorts, of the ask and of the workload, and the queue of
            the workload.
        entry: The workload.
        tracer: Hears three shares: the ask's side, the other side, and the other side without the
            workload.
    """
    ours, theirs, queue = sides
    pairs = wanted.candidates.pairs(entry[4])
    shown = [status(node, trial.usage(node)) for node in (ours, theirs)]
    trial.remove(queue, pairs)
    rest = status(theirs, trial.usage(theirs))
    trial.add(queue, pairs)
    facts = {
        "ours": ours.path,
        "theirs": theirs.path,
        "our_share": shown[0],
        "their_share": shown[1],
        "their_rest": rest,
    }
    tracer.note(entry[3], "share", ask=wanted.ask.id, queue=queue.path, **facts)

"""Why workloads are spared and requests do not fit, for explanations: the same rules as the searches, told one by one.

Only a tracer pays for this; nothing here decides.
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
    """Tell which limit keeps the request out, and of every workload of the tree why it is no candidate, or that it is one."""
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
    """Tell at which level of the tree a request for one type does not fit, and by which limit."""
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
    """Tell that a workload is spared by the shares of the two sides, as the status would show them; the ask's is counted.

    Args:
        trial: With the ask in and the victims so far gone.
        wanted: What is asked for.
        sides: The almost lowest common cohorts, of the ask and of the workload, and the queue of
            the workload.
        entry: The workload.
        tracer: Hears it.
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

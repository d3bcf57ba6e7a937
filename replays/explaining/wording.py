"""What the codes of a tracer mean, in a sentence that a person reads at three in the morning.

A code is the name of a law or rule; the policies note it for every candidate, queue and node that
they pass over. The sentence is completed with the facts of the note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SENTENCES: dict[str, str] = {
    # The laws (seed preemption_design).
    "law1": "it asked not to be preempted, and somebody else will do (law 1)",
    "law2": "its queue would fall below its guarantee (law 2)",
    "law3": "it belongs to the application of the ask (law 3)",
    "law4": "the queue of the ask is not below its guarantee, or this is the queue whose guarantee is to be restored (law 4)",
    "law5": "its queue is not above its guarantee (law 5)",
    "law6": "its priority is higher than that of the ask (law 6)",
    "law7": "it lies outside the preemption fence of the ask (law 7)",
    "own-leaf": "it runs in the queue of the ask, and nobody preempts within a queue",
    "disabled": "preemption.policy of its queue is disabled",
    "required-node": "it is bound to its node (DaemonSet)",
    "told": "it was told to go already",
    "no-shared-type": "it uses nothing of what the ask requests",
    "eligible": "it could be preempted",
    # Nodes and limits.
    "unschedulable": "the node takes nobody at present",
    "node-unknown": "the node is not registered",
    "node-short": "even with everybody gone who may be preempted, the node has not enough",
    "node-free": "the node has room",
    "node-candidate": "the node has room once those who may be preempted are gone",
    "max": "the maximum of a queue on its path would be passed",
    "limit": "a user or group limit, or a limit on applications, holds it",
    "no-node": "no node has room for it",
    "paused": "its application is paused: too many of its asks fit on no node (application.unschedasks.backoff)",
    "in-flight": "its victims have been told to go and have not left yet",
    "fits": "it fits without preemption",
    # Quota enforcement (seed quota_enforcement).
    "chosen": "it was told to go",
    "guarantee": "a queue on its path would fall below its guarantee",
    "type": "it uses nothing of what has to go",
    "leaving": "it was told to go already, by another enforcement",
    "running": "an enforcement in its queue is still under way",
    # Kueue.
    "never-fits": "it would not fit even if everybody else were gone",
    "quota": "the quota of the cohort tree is used up",
    "borrowing-limit": "the borrowing limit would be passed",
    "uses-nothing-contested": "it uses nothing of the quota that is short",
    "reclaimWithinCohort-Never": "reclaimWithinCohort of the asking queue is Never",
    "reclaimWithinCohort-priority": "reclaimWithinCohort spares its priority",
    "withinClusterQueue-Never": "withinClusterQueue of its queue is Never",
    "withinClusterQueue-priority": "withinClusterQueue spares its priority",
    "queue-within-nominal": "its queue does not borrow what is short",
    "cohort-within-nominal": "its cohort does not borrow what is short",
    "candidate": "it could be preempted",
    "share": "fair sharing spares it: {ours} would have share {our_share}, {theirs} has {their_share}, without it {their_rest}",
    "flavor": "this is what the flavor offers",
    "admit": "it is admitted",
    "preempt": "it preempts",
    "no-fit": "no flavor has room for it",
    "no-victims": "nobody who may be preempted would make room for it",
    "overlap": "its victims go for another workload of the same cycle",
    "crowded-out": "the workloads before it in the cycle leave no room",
    "deferred": "it fits once the victims of others are gone",
    "not-reached": "enough others came before it, or its queue no longer borrowed when they were gone",
    "not-needed": "the others free enough without it",
}

YES = frozenset({"eligible", "candidate", "chosen", "node-candidate", "node-free"})
"""Codes that say yes rather than no."""


def sentence(code: str, facts: Mapping[str, object] | None = None) -> str:
    """Return what a code means, completed with the facts of the note; the code itself when it is not known."""
    found = SENTENCES.get(code, code)
    return found.format_map(facts) if facts and "{" in found else found

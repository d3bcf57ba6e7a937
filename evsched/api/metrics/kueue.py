"""Metrics in Kueue's names, for a configuration of Kueue's.

Amounts are as there: cores and bytes. All have the label ``replica_role``; what is shown is what the
leader decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.api.metrics.series import counter, gauge, histogram, shown_queues
from evsched.core.kueue import shares
from evsched.core.kueue.model import quota_in
from evsched.core.quantity import MILLI_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.core import Metric

    from evsched.api.metrics.counts import Labels
    from evsched.api.metrics.scrape import Scrape
    from evsched.core.kueue.model import Quota
    from evsched.core.queues import Queue

ROLE = "leader"
EVICTED = "Preempted"
"""The reason of Kueue's evictions that evsched decides."""

ENFORCED = "InClusterQueue"
"""Kueue's word for victims within one ClusterQueue, which those of a lowered quota are."""


def metrics(scrape: Scrape) -> Iterator[Metric]:
    """Yield them, in the same order each time."""
    leaves = [queue for queue in shown_queues(scrape.state) if queue.leaf]
    # A ClusterQueue that the configuration no longer names has no quota while it drains.
    found = [(queue, quota) for queue in leaves if (quota := quota_in(queue)) is not None]
    yield from _queues(scrape, leaves)
    yield from _shares(scrape, found)
    yield from _resources(scrape, found)
    yield from _workloads(scrape)


def _queues(scrape: Scrape, leaves: list[Queue]) -> Iterator[Metric]:
    yield gauge(
        "kueue_pending_workloads",
        "Workloads that wait, by ClusterQueue; all of them may be admitted once there is room.",
        ("cluster_queue", "status", "replica_role"),
        [
            ((queue.path, status, ROLE), queue.pending_asks if status == "active" else 0)
            for queue in leaves
            for status in ("active", "inadmissible")
        ],
    )
    yield gauge(
        "kueue_admitted_active_workloads",
        "Workloads that are admitted, by ClusterQueue.",
        ("cluster_queue", "replica_role"),
        [((queue.path, ROLE), scrape.fold.admitted(queue.path)) for queue in leaves],
    )
    yield gauge(
        "kueue_cluster_queue_status",
        "1: the ClusterQueue has this status.",
        ("cluster_queue", "status", "replica_role"),
        [
            ((queue.path, status, ROLE), int(status == _status(queue)))
            for queue in leaves
            for status in ("pending", "active", "terminating")
        ],
    )


def _shares(scrape: Scrape, found: list[tuple[Queue, Quota]]) -> Iterator[Metric]:
    yield gauge(
        "kueue_cluster_queue_weighted_share",
        "Share of what could be lent that the ClusterQueue borrows, by its weight, per mille.",
        ("cluster_queue", "cohort", "replica_role"),
        [
            ((queue.path, _cohort(quota), ROLE), shares.status(quota, quota.usage))
            for queue, quota in found
            if shares.are_shared(scrape.state)
        ],
    )


def _status(queue: Queue) -> str:
    quota = quota_in(queue)
    if queue.draining or quota is None:
        return "terminating"
    stopped = quota.spec is not None and quota.spec.stop_policy != "None"
    return "pending" if stopped else "active"


def _resources(scrape: Scrape, found: list[tuple[Queue, Quota]]) -> Iterator[Metric]:
    names = scrape.state.types.names

    def shown(name: str, help_: str, of: str) -> Metric:
        values: list[tuple[Labels, float]] = []
        for queue, quota in found:
            amounts: Mapping[int, int] = getattr(quota, of)
            # A quota that nothing uses is shown with 0.
            wanted = quota.nominal if of == "usage" else amounts
            for index in sorted({*wanted, *amounts}, key=lambda one: names[one]):
                flavor, _, resource = names[index].partition("/")
                amount = amounts.get(index, 0)
                part = amount / 1000 if resource in MILLI_RESOURCES else amount
                values.append(((_cohort(quota), queue.path, flavor, resource, ROLE), part))
        labels = ("cohort", "cluster_queue", "flavor", "resource", "replica_role")
        return gauge(name, help_, labels, values)

    yield shown("kueue_cluster_queue_resource_usage", "What admitted workloads use.", "usage")
    yield shown("kueue_cluster_queue_resource_reservation", "What is reserved for them.", "usage")
    yield shown("kueue_cluster_queue_nominal_quota", "The nominal quota.", "nominal")
    yield shown("kueue_cluster_queue_borrowing_limit", "Most that is borrowed.", "borrowing")
    yield shown("kueue_cluster_queue_lending_limit", "Most that is lent.", "lending")


def _workloads(scrape: Scrape) -> Iterator[Metric]:
    counts = scrape.fold.counts
    queue = ("cluster_queue", "replica_role")
    for name, help_ in (
        ("kueue_admitted_workloads", "Workloads that were admitted."),
        ("kueue_quota_reserved_workloads", "Workloads for which quota was reserved."),
    ):
        yield counter(name, help_, queue, counts, "bound", lambda labels: (*labels, ROLE))
    yield counter(
        "kueue_finished_workloads",
        "Workloads that finished.",
        queue,
        counts,
        "released",
        lambda labels: (labels[0], ROLE) if labels[1] in {"completed", "failed"} else None,
    )
    yield counter(
        "kueue_evicted_workloads",
        "Workloads that were evicted.",
        ("cluster_queue", "reason", "replica_role"),
        counts,
        "preemptions",
        lambda labels: (labels[1], EVICTED, ROLE),
    )
    yield counter(
        "kueue_preempted_workloads",
        "Workloads that were preempted, by the ClusterQueue that did.",
        ("preempting_cluster_queue", "reason", "replica_role"),
        counts,
        "preemptions",
        lambda labels: (labels[0] or labels[1], labels[2] if labels[0] else ENFORCED, ROLE),
    )
    spans = ("cluster_queue", "replica_role")
    for name, help_, source in (
        ("kueue_admission_wait_time_seconds", "From creation to admission.", "waited"),
        ("kueue_quota_reserved_wait_time_seconds", "From creation to its quota.", "waited"),
        (
            "kueue_workload_eviction_latency_seconds",
            "From an eviction to its end.",
            "gone_by_queue",
        ),
        ("kueue_admitted_until_ready_wait_time_seconds", "Not known to evsched.", ""),
        ("kueue_pod_scheduling_gate_removal_seconds", "Not known to evsched.", ""),
    ):
        yield histogram(name, help_, spans, counts, source, (ROLE,))


def _cohort(quota: Quota) -> str:
    return "" if quota.parent is None else quota.parent.name

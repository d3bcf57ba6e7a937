"""Metrics in YuniKorn's names: those of today, and those that its published dashboard still asks for.

Amounts are in base units, as there. What YuniKorn measures in its own process (how long it took to
sort, to try a node) has its histograms here too, without observations: the log holds no such times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import HistogramMetricFamily, Metric

from evsched.api.metrics.fold import ACCEPTED, NEW, RUNNING
from evsched.api.metrics.series import (
    by_resource,
    counter,
    gauge,
    part_of_name,
    shown_queues,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evsched.api.metrics.scrape import Scrape
    from evsched.core.queues import Queue
    from evsched.core.state import State

LATENCIES = ("scheduling_latency", "scheduling_cycle", "trynode_latency", "trypreemption_latency")
BOUNDS = ("0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "100.0", "1000.0", "+Inf")
"""Of their buckets: YuniKorn calls them milliseconds and counts seconds."""

RANGES = (
    "[0,10%]", "(10%, 20%]", "(20%,30%]", "(30%,40%]", "(40%,50%]", "(50%,60%]", "(60%,70%]", "(70%,80%]", "(80%,90%]",
    "(90%,100%]",
)  # fmt: skip

APP_STATES = (ACCEPTED, NEW, RUNNING)


def metrics(scrape: Scrape) -> Iterator[Metric]:
    """Yield them, in the same order each time."""
    yield from _scheduler(scrape)
    yield from _nodes(scrape.state)
    yield from _queues(scrape)
    for queue, name in _named(shown_queues(scrape.state)):
        yield from _published(scrape, queue, name)


def _scheduler(scrape: Scrape) -> Iterator[Metric]:
    counts, standing = scrape.fold.counts, scrape.fold.standing
    attempts = Metric(
        "yunikorn_scheduler_container_allocation_attempt",
        "Attempts to allocate containers, by what came of them.",
        "counter",
    )
    for state, source in (
        ("allocated", "bound"),
        ("error", "suspended"),
        ("rejected", "asks_rejected"),
        ("released", "released"),
    ):
        total = sum(one.value for one in counts.series(source).values())
        attempts.add_sample(f"{attempts.name}_total", {"state": state}, total)
    yield attempts
    yield counter(
        "yunikorn_scheduler_application_submission",
        "Applications that were submitted, by whether they were taken in.",
        ("result",),
        counts,
        "applications",
        lambda labels: (labels[1],),
    )
    root = scrape.state.root.path
    accepted = sum(
        one.value
        for labels, one in counts.series("applications").items()
        if labels[1] == "accepted"
    )
    there = {how: standing.get((root, how), 0) for how in APP_STATES}
    yield gauge(
        "yunikorn_scheduler_application_total",
        "Applications, by state.",
        ("state",),
        [
            (("completed",), accepted - sum(there.values())),
            *(((how,), number) for how, number in there.items()),
        ],
    )
    for name in LATENCIES:
        family = HistogramMetricFamily(
            f"yunikorn_scheduler_{name}_milliseconds", "Not measured by evsched: no observations."
        )
        family.add_metric([], [(bound, 0) for bound in BOUNDS], 0)
        yield family


def _nodes(state: State) -> Iterator[Metric]:
    """Yield how many nodes there are, and how full they are by resource."""
    draining = sum(1 for node in state.nodes.values() if not node.schedulable)
    yield gauge(
        "yunikorn_scheduler_node",
        "Nodes, by state.",
        ("state",),
        [(("active",), len(state.nodes)), (("draining",), draining), (("failed",), 0)],
    )
    full: dict[int, list[int]] = {}
    for node in state.nodes.values():
        for index, capacity in enumerate(node.capacity):
            if capacity > 0:
                part = -(-node.used[index] * len(RANGES) // capacity) - 1
                ranges = full.setdefault(index, [0] * len(RANGES))
                # A node that shrank may be more than full.
                ranges[min(max(part, 0), len(RANGES) - 1)] += 1
    names = state.types.names
    for index, numbers in sorted(full.items(), key=lambda one: names[one[0]]):
        yield gauge(
            f"yunikorn_scheduler_{part_of_name(names[index])}_node_usage_total",
            f"Nodes by how much of their {names[index]} is used.",
            ("range",),
            [((name,), number) for name, number in zip(RANGES, numbers, strict=True)],
        )


def _queues(scrape: Scrape) -> Iterator[Metric]:
    state, standing = scrape.state, scrape.fold.standing
    shown = shown_queues(state)
    yield gauge(
        "yunikorn_queue_app",
        "Applications of a queue, by state.",
        ("queue", "state"),
        [
            ((queue.path, how), standing.get((queue.path, how), 0))
            for queue in shown
            for how in APP_STATES
        ],
    )
    yield gauge(
        "yunikorn_queue_resource",
        "Resources of a queue, by what they are.",
        ("queue", "state", "resource"),
        [
            ((queue.path, what, resource), amount)
            for queue in shown
            for what, resource, amount in _resources(state, queue)
        ],
    )
    # A counter there, of a name that in OpenMetrics would be that of the gauge above.
    taken_in = Metric(
        "yunikorn_queue_app_total",
        "Applications of a queue that came so far, by whether they were taken in.",
        "unknown",
    )
    for (queue, result), tally in sorted(scrape.fold.counts.series("applications").items()):
        taken_in.add_sample(taken_in.name, {"queue": queue, "result": result}, tally.value)
    yield taken_in


def _resources(state: State, queue: Queue) -> Iterator[tuple[str, str, int]]:
    """Yield (state, resource, amount) of a queue; root's maximum is what the nodes have."""
    maximum = queue.maximum if queue.parent is not None else dict(enumerate(state.total))
    for what, amounts in (
        ("allocated", queue.usage),
        ("guaranteed", queue.guaranteed),
        ("max", maximum),
        ("pending", queue.pending),
        ("preempting", queue.preempting),
    ):
        for resource, amount in by_resource(state.types.names, amounts):
            yield what, resource, amount


def _named(queues: list[Queue]) -> Iterator[tuple[Queue, str]]:
    """Yield queues with the part of a metric's name that they have there; of two with the same the first."""
    seen: set[str] = set()
    for queue in queues:
        name = part_of_name(queue.path)
        if name not in seen:
            seen.add(name)
            yield queue, name


def _published(scrape: Scrape, queue: Queue, name: str) -> Iterator[Metric]:
    """Yield the metrics of one queue that have its path in their name."""
    standing, counts = scrape.fold.standing, scrape.fold.counts
    yield gauge(
        f"yunikorn_{name}_queue_app",
        f"Applications of queue {queue.path}, by state.",
        ("state",),
        [((how,), standing.get((queue.path, how), 0)) for how in APP_STATES],
    )
    yield gauge(
        f"yunikorn_{name}_queue_resource",
        f"Resources of queue {queue.path}, by what they are.",
        ("state", "resource"),
        [((what, resource), amount) for what, resource, amount in _resources(scrape.state, queue)],
    )
    if queue.leaf:
        # A counter there, by a name that no counter may have in OpenMetrics.
        containers = Metric(
            f"yunikorn_{name}_queue_container",
            f"Containers of queue {queue.path} that were allocated and released.",
            "unknown",
        )
        bound = counts.series("bound").get((queue.path,))
        released = sum(
            one.value
            for labels, one in counts.series("released").items()
            if labels[0] == queue.path
        )
        allocated = 0 if bound is None else bound.value
        containers.add_sample(containers.name, {"state": "allocated"}, allocated)
        containers.add_sample(containers.name, {"state": "released"}, released)
        yield containers

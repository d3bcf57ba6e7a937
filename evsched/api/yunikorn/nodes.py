"""Nodes as YuniKorn shows them, and how full they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.api.yunikorn import answers
from evsched.api.yunikorn.amounts import percent, vector
from evsched.api.yunikorn.applications import allocation

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.workloads import Node

BUCKETS = 10


def nodes(state: State) -> list[answers.NodeInfo]:
    """Return every node, by name."""
    return [node(state, one) for _, one in sorted(state.nodes.items())]


def node(state: State, one: Node) -> answers.NodeInfo:
    """Return one node; ``available`` may be negative when the node shrank."""
    used = vector(state.types.names, one.used)
    return answers.NodeInfo(
        node_id=one.name,
        host_name=one.name,
        attributes=one.labels,
        capacity=dict(sorted(one.resources.items())),
        allocated=used,
        available={
            name: amount - used.get(name, 0) for name, amount in sorted(one.resources.items())
        },
        utilized=percent(used, one.resources),
        allocations=[allocation(state, found) for _, found in sorted(one.allocations.items())],
        schedulable=one.schedulable,
        is_reserved=bool(one.reserved),
        reservations=sorted(f"{state.asks[ask].application}|{ask}" for ask in one.reserved),
    )


def utilizations(state: State, cluster: str, partition: str) -> answers.UtilizationsInfo:
    """Return for each resource that a node has how many nodes are how full: above 0 to 10 percent come first, with 0."""
    found: dict[str, list[list[str]]] = {}
    for name, one in sorted(state.nodes.items()):
        used = vector(state.types.names, one.used)
        for resource, part in percent(used, one.resources).items():
            buckets = found.setdefault(resource, [[] for _ in range(BUCKETS)])
            # A node that shrank may be more than full; it belongs to the last bucket.
            buckets[min(max(-(-part // BUCKETS) - 1, 0), BUCKETS - 1)].append(name)
    return answers.UtilizationsInfo(
        cluster_id=cluster,
        partition=partition,
        utilizations=[
            answers.UtilizationInfo(
                type=resource,
                utilization=[
                    answers.BucketInfo(
                        bucket_name=f"{number * 10}-{number * 10 + 10}%",
                        num_of_nodes=len(names),
                        node_names=names,
                    )
                    for number, names in enumerate(buckets)
                ],
            )
            for resource, buckets in sorted(found.items())
        ],
    )

"""Translates nodes: an API object to what the log says of a node."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from events.pods import Taint
from events.vocabulary import NodeRegistered, NodeRemoved, NodeUpdated
from evsched.agents.kubernetes.constraints import taints_of
from evsched.agents.kubernetes.objects import NodeObject, TaintFound
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.requests import amounts

TAINTS_DECIDE = 2
"""The first rules by which taints decide; by those before a cordoned node takes nobody."""

_CORDON = TaintFound(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What the log says of a node, the same whether it was registered so or updated to it."""

    capacity: dict[str, int]
    labels: dict[str, str] = {}
    schedulable: bool = True
    taints: tuple[Taint, ...] = ()
    ready: bool = True


class SeenNode(Struct, frozen=True, kw_only=True):
    """A node as the cluster has it.

    Attributes:
        version: The resourceVersion of the object.
        facts: None: it is gone.
    """

    name: str
    uid: str
    version: str
    facts: NodeFacts | None


def node_of(node: NodeObject, reading: Reading, *, gone: bool = False) -> SeenNode:
    """Return a node as the cluster has it.

    Its capacity is what is allocatable; Kubernetes keeps the rest for itself.
    """
    meta = node.metadata
    facts = NodeFacts(
        capacity=reading.named(amounts(node.status.allocatable)),
        labels=reading.masking.labels(meta.labels),
        schedulable=not node.spec.unschedulable,
        taints=_taints(node, reading),
        ready=any(
            one.type == "Ready" and one.status == "True" for one in node.status.conditions or ()
        ),
    )
    return SeenNode(
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        facts=None if gone else facts,
    )


def _taints(node: NodeObject, reading: Reading) -> tuple[Taint, ...]:
    """Return the taints of a node; one that is cordoned has the taint by which Kubernetes says so.

    The cluster sets it a moment later, and a pod that tolerates it may run there all the same.
    """
    found = node.spec.taints or ()
    if node.spec.unschedulable and _CORDON not in found:
        found = (*found, _CORDON)
    return taints_of(found, reading.masking)


def folded(
    facts: NodeFacts | None, event: NodeRegistered | NodeUpdated | NodeRemoved
) -> NodeFacts | None:
    """Return what is known of a node after an event about it."""
    match event:
        case NodeRegistered():
            return NodeFacts(
                capacity=event.capacity,
                labels=event.labels,
                schedulable=event.schedulable,
                taints=event.taints,
                ready=event.ready,
            )
        case NodeUpdated() if facts is not None:
            return NodeFacts(
                capacity=facts.capacity if event.capacity is None else event.capacity,
                labels=facts.labels if event.labels is None else event.labels,
                schedulable=facts.schedulable if event.schedulable is None else event.schedulable,
                taints=facts.taints if event.taints is None else event.taints,
                ready=facts.ready if event.ready is None else event.ready,
            )
        case _:
            return None


def steps(
    name: str, known: NodeFacts | None, seen: NodeFacts | None, *, by_taints: bool
) -> Iterable[NodeRegistered | NodeUpdated | NodeRemoved]:
    """Yield what leads from what is known of a node to what the cluster has.

    Args:
        name: Of the node.
        known: What the log says; None: it has no such node.
        seen: As the cluster has it; None: it is gone.
        by_taints: The rules in force decide by taints. A cordon is one of these then, which a pod
            may tolerate; else the node takes nobody.
    """
    if seen is not None and by_taints:
        seen = replace(seen, schedulable=True)
    if seen == known:
        return
    if seen is None:
        yield NodeRemoved(node=name)
    elif known is None:
        yield NodeRegistered(
            node=name,
            capacity=seen.capacity,
            labels=seen.labels,
            schedulable=seen.schedulable,
            taints=seen.taints,
            ready=seen.ready,
        )
    else:
        yield NodeUpdated(
            node=name,
            capacity=None if seen.capacity == known.capacity else seen.capacity,
            labels=None if seen.labels == known.labels else seen.labels,
            schedulable=None if seen.schedulable == known.schedulable else seen.schedulable,
            taints=None if seen.taints == known.taints else seen.taints,
            ready=None if seen.ready == known.ready else seen.ready,
        )

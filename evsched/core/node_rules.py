"""Whether a pod may run on a node, by the rules of Kubernetes: the node alone, and who runs there.

The conditions are those of kube-scheduler's filters TaintToleration, NodeAffinity (which includes
the node selector) and, of InterPodAffinity, required anti-affinity over the hostname. One node and
one pod at a time: `evsched.core.yunikorn.node_marks` says the same of all nodes at once.

Anti-affinity holds both ways: a pod keeps away from those that its terms select, and from those
whose terms select it. A pod that is being evicted still counts until it is gone, and no allocation
is evicted to lift an anti-affinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from evsched.core.pods import NODE_NAME, facts, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgspec import UnsetType

    from events.pods import (
        AntiAffinityTerm,
        LabelRequirement,
        NodeSelectorTerm,
        PodFacts,
        Taint,
        Toleration,
    )
    from evsched.core.workloads import Node

CLOSING = frozenset({"NoSchedule", "NoExecute"})
"""Effects of taints that keep a pod off a node; ``PreferNoSchedule`` is a preference."""


class Objection(NamedTuple):
    """Why a pod may not run on a node.

    Attributes:
        code: ``taint``, ``selector``, ``affinity``, ``anti-affinity`` or ``unschedulable``.
        detail: The taint, the label that is missing, or the allocation that is in the way; empty:
            the code says it all.
    """

    code: str
    detail: str = ""


def is_open(node: Node) -> bool:
    """Tell whether a node takes a pod that tolerates no taint."""
    return node.schedulable and not (
        node.taints and any(taint.effect in CLOSING for taint in node.taints)
    )


def objection(pod: bytes | UnsetType, node: Node) -> Objection | None:
    """Return the first reason why a pod may not run on a node; None when it may.

    Room is not looked at.

    Args:
        pod: As the state keeps it (`evsched.core.pods`); UNSET: it says nothing.
        node: With what runs there.
    """
    said = facts(pod)
    taint = untolerated(said.tolerations, node.taints)
    if taint is not None:
        return Objection("taint", written_taint(taint))
    for key, value in sorted(said.node_selector.items()):
        if node.labels.get(key) != value:
            return Objection("selector", f"{key}={value}")
    if said.node_affinity and not any(matches(term, node) for term in said.node_affinity):
        return Objection("affinity")
    for other in node.allocations.values() if pod is not UNSET else ():
        if other.pod is not UNSET and repel(said, facts(other.pod)):
            return Objection("anti-affinity", other.id)
    # Last, as it says nothing of the pod: an explanation names what would still be in the way.
    return None if node.schedulable else Objection("unschedulable")


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that closes a node to a pod with these tolerations; None: none does."""
    for taint in taints:
        if taint.effect in CLOSING and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration matches a taint; an empty key or effect matches any."""
    return (
        toleration.effect in {"", taint.effect}
        and toleration.key in {"", taint.key}
        and (toleration.operator == "Exists" or toleration.value == taint.value)
    )


def matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Tell whether all conditions of a term hold on a node; a term without any matches none."""
    return bool(term.expressions or term.fields) and (
        all(holds(one, node.labels) for one in term.expressions)
        and all(holds(one, {NODE_NAME: node.name}) for one in term.fields)
    )


def holds(one: LabelRequirement, labels: Mapping[str, str]) -> bool:
    """Tell whether a condition holds on labels; ``NotIn`` does where there is no such label."""
    found = labels.get(one.key)
    match one.operator:
        case "In":
            return found in one.values
        case "NotIn":
            return found not in one.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case _:
            return found is not None and compares(one, found)


def compares(one: LabelRequirement, found: str) -> bool:
    """Tell whether a label is above (``Gt``) or below (``Lt``) the value of a condition."""
    number, bound = integer(found), integer(one.values[0])
    if number is None or bound is None:
        return False
    return number > bound if one.operator == "Gt" else number < bound


def repel(one: PodFacts, other: PodFacts) -> bool:
    """Tell whether two pods may not run on one node, because a term of either selects the other."""
    return any(selects(term, one.namespace, other) for term in one.anti_affinity) or any(
        selects(term, other.namespace, one) for term in other.anti_affinity
    )


def selects(term: AntiAffinityTerm, namespace: str, other: PodFacts) -> bool:
    """Tell whether a term of a pod in a namespace selects another pod."""
    return other.namespace in (term.namespaces or (namespace,)) and all(
        holds(one, other.labels) for one in term.selector
    )


def written_taint(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"

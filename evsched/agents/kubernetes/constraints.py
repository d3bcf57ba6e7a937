"""Where a pod may run, in the words of the log; what evsched does not decide by is named, not guessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from events.bounds import MAX_TERMS
from events.pods import (
    AntiAffinityTerm,
    LabelRequirement,
    NodeSelectorTerm,
    PodFacts,
    Taint,
    Toleration,
)
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.objects import (
    Affinity,
    LabelSelectorFound,
    PodObject,
    PodSpec,
    PodTermFound,
    RequirementFound,
    TaintFound,
    TolerationFound,
)

HOSTNAME = "kubernetes.io/hostname"
_TASK_GROUPS = "yunikorn.apache.org/task-groups"
_TASK_GROUP = "yunikorn.apache.org/task-group-name"


def facts_of(pod: PodObject, masking: Masking) -> PodFacts:
    """Return what is known of the pod behind a task, with masked names where rules say so."""
    spec, affinity = pod.spec, pod.spec.affinity or Affinity()
    required = affinity.node_affinity.required if affinity.node_affinity else None
    apart = affinity.pod_anti_affinity.required if affinity.pod_anti_affinity else None
    owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
    terms = tuple(
        NodeSelectorTerm(
            expressions=_requirements(term.match_expressions, masking),
            # A field is the name of a node and no label, so no rule about labels concerns it.
            fields=_requirements(term.match_fields, Masking()),
        )
        for term in (required.node_selector_terms or () if required else ())
    )
    return PodFacts(
        namespace=masking.namespace(pod.metadata.namespace),
        uid=pod.metadata.uid,
        owner_uid=owner.uid if owner else "",
        labels=masking.labels(pod.metadata.labels),
        node_selector=masking.labels(spec.node_selector),
        node_affinity=terms,
        tolerations=tuple(_toleration(one, masking) for one in spec.tolerations or ()),
        anti_affinity=tuple(
            _anti_affinity(term, masking) for term in apart or () if _is_modelled(term)
        ),
        unmodelled=tuple(sorted(set(_unmodelled(pod, affinity))))[:MAX_TERMS],
    )


def taints_of(taints: tuple[TaintFound, ...] | None, masking: Masking) -> tuple[Taint, ...]:
    """Return the taints of a node, by key and effect, so that equal ones are written equally."""
    found = []
    for one in taints or ():
        key, value = masking.label(one.key, one.value or "")
        effect: Any = one.effect
        found.append(Taint(key=key, value=value, effect=effect))
    return tuple(sorted(found, key=lambda taint: (taint.key, taint.effect, taint.value)))


def required_node(pod: PodObject) -> str | None:
    """Return the one node that a pod of a DaemonSet is made for; None: it is none, or names several.

    The DaemonSet's controller writes it as a required affinity to the field ``metadata.name``.
    """
    owners = pod.metadata.owner_references or ()
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required if affinity else None
    if required is None or not any(one.controller and one.kind == "DaemonSet" for one in owners):
        return None
    names = {
        value
        for term in required.node_selector_terms or ()
        for field in term.match_fields or ()
        if field.key == "metadata.name" and field.operator == "In"
        for value in field.values or ()
    }
    return next(iter(names)) if len(names) == 1 else None


def _requirements(
    found: tuple[RequirementFound, ...] | None, masking: Masking
) -> tuple[LabelRequirement, ...]:
    made = []
    for one in found or ():
        key, values = masking.values(one.key, one.values or ())
        operator: Any = one.operator
        made.append(LabelRequirement(key=key, operator=operator, values=values))
    return tuple(made)


def _toleration(found: TolerationFound, masking: Masking) -> Toleration:
    key, value = found.key or "", found.value or ""
    if key:
        key, value = masking.label(key, value)
    operator: Any = found.operator or "Equal"
    effect: Any = found.effect or ""
    # With Exists a value means nothing, and the API refuses one.
    return Toleration(
        key=key, operator=operator, value="" if operator == "Exists" else value, effect=effect
    )


def _anti_affinity(term: PodTermFound, masking: Masking) -> AntiAffinityTerm:
    return AntiAffinityTerm(
        selector=_selector(term.label_selector or LabelSelectorFound(), masking),
        namespaces=tuple(masking.namespace(name) for name in sorted(term.namespaces or ())),
    )


def _selector(found: LabelSelectorFound, masking: Masking) -> tuple[LabelRequirement, ...]:
    equal = (
        LabelRequirement(key=key, operator="In", values=(value,))
        for key, value in masking.labels(found.match_labels).items()
    )
    return (*equal, *_requirements(found.match_expressions, masking))


def _is_modelled(term: PodTermFound) -> bool:
    """Tell whether an anti-affinity is decided by: over the hostname, with namespaces by name alone.

    A term without a selector matches no pod, which the log's form of it cannot say.
    """
    return (
        term.topology_key == HOSTNAME
        and term.label_selector is not None
        and term.namespace_selector is None
        and not term.match_label_keys
        and not term.mismatch_label_keys
    )


def _unmodelled(pod: PodObject, affinity: Affinity) -> Iterator[str]:
    """Yield the names of what a pod asks for that evsched does not decide by."""
    spec, notes = pod.spec, pod.metadata.annotations or {}
    nodes, near, apart = (
        affinity.node_affinity,
        affinity.pod_affinity,
        affinity.pod_anti_affinity,
    )
    if nodes is not None and nodes.preferred:
        yield "preferred node affinity"
    if near is not None and (near.required or near.preferred):
        yield "pod affinity"
    if apart is not None and apart.preferred:
        yield "preferred pod anti-affinity"
    if apart is not None and not all(map(_is_modelled, apart.required or ())):
        yield "pod anti-affinity beyond hostname"
    if spec.topology_spread_constraints:
        yield "topology spread"
    if any(one.persistent_volume_claim or one.ephemeral for one in spec.volumes or ()):
        yield "volumes"
    if spec.resource_claims:
        yield "resource claims"
    if _host_ports(spec):
        yield "host ports"
    if _TASK_GROUPS in notes or _TASK_GROUP in notes:
        yield "task groups"


def _host_ports(spec: PodSpec) -> bool:
    return any(port.host_port for one in spec.containers for port in one.ports or ())

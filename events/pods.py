"""What Kubernetes says of a pod and of a node, as far as it matters for where the pod may run.

The words and their meanings are those of the Kubernetes API: node selector, required node affinity,
taints and tolerations, and required anti-affinity between pods over ``kubernetes.io/hostname``.
What an API object asks for beyond that is named in ``PodFacts.unmodelled``, never guessed.

Whether a pod may run on a node is worked out in `evsched.core.node_rules`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from events.bounds import (
    MAX_LABELS,
    MAX_NAME,
    MAX_TERMS,
    MAX_VALUES,
    Name,
)

LabelValue = Annotated[str, Meta(max_length=MAX_NAME)]
"""The value of a label or taint; may be empty."""
PodLabels = Annotated[dict[Name, LabelValue], Meta(max_length=MAX_LABELS)]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Keeps pods off a node that do not tolerate it.

    Attributes:
        effect: ``NoSchedule`` and ``NoExecute`` close the node to such pods. ``PreferNoSchedule``
            decides nothing, and a pod that runs there already is not evicted by ``NoExecute``:
            that is done by the cluster, and comes back as an observation.
    """

    key: Name
    value: LabelValue = ""
    effect: TaintEffect


class Toleration(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Lets a pod run in spite of the taints that it matches.

    Attributes:
        key: Empty: any key, which only goes with ``Exists``.
        operator: ``Equal`` compares the value as well.
        effect: Empty: any effect.
    """

    key: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class LabelRequirement(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One condition on labels.

    Attributes:
        operator: ``NotIn`` also holds where there is no such label. ``Gt`` and ``Lt`` compare
            integers, on nodes alone; a label that is no integer does not fulfil them.
        values: At least one for ``In`` and ``NotIn``, one integer for ``Gt`` and ``Lt``, else none.
    """

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[tuple[LabelValue, ...], Meta(max_length=MAX_VALUES)] = ()


Requirements = Annotated[tuple[LabelRequirement, ...], Meta(max_length=MAX_TERMS)]


class NodeSelectorTerm(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Conditions on a node that must all hold; a term without any matches no node.

    Attributes:
        expressions: On its labels.
        fields: On ``metadata.name``, by ``In`` or ``NotIn`` and one value.
    """

    expressions: Requirements = ()
    fields: Requirements = ()


class AntiAffinityTerm(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Pods beside which a pod may not run on one node, whoever came first.

    Attributes:
        selector: Conditions on the labels of the other pod, all of which must hold; none: any pod.
        namespaces: Of the other pod; empty: that of the pod itself.
    """

    selector: Requirements = ()
    namespaces: Annotated[tuple[Name, ...], Meta(max_length=MAX_TERMS)] = ()


class PodFacts(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What is known of the pod behind an ask or allocation.

    Attributes:
        uid: Of the pod; a pod that is created again under the same name has another one.
        owner_uid: Of the controller that owns it; empty: none, or unknown.
        labels: Its own, with which the anti-affinity of other pods is compared.
        node_selector: PodLabels that the node must have.
        node_affinity: Required node affinity: one of the terms must match; empty: any node.
        tolerations: The taints it may run in spite of.
        anti_affinity: Required anti-affinity over ``kubernetes.io/hostname``.
        unmodelled: Names of what the pod asks for that evsched does not decide by, such as
            ``preferred node affinity``, ``topology spread`` and ``volumes``; `explain` says them.
    """

    namespace: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    uid: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    owner_uid: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    labels: PodLabels = {}
    node_selector: PodLabels = {}
    node_affinity: Annotated[tuple[NodeSelectorTerm, ...], Meta(max_length=MAX_TERMS)] = ()
    tolerations: Annotated[tuple[Toleration, ...], Meta(max_length=MAX_TERMS)] = ()
    anti_affinity: Annotated[tuple[AntiAffinityTerm, ...], Meta(max_length=MAX_TERMS)] = ()
    unmodelled: Annotated[tuple[Name, ...], Meta(max_length=MAX_TERMS)] = ()


Taints = Annotated[tuple[Taint, ...], Meta(max_length=MAX_TERMS)]

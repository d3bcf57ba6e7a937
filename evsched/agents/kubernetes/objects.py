"""The objects of the Kubernetes API, as far as the agent reads them.

Only fields that a proposal is made from are named, under the names that the API gives them; the
decoder passes over everything else. So an object of a later release is read as long as these fields
keep their meaning, and fifty thousand pods cost no more than what is used of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

# The API leaves an empty list or mapping out or writes null, and both mean the same.
Quantities = dict[str, str | int]
StringMap = dict[str, str]


class ApiStruct(Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all parts of an API object."""


class OwnerReference(ApiStruct, frozen=True):
    """Who owns an object; at most one owner is its controller."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(ApiStruct, frozen=True):
    """Who an object is. Name and uid together are one object; a name alone may come again."""

    name: str
    uid: str = ""
    resource_version: str = ""
    namespace: str = ""
    labels: StringMap | None = None
    annotations: StringMap | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class ApiObject(ApiStruct, frozen=True):
    """An object that is listed and watched."""

    metadata: ObjectMeta


class Resources(ApiStruct, frozen=True):
    """What is requested; limits are no matter of a scheduler."""

    requests: Quantities | None = None


class Container(ApiStruct, frozen=True):
    """A container; an init container with ``restartPolicy: Always`` is a sidecar."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """What a kubelet has given a container, which a resize in place may change."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: Quantities | None = None


class TaintFound(ApiStruct, frozen=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str | None = None


class TolerationFound(ApiStruct, frozen=True):
    """A toleration of a pod."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class RequirementFound(ApiStruct, frozen=True):
    """A condition on labels or fields."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class SelectorTermFound(ApiStruct, frozen=True):
    """Conditions on a node that hold together."""

    match_expressions: tuple[RequirementFound, ...] | None = None
    match_fields: tuple[RequirementFound, ...] | None = None


class NodeSelectorFound(ApiStruct, frozen=True):
    """Terms of which one has to match."""

    node_selector_terms: tuple[SelectorTermFound, ...] | None = None


class NodeAffinityFound(ApiStruct, frozen=True):
    """On which nodes a pod has to run, and on which it would like to."""

    required: NodeSelectorFound | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[Raw, ...] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class LabelSelectorFound(ApiStruct, frozen=True):
    """Which pods are meant."""

    match_labels: StringMap | None = None
    match_expressions: tuple[RequirementFound, ...] | None = None


class PodTermFound(ApiStruct, frozen=True):
    """Pods beside which, or apart from which, a pod runs."""

    topology_key: str = ""
    label_selector: LabelSelectorFound | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelectorFound | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class PodAffinityFound(ApiStruct, frozen=True):
    """Affinity or anti-affinity between pods."""

    required: tuple[PodTermFound, ...] | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[Raw, ...] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(ApiStruct, frozen=True):
    """All that draws a pod to nodes and other pods, and away from them."""

    node_affinity: NodeAffinityFound | None = None
    pod_affinity: PodAffinityFound | None = None
    pod_anti_affinity: PodAffinityFound | None = None


class ObjectName(ApiStruct, frozen=True):
    """Something of which only the name matters."""

    name: str = ""


class Volume(ApiStruct, frozen=True):
    """A volume, of which only a claim binds a pod to nodes."""

    name: str = ""
    persistent_volume_claim: Raw | None = None
    ephemeral: Raw | None = None


class ContainerPort(ApiStruct, frozen=True):
    """A port, which counts when it is one of the node."""

    host_port: int | None = None


class ContainerWithPorts(Container, frozen=True):
    """A container of a pod's main list."""

    ports: tuple[ContainerPort, ...] | None = None


class Condition(ApiStruct, frozen=True):
    """One condition of a status."""

    type: str
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


def holding(conditions: tuple[Condition, ...] | None, kind: str) -> Condition | None:
    """Return a condition that holds; None: it is not there, or does not."""
    return next(
        (one for one in conditions or () if one.type == kind and one.status == "True"), None
    )


class PodSpec(ApiStruct, frozen=True):
    """What a pod asks for."""

    containers: tuple[ContainerWithPorts, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    overhead: Quantities | None = None
    resources: Resources | None = None
    node_name: str = ""
    scheduler_name: str = ""
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: StringMap | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationFound, ...] | None = None
    scheduling_gates: tuple[ObjectName, ...] | None = None
    topology_spread_constraints: tuple[Raw, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[Raw, ...] | None = None


class PodStatus(ApiStruct, frozen=True):
    """What has become of a pod."""

    phase: str = ""
    reason: str | None = None
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None


class PodObject(ApiObject, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(ApiStruct, frozen=True):
    """What an administrator says of a node."""

    unschedulable: bool | None = None
    taints: tuple[TaintFound, ...] | None = None


class NodeStatus(ApiStruct, frozen=True):
    """What a kubelet says of its node."""

    allocatable: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None


class NodeObject(ApiObject, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PriorityClass(ApiObject, frozen=True):
    """A priority class. Its value is in each pod already; YuniKorn's word on preemption is not."""


class Namespace(ApiObject, frozen=True):
    """A namespace, whose annotations may hold YuniKorn's quotas."""


class ConfigMap(ApiObject, frozen=True):
    """A configuration as text."""

    data: StringMap | None = None


class ObjectKind(Struct, frozen=True):
    """A kind of object that is watched.

    Attributes:
        name: As the API names it.
        path: Of the collection; query parameters that choose among its objects may follow.
        model: What one object is read as.
    """

    name: str
    path: str
    model: type[ApiObject]


NODES = ObjectKind("Node", "/api/v1/nodes", NodeObject)
PODS = ObjectKind("Pod", "/api/v1/pods", PodObject)
PRIORITY_CLASSES = ObjectKind(
    "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass
)
NAMESPACES = ObjectKind("Namespace", "/api/v1/namespaces", Namespace)

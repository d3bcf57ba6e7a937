"""The answers of YuniKorn's scheduler API, in its names, units and order of fields.

A field without a default is always there. One with a default is left out while it is empty, zero or
false, as Go's ``omitempty`` does. Amounts are in base units, which are the same here and there. Times
are nanoseconds since the epoch, but for `ApplicationInfo.start_time`, which YuniKorn gives in milliseconds.
"""

from __future__ import annotations

from msgspec import Struct, field

from events.configuration import Amounts

Texts = dict[str, str]

NS = 1_000_000
"""Nanoseconds in a millisecond."""


class Info(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of all answers."""


class ProblemInfo(Info, frozen=True, kw_only=True, rename=None):
    """What YuniKorn says where it has no answer; ``status_code`` is that of the response."""

    status_code: int
    message: str
    description: str


# ---------------------------------------------------------------------------- clusters, partitions


class ClusterInfo(Info, frozen=True, kw_only=True):
    """One partition of ``clusters``."""

    start_time: int = 0
    rm_build_information: list[Texts] = field(default_factory=list, name="rmBuildInformation")
    partition: str
    cluster_name: str


class CapacityInfo(Info, frozen=True, kw_only=True):
    """What the nodes of a partition have and what of it is used; ``utilization`` in percent."""

    capacity: Amounts = field(default_factory=dict)
    used_capacity: Amounts = field(default_factory=dict)
    utilization: Amounts = field(default_factory=dict)


class NodeSortingInfo(Info, frozen=True, kw_only=True):
    """How nodes are ordered; weights are fractions, which nothing is decided by here."""

    type: str = ""
    resource_weights: dict[str, float] = field(default_factory=dict)


class PartitionInfo(Info, frozen=True, kw_only=True):
    """One partition of ``partitions``."""

    cluster_id: str
    name: str
    capacity: CapacityInfo
    node_sorting_policy: NodeSortingInfo
    preemption_enabled: bool
    quota_preemption_enabled: bool
    total_nodes: int = 0
    applications: dict[str, int] = field(default_factory=dict)
    total_containers: int = 0
    state: str = ""
    last_state_transition_time: int = 0


class RuleFilterInfo(Info, frozen=True, kw_only=True):
    """For whom a placement rule holds."""

    type: str
    user_list: list[str] = field(default_factory=list)
    group_list: list[str] = field(default_factory=list)
    user_exp: str = ""
    group_exp: str = ""


class RuleInfo(Info, frozen=True, kw_only=True):
    """One placement rule."""

    name: str
    parameters: Texts = field(default_factory=dict)
    filter: RuleFilterInfo | None = None
    parent_rule: RuleInfo | None = None


class RulesInfo(Info, frozen=True, kw_only=True):
    """The placement rules of a partition."""

    partition: str
    rules: list[RuleInfo] = field(default_factory=list)


# ------------------------------------------------------------------------------------------ queues


class TemplateInfo(Info, frozen=True, kw_only=True):
    """What a dynamic queue below a parent gets."""

    max_applications: int = 0
    max_resource: Amounts = field(default_factory=dict)
    guaranteed_resource: Amounts = field(default_factory=dict)
    properties: Texts = field(default_factory=dict)


class QueueInfo(Info, frozen=True, kw_only=True):
    """One queue; with ``children`` in the tree, with ``childNames`` also alone."""

    queuename: str
    status: str = ""
    partition: str
    pending_resource: Amounts = field(default_factory=dict)
    max_resource: Amounts = field(default_factory=dict)
    guaranteed_resource: Amounts = field(default_factory=dict)
    allocated_resource: Amounts = field(default_factory=dict)
    preempting_resource: Amounts = field(default_factory=dict)
    headroom: Amounts = field(default_factory=dict)
    is_leaf: bool
    is_managed: bool
    properties: Texts = field(default_factory=dict)
    parent: str = ""
    template: TemplateInfo | None = None
    children: list[QueueInfo] = field(default_factory=list)
    child_names: list[str] = field(default_factory=list)
    abs_used_capacity: Amounts = field(default_factory=dict)
    max_running_apps: int = 0
    running_apps: int = 0
    current_priority: int
    allocating_accepted_apps: list[str] = field(default_factory=list)
    sorting_policy: str = ""
    priority_sorting: bool
    preemption_enabled: bool
    is_preemption_fence: bool
    preemption_delay: str = ""
    quota_preemption_delay: str = ""
    is_priority_fence: bool
    priority_offset: int = 0


# ------------------------------------------------------------------------ applications, asks, nodes


class SaidInfo(Info, frozen=True, kw_only=True):
    """Why an ask was not allocated, how often, and when last."""

    message: str = ""
    last_occurrence: int = 0
    count: int = 0


class AskInfo(Info, frozen=True, kw_only=True):
    """A task that waits (``requests`` of an application)."""

    allocation_key: str
    allocation_tags: Texts = field(default_factory=dict)
    request_time: int = 0
    resource: Amounts = field(default_factory=dict)
    priority: str = ""
    required_node_id: str = ""
    application_id: str = ""
    placeholder: bool = False
    task_group_name: str = ""
    allocation_log: list[SaidInfo] = field(default_factory=list)
    triggered_preemption: bool = False
    originator: bool = False
    scheduling_attempted: bool = False
    triggered_scale_up: bool = False


class AllocationInfo(Info, frozen=True, kw_only=True):
    """A task that runs."""

    allocation_key: str
    allocation_tags: Texts = field(default_factory=dict)
    request_time: int = 0
    allocation_time: int = 0
    allocation_delay: int = 0
    resource: Amounts = field(default_factory=dict)
    priority: str = ""
    node_id: str = ""
    application_id: str = ""
    placeholder: bool = False
    placeholder_used: bool = False
    task_group_name: str = ""
    preempted: bool = False
    originator: bool = False


class StateChangeInfo(Info, frozen=True, kw_only=True):
    """When an application came into a state."""

    time: int = 0
    application_state: str = ""


class ResourceHistoryInfo(Info, frozen=True, kw_only=True):
    """What an application used so far: instance type to resource to amount-seconds."""

    resource_usage: dict[str, Amounts] = field(default_factory=dict)
    preempted_resource: dict[str, Amounts] = field(default_factory=dict)
    placeholder_resource: dict[str, Amounts] = field(default_factory=dict)


NOTHING_USED = ResourceHistoryInfo()
"""Left out of an answer."""


class ApplicationInfo(Info, frozen=True, kw_only=True):
    """One application; ``startTime`` alone is in milliseconds, ``backoffDeadline`` is RFC 3339."""

    application_id: str = field(name="applicationID")
    used_resource: Amounts = field(default_factory=dict)
    max_used_resource: Amounts = field(default_factory=dict)
    pending_resource: Amounts = field(default_factory=dict)
    partition: str
    queue_name: str
    submission_time: int = 0
    finished_time: int = 0
    requests: list[AskInfo] = field(default_factory=list)
    allocations: list[AllocationInfo] = field(default_factory=list)
    application_state: str = ""
    user: str = ""
    groups: list[str] = field(default_factory=list)
    rejected_message: str = ""
    state_log: list[StateChangeInfo] = field(default_factory=list)
    placeholder_data: list[Texts] = field(default_factory=list)
    has_reserved: bool = False
    reservations: list[str] = field(default_factory=list)
    max_request_priority: int = 0
    start_time: int = 0
    resource_history: ResourceHistoryInfo = NOTHING_USED
    backoff_deadline: str = ""


class NodeInfo(Info, frozen=True, kw_only=True):
    """One node; ``utilized`` in percent."""

    node_id: str = field(name="nodeID")
    host_name: str = ""
    rack_name: str = ""
    attributes: Texts = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    occupied: Amounts = field(default_factory=dict)
    available: Amounts = field(default_factory=dict)
    utilized: Amounts = field(default_factory=dict)
    allocations: list[AllocationInfo] = field(default_factory=list)
    foreign_allocations: list[AllocationInfo] = field(default_factory=list)
    schedulable: bool
    is_reserved: bool
    reservations: list[str] = field(default_factory=list)


class BucketInfo(Info, frozen=True, kw_only=True):
    """The nodes of which so much is used."""

    bucket_name: str = ""
    num_of_nodes: int = 0
    node_names: list[str] = field(default_factory=list)


class UtilizationInfo(Info, frozen=True, kw_only=True):
    """Ten buckets for one resource."""

    type: str = ""
    utilization: list[BucketInfo] = field(default_factory=list)


class UtilizationsInfo(Info, frozen=True, kw_only=True):
    """How many nodes of a partition are how full, by resource."""

    cluster_id: str
    partition: str
    utilizations: list[UtilizationInfo] = field(default_factory=list)


# ---------------------------------------------------------------------------------- users, groups


class UsageInfo(Info, frozen=True, kw_only=True):
    """What a user or group uses in a queue and below."""

    queue_path: str
    resource_usage: Amounts = field(default_factory=dict)
    running_applications: list[str] = field(default_factory=list)
    max_resources: Amounts = field(default_factory=dict)
    max_applications: int = 0
    children: list[UsageInfo] = field(default_factory=list)


class UserUsageInfo(Info, frozen=True, kw_only=True):
    """What a user uses; ``groups`` is application to the group that it counts for."""

    user_name: str
    groups: Texts = field(default_factory=dict)
    queues: UsageInfo


class GroupUsageInfo(Info, frozen=True, kw_only=True):
    """What the applications that count for a group use."""

    group_name: str
    applications: list[str] = field(default_factory=list)
    queues: UsageInfo


# ------------------------------------------------------------------- history, events, health, dump


class AppsThenInfo(Info, frozen=True, kw_only=True):
    """How many applications ran at a time."""

    timestamp: int = 0
    total_applications: str = ""


class ContainersThenInfo(Info, frozen=True, kw_only=True):
    """How many allocations there were at a time."""

    timestamp: int = 0
    total_containers: str = ""


class QuantityInfo(Info, frozen=True, kw_only=True):
    """One amount in an event record."""

    value: int = 0


class EventAmountsInfo(Info, frozen=True, kw_only=True):
    """The amounts in an event record."""

    resources: dict[str, QuantityInfo] = field(default_factory=dict)


NO_AMOUNTS = EventAmountsInfo()
"""Left out of an answer."""


class EventRecordInfo(Info, frozen=True, kw_only=True):
    """One event; the numbers are those of YuniKorn's scheduler interface."""

    type: int = 0
    object_id: str = field(default="", name="objectID")
    message: str = ""
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0
    reference_id: str = field(default="", name="referenceID")
    resource: EventAmountsInfo = NO_AMOUNTS


class EventBatchInfo(Info, frozen=True, kw_only=True, rename="pascal"):
    """Events of a range; ids count from 0."""

    instance_uuid: str = field(name="InstanceUUID")
    lowest_id: int = field(name="LowestID")
    highest_id: int = field(name="HighestID")
    event_records: list[EventRecordInfo]


class InstanceInfo(Info, frozen=True, kw_only=True):
    """The first line of the stream of events."""

    instance_uuid: str = field(name="InstanceUUID")


class HealthCheckInfo(Info, frozen=True, kw_only=True, rename="pascal"):
    """One thing that was looked at."""

    name: str = ""
    succeeded: bool
    description: str = ""
    diagnosis_message: str = ""


class HealthInfo(Info, frozen=True, kw_only=True, rename="pascal"):
    """Whether all is well."""

    healthy: bool
    health_checks: list[HealthCheckInfo] = field(default_factory=list)


class ValidatedInfo(Info, frozen=True, kw_only=True):
    """Whether a queues.yaml could be applied."""

    allowed: bool
    reason: str = ""


class PartitionNodesInfo(Info, frozen=True, kw_only=True):
    """The nodes of a partition, in the dump."""

    partition_name: str
    nodes: list[NodeInfo]


class DumpInfo(Info, frozen=True, kw_only=True):
    """All that is known."""

    timestamp: int = 0
    partitions: list[PartitionInfo] = field(default_factory=list)
    applications: list[ApplicationInfo] = field(default_factory=list)
    app_history: list[AppsThenInfo] = field(default_factory=list)
    nodes: list[PartitionNodesInfo] = field(default_factory=list)
    cluster_info: list[ClusterInfo] = field(default_factory=list)
    container_history: list[ContainersThenInfo] = field(default_factory=list)
    queues: list[QueueInfo] = field(default_factory=list)
    placement_rules: list[RulesInfo] = field(default_factory=list)
    users: list[UserUsageInfo] = field(default_factory=list)
    groups: list[GroupUsageInfo] = field(default_factory=list)
    rm_diagnostics: Texts = field(default_factory=dict)
    log_level: str = ""
    config: dict[str, object] = field(default_factory=dict)

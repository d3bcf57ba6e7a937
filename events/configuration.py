"""The configuration of a cluster partition as an event carries it: parsed, exact, independent of the file it came from.

Amounts are integers in base units: millicores for ``cpu`` and ``vcore``, bytes for ``memory`` and
``ephemeral-storage``, pieces otherwise. ``None`` means that nothing was set, which is neither zero
nor unlimited: an unset maximum does not limit, an unset guarantee guarantees nothing.

Properties of a YuniKorn queue travel as they were written; `evsched.core.yunikorn.settings` gives
them their meaning, for queues of the file and for dynamic queues alike.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from events.bounds import Amount, Count, LastingSpan, Number, Priority, SettingNumber, Span, Sum

Amounts = dict[str, Amount]
"""Resource name to amount in base units."""


class Spec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Base of all parts of a configuration."""


class LimitSpec(Spec, frozen=True, kw_only=True):
    """A limit on what users or groups may use in a queue (``limits`` of queues.yaml).

    Attributes:
        description: The text of the key ``limit``.
        users: User names, or ``*`` for every user that has no limit of its own.
        groups: Group names, or ``*``.
        max_resources: Most that each of them may use; None: not limited.
        max_applications: Most applications each of them may run; 0: not limited.
    """

    description: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: Amounts | None = None
    max_applications: Count = 0


class TemplateSpec(Spec, frozen=True, kw_only=True):
    """What a dynamic queue gets when it is created below the queue that has this template (``childtemplate``)."""

    guaranteed: Amounts | None = None
    maximum: Amounts | None = None
    max_applications: Count = 0
    properties: dict[str, str] = {}
    quota_preemption_delay_ms: Span | None = None


class QueueSpec(Spec, frozen=True, kw_only=True):
    """A queue of queues.yaml with everything below it.

    Attributes:
        name: The last part of the path, lower case; ``root`` at the top.
        parent: True when the queue holds queues and never applications.
        maximum: In a file a zero counts as not set, as for the real loader; a zero here lets nobody
            use the resource.
        quota_preemption_delay_ms: ``resources: quota.preemption.delay`` (seconds in the file); None
            when absent.
    """

    name: str
    parent: bool = False
    queues: tuple[QueueSpec, ...] = ()
    guaranteed: Amounts | None = None
    maximum: Amounts | None = None
    quota_preemption_delay_ms: Span | None = None
    max_applications: Count = 0
    submit_acl: str = ""
    admin_acl: str = ""
    properties: dict[str, str] = {}
    template: TemplateSpec | None = None
    limits: tuple[LimitSpec, ...] = ()


class FilterSpec(Spec, frozen=True, kw_only=True):
    """For whom a placement rule holds; one entry may be a regular expression, several are plain names."""

    allow: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class PlacementRuleSpec(Spec, frozen=True, kw_only=True):
    """One rule that finds the queue of an application (``placementrules``)."""

    name: Literal["fixed", "tag", "user", "provided"]
    create: bool = False
    value: str = ""
    filter: FilterSpec | None = None
    parent: PlacementRuleSpec | None = None


class PaceSpec(Spec, frozen=True, kw_only=True):
    """How fast a partition may preempt (``preemption.pace.*``; seed cross_queue_preemption, answer 1).

    Attributes:
        interval_ms: Shortest time between two preemption cycles.
        max_victims: Most victims of one cycle; None: not limited.
        max_resources: Most that the victims of one cycle may hold together, by resource; None: not
            limited.
    """

    interval_ms: LastingSpan = 1000
    max_victims: Number | None = None
    max_resources: Amounts | None = None


class YunikornSpec(Spec, frozen=True, kw_only=True, tag="yunikorn", tag_field="format"):
    """One partition of queues.yaml.

    Attributes:
        limits: The limits of the partition as written; those that hold are the root queue's, which
            has them too.
        eviction_grace_ms: Time a victim has to leave before its eviction is repeated.
        eviction_attempts: How often an eviction is asked for before the preemption is withdrawn.
        cost: Name of the cost function that chooses among lawful plans.
        quota_miss_percent: Share of a quota target, in percent, that may stay unmet.
    """

    partition: str = "default"
    root: QueueSpec
    placement_rules: tuple[PlacementRuleSpec, ...] = ()
    limits: tuple[LimitSpec, ...] = ()
    preemption_enabled: bool = True
    quota_preemption_enabled: bool = False
    quota_miss_percent: Annotated[int, Meta(ge=0, le=100)] = 100
    node_sort_policy: Literal["fair", "binpacking"] = "fair"
    node_sort_weights: dict[str, Annotated[int, Meta(ge=0, le=10**9)]] = {}
    """Weight by resource in thousandths; resources that are not named weigh 1000."""
    user_group_resolver: str = ""
    pace: PaceSpec = PaceSpec()
    eviction_grace_ms: LastingSpan = 30_000
    eviction_attempts: Annotated[int, Meta(ge=1, le=1000)] = 5
    cost: str = "default"


class QuotaSpec(Spec, frozen=True, kw_only=True):
    """Quota of one resource in one flavor; limits that are None do not limit."""

    nominal: Sum
    borrowing_limit: Sum | None = None
    lending_limit: Sum | None = None


class FlavorQuotaSpec(Spec, frozen=True, kw_only=True):
    """The quotas of one flavor in a resource group, by resource name, in manifest order."""

    flavor: str
    quotas: dict[str, QuotaSpec]


class ResourceGroupSpec(Spec, frozen=True, kw_only=True):
    """Resources that are assigned one flavor together."""

    resources: tuple[str, ...]
    flavors: tuple[FlavorQuotaSpec, ...]


class CohortSpec(Spec, frozen=True, kw_only=True):
    """A Cohort. A cohort that is only named by others exists too, without quota."""

    name: str
    parent: str | None = None
    groups: tuple[ResourceGroupSpec, ...] = ()
    weight_nano: Sum = 1_000_000_000
    """Fair sharing weight in billionths, exact."""


class ClusterQueueSpec(Spec, frozen=True, kw_only=True):
    """A ClusterQueue.

    Attributes:
        max_priority_threshold: ``borrowWithinCohort.maxPriorityThreshold``; None: no threshold.
        quota_preemption_delay_ms: From our annotation; 0: a lowered nominal quota evicts nobody.
        accepts_all_namespaces: False when ``namespaceSelector`` is null (nobody may submit) or
            names namespaces.
        namespaces: The namespaces that may submit when not all may.
    """

    name: str
    cohort: str | None = None
    groups: tuple[ResourceGroupSpec, ...] = ()
    strict_fifo: bool = False
    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    borrow_within_cohort: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: Priority | None = None
    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor"] = "MayStopSearch"
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None
    weight_nano: Sum = 1_000_000_000
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"
    accepts_all_namespaces: bool = True
    namespaces: tuple[str, ...] = ()
    quota_preemption_delay_ms: Span = 0


class FlavorSpec(Spec, frozen=True, kw_only=True):
    """A ResourceFlavor: a name and the labels of the nodes it stands for."""

    name: str
    node_labels: dict[str, str] = {}


class LocalQueueSpec(Spec, frozen=True, kw_only=True):
    """A LocalQueue: the name that the users of a namespace submit to."""

    name: str
    namespace: str
    cluster_queue: str
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"


class KueueSpec(Spec, frozen=True, kw_only=True, tag="kueue", tag_field="format"):
    """All Kueue manifests of a partition.

    Attributes:
        fair_strategies: In their order; empty when the classic algorithm is used.
        priority_classes: WorkloadPriorityClass name to value.
        preempt_within_nominal: Gate FairSharingPreemptWithinNominal: an ask within its nominal
            quota preempts without looking at shares.
        recompute_on_overlap: Gate RecomputeAssignmentUponPreemptionTargetsOverlap: an ask whose
            victims another ask of the cycle took already searches again.
        prioritize_non_borrowing: Gate FairSharingPrioritizeNonBorrowing: who does not borrow is
            considered first.
    """

    partition: str = "default"
    flavors: tuple[FlavorSpec, ...] = ()
    cohorts: tuple[CohortSpec, ...] = ()
    cluster_queues: tuple[ClusterQueueSpec, ...] = ()
    local_queues: tuple[LocalQueueSpec, ...] = ()
    priority_classes: dict[str, Priority] = {}
    fair_sharing: bool = False
    fair_strategies: tuple[Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"], ...] = ()
    preempt_within_nominal: bool = True
    recompute_on_overlap: bool = True
    prioritize_non_borrowing: bool = True


Setting = str | SettingNumber | bool
"""One value of a section of a `CustomSpec`."""


class CustomSpec(Spec, frozen=True, kw_only=True, tag="custom", tag_field="format"):
    """The configuration of a family of policies that was added to evsched.

    Attributes:
        family: The name of the family. A process that does not know it refuses the configuration.
        sections: Section to key to value; the family alone gives them a meaning.
    """

    partition: str = "default"
    family: Annotated[str, Meta(min_length=1, max_length=64)]
    sections: dict[str, dict[str, Setting]] = {}


Configuration = YunikornSpec | KueueSpec | CustomSpec

"""Kueue manifests to the model: one configuration from all documents of all files.

The spellings of the API versions v1alpha1, v1beta1 and v1beta2 are taken. Fields that Kueue has and
evsched does not model are accepted with a warning, what neither knows is refused. Whether what the
manifests say makes sense is judged on the model by `evsched.core.configuration_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    KueueSpec,
    LocalQueueSpec,
)
from evsched.config.document import ParsedNode
from evsched.config.places import Places
from evsched.config.quotas import read_groups, read_weight
from evsched.config.reading import Reader, get
from evsched.core.duration import DurationError, parse_duration_ms

MAX_INT32 = 2**31 - 1
QUOTA_DELAY_ANNOTATION = "evsched.io/quota-preemption-delay"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_GROUP = "kueue.x-k8s.io"
_CONFIG_GROUP = "config.kueue.x-k8s.io"
_VERSIONS = ("v1alpha1", "v1beta1", "v1beta2")
_KINDS = (
    "ClusterQueue",
    "Cohort",
    "ResourceFlavor",
    "LocalQueue",
    "WorkloadPriorityClass",
    "Configuration",
)
_NOT_DECIDED = {
    "AdmissionCheck": "no workload waits for an admission check",
    "Topology": "nodes are not chosen by their topology",
    "MultiKueueConfig": "no workload is sent to another cluster",
    "MultiKueueCluster": "no workload is sent to another cluster",
    "ProvisioningRequestConfig": "no nodes are asked for",
    "Workload": "workloads are proposed (`evsched submit`), not configured",
}
"""Kinds of Kueue that are read past, and what is therefore not decided."""

GROUPS = (_GROUP, _CONFIG_GROUP)
"""The API groups whose objects are read."""

_OBJECT_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")

_NOT_MODELLED: dict[str, tuple[str, ...]] = {
    "ClusterQueue": (
        "admissionChecks",
        "admissionChecksStrategy",
        "admissionScope",
        "concurrentAdmissionPolicy",
    ),
    "ResourceFlavor": ("nodeTaints", "tolerations", "topologyName"),
    "LocalQueue": ("fairSharing",),
    "Configuration": (
        "namespace",
        "health",
        "metrics",
        "webhook",
        "manager",
        "controller",
        "leaderElection",
        "internalCertManagement",
        "waitForPodsReady",
        "manageJobsWithoutQueueName",
        "managedJobsNamespaceSelector",
        "clientConnection",
        "integrations",
        "queueVisibility",
        "multiKueue",
        "resources",
        "admissionFairSharing",
        "objectRetentionPolicies",
        "visibilityServer",
        "tls",
    ),
}
_GATES = {
    "FairSharingPreemptWithinNominal": "preempt_within_nominal",
    "RecomputeAssignmentUponPreemptionTargetsOverlap": "recompute_on_overlap",
    "FairSharingPrioritizeNonBorrowing": "prioritize_non_borrowing",
}
_FINAL: Literal["LessThanOrEqualToFinalShare"] = "LessThanOrEqualToFinalShare"
_INITIAL: Literal["LessThanInitialShare"] = "LessThanInitialShare"


class _Manifests:
    """What has been read so far, in the order of the documents."""

    def __init__(self, reader: Reader, places: Places) -> None:
        self.reader = reader
        self.places = places
        self.cluster_queues: list[ClusterQueueSpec] = []
        self.cohorts: list[CohortSpec] = []
        self.flavors: list[FlavorSpec] = []
        self.local_queues: list[LocalQueueSpec] = []
        self.priority_classes: dict[str, int] = {}
        self.settings: dict[str, Any] | None = None


def read_manifests(documents: tuple[ParsedNode, ...], reader: Reader, places: Places) -> KueueSpec:
    """Return the configuration that all manifests make together; faults are left with the reader, places with the places."""
    read = _Manifests(reader, places)
    for document in documents:
        _read_object(document, read)
    return KueueSpec(
        flavors=tuple(read.flavors),
        cohorts=tuple(read.cohorts),
        cluster_queues=tuple(read.cluster_queues),
        local_queues=tuple(read.local_queues),
        priority_classes=read.priority_classes,
        **(read.settings or {}),
    )


def _read_object(node: ParsedNode, read: _Manifests) -> None:
    """Read one manifest of whatever kind."""
    reader = read.reader
    if node.kind != "mapping":
        reader.refuse(node, f"found {node.found()}, expected a manifest")
        return
    kind, (group, _, version) = (
        get(node.fields, "kind").text,
        get(node.fields, "apiVersion").text.partition("/"),
    )
    if kind in _NOT_DECIDED and group == _GROUP:
        reader.warn(node.fields["kind"], f"{kind} has no effect: {_NOT_DECIDED[kind]}")
        return
    if kind not in _KINDS:
        reader.refuse(
            get(node.fields, "kind") if "kind" in node.fields else node,
            f"found the kind {kind!r}, expected one of {', '.join(_KINDS)}",
        )
        return
    expected_group = _CONFIG_GROUP if kind == "Configuration" else _GROUP
    if group != expected_group or version not in _VERSIONS:
        place = node.fields.get("apiVersion", node)
        reader.refuse(
            place,
            f"found the apiVersion {place.text!r}, expected {expected_group}/{{{', '.join(_VERSIONS)}}}",
        )
    match kind:
        case "ClusterQueue":
            _cluster_queue(node, read, version)
        case "Cohort":
            _cohort(node, read)
        case "ResourceFlavor":
            _flavor(node, read)
        case "LocalQueue":
            _local_queue(node, read)
        case "WorkloadPriorityClass":
            _priority_class(node, read)
        case _:
            _configuration(node, read, version)


def _named(
    node: ParsedNode, read: _Manifests, keys: tuple[str, ...] = _OBJECT_KEYS
) -> tuple[Mapping[str, ParsedNode], str, Mapping[str, ParsedNode]]:
    """Return the fields of a manifest, its name, and the fields of its metadata."""
    fields = read.reader.mapping(node, keys)
    # What else stands in the metadata is the business of Kubernetes.
    metadata = read.reader.mapping(get(fields, "metadata"))
    if "name" not in metadata:
        read.reader.refuse(
            get(fields, "metadata") if "metadata" in fields else node,
            "found no name, expected metadata.name",
        )
    return fields, read.reader.text(get(metadata, "name")), metadata


def _spec(
    node: ParsedNode, read: _Manifests, kind: str, keys: tuple[str, ...]
) -> tuple[Mapping[str, ParsedNode], str, Mapping[str, ParsedNode]]:
    """Return the fields of a manifest's spec, its name, and the fields of its metadata; their places are noted."""
    fields, name, metadata = _named(node, read)
    spec = read.reader.mapping(get(fields, "spec"), keys, _NOT_MODELLED.get(kind, ()))
    subject = (
        f"{kind} {name}"
        if kind != "LocalQueue"
        else f"{kind} {get(metadata, 'namespace').text or 'default'}/{name}"
    )
    read.places.note(subject, get(metadata, "name"), node, spec)
    return spec, name, metadata


def _either(spec: Mapping[str, ParsedNode], old: str, new: str, reader: Reader) -> str | None:
    """Return a name that has had two spellings; None when it is absent or empty."""
    if old in spec and new in spec:
        reader.refuse(spec[old], f"found {old} and {new}, expected one of them")
    return reader.text(get(spec, new, old)) or None


def _cluster_queue(node: ParsedNode, read: _Manifests, version: str) -> None:
    """Read a ClusterQueue."""
    reader = read.reader
    keys = (
        "cohort",
        "cohortName",
        "queueingStrategy",
        "resourceGroups",
        "preemption",
        "flavorFungibility",
    )
    spec, name, metadata = _spec(
        node, read, "ClusterQueue", (*keys, "fairSharing", "stopPolicy", "namespaceSelector")
    )
    annotations = reader.mapping(get(metadata, "annotations"))
    for key, value in annotations.items():
        # Those of others are theirs; a slip in our own would switch something off in silence.
        if key.startswith("evsched") and key != QUOTA_DELAY_ANNOTATION:
            reader.refuse(
                value, f"found the unknown annotation {key!r}, expected {QUOTA_DELAY_ANNOTATION}"
            )
    everybody, namespaces = _namespaces(node, spec, reader)
    read.cluster_queues.append(
        ClusterQueueSpec(
            name=name,
            cohort=_either(spec, "cohort", "cohortName", reader),
            groups=read_groups(get(spec, "resourceGroups"), reader),
            strict_fifo=reader.word(
                get(spec, "queueingStrategy"),
                {"BestEffortFIFO": False, "StrictFIFO": True},
                default=False,
            ),
            weight_nano=read_weight(get(spec, "fairSharing"), reader),
            stop_policy=_stop_policy(spec, reader),
            accepts_all_namespaces=everybody,
            namespaces=namespaces,
            quota_preemption_delay_ms=reader.parsed(
                get(annotations, QUOTA_DELAY_ANNOTATION), _delay_ms, 0
            ),
            **_preemption(get(spec, "preemption"), reader),
            **_fungibility(get(spec, "flavorFungibility"), reader, version),
        )
    )


def _preemption(node: ParsedNode, reader: Reader) -> dict[str, Any]:
    """Return what a ClusterQueue says about preemption."""
    fields = reader.mapping(
        node, ("withinClusterQueue", "reclaimWithinCohort", "borrowWithinCohort")
    )
    borrow = reader.mapping(get(fields, "borrowWithinCohort"), ("policy", "maxPriorityThreshold"))
    threshold = get(borrow, "maxPriorityThreshold")
    within = {word: word for word in ("Never", "LowerPriority", "LowerOrNewerEqualPriority")}
    reclaim = {word: word for word in ("Never", "LowerPriority", "Any")}
    return {
        "within_cluster_queue": reader.word(get(fields, "withinClusterQueue"), within, "Never"),
        "reclaim_within_cohort": reader.word(get(fields, "reclaimWithinCohort"), reclaim, "Never"),
        "borrow_within_cohort": reader.word(
            get(borrow, "policy"), {word: word for word in ("Never", "LowerPriority")}, "Never"
        ),
        "max_priority_threshold": None
        if threshold.kind == "null"
        else reader.integer(threshold, -MAX_INT32 - 1, MAX_INT32),
    }


def _fungibility(node: ParsedNode, reader: Reader, version: str) -> dict[str, Any]:
    """Return what a ClusterQueue says about going on to its next flavor; v1beta1 had words of its own for staying."""
    fields = reader.mapping(node, ("whenCanBorrow", "whenCanPreempt", "preference"))
    words = {word: word for word in ("MayStopSearch", "TryNextFlavor")}
    old = version == "v1beta1"
    preference = {word: word for word in ("BorrowingOverPreemption", "PreemptionOverBorrowing")}
    return {
        "when_can_borrow": reader.word(
            get(fields, "whenCanBorrow"),
            words | ({"Borrow": "MayStopSearch"} if old else {}),
            "MayStopSearch",
        ),
        "when_can_preempt": reader.word(
            get(fields, "whenCanPreempt"),
            words | ({"Preempt": "MayStopSearch"} if old else {}),
            "TryNextFlavor",
        ),
        "preference": reader.word(get(fields, "preference"), {**preference}, None),
    }


def _namespaces(
    node: ParsedNode, spec: Mapping[str, ParsedNode], reader: Reader
) -> tuple[bool, tuple[str, ...]]:
    """Return whether all namespaces may submit, and those that may when not all may.

    A selector that is absent lets everybody submit (with a warning, as Kueue then lets nobody):
    without namespaces there is nobody to keep out. One that is null lets nobody. Labels of
    namespaces are unknown here but for the one that every namespace has.
    """
    written = get(node.fields, "spec").fields
    if "namespaceSelector" not in written:
        reader.warn(
            node, "has no namespaceSelector: every namespace may submit here, none could in Kueue"
        )
        return True, ()
    selector = get(spec, "namespaceSelector")
    if selector.kind == "null":
        return False, ()
    fields = reader.mapping(selector, ("matchLabels", "matchExpressions"))
    labels = reader.text_map(get(fields, "matchLabels"))
    expressions = [
        reader.mapping(item, ("key", "operator", "values"))
        for item in reader.items(get(fields, "matchExpressions"))
    ]
    if not labels and not expressions:
        return True, ()
    found = [{value} for value in labels.values()]
    known = set(labels) <= {NAMESPACE_LABEL}
    for expression in expressions:
        known = (
            known
            and get(expression, "key").text == NAMESPACE_LABEL
            and get(expression, "operator").text == "In"
        )
        found.append(set(reader.texts(get(expression, "values"))))
    if not known:
        reader.refuse(
            selector,
            f"found a selector by other labels, expected {NAMESPACE_LABEL} (matchLabels, or operator In)",
        )
    return False, tuple(sorted(set.intersection(*found)))


def _stop_policy(spec: Mapping[str, ParsedNode], reader: Reader) -> Any:
    """Return whether a queue is stopped."""
    return reader.word(
        get(spec, "stopPolicy"), {word: word for word in ("None", "Hold", "HoldAndDrain")}, "None"
    )


def _cohort(node: ParsedNode, read: _Manifests) -> None:
    """Read a Cohort."""
    spec, name, _ = _spec(
        node, read, "Cohort", ("parent", "parentName", "resourceGroups", "fairSharing")
    )
    read.cohorts.append(
        CohortSpec(
            name=name,
            parent=_either(spec, "parent", "parentName", read.reader),
            groups=read_groups(get(spec, "resourceGroups"), read.reader),
            weight_nano=read_weight(get(spec, "fairSharing"), read.reader),
        )
    )


def _flavor(node: ParsedNode, read: _Manifests) -> None:
    """Read a ResourceFlavor."""
    spec, name, _ = _spec(node, read, "ResourceFlavor", ("nodeLabels",))
    read.flavors.append(
        FlavorSpec(name=name, node_labels=read.reader.text_map(get(spec, "nodeLabels")))
    )


def _local_queue(node: ParsedNode, read: _Manifests) -> None:
    """Read a LocalQueue."""
    spec, name, metadata = _spec(node, read, "LocalQueue", ("clusterQueue", "stopPolicy"))
    if "clusterQueue" not in spec:
        read.reader.refuse(node, "found no spec.clusterQueue, expected the name of one")
    read.local_queues.append(
        LocalQueueSpec(
            name=name,
            namespace=read.reader.text(get(metadata, "namespace"), "default"),
            cluster_queue=read.reader.text(get(spec, "clusterQueue")),
            stop_policy=_stop_policy(spec, read.reader),
        )
    )


def _priority_class(node: ParsedNode, read: _Manifests) -> None:
    """Read a WorkloadPriorityClass."""
    fields, name, metadata = _named(
        node, read, ("apiVersion", "kind", "metadata", "value", "description")
    )
    read.places.note(f"WorkloadPriorityClass {name}", get(metadata, "name"), node, fields)
    if "value" not in fields:
        read.reader.refuse(node, "found no value, expected an integer")
    if name in read.priority_classes:
        read.reader.refuse(
            get(metadata, "name"),
            f"found WorkloadPriorityClass {name} a second time, expected once",
        )
    read.priority_classes[name] = read.reader.integer(
        get(fields, "value"), -MAX_INT32 - 1, MAX_INT32
    )


def _configuration(node: ParsedNode, read: _Manifests, version: str) -> None:
    """Read the Configuration, of which there may be one."""
    reader = read.reader
    if read.settings is not None:
        reader.refuse(node, "found a second Configuration, expected at most one")
    keys = ("apiVersion", "kind", "metadata", "fairSharing", "featureGates")
    fields = reader.mapping(node, keys, _NOT_MODELLED["Configuration"])
    read.places.note("Configuration", get(fields, "kind"), node, fields)
    fair, strategies = _fair_sharing(get(fields, "fairSharing"), reader, version)
    read.settings = {"fair_sharing": fair, "fair_strategies": strategies}
    for gate, value in reader.mapping(get(fields, "featureGates")).items():
        enabled = reader.boolean(value, default=True)
        if gate in _GATES:
            read.settings[_GATES[gate]] = enabled
        else:
            reader.warn(value, "is not modelled and has no effect")


def _fair_sharing(node: ParsedNode, reader: Reader, version: str) -> tuple[bool, tuple[Any, ...]]:
    """Return whether fair sharing is on, and its strategies; up to v1beta1 it had a switch, later its presence is one."""
    if node.kind == "null":
        return False, ()
    switched = version in {"v1alpha1", "v1beta1"}
    fields = reader.mapping(
        node, ("enable", "preemptionStrategies") if switched else ("preemptionStrategies",)
    )
    words = {_FINAL: _FINAL, _INITIAL: _INITIAL}
    strategies = tuple(
        reader.word(item, words, _FINAL)
        for item in reader.items(get(fields, "preemptionStrategies"))
    )
    fair = reader.boolean(get(fields, "enable"), default=False) if switched else True
    return fair, (strategies or (_FINAL, _INITIAL)) if fair else ()


def _delay_ms(text: str) -> int:
    """Return the delay of quota enforcement in milliseconds; 0 switches it off."""
    ms = parse_duration_ms(text)
    if ms < 0:
        raise DurationError(text, "a duration that is not negative")
    return ms

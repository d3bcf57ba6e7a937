"""Kueue manifests: what each kind becomes, both spellings, what is not modelled, and every fault at its place."""

from __future__ import annotations

import pytest

from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    FlavorSpec,
    KueueSpec,
    LocalQueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from evsched.config import ConfigurationError, from_mapping
from tests.config.manifest_texts import (
    FINAL,
    INITIAL,
    cohort,
    config,
    faults,
    group,
    load,
    load_one,
    queue,
)

FULL = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team-a
  labels: {app: x}
  annotations: {evsched.io/quota-preemption-delay: 2m}
  uid: 1234
  generation: 3
spec:
  cohortName: org
  queueingStrategy: StrictFIFO
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - name: spot
          resources:
            - {name: cpu, nominalQuota: 1.5, borrowingLimit: "2", lendingLimit: 500m}
            - {name: memory, nominalQuota: 10Gi}
    - coveredResources: [example.com/gpu]
      flavors: [{name: gpu, resources: [{name: example.com/gpu, nominalQuota: 4}]}]
  preemption:
    withinClusterQueue: LowerOrNewerEqualPriority
    reclaimWithinCohort: Any
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: -5}
  flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor, preference: PreemptionOverBorrowing}
  fairSharing: {weight: 250m}
  stopPolicy: Hold
status: {pendingWorkloads: 0}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: org}
spec:
  parentName: company
  fairSharing: {weight: 2}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 1, lendingLimit: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {type: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpu}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team-a}
spec: {clusterQueue: team-a, stopPolicy: HoldAndDrain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
description: for those in a hurry
---
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {}
featureGates: {FairSharingPreemptWithinNominal: false}
"""


def test_everything():
    """Each field of each kind becomes its field of the model."""
    assert load_one(FULL) == KueueSpec(
        flavors=(FlavorSpec(name="spot", node_labels={"type": "spot"}), FlavorSpec(name="gpu")),
        cohorts=(
            CohortSpec(
                name="org",
                parent="company",
                weight_nano=2 * 10**9,
                groups=(
                    ResourceGroupSpec(
                        resources=("cpu",),
                        flavors=(
                            FlavorQuotaSpec(
                                flavor="spot",
                                quotas={"cpu": QuotaSpec(nominal=1000, lending_limit=2000)},
                            ),
                        ),
                    ),
                ),
            ),
        ),
        cluster_queues=(
            ClusterQueueSpec(
                name="team-a",
                cohort="org",
                strict_fifo=True,
                within_cluster_queue="LowerOrNewerEqualPriority",
                reclaim_within_cohort="Any",
                borrow_within_cohort="LowerPriority",
                max_priority_threshold=-5,
                when_can_borrow="TryNextFlavor",
                when_can_preempt="TryNextFlavor",
                preference="PreemptionOverBorrowing",
                weight_nano=250_000_000,
                stop_policy="Hold",
                quota_preemption_delay_ms=120_000,
                groups=(
                    ResourceGroupSpec(
                        resources=("cpu", "memory"),
                        flavors=(
                            FlavorQuotaSpec(
                                flavor="spot",
                                quotas={
                                    "cpu": QuotaSpec(
                                        nominal=1500, borrowing_limit=2000, lending_limit=500
                                    ),
                                    "memory": QuotaSpec(nominal=10 * 2**30),
                                },
                            ),
                        ),
                    ),
                    ResourceGroupSpec(
                        resources=("example.com/gpu",),
                        flavors=(
                            FlavorQuotaSpec(
                                flavor="gpu", quotas={"example.com/gpu": QuotaSpec(nominal=4)}
                            ),
                        ),
                    ),
                ),
            ),
        ),
        local_queues=(
            LocalQueueSpec(
                name="main", namespace="team-a", cluster_queue="team-a", stop_policy="HoldAndDrain"
            ),
        ),
        priority_classes={"high": 1000},
        fair_sharing=True,
        fair_strategies=(FINAL, INITIAL),
        preempt_within_nominal=False,
    )


def test_nothing_to_warn_about():
    """A complete set of manifests gives no warning."""
    assert load(FULL).warnings == ()


def test_several_files_make_one_configuration():
    """The manifests of all files belong together."""
    assert load_one(*FULL.split("---\n")) == load_one(FULL)


def test_older_spellings():
    """`cohort` and `parent`, and v1beta1's own words for staying with a flavor."""
    spec = load_one(
        queue(
            "cohort: c\nflavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}",
            version="v1beta1",
        ),
        cohort("{parent: p}", name="c", version="v1alpha1"),
    )
    (found,) = spec.cluster_queues
    assert (found.cohort, found.when_can_borrow, found.when_can_preempt) == (
        "c",
        "MayStopSearch",
        "MayStopSearch",
    )
    assert spec.cohorts == (CohortSpec(name="c", parent="p"),)


def test_defaults():
    """What a queue does not say is as in the API."""
    assert load_one(queue("namespaceSelector: {}")).cluster_queues == (ClusterQueueSpec(name="a"),)


@pytest.mark.parametrize(
    ("text", "fair", "strategies"),
    [
        (config(""), False, ()),
        (config("fairSharing: {}"), False, ()),
        (config("fairSharing: {enable: false}"), False, ()),
        (config("fairSharing: {enable: true}"), True, (FINAL, INITIAL)),
        (config("fairSharing: {enable: true, preemptionStrategies: []}"), True, (FINAL, INITIAL)),
        (
            config(f"fairSharing: {{enable: true, preemptionStrategies: [{INITIAL}]}}"),
            True,
            (INITIAL,),
        ),
        (config("fairSharing: {}", "v1beta2"), True, (FINAL, INITIAL)),
        (config(f"fairSharing: {{preemptionStrategies: [{FINAL}]}}", "v1beta2"), True, (FINAL,)),
        (config("", "v1beta2"), False, ()),
    ],
)
def test_fair_sharing(text, fair, strategies):
    """Up to v1beta1 there is a switch; later its presence is one."""
    spec = load_one(queue(""), text)
    assert (spec.fair_sharing, spec.fair_strategies) == (fair, strategies)


@pytest.mark.parametrize(
    ("selector", "everybody", "namespaces"),
    [
        ("namespaceSelector: {}", True, ()),
        ("namespaceSelector: null", False, ()),
        ("", True, ()),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x}}", False, ("x",)),
        (
            "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [y, x]}]}",
            False,
            ("x", "y"),
        ),
    ],
)
def test_namespaces(selector, everybody, namespaces):
    """Who may submit: all, nobody, or the namespaces that are named."""
    (found,) = load_one(queue(selector)).cluster_queues
    assert (found.accepts_all_namespaces, found.namespaces) == (everybody, namespaces)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (
            queue("namespaceSelector: {}\nadmissionChecks: [x]"),
            "0.yaml:6 spec.admissionChecks",
            "is not modelled and has no effect",
        ),
        (
            queue("namespaceSelector: {}\nadmissionScope: {}"),
            "0.yaml:6 spec.admissionScope",
            "is not modelled",
        ),
        (queue("cohortName: x"), "0.yaml:1", "has no namespaceSelector"),
        (
            config("manageJobsWithoutQueueName: true"),
            "0.yaml:3 manageJobsWithoutQueueName",
            "is not modelled",
        ),
        (
            config("featureGates: {TopologyAwareScheduling: true}"),
            "0.yaml:3 featureGates.TopologyAwareScheduling",
            "not modelled",
        ),
        (
            queue(
                "namespaceSelector: {}\nresourceGroups: [{coveredResources: [cpu], flavors: [\n"
                "{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]"
            ),
            "0.yaml:7 spec.resourceGroups[0].flavors[0].name",
            "ClusterQueue a: flavor f has no ResourceFlavor",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: l}\nspec: {clusterQueue: gone}",
            "0.yaml:4 spec.clusterQueue",
            "LocalQueue default/l: ClusterQueue gone does not exist",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\nspec: {nodeTaints: []}",
            "0.yaml:4 spec.nodeTaints",
            "is not modelled",
        ),
    ],
)
def test_accepted_with_a_warning(text, place, words):
    """What Kueue has and evsched does not is accepted, and said."""
    (warning,) = load(text).warnings
    assert str(warning).startswith(f"{place}: ")
    assert words in warning.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "apiVersion: v1\nkind: Pod",
            "0.yaml:2 kind: found the kind 'Pod', expected one of ClusterQueue, Cohort, ResourceFlavor,",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2",
            "0.yaml:1: found the kind '', expected one of ClusterQueue",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v2\nkind: Cohort\nmetadata: {name: a}",
            "0.yaml:1 apiVersion: found the apiVersion 'kueue.x-k8s.io/v2', expected kueue.x-k8s.io/{v1alpha1, v1beta1, v1beta2}",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Configuration",
            "0.yaml:1 apiVersion: found the apiVersion 'kueue.x-k8s.io/v1beta1', expected config.kueue.x-k8s.io/{",
        ),
        (
            "kind: Cohort\nmetadata: {name: a}",
            "0.yaml:1: found the apiVersion '', expected kueue.x-k8s.io/",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort",
            "0.yaml:1: found no name, expected metadata.name",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {}",
            "0.yaml:3 metadata: found no name, expected metadata.name",
        ),
        (
            queue("", metadata="{name: yes}"),
            "0.yaml:3 metadata.name: found the boolean yes, expected text",
        ),
        (
            queue("cohort: c\ncohortName: d"),
            "0.yaml:5 spec.cohort: found cohort and cohortName, expected one of them",
        ),
        (
            queue("cohrt: c"),
            "0.yaml:5 spec.cohrt: found the unknown key 'cohrt', expected one of cohort, cohortName,",
        ),
        (
            queue("queueingStrategy: LIFO"),
            "0.yaml:5 spec.queueingStrategy: found 'LIFO', expected one of BestEffortFIFO, StrictFIFO",
        ),
        (
            queue("stopPolicy: Stop"),
            "0.yaml:5 spec.stopPolicy: found 'Stop', expected one of None, Hold, HoldAndDrain",
        ),
        (
            queue("preemption: {withinClusterQueue: Any}"),
            "withinClusterQueue: found 'Any', expected one of Never, LowerPriority, ",
        ),
        (
            queue("preemption: {reclaimWithinCohort: LowerOrNewerEqualPriority}"),
            "expected one of Never, LowerPriority, Any",
        ),
        (
            queue("preemption: {borrowWithinCohort: {policy: Any}}"),
            "policy: found 'Any', expected one of Never, LowerPriority",
        ),
        (
            queue("preemption: {borrowWithinCohort: {maxPriorityThreshold: 3000000000}}"),
            "expected an integer from -2147483648 to",
        ),
        (
            queue("flavorFungibility: {whenCanBorrow: Borrow}"),
            "found 'Borrow', expected one of MayStopSearch, TryNextFlavor",
        ),
        (
            queue("fairSharing: {weight: -1}"),
            "0.yaml:5 spec.fairSharing.weight: found '-1', expected a quantity that is not negative",
        ),
        (
            queue("fairSharing: {weight: 1n}"),
            "0.yaml:5 spec.fairSharing.weight: ClusterQueue a: weight is 1n, expected 0 or more than",
        ),
        (
            queue("namespaceSelector: {matchLabels: {team: a}}"),
            "found a selector by other labels, expected kubernetes.io/metadata.name",
        ),
        (
            queue("", metadata="{name: a, annotations: {evsched.io/quota-preemption-delay: soon}}"),
            "0.yaml:3 metadata.annotations.evsched.io/quota-preemption-delay: found 'soon', expected a duration such as",
        ),
        (
            queue("", metadata="{name: a, annotations: {evsched.io/quota-preemption-delay: -5s}}"),
            "a duration that is not negative",
        ),
        (
            queue("", metadata="{name: a, annotations: {evsched.io/quota-preemption-dealy: 5s}}"),
            "found the unknown annotation 'evsched.io/quota-preemption-dealy', expected evsched.io/quota-preemption-delay",
        ),
        (
            queue(group("{name: cpu}")),
            "0.yaml:9 spec.resourceGroups[0].flavors[0].resources[0]: found no nominalQuota, expected one",
        ),
        (queue(group("{name: cpu, nominalQuota: 1, quota: 1}")), "found the unknown key 'quota'"),
        (
            queue(group("{name: cpu, nominalQuota: -1}")),
            "resources[0].nominalQuota: found '-1', expected a quantity that is not",
        ),
        (
            queue(group("{name: cpu, nominalQuota: 1K}")),
            "found '1K', expected a quantity such as 4, 1.5, 500m, 10Gi or 1e3",
        ),
        (
            queue(group("{name: cpu, nominalQuota: 1e30}")),
            "found '1e30', expected at most 9223372036854775807 base units of cpu",
        ),
        (
            queue(group("{name: cpu, nominalQuota: 010}")),
            'found the integer 010, expected text (write "010" in quotes)',
        ),
        (
            queue(group("{name: cpu, nominalQuota: 1}, {name: cpu, nominalQuota: 1}")),
            "found the resource cpu a second time",
        ),
        (
            queue("resourceGroups: [{flavors: []}]"),
            "0.yaml:5 spec.resourceGroups[0]: found no coveredResources, expected a list",
        ),
        (cohort("{parent: p, parentName: q}"), "found parent and parentName, expected one of them"),
        (cohort("{cohortName: p}"), "found the unknown key 'cohortName'"),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: l}\nspec: {}",
            "0.yaml:1: found no spec.clusterQueue, expected the name of one",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: l}",
            "0.yaml:1: found no value, expected an integer",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: l}\nvalue: 1\nspec: {}",
            "0.yaml:5 spec: found the unknown key 'spec', expected one of apiVersion, description, kind, metadata, value",
        ),
        (
            config("fairSharing: {enable: true, preemptionStrategies: [Most]}"),
            "found 'Most', expected one of LessThanOrEqualToFinal",
        ),
        (
            config("fairSharing: {enable: true}", "v1beta2"),
            "found the unknown key 'enable', expected one of preemptionStrategies",
        ),
        (config("fairSharing: {enable: 1}"), "found the integer 1, expected true or false"),
        (config("fairshare: {}"), "found the unknown key 'fairshare'"),
        (
            config("") + "---\n" + config(""),
            "0.yaml:5: found a second Configuration, expected at most one",
        ),
        (queue("") + "---\n- 5", "0.yaml:7: found a list, expected a manifest"),
    ],
)
def test_refused(text, expected):
    """One fault, with its place; the words that matter are in the sentence."""
    (found,) = faults(text)
    assert expected in found


@pytest.mark.parametrize("document", [{}, "x", None, [5]])
def test_mapping_is_as_strict(document):
    """What is no list of manifests is refused with its path."""
    with pytest.raises(ConfigurationError, match=r"config objects(\[0\])?: found"):
        from_mapping("kueue", document)

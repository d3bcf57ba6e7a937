"""Kueue manifests: what each kind becomes, both spellings, what is not modelled, and every fault at its place."""

from __future__ import annotations

import textwrap

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
from evsched.config import ConfigurationError, Loaded, from_mapping, load_mapping, load_texts

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
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def load(*texts: str) -> Loaded:
    """Load manifests, each text as a file of its own."""
    return load_texts([(f"{index}.yaml", text) for index, text in enumerate(texts)])


def load_one(*texts: str) -> KueueSpec:
    """Return the configuration that manifests make."""
    (spec,) = load(*texts).configurations
    return spec


def faults(text: str) -> list[str]:
    """Return what manifests are refused for."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return [str(fault) for fault in caught.value.faults]


def queue(spec: str, *, version: str = "v1beta2", metadata: str = "{name: a}") -> str:
    """Return a ClusterQueue whose spec begins in the fifth line."""
    return (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\nmetadata: {metadata}\nspec:\n{textwrap.indent(spec, '  ')}\n"
    )


def cohort(spec: str, name: str = "a", version: str = "v1beta2") -> str:
    """Return a Cohort."""
    return f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def config(text: str, version: str = "v1beta1") -> str:
    """Return a Configuration."""
    return f"apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n{text}\n"


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
                        flavors=(FlavorQuotaSpec(flavor="spot", quotas={"cpu": QuotaSpec(nominal=1000, lending_limit=2000)}),),
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
                                    "cpu": QuotaSpec(nominal=1500, borrowing_limit=2000, lending_limit=500),
                                    "memory": QuotaSpec(nominal=10 * 2**30),
                                },
                            ),
                        ),
                    ),
                    ResourceGroupSpec(
                        resources=("example.com/gpu",),
                        flavors=(FlavorQuotaSpec(flavor="gpu", quotas={"example.com/gpu": QuotaSpec(nominal=4)}),),
                    ),
                ),
            ),
        ),
        local_queues=(LocalQueueSpec(name="main", namespace="team-a", cluster_queue="team-a", stop_policy="HoldAndDrain"),),
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
        queue("cohort: c\nflavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}", version="v1beta1"),
        cohort("{parent: p}", name="c", version="v1alpha1"),
    )
    (found,) = spec.cluster_queues
    assert (found.cohort, found.when_can_borrow, found.when_can_preempt) == ("c", "MayStopSearch", "MayStopSearch")
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
        (config(f"fairSharing: {{enable: true, preemptionStrategies: [{INITIAL}]}}"), True, (INITIAL,)),
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
        (queue("namespaceSelector: {}\nadmissionScope: {}"), "0.yaml:6 spec.admissionScope", "is not modelled"),
        (queue("cohortName: x"), "0.yaml:1", "has no namespaceSelector"),
        (config("manageJobsWithoutQueueName: true"), "0.yaml:3 manageJobsWithoutQueueName", "is not modelled"),
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


def group(quotas: str) -> str:
    """Return the spec of a queue in a cohort with one flavor, whose quotas stand in the ninth line."""
    flavors = f"[{{name: f, resources: [\n{quotas}]}}]"
    return f"cohortName: c\nnamespaceSelector: {{}}\nresourceGroups:\n- {{coveredResources: [cpu], flavors: {flavors}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "apiVersion: v1\nkind: Pod",
            "0.yaml:2 kind: found the kind 'Pod', expected one of ClusterQueue, Cohort, ResourceFlavor,",
        ),
        ("apiVersion: kueue.x-k8s.io/v1beta2", "0.yaml:1: found the kind '', expected one of ClusterQueue"),
        (
            "apiVersion: kueue.x-k8s.io/v2\nkind: Cohort\nmetadata: {name: a}",
            "0.yaml:1 apiVersion: found the apiVersion 'kueue.x-k8s.io/v2', expected kueue.x-k8s.io/{v1alpha1, v1beta1, v1beta2}",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Configuration",
            "0.yaml:1 apiVersion: found the apiVersion 'kueue.x-k8s.io/v1beta1', expected config.kueue.x-k8s.io/{",
        ),
        ("kind: Cohort\nmetadata: {name: a}", "0.yaml:1: found the apiVersion '', expected kueue.x-k8s.io/"),
        ("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort", "0.yaml:1: found no name, expected metadata.name"),
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {}",
            "0.yaml:3 metadata: found no name, expected metadata.name",
        ),
        (queue("", metadata="{name: yes}"), "0.yaml:3 metadata.name: found the boolean yes, expected text"),
        (queue("cohort: c\ncohortName: d"), "0.yaml:5 spec.cohort: found cohort and cohortName, expected one of them"),
        (queue("cohrt: c"), "0.yaml:5 spec.cohrt: found the unknown key 'cohrt', expected one of cohort, cohortName,"),
        (
            queue("queueingStrategy: LIFO"),
            "0.yaml:5 spec.queueingStrategy: found 'LIFO', expected one of BestEffortFIFO, StrictFIFO",
        ),
        (queue("stopPolicy: Stop"), "0.yaml:5 spec.stopPolicy: found 'Stop', expected one of None, Hold, HoldAndDrain"),
        (
            queue("preemption: {withinClusterQueue: Any}"),
            "withinClusterQueue: found 'Any', expected one of Never, LowerPriority, ",
        ),
        (queue("preemption: {reclaimWithinCohort: LowerOrNewerEqualPriority}"), "expected one of Never, LowerPriority, Any"),
        (queue("preemption: {borrowWithinCohort: {policy: Any}}"), "policy: found 'Any', expected one of Never, LowerPriority"),
        (
            queue("preemption: {borrowWithinCohort: {maxPriorityThreshold: 3000000000}}"),
            "expected an integer from -2147483648 to",
        ),
        (queue("flavorFungibility: {whenCanBorrow: Borrow}"), "found 'Borrow', expected one of MayStopSearch, TryNextFlavor"),
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
            queue(group("{name: cpu}")),
            "0.yaml:9 spec.resourceGroups[0].flavors[0].resources[0]: found no nominalQuota, expected one",
        ),
        (queue(group("{name: cpu, nominalQuota: 1, quota: 1}")), "found the unknown key 'quota'"),
        (queue(group("{name: cpu, nominalQuota: -1}")), "resources[0].nominalQuota: found '-1', expected a quantity that is not"),
        (queue(group("{name: cpu, nominalQuota: 1K}")), "found '1K', expected a quantity such as 4, 1.5, 500m, 10Gi or 1e3"),
        (queue(group("{name: cpu, nominalQuota: 1e30}")), "found '1e30', expected at most 9223372036854775807 base units of cpu"),
        (queue(group("{name: cpu, nominalQuota: 010}")), 'found the integer 010, expected text (write "010" in quotes)'),
        (queue(group("{name: cpu, nominalQuota: 1}, {name: cpu, nominalQuota: 1}")), "found the resource cpu a second time"),
        (queue("resourceGroups: [{flavors: []}]"), "0.yaml:5 spec.resourceGroups[0]: found no coveredResources, expected a list"),
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
        (config("") + "---\n" + config(""), "0.yaml:5: found a second Configuration, expected at most one"),
        (queue("") + "---\n- 5", "0.yaml:7: found a list, expected a manifest"),
    ],
)
def test_refused(text, expected):
    """One fault, with its place; the words that matter are in the sentence."""
    (found,) = faults(text)
    assert expected in found


def quotas(*rows: str) -> str:
    """Return resource groups of one row each; a row is resources, flavors: ``cpu,memory f,g``."""
    found = []
    for row in rows:
        resources, flavors = (part.split(",") for part in row.split(" "))
        listed = ", ".join(f"{{name: {resource}, nominalQuota: 1}}" for resource in resources)
        entries = ", ".join(f"{{name: {flavor}, resources: [{listed}]}}" for flavor in flavors)
        found.append(f"- {{coveredResources: [{', '.join(resources)}], flavors: [{entries}]}}\n")
    return f"resourceGroups:\n{''.join(found)}"


def names(prefix: str, number: int, first: int = 0) -> str:
    """Return so many names, separated by commas."""
    return ",".join(f"{prefix}{index}" for index in range(first, first + number))


@pytest.mark.parametrize(
    "text",
    [
        queue(quotas("cpu,memory f,g", "gpu h")),
        queue(quotas(*(f"r{index} f{index}" for index in range(16)))),
        queue(quotas(f"{names('r', 64)} {names('f', 8)}")),
        queue(quotas(f"{names('r', 8)} {names('f', 64)}")),
        queue(quotas(*(f"{names('r', 2, 2 * part)} {names('f', 64, 64 * part)}" for part in range(4)))),
        queue(group("{name: cpu, nominalQuota: 1, borrowingLimit: 0, lendingLimit: 1}")),
        queue("preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"),
        queue("preemption: {borrowWithinCohort: {policy: Never}}"),
        queue("flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: BorrowingOverPreemption}"),
        queue("fairSharing: {weight: 0}"),
        queue("fairSharing: {weight: 2n}"),
        cohort("{parentName: p, " + quotas("cpu f").replace("\n- ", " [").rstrip() + "]}"),
        cohort("{parentName: b}") + "---\n" + cohort("{parentName: c}", "b") + "---\n" + cohort("{}", "c"),
        queue(quotas("cpu f").replace("nominalQuota: 1", "nominalQuota: 9223372036854775807").replace("cpu", "gpu")),
        config(f"fairSharing: {{enable: true, preemptionStrategies: [{FINAL}, {INITIAL}]}}"),
    ],
)
def test_kept(text):
    """Nothing is wrong with what is allowed, up to the very bound."""
    load(text)


LOOP = "---\n".join(cohort(f"{{parentName: c{(index + 1) % 3}}}", f"c{index}") for index in range(3))


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        (
            queue(quotas("cpu f", "cpu g")),
            "0.yaml:7",
            "ClusterQueue a: resource cpu is in resourceGroups[0] and here, expected in one",
        ),
        (
            queue(quotas("cpu f", "memory f")),
            "0.yaml:7",
            "ClusterQueue a: flavor f is in resourceGroups[0] and here, expected in one",
        ),
        (queue(quotas("cpu f,f")), "0.yaml:6", "ClusterQueue a: flavor f is twice in this group"),
        (
            queue(quotas(*(f"r{index} f{index}" for index in range(17)))),
            "0.yaml:6",
            "has 17 resource groups, expected at most 16",
        ),
        (queue(quotas(f"{names('r', 65)} f")), "0.yaml:6", "resourceGroups[0] has 65 coveredResources, expected 1 to 64"),
        (queue(quotas(f"r {names('f', 65)}")), "0.yaml:6", "resourceGroups[0] has 65 flavors, expected 1 to 64"),
        (
            queue(quotas(f"{names('r', 57)} {names('f', 9)}")),
            "0.yaml:6",
            "has 513 pairs of flavor and resource, expected at most 512",
        ),
        (
            queue(quotas(*(f"{names('r', 1, part)} {names('f', 52, 52 * part)}" for part in range(5)))),
            "0.yaml:6",
            "has 260 flavors in all, expected at most 256",
        ),
        (
            queue(quotas(*(f"{names('r', 52, 52 * part)} {names('f', 1, part)}" for part in range(5)))),
            "0.yaml:6",
            "has 260 resources in all, expected at most 256",
        ),
        (
            queue(
                "resourceGroups:\n- coveredResources: [cpu, memory]\n  flavors:\n  - name: f\n    resources:\n"
                "    - {name: memory, nominalQuota: 1}\n    - {name: cpu, nominalQuota: 1}"
            ),
            "0.yaml:10",
            "flavor f lists memory, cpu, expected the covered resources in their order: cpu, memory",
        ),
        (queue(quotas("a*b f")), "0.yaml:6", "found the resource name 'a*b', expected letters"),
        (
            queue(group("{name: cpu, nominalQuota: 1, lendingLimit: 2}")),
            "0.yaml:9",
            "ClusterQueue a: cpu of flavor f: lendingLimit is 2, expected at most the nominalQuota 1",
        ),
        (
            queue(group("{name: cpu, nominalQuota: 1, borrowingLimit: 2}").replace("cohortName: c\n", "")),
            "0.yaml:8",
            "ClusterQueue a: cpu of flavor f: found a borrowingLimit without cohortName, expected none",
        ),
        (
            queue(group("{name: cpu, nominalQuota: 1, lendingLimit: 1}").replace("cohortName: c\n", "")),
            "0.yaml:8",
            "found a lendingLimit without cohortName, expected none",
        ),
        (
            cohort(
                "\n" + textwrap.indent(quotas("cpu f").replace("nominalQuota: 1", "nominalQuota: 1, borrowingLimit: 1"), "  ")
            ),
            "0.yaml:6",
            "Cohort a: cpu of flavor f: found a borrowingLimit without parentName, expected none",
        ),
        (
            queue("preemption:\n  borrowWithinCohort: {policy: LowerPriority}"),
            "0.yaml:6",
            "borrowWithinCohort is LowerPriority with reclaimWithinCohort Never, expected another",
        ),
        (
            queue("flavorFungibility:\n  preference: BorrowingOverPreemption"),
            "0.yaml:6",
            "preference is set, expected whenCanBorrow and whenCanPreempt both TryNextFlavor with it",
        ),
        (cohort("{parentName: a}"), "0.yaml:4", "Cohort a: is in a loop of parents (a > a), expected a tree"),
        (LOOP, "0.yaml:4", "Cohort c0: is in a loop of parents (c0 > c1 > c2 > c0), expected a tree"),
        (cohort("{}") + "---\n" + cohort("{}"), "0.yaml:8", "Cohort a: is there a second time, expected once"),
        (queue("") + "---\n" + queue(""), "0.yaml:9", "ClusterQueue a: is there a second time, expected once"),
        (queue("", metadata="{name: a_}"), "0.yaml:3", "found the name 'a_', expected letters"),
        (queue("cohortName: 'a b'"), "0.yaml:5", "ClusterQueue a: cohortName is 'a b', expected letters"),
        (cohort("{parentName: '-'}"), "0.yaml:4", "Cohort a: parentName is '-', expected letters"),
        (
            queue(quotas("gpu f").replace(": 1}", ": 9223372036854775807}"))
            + "---\n"
            + queue(quotas("gpu f"), metadata="{name: b}"),
            "0.yaml:14",
            "ClusterQueue b: the quotas of gpu in flavor f add up to more than 9223372036854775807",
        ),
        (
            config(f"fairSharing:\n  enable: true\n  preemptionStrategies: [{INITIAL}, {FINAL}]"),
            "0.yaml:5",
            "preemptionStrategies are LessThanInitialShare, LessThanOrEqualToFinalShare, expected",
        ),
        (
            config(f"fairSharing: {{enable: true, preemptionStrategies: [{FINAL}, {FINAL}]}}"),
            "0.yaml:3",
            "preemptionStrategies are",
        ),
    ],
)
def test_broken(text, place, expected):
    """What is not allowed is refused for that and nothing else, at its line."""
    (found,) = faults(text)
    assert found.startswith(f"{place} ")
    assert expected in found


def test_deep_cohorts_are_refused():
    """A chain of parents is bounded, whichever way round it is written."""
    chain = [cohort(f"{{parentName: c{index + 1}}}", f"c{index}") for index in range(100)]
    for order in (chain, chain[::-1]):
        (found,) = faults("---\n".join(order))
        assert "has 64 cohorts above it, expected fewer" in found


def test_reversed_strategies_given_directly():
    """A scenario may have them, with a warning: decisions of the real scheduler were recorded with them."""
    objects = [{"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}]
    objects[0]["fairSharing"] = {"enable": True, "preemptionStrategies": [INITIAL, FINAL]}
    loaded = load_mapping("kueue", objects)
    assert loaded.configurations[0].fair_strategies == (INITIAL, FINAL)
    assert len(loaded.warnings) == 1


@pytest.mark.parametrize("document", [{}, "x", None, [5]])
def test_mapping_is_as_strict(document):
    """What is no list of manifests is refused with its path."""
    with pytest.raises(ConfigurationError, match=r"config objects(\[0\])?: found"):
        from_mapping("kueue", document)

"""What comes out of a cluster of Kueue: lists, objects of others, and kinds that are not decided."""

from __future__ import annotations

import pytest

from tests.config.manifest_texts import cohort, faults, load, load_one, queue


def test_a_list_stands_for_its_items():
    """`kubectl get -o yaml` writes one, with what the API server knows besides; faults say which item."""
    items = "".join(
        f"- {text.rstrip()}\n".replace("\n", "\n  ").rstrip() + "\n"
        for text in (queue("namespaceSelector: {}"), cohort("{}", "c"))
    )
    kept = (
        "metadata:\n    name: a\n    generation: 2\n    creationTimestamp: 2026-01-02T03:04:05Z\n"
        "    managedFields: [{manager: kubectl}]"
    )
    text = f"apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: ''}}\nitems:\n{items}"
    spec = load_one(text.replace("metadata: {name: a}", kept))
    assert [one.name for one in spec.cluster_queues] == ["a"]
    assert [one.name for one in spec.cohorts] == ["c"]
    (found,) = faults(text.replace("namespaceSelector", "namespaceSelektor"))
    assert found.startswith("0.yaml:9 items[0].spec.namespaceSelektor: found the unknown key")
    nested = text.replace("kind: List", "kind: ClusterQueueList", 1)
    assert load_one(nested).cluster_queues == load_one(text).cluster_queues


def test_objects_of_others_are_passed_over_with_one_note():
    """A folder of manifests holds Jobs and Namespaces as well; how many, and of which kinds, is told."""
    others = "".join(
        f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n"
        for version, kind in (("batch/v1", "Job"), ("v1", "Namespace"), ("batch/v1", "Job"))
    )
    loaded = load(queue("namespaceSelector: {}"), others)
    assert [str(one) for one in loaded.warnings] == [
        "1.yaml:2: 3 objects of other API groups passed over (Job, Namespace)"
    ]
    (found,) = faults("apiVersion: v1\nkind: Pod")
    assert "found the kind 'Pod', expected one of" in found, "there is nothing of ours to read"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("AdmissionCheck", "no workload waits for an admission check"),
        ("Topology", "nodes are not chosen by their topology"),
        ("MultiKueueConfig", "no workload is sent to another cluster"),
        ("MultiKueueCluster", "no workload is sent to another cluster"),
        ("ProvisioningRequestConfig", "no nodes are asked for"),
        ("Workload", "workloads are proposed (`evsched submit`), not configured"),
    ],
)
def test_what_is_not_decided_is_told(kind, words):
    """The rest of the manifests is read; the warning says what will not happen."""
    other = (
        f"apiVersion: kueue.x-k8s.io/v1beta1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{a: 1}}\n"
    )
    loaded = load(queue("namespaceSelector: {}"), other)
    assert len(loaded.configurations[0].cluster_queues) == 1
    assert [str(one) for one in loaded.warnings] == [
        f"1.yaml:2 kind: {kind} has no effect: {words}"
    ]


def test_manifests_are_judged_in_one_pass():
    """A slip in one object hides no broken rule of another, nor of its own other parts."""
    found = faults(
        queue("fairSharing: {weight: 1n}\nfoo: 1")
        + "---\n"
        + queue("fairSharing: {weight: 1n}\nstopPolicy: Stop", metadata="{name: b}")
    )
    assert [one.partition(": ")[0] for one in found] == [
        "0.yaml:5 spec.fairSharing.weight",
        "0.yaml:6 spec.foo",
        "0.yaml:12 spec.fairSharing.weight",
        "0.yaml:13 spec.stopPolicy",
    ]

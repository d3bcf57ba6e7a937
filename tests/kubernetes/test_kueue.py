"""What Kueue's objects say: Workloads as tasks, and everything else as the configuration that admits them."""

from typing import Any

import msgspec
import pytest

from events.configuration import KueueSpec
from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    EvictionObserved,
    PodSet,
    Proposal,
)
from evsched.agents.kubernetes.kueue import KueueManifest, KueueQueues, matches, workloads_in
from evsched.agents.kubernetes.masking import MASKED, Masking, MaskingRules
from evsched.agents.kubernetes.objects import NAMESPACES, ConfigMap, LabelSelectorFound, Namespace
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recorder import Recorder
from evsched.agents.kubernetes.workloads import WorkloadObject, workload_of
from evsched.config import load_texts
from evsched.core.engine import Engine
from tests.kubernetes import kueue as made

WORKLOADS = workloads_in("v1beta1")


def read(text: str) -> Any:
    """Return the configuration of manifests."""
    return load_texts([("the cluster", text)]).configurations[0]


class Log:
    """A recorder of Workloads with the leader that takes what it proposes."""

    def __init__(self):
        self.engine = Engine()
        self.events = list(self.engine.lead(1, 1, "test"))
        self.recorder = Recorder("Workload")
        self.reading = Reading(masking=Masking())
        queues = queues_of(
            made.manifest("ResourceFlavor", "default-flavor", spec={}),
            made.cluster_queue("team", "8", {}),
            made.manifest("LocalQueue", "jobs", "default", spec={"clusterQueue": "team"}),
        )
        document = queues.document()
        found = self.recorder.configured(queues.read(document), document, "CQ:1:u")
        for event in self.events:
            self.recorder.take(event)
        self.recorder.begin(has_queues=True)
        self._take([found])
        self.version = 1

    def shows(self, name: str, status: dict[str, Any] | None = None, *, gone=False, **spec: Any):
        """Let the cluster show a Workload; return what the log takes of it, by type."""
        self.version += 1
        document = made.workload(name, **spec) | {"status": status or {}}
        document["metadata"] |= {
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": str(self.version),
            "creationTimestamp": "2026-01-01T11:00:00Z",
        }
        found = msgspec.convert(document, WorkloadObject, strict=False)
        before = len(self.events)
        self._take(self.recorder.saw(workload_of(found, self.reading, gone=gone)))
        assert self.recorder.saw(workload_of(found, self.reading, gone=gone)) == []
        return self.events[before:]

    def _take(self, inputs):
        proposals = [Proposal(input=one, id=one.proposal, source="kubernetes") for one in inputs]
        taken = self.engine.step(1000, proposals, decide=False)
        self.events += taken
        for event in taken:
            assert self.recorder.take(event) == []


def queues_of(*manifests: dict[str, Any], labels=(), masking=None, settings="") -> KueueQueues:
    """Return the queues that a cluster of these objects and one or more labelled namespaces keeps."""
    queues = KueueQueues("kueue-system", "v1beta1", masking or Masking(), read)
    for kind in queues.kinds:
        found: list[Any] = [
            msgspec.convert(one, KueueManifest) for one in manifests if one["kind"] == kind.name
        ]
        if kind == NAMESPACES:
            named = dict(labels) or {"default": {}}
            found = [
                msgspec.convert({"metadata": {"name": name, "labels": of}}, Namespace)
                for name, of in named.items()
            ]
        elif kind.name == "ConfigMap" and settings:
            data = {"controller_manager_config.yaml": settings}
            found = [msgspec.convert({"metadata": {"name": "k"}, "data": data}, ConfigMap)]
        assert queues.document() is None
        queues.listed(kind, tuple(found))
    return queues


def test_a_workload_is_followed_from_waiting_to_finished():
    """It asks for all its podsets, is bound in the flavors of its admission, and ends as it says."""
    log = Log()
    (asked,) = log.shows("train")
    assert isinstance(asked, AskSubmitted)
    assert asked.ask == "default/train"
    assert asked.queue == "default/jobs"
    assert asked.podsets == (PodSet(name="main", resources={"cpu": 2000}),)
    (bound,) = log.shows("train", made.admitted("team", "2"))
    assert isinstance(bound, BindingObserved)
    assert (bound.scheduler, bound.at) == ("kueue", 1_767_268_800_000)
    assert bound.podsets[0].flavors == {"cpu": "default-flavor"}
    finished = made.admitted("team", "2")
    finished["conditions"].append(made.condition("Finished", "Succeeded"))
    (ended,) = log.shows("train", finished)
    assert (type(ended), ended.reason) == (AllocationReleased, "completed")


def test_a_workload_that_is_preempted_waits_again_under_its_name():
    """The eviction names the Workload that it makes room for; when the quota is gone the task ends, and asks anew."""
    log = Log()
    log.shows("train")
    log.shows("train", made.admitted("team", "2"))
    log.shows("urgent", priority=10)
    (leaves,) = log.shows("train", made.preempted("team", "2", "uid-urgent"))
    assert isinstance(leaves, EvictionObserved)
    assert (leaves.reason, leaves.scheduler) == ("Preempted", "kueue")
    assert leaves.preemptor == "default/urgent"
    ended, again = log.shows("train", made.requeued("uid-urgent"))
    assert (type(ended), ended.reason) == (AllocationReleased, "preempted")
    assert (type(again), again.ask, again.uid) == (AskSubmitted, "default/train", "uid-train")
    (bound,) = log.shows("urgent", made.admitted("team", "2"), priority=10)
    assert isinstance(bound, BindingObserved)


def test_a_workload_that_holds_quota_when_it_is_first_seen_is_restored():
    """With its flavors and the time of its reservation."""
    (restored,) = Log().shows("train", made.admitted("team", "2"))
    assert isinstance(restored, AllocationRestored)
    assert (restored.node, restored.admitted) == (None, 1_767_268_800_000)
    assert restored.podsets[0].flavors == {"cpu": "default-flavor"}


def test_pods_that_give_their_quota_back_change_what_is_held():
    """Reclaimable pods count no longer: one of two that finished leaves half of it."""
    log = Log()
    log.shows("train", made.admitted("team", "2"))
    left = made.admitted("team", "2") | {"reclaimablePods": [{"name": "main", "count": 1}]}
    ended, goes_on = log.shows("train", left)
    assert (type(ended), ended.reason) == (AllocationReleased, "changed")
    assert goes_on.podsets[0].resources == {"cpu": 1000}


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        ({}, {"active": False}, [AskWithdrawn]),
        ({}, {"priority": 7}, [AskWithdrawn, AskSubmitted]),
        ({}, {"queueName": "jobs"}, []),
        (made.admitted("team", "1", count=1), {}, [BindingObserved]),
    ],
    ids=["not active any more", "another priority", "nothing", "admitted with fewer pods"],
)
def test_a_workload_that_changes_while_it_waits(status, spec, expected):
    """It is withdrawn where it no longer asks, asked anew where it asks for something else, bound with what it gets."""
    log = Log()
    log.shows("train")
    assert [type(one) for one in log.shows("train", status, **spec)] == expected


def test_the_manifests_of_a_cluster_make_one_configuration():
    """Quotas, cohorts, priorities and the settings of the manager; names of masked namespaces are masked in it."""
    queues = queues_of(
        made.manifest("WorkloadPriorityClass", "high", value=100),
        made.manifest("ResourceFlavor", "default-flavor", spec={"nodeLabels": {"pool": "a"}}),
        made.manifest("Cohort", "company", spec={}),
        made.cluster_queue("team", "8", {"matchLabels": {"team": "a"}}),
        made.manifest("LocalQueue", "jobs", "secret", spec={"clusterQueue": "team"}),
        made.manifest("LocalQueue", "jobs", "other", spec={"clusterQueue": "team"}),
        labels={"secret": {"team": "a"}, "other": {"team": "b"}, "idle": {"team": "a"}},
        masking=Masking(MaskingRules(key="k", namespaces=("secret",))),
        settings="apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfairSharing: {enable: true}\n",
    )
    document = queues.document()
    spec = queues.read(document)
    assert isinstance(spec, KueueSpec)
    assert spec.fair_sharing
    assert spec.priority_classes == {"high": 100}
    (queue,) = spec.cluster_queues
    assert queue.cohort == "company"
    assert queue.groups[0].flavors[0].quotas["cpu"].nominal == 8000
    assert "secret" not in document
    (namespace,) = queue.namespaces
    assert namespace.startswith(MASKED)
    assert {one.namespace for one in spec.local_queues} == {namespace, "other"}
    assert not queue.accepts_all_namespaces


@pytest.mark.parametrize(
    ("selector", "everybody", "namespaces"),
    [
        (None, False, ()),
        ({}, True, ()),
        ({"matchLabels": {"team": "b"}}, False, ()),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, False, ("default",)),
    ],
)
def test_a_selector_of_namespaces_is_worked_out_by_their_labels(selector, everybody, namespaces):
    """Missing: nobody; empty: everybody; else the namespaces with a LocalQueue whose labels it matches."""
    queues = queues_of(
        made.manifest("ResourceFlavor", "default-flavor", spec={}),
        made.cluster_queue("team", "8", selector),
        made.manifest("LocalQueue", "jobs", "default", spec={"clusterQueue": "team"}),
        labels={"default": {"team": "a"}},
    )
    (queue,) = queues.read(queues.document()).cluster_queues
    assert (queue.accepts_all_namespaces, queue.namespaces) == (everybody, namespaces)


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("In", ["a"], True),
        ("In", ["b"], False),
        ("NotIn", ["b"], True),
        ("NotIn", ["a"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
        ("Near", ["a"], False),
    ],
)
def test_label_selectors_are_read_as_kubernetes_reads_them(operator, values, matched):
    """Each operator, on a label that is there; an operator that nobody knows matches nothing."""
    expression = {"key": "team", "operator": operator, "values": values}
    selector = msgspec.convert({"matchExpressions": [expression]}, LabelSelectorFound)
    assert matches(selector, {"team": "a"}) is matched


def test_an_object_that_goes_is_no_longer_configured():
    """A change and a new list both replace what was noted."""
    flavor = made.manifest("ResourceFlavor", "default-flavor", spec={})
    queues = queues_of(flavor, made.manifest("Cohort", "company", spec={}))
    before = queues.document()
    (cohorts,) = (one for one in queues.kinds if one.name == "Cohort")
    queues.changed(cohorts, msgspec.convert(flavor | {"metadata": {"name": "company"}}, KueueManifest), gone=True)  # fmt: skip
    assert "Cohort" in before
    assert "Cohort" not in queues.document()
    flavors = next(one for one in queues.kinds if one.name == "ResourceFlavor")
    queues.listed(flavors, ())
    assert queues.document() == ""

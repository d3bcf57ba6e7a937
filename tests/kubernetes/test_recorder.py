"""What is proposed so that the log says what the cluster is: decisions as given, when, then, and a property over histories."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    EvictionObserved,
    NodeRegistered,
    NodeUpdated,
    ObservationGap,
    RulesAdopted,
)
from tests.kubernetes.model import Model

PREEMPTED = {
    "conditions": [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "lastTransitionTime": "2026-01-01T00:01:00Z",
        }
    ]
}


@pytest.fixture
def model():
    """Return a cluster with node n1, listed and recorded."""
    made = Model()
    made.join("n1", "8")
    made.settle()
    return made


def said(model, *kinds):
    """Return the names of the events of these types, in their order."""
    return [type(event).__name__ for event in model.events if isinstance(event, kinds)]


def gaps(model):
    """Return the gaps within the log, without those from before its beginning."""
    return [one for one in model.events if isinstance(one, ObservationGap) and one.before]


def test_the_log_says_from_which_version_on_it_is_complete():
    """The first list of a kind, of which there may be no object, is behind a gap without a beginning; another agent's is not."""
    model = Model()
    for _ in range(2):
        model.restart()
        model.settle()
        model.join("n1", "8")
    found = [one for one in model.events if isinstance(one, ObservationGap)]
    assert [(one.kind, one.before, one.after) for one in found] == [
        ("Node", "", "1"),
        ("Pod", "", "1"),
        ("Node", "1", "2"),
        ("Pod", "1", "2"),
    ]


def test_a_log_without_a_configuration_gets_one_queue_for_each_namespace(model):
    """The first pod of a namespace makes its queue; nothing limits it."""
    model.create_pod("a")
    model.settle()
    assert "root.default" in model.engine.state.queues
    assert model.rejected == []


def test_a_pod_waits_is_bound_and_ends(model):
    """Its life in the log is that of its pod, with who bound it and when."""
    model.create_pod("a")
    model.settle()
    assert model.logged()["waiting"] == {"default/a": "uid-3"}
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:07Z",
    }
    model.change_pod("a", {"nodeName": "n1"}, {"conditions": [scheduled]})
    model.settle()
    (bound,) = [event for event in model.events if isinstance(event, BindingObserved)]
    assert (bound.node, bound.scheduler, bound.at) == ("n1", "default-scheduler", 1767225607000)
    model.change_pod("a", status={"phase": "Succeeded"})
    model.settle()
    (ended,) = [event for event in model.events if isinstance(event, AllocationReleased)]
    assert ended.reason == "completed"
    assert model.logged() == model.actual()
    assert model.rejected == []


def test_a_pod_that_was_never_seen_waiting_is_found_running(model):
    """A pod that is bound already when it is first seen is restored, not asked for."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.relist("Pod")
    model.settle()
    assert said(model, AskSubmitted, AllocationRestored) == ["AllocationRestored"]
    assert model.logged() == model.actual()


def test_a_gated_pod_asks_for_nothing_until_its_gates_are_gone(model):
    """Scheduling gates keep a pod out of the log; without them it waits."""
    model.create_pod("a", schedulingGates=[{"name": "example.com/gate"}])
    model.settle()
    assert said(model, AskSubmitted) == []
    model.change_pod("a", {"schedulingGates": []})
    model.settle()
    assert said(model, AskSubmitted) == ["AskSubmitted"]


def test_a_preempted_pod_is_leaving_and_then_gone(model):
    """The reason of the peer and its sentence are in the log, once, and the end says preempted."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.change_pod("a", status=PREEMPTED)
    model.change_pod("a", status=PREEMPTED | {"phase": "Running"})
    model.settle()
    (evicted,) = [event for event in model.events if isinstance(event, EvictionObserved)]
    assert evicted.reason == "PreemptionByScheduler"
    assert evicted.scheduler == "default-scheduler"
    model.delete("Pod", "a")
    model.settle()
    (ended,) = [event for event in model.events if isinstance(event, AllocationReleased)]
    assert ended.reason == "preempted"


def test_a_pod_created_again_under_its_name_is_another_task(model):
    """The log ends the one before it begins the other, though the deletion was never seen."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.delete("Pod", "a")
    model.create_pod("a")
    model.relist("Pod")
    model.settle()
    assert said(model, AllocationReleased, AskSubmitted) == [
        "AskSubmitted",
        "AllocationReleased",
        "AskSubmitted",
    ]
    assert model.logged() == model.actual()


def test_a_node_that_vanishes_takes_its_pods_along_and_brings_them_back(model):
    """While the node is gone its pods run nowhere; when it joins again, what still is bound to it runs."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.delete("Node", "n1")
    model.settle()
    assert model.logged() == model.actual()
    assert model.logged()["running"] == {}
    model.join("n1", "8")
    model.settle()
    assert model.logged()["running"] == {"default/a": ("uid-3", "n1")}
    assert model.rejected == []


def test_what_a_node_brings_back_is_said_again_under_another_id(model):
    """The pod has not changed since it was restored first, and yet its second restoring is no repetition of that."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.relist("Pod")
    model.settle()
    for _ in range(2):
        model.delete("Node", "n1")
        model.settle()
        model.join("n1", "8")
        model.settle()
    assert model.logged() == model.actual()
    assert said(model, AllocationRestored) == 3 * ["AllocationRestored"]
    assert model.rejected == []


def test_a_node_that_was_back_before_the_log_had_read_that_it_went_keeps_its_pods(model):
    """The pods were listed again too early to see that the log ends them; its word is reason to list once more."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.delete("Node", "n1")
    model.join("n1", "8")
    model.tell("Node", 2)
    assert model.recorder.doubtful
    model.recorder.doubtful = ""
    model.relist("Pod")
    model.settle()
    assert model.logged() == model.actual()
    assert model.logged()["running"] == {"default/a": ("uid-3", "n1")}


def test_a_pod_whose_node_is_not_known_yet_waits_for_it(model):
    """Kinds are watched side by side, so a binding may come before its node."""
    model.create_pod("a")
    model.settle()
    model.join("n2", "8")
    model.bind("a", "n2")
    model.tell("Pod", 9)
    model.lead()
    model.follow()
    assert said(model, BindingObserved) == []
    model.settle()
    assert said(model, BindingObserved) == ["BindingObserved"]
    assert model.logged() == model.actual()


def test_a_pod_that_was_bound_to_a_node_that_is_gone_waits_no_longer(model):
    """The binding was never told before its node had gone; the pod is no ask any more, and runs nowhere."""
    model.create_pod("a")
    model.settle()
    model.bind("a", "n1")
    model.delete("Node", "n1")
    model.settle()
    assert model.logged() == model.actual()
    assert said(model, AskWithdrawn) == ["AskWithdrawn"]


def test_only_what_changed_of_a_node_is_proposed(model):
    """A cordoned node is updated in that alone, and a heartbeat is nothing."""
    model.join("n1", "8", unschedulable=True)
    model.join("n1", "8", unschedulable=True)
    model.settle()
    (update,) = [event for event in model.events if isinstance(event, NodeUpdated)]
    assert (update.schedulable, update.capacity, update.labels) == (False, None, None)


def test_a_cordon_is_a_taint_where_taints_decide(model):
    """From rules 2 on a cordoned node says the taint of Kubernetes, which a pod may tolerate; adopting them tells it anew."""
    model.join("n1", "8", unschedulable=True)
    model.settle()
    assert not model.engine.state.nodes["n1"].schedulable
    model.propose(RulesAdopted(rules=2))
    model.settle()
    node = model.engine.state.nodes["n1"]
    assert node.schedulable
    assert [(one.key, one.effect) for one in node.taints] == [
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    ]
    model.join("n1", "8")
    model.settle()
    assert (node.schedulable, node.taints) == (True, ())


def test_a_lost_watch_is_a_gap_with_both_versions(model):
    """What was listed again says what it was compared with and how much had changed."""
    model.create_pod("a")
    model.create_pod("b")
    model.settle()
    assert gaps(model) == []
    before = str(model.version)
    model.delete("Pod", "a")
    model.bind("b", "n1")
    model.create_pod("c")
    model.relist("Pod")
    model.settle()
    (gap,) = gaps(model)
    assert (gap.kind, gap.before, gap.after) == ("Pod", before, str(model.version))
    assert (gap.listed, gap.appeared, gap.changed, gap.vanished) == (2, 1, 1, 1)


def test_a_restart_repeats_nothing_and_says_from_where_it_goes_on(model):
    """Another recorder on the same log proposes only what the cluster has changed meanwhile, behind a gap."""
    model.create_pod("a")
    model.settle()
    model.create_pod("b")
    model.restart()
    model.settle()
    assert model.rejected == []
    assert [(gap.kind, gap.appeared) for gap in gaps(model)] == [("Node", 0), ("Pod", 1)]
    assert said(model, NodeRegistered, AskSubmitted) == ["NodeRegistered"] + 2 * ["AskSubmitted"]


def test_what_was_sent_before_a_restart_and_read_after_it_does_no_harm(model):
    """The first recorder's ask is still in the inbox when the second restores the pod; in the end the log is right."""
    model.create_pod("a")
    model.tell("Pod")
    model.bind("a", "n1")
    model.restart()
    model.settle()
    assert model.logged() == model.actual()
    assert model.rejected  # the second proposal met the first


def test_what_an_earlier_agent_had_proposed_and_the_cluster_no_longer_has_is_ended(model):
    """Its ask lay in the inbox while the next agent compared a list without the pod with a log without the ask."""
    model.create_pod("a")
    model.tell("Pod")
    model.delete("Pod", "a")
    model.restart()
    model.settle()
    assert said(model, AskSubmitted, AskWithdrawn) == ["AskSubmitted", "AskWithdrawn"]
    assert model.logged() == model.actual()


def test_a_resize_in_place_ends_the_task_and_goes_on_with_the_new_amounts(model):
    """The log has no word for an allocation that changes."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.change_pod(
        "a", {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
    )
    model.settle()
    assert said(model, AllocationReleased, AllocationRestored) == [
        "AllocationReleased",
        "AllocationRestored",
    ]
    found = model.engine.state.allocations["default/a"]
    assert model.engine.state.types.shapes[found.shape].resources["vcore"] == 3000


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"role": "leader"}},
        {"annotations": {"yunikorn.apache.org/allow-preemption": "false"}},
    ],
    ids=["labels", "allow-preemption"],
)
def test_what_counts_of_a_running_pod_is_told_anew_when_it_changes(model, change):
    """The labels by which others keep apart from it, and whether it may be evicted; the change of anything else is not."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.settle()
    model.change_pod("a", meta={"annotations": {"example.com/seen": "now"}})
    model.settle()
    assert said(model, AllocationReleased) == []
    model.change_pod("a", meta=change)
    model.settle()
    (ended,) = [one for one in model.events if isinstance(one, AllocationReleased)]
    (again,) = [one for one in model.events if isinstance(one, AllocationRestored)]
    assert ended.reason == "changed"
    assert (again.pod.labels, again.allow_preemption) == (
        change.get("labels", {}),
        "annotations" not in change,
    )


def test_a_pod_that_is_being_evicted_does_not_end_because_its_labels_change(model):
    """Its end would say that it had left; the log ends it when it has."""
    model.create_pod("a")
    model.bind("a", "n1")
    model.change_pod("a", status=PREEMPTED)
    model.settle()
    model.change_pod("a", meta={"labels": {"role": "leader"}})
    model.settle()
    assert said(model, EvictionObserved, AllocationReleased) == ["EvictionObserved"]


def test_what_the_log_refuses_twice_is_stuck_until_a_configuration_comes(model):
    """A pod that names a queue of no configuration is refused, tried once more, and then left until there is one."""
    model.create_pod("a")
    model.settle()
    recorder = model.recorder
    spec = recorder.view.configuration
    missing = spec.__class__(root=spec.root, placement_rules=())
    model._propose([recorder.configured(missing, "", "ConfigMap:1:u")])
    model.settle()
    document = {"metadata": {"name": "b", "namespace": "default", "uid": "uid-b"}}
    document["metadata"]["labels"] = {"queue": "root.nowhere", "applicationId": "b"}
    document |= {"spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}}
    model.put("Pod", document)
    model.settle()
    assert [subject.name for subject in recorder.stuck] == ["default/b"]
    refused = len(model.rejected)
    assert refused
    model._propose([recorder.configured(spec, "", "ConfigMap:2:u")])
    model.settle()
    assert recorder.stuck == {}
    assert model.logged() == model.actual()


def test_what_others_proposed_is_theirs(model):
    """A task of another program is neither ended nor taken over, though the cluster has no such pod."""
    foreign = AskSubmitted(ask="default/x", queue="root.default", resources={"vcore": 1})
    model.create_pod("a")
    model.settle()
    model.events += model.engine.step(5000, (_proposal(foreign),), decide=False)
    model.relist("Pod")
    model.settle()
    assert "default/x" in model.engine.state.asks


def _proposal(proposed):
    from events.vocabulary import Proposal  # noqa: PLC0415 - of this one test

    return Proposal(input=proposed, id="foreign", source="somebody")


NAMES = st.sampled_from(("a", "b", "c"))
NODES = st.sampled_from(("n1", "n2"))
KIND = st.sampled_from(("Node", "Pod"))
ACTIONS = st.one_of(
    st.tuples(st.just("create_pod"), NAMES),
    st.tuples(st.just("delete"), st.just("Pod"), NAMES),
    st.tuples(st.just("delete"), st.just("Node"), NODES),
    st.tuples(st.just("bind"), NAMES, NODES),
    st.tuples(st.just("join"), NODES, st.sampled_from(("4", "8"))),
    st.tuples(st.just("end"), NAMES),
    st.tuples(st.just("resize"), NAMES),
    st.tuples(st.just("tell"), KIND),
    st.tuples(st.just("relist"), KIND),
    st.tuples(st.just("lead"), st.integers(1, 3)),
    st.tuples(st.just("follow")),
    st.tuples(st.just("restart")),
)


@given(st.lists(ACTIONS, max_size=30))
def test_in_the_end_the_log_is_the_cluster(actions):
    """Whatever comes late, twice, never, or after a restart: once all is told and taken, both are equal object by object."""
    model = Model()
    for action, *arguments in actions:
        if action == "create_pod" and arguments[0] in model.objects["Pod"]:
            continue
        if action == "end":
            model.change_pod(*arguments, status={"phase": "Succeeded"})
        elif action == "resize":
            more = {"resources": {"requests": {"cpu": str(2 + model.version % 3)}}}
            model.change_pod(*arguments, {"containers": [{"name": "main"} | more]})
        else:
            getattr(model, action)(*arguments)
    model.settle()
    assert model.logged() == model.actual()
    assert model.recorder.stuck == {}
    assert model.recorder._kept.keys() <= _homeless(model)
    counted = len(model.events)
    model.restart()
    model.settle()
    assert all(isinstance(event, ObservationGap) for event in model.events[counted:])


def _homeless(model):
    """Return the pods that are bound to a node that is gone, which alone may be kept."""
    nodes = model.objects["Node"]
    return {
        ("task", f"default/{name}")
        for name, one in model.objects["Pod"].items()
        if one["spec"].get("nodeName") and one["spec"]["nodeName"] not in nodes
    }

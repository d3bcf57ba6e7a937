"""What is carried out in a cluster of what the log decides: as given, when, then, and killed at every call."""

import pytest

from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    BindingObserved,
    EvictionObserved,
    EvictionRefused,
    InputRejected,
    PreemptionDecided,
    PreemptionWithdrawn,
)
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer
from evsched.agents.kubernetes.acting.policy import ActingPolicy
from tests.kubernetes.acting.model import ActingModel

QUEUES = """
partitions:
  - name: default
    preemption: {enabled: true, quotapreemptionenabled: true, eviction: {grace: 10s, attempts: 3}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: low
            properties: {preemption.delay: 1s, quota.preemption.delay: 1s}
            resources: {max: {vcore: %s}}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 8}}
"""

OPEN, LOWERED = QUEUES % 100, QUEUES % 3


@pytest.fixture
def model():
    """Return a cluster with node n1 of 8 cpus."""
    made = ActingModel(OPEN)
    made.join("n1")
    made.settle()
    return made


def fill(model, count=8):
    """Fill the node with pods of the low queue."""
    for number in range(count):
        model.create(f"low-{number}", "root.low")
    model.settle()


def test_a_pod_is_bound_where_the_log_says_and_the_log_has_it_confirmed(model):
    """The Binding names the pod's uid and the decision; what is observed then is not a foreign binding."""
    model.create("a", "root.low")
    model.settle()
    (bound,) = model.said(AllocationBound)
    (observed,) = model.said(BindingObserved)
    assert (observed.ask, observed.node, observed.scheduler) == ("default/a", "n1", "evsched")
    assert model.pod("a")["metadata"]["annotations"] == {"evsched.io/decision": str(bound.seq)}
    assert model.said(AllocationReleased) == []
    model.check()


def test_victims_are_evicted_with_the_words_of_the_decision_and_the_preemptor_gets_their_node(
    model,
):
    """Condition and Event name rule, decision and both sides; the log learns that it was the eviction that it wanted."""
    fill(model)
    model.create("urgent", "root.high", cpu="2")
    model.settle()
    (decided,) = model.said(PreemptionDecided)
    assert model.homes()["urgent"] == "n1"
    ends = model.said(AllocationReleased)
    assert {(one.allocation, one.reason) for one in ends} == {
        (victim.id, "preempted") for victim in decided.victims
    }
    said = f"evsched decision {decided.seq}: makes room for default/urgent on n1 ("
    marked = [doc for _, doc, gone in model.api.changes if gone and "spec" in doc]
    for one in marked:
        (mark,) = [c for c in one["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert (mark["reason"], mark["message"][: len(said)]) == ("PreemptionByScheduler", said)
    events = list(model.api.objects["Event"].values())
    assert {one["regarding"]["uid"] for one in events} == {one["metadata"]["uid"] for one in marked}
    assert {one["related"]["name"] for one in events} == {"urgent"}
    assert {one["note"][: len(said)] for one in events} == {said}
    assert len(model.said(EvictionObserved)) == len(decided.victims)
    model.check()


def test_a_pod_that_waits_for_victims_says_so_and_which_node_is_kept_for_it(model):
    """PodScheduled is False with the cause that the log gives, and nominatedNodeName is the node; binding ends both."""
    fill(model)
    for name in model.homes():
        model.change(name, metadata={"finalizers": ["example.com/hold"]})
    model.create("urgent", "root.high", cpu="1")
    model.settle(5000)
    status = model.pod("urgent")["status"]
    assert status["nominatedNodeName"] == "n1"
    (scheduled,) = [one for one in status["conditions"] if one["type"] == "PodScheduled"]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    (victim,) = model.said(PreemptionDecided)[0].victims
    assert scheduled["message"].startswith(f"waits until {victim.id} has left n1")
    for name in model.homes():
        model.change(name, metadata={"finalizers": []})
    model.settle()
    status = model.pod("urgent")["status"]
    assert "nominatedNodeName" not in status
    assert [one["status"] for one in status["conditions"]] == ["True"]
    model.check()


def test_a_pod_that_does_not_fit_is_told_why_once(model):
    """What the log says of it last is on the pod, and is not written again."""
    fill(model)
    model.create("more", "root.low")
    model.settle()
    (scheduled,) = model.pod("more")["status"]["conditions"]
    assert scheduled["message"].endswith("`evsched explain default/more` says more")
    assert len([one for one in model.api.done if one[1].endswith("more/status")]) == 1
    model.check()


def trouble(model, part, code, message="", retry_after_s=None, times=1):
    """Let the API answer so, for a while, to requests whose path has this part."""
    body = f'{{"kind":"Status","status":"Failure","code":{code},"message":"{message}"}}'
    model.api.trouble += [(part, ApiAnswer(code, body.encode(), retry_after_s))] * times


def test_a_pod_that_was_created_again_under_its_name_is_bound_by_its_own_decision(model):
    """The binding of the first is refused by the uid; the log ends it, and decides the second for itself."""
    model.create("a", "root.low")
    model.tell()
    model.lead()
    model.follow()
    model.api.remove("Pod", "default/a")
    model.create("a", "root.low")
    model.act()
    model.settle()
    first, second = model.said(AllocationBound)
    assert [one.reason for one in model.said(AllocationReleased)] == ["deleted"]
    assert model.pod("a")["metadata"]["annotations"] == {"evsched.io/decision": str(second.seq)}
    assert first.seq < second.seq
    model.check()


def test_a_pod_that_somebody_else_bound_runs_where_they_bound_it(model):
    """The log releases its own binding, and restores the other one; nothing is evicted."""
    model.join("n2")
    model.settle()
    model.create("a", "root.low")
    model.tell()
    model.lead()
    model.follow()
    decided = model.said(AllocationBound)[0].node
    other = {"n1": "n2", "n2": "n1"}[decided]
    model.change("a", spec={"nodeName": other})
    model.act()
    model.settle()
    assert [one.reason for one in model.said(AllocationReleased)] == ["bound elsewhere"]
    assert model.homes() == {"a": other}
    model.check()


def test_an_answer_that_never_came_is_no_second_binding(model):
    """The binding happened and its answer was lost: the next attempt is refused, and the pod is where it should be."""
    model.create("a", "root.low")
    model.tell()
    model.lead()
    model.follow()
    action = model.actor.next(model.time)
    model.api.answer(action.request("2026-01-01T00:00:00.000000Z"))
    assert model.actor.done(action, ApiAnswer(0), model.time) is None
    model.settle()
    assert model.said(AllocationReleased) == []
    model.check()


def test_a_binding_that_is_refused_is_undone_in_the_log_and_decided_again(model):
    """What the API said is the reason of the release; the pod still waits, so it asks again."""
    trouble(model, "/binding", 403, "denied by a policy")
    model.create("a", "root.low")
    model.settle()
    (released,) = model.said(AllocationReleased)
    assert released.reason == "binding refused: 403 denied by a policy"
    assert model.homes() == {"a": "n1"}
    model.check()


@pytest.mark.parametrize("code", [409, 422])
def test_a_binding_that_is_refused_for_ever_is_tried_at_longer_and_longer_times(model, code):
    """Each refusal is in the log; an hour has few of them."""
    trouble(model, "/binding", code, "no", times=10_000)
    model.create("a", "root.low")
    model.settle(3_600_000)
    ends = model.said(AllocationReleased)
    assert {one.reason for one in ends} == {f"binding refused: {code} no"}
    assert 100 < len(ends) < 140
    assert model.homes() == {"a": ""}


@pytest.mark.parametrize(("code", "after"), [(500, None), (503, None), (429, 7.0), (0, None)])
def test_a_server_in_trouble_is_asked_again(model, code, after):
    """Nothing is told to the log, nothing is done twice, and Retry-After is kept to."""
    trouble(model, "/pods/", code, "busy", after, times=3)
    model.create("a", "root.low")
    begun = model.time
    model.settle()
    assert model.homes() == {"a": "n1"}
    assert model.said(AllocationReleased) == []
    if after is not None:
        assert model.said(BindingObserved)[0].seq > 0
        assert model.bound_at - begun >= 3 * after * 1000
    model.check()


def test_a_node_that_vanishes_before_its_pod_came_to_it_leaves_the_pod_waiting(model):
    """The log ends the task with the node; the pod still waits, so it asks again and is bound elsewhere."""
    model.create("a", "root.low")
    model.tell()
    model.lead()
    model.api.remove("Node", "/n1")
    model.tell()
    model.lead()
    model.follow()
    assert [one.reason for one in model.said(AllocationReleased)] == ["node removed"]
    model.join("n2")
    model.settle()
    assert model.homes() == {"a": "n2"}
    model.check()


def test_a_node_that_vanishes_takes_its_pods_along(model):
    """Those that were bound to it end with it, and are not bound again by another decision."""
    fill(model, 3)
    model.api.remove("Node", "/n1")
    model.settle()
    assert model.homes() == {}
    assert {one.reason for one in model.said(AllocationReleased)} == {"node removed"}
    model.check()


def test_a_budget_that_refuses_for_ever_is_in_the_log_and_the_victims_stay(model):
    """Each time that the log asks, one refusal; then the preemption is withdrawn, and nothing is left written on a pod."""
    fill(model)
    model.api.budgets["root.low"] = 0
    model.create("urgent", "root.high")
    model.settle()
    asked = 3
    assert len(model.said(EvictionRefused)) == asked
    assert "disruption budget" in model.said(EvictionRefused)[0].reason
    assert len(model.said(PreemptionWithdrawn)) == 1
    assert model.homes()["urgent"] == ""
    assert len(model.homes()) == 9
    assert not any(
        one["type"] == "DisruptionTarget"
        for name in model.homes()
        for one in model.pod(name)["status"].get("conditions", ())
    )
    model.check()


def test_a_budget_that_allows_it_later_is_enough(model):
    """The eviction is tried again as long as the log wants it."""
    fill(model)
    model.api.budgets["root.low"] = 0
    model.create("urgent", "root.high")
    model.settle(4000)
    assert len(model.said(EvictionRefused)) == 1
    model.api.budgets["root.low"] = 1
    model.settle()
    assert model.homes()["urgent"] == "n1"
    model.check()


@pytest.mark.parametrize(("honour", "refusals"), [("best-effort", 1), ("off", 0)])
def test_a_budget_that_need_not_be_honoured_is_overruled(honour, refusals):
    """best-effort: once the log asks again; off: at once. The deletion names the uid."""
    model = ActingModel(OPEN, ActingPolicy(honour_pdb=honour))
    model.join("n1")
    fill(model)
    model.api.budgets["root.low"] = 0
    model.create("urgent", "root.high")
    model.settle()
    assert len(model.said(EvictionRefused)) == refusals
    assert model.homes()["urgent"] == "n1"
    assert [one[0] for one in model.api.done if "DELETE" in one] == ["DELETE"]
    model.check()


def test_a_victim_with_a_finalizer_is_asked_no_twice_and_may_stay_in_the_end(model):
    """It is being deleted for ever; the log says that it was told, told again, and that the preemption was withdrawn."""
    fill(model)
    for name in model.homes():
        model.change(name, metadata={"finalizers": ["example.com/hold"]})
    model.create("urgent", "root.high")
    model.settle()
    assert len(model.said(PreemptionWithdrawn)) == 1
    assert len([one for one in model.api.done if one[1].endswith("/eviction")]) == 1
    assert model.homes()["urgent"] == ""
    model.check()


def test_pods_of_other_schedulers_are_recorded_and_left_alone(model):
    """They ask the log for nothing while they wait, and take up room once they are bound."""
    model.create("theirs", "root.low", schedulerName="default-scheduler")
    model.settle()
    assert model.engine.state.asks == {}
    model.change("theirs", spec={"nodeName": "n1"})
    model.settle()
    assert list(model.engine.state.allocations) == ["default/theirs"]
    assert model.said(AllocationBound) == []


def test_pods_of_other_schedulers_are_never_evicted(model):
    """They are chosen as victims last, and where they are, the log is told that they stay."""
    for number in range(2):
        model.create(f"theirs-{number}", "root.low", cpu="3", schedulerName="default-scheduler")
        model.change(f"theirs-{number}", spec={"nodeName": "n1"})
    model.create("ours", "root.low", cpu="2")
    model.settle()
    model.create("small", "root.high", cpu="2")
    model.settle()
    assert [one.allocation for one in model.said(EvictionObserved)] == ["default/ours"]
    model.create("large", "root.high", cpu="4")
    model.settle()
    refusals = {one.reason for one in model.said(EvictionRefused)}
    assert refusals == {"the pod names scheduler default-scheduler, which answers for it"}
    assert {"theirs-0", "theirs-1"} <= set(model.homes())
    assert len(model.said(PreemptionWithdrawn)) == 1


def test_a_pod_behind_the_gate_is_freed_when_the_log_has_bound_it(model):
    """Before that it asks like any other; the gate goes, then it is bound. Other gates keep it from asking."""
    model.create("a", "root.low", schedulingGates=[{"name": "evsched.io/admission"}])
    both = [{"name": "evsched.io/admission"}, {"name": "example.com/other"}]
    model.create("b", "root.low", schedulingGates=both)
    model.settle()
    assert model.homes() == {"a": "n1", "b": ""}
    assert model.pod("a")["spec"]["schedulingGates"] == []
    assert model.pod("b")["spec"]["schedulingGates"] == both
    assert list(model.engine.state.asks) == []


def test_a_pod_that_is_deleted_before_it_is_bound_asks_no_longer(model):
    """A finalizer keeps it in the cluster; the log withdraws its ask, or releases what it had bound."""
    hold = {"finalizers": ["example.com/hold"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    fill(model)
    model.create("more", "root.low")
    model.settle()
    model.change("more", metadata=hold)
    model.settle()
    assert model.engine.state.asks == {}
    assert "default/more" not in model.engine.state.allocations


def test_a_pod_that_the_log_does_not_take_is_told_why(model):
    """Its owner reads the reason of the refusal; once the queue is there, the pod is bound."""
    model.create("lost", "root.nowhere")
    model.settle()
    (scheduled,) = model.pod("lost")["status"]["conditions"]
    assert model.said(InputRejected)[-1].reason in scheduled["message"]
    model.configure(OPEN + "          - name: nowhere\n")
    model.settle()
    assert model.homes() == {"lost": "n1"}


def scene(model):
    """Fill two nodes, preempt, and lower a maximum: each kind of side effect."""
    model.join("n1")
    for number in range(4):
        model.create(f"low-{number}", "root.low", cpu="2")
    model.settle()
    model.create("urgent", "root.high", cpu="3")
    gate = [{"name": "evsched.io/admission"}]
    model.create("gated", "root.high", cpu="1", schedulingGates=gate)
    model.settle()
    model.configure(LOWERED)
    model.settle()
    model.check()
    return model


def outcome(model):
    """Return what must not depend on where the agent died: who runs where, and what was done."""
    done = sorted((method, path) for method, path, _ in model.api.done)
    decisions = sorted(
        (type(one).__name__, one.ask, one.node) for one in model.said(AllocationBound)
    )
    return model.homes(), done, decisions, model.logged()


def test_an_agent_that_is_killed_anywhere_leaves_nothing_undone_and_does_nothing_twice():
    """Between any two of its calls and proposals: the same cluster, the same decisions, the same requests.

    An agent keeps nothing, so to die after one call and before the next is the same for all that
    lasts; the points take turns.
    """
    whole = scene(ActingModel(OPEN))
    expected, points = outcome(whole), whole.ticks
    assert points > 40
    for point in range(1, points + 1):
        model = scene(ActingModel(OPEN, fuse=point, fuse_after=point % 2 == 0))
        assert (point, outcome(model)) == (point, expected)
        assert model.deaths == 1

"""What is set aside is passed over by every decision, survives a restart, and is taken up again."""

import pytest

from events import vocabulary as v
from evsched.config import from_mapping
from evsched.core import snapshot, suspension
from evsched.core.engine import Engine
from evsched.core.faults import StepFailed, place_of
from evsched.core.kueue.flavors import Assigner
from evsched.core.quota import enforcement
from tests.service.inputs import application, ask, cluster, node, queues

START = 1_767_258_000_000
API = "kueue.x-k8s.io/v1beta1"
FAULT = ("engine.py:1 step", "RuntimeError: broken")


def engine_with(*inputs):
    """Return an engine that has taken these without deciding."""
    engine = Engine()
    engine.lead(START, 1, "leader")
    refused = [
        event
        for event in engine.step(START, [v.Proposal(input=one) for one in inputs], decide=False)
        if isinstance(event, v.InputRejected)
    ]
    assert not refused
    return engine


def restored(engine):
    """Return the engine that a restart would have."""
    return Engine(snapshot.decode(snapshot.encode(engine.state), engine.state.time))


def bound(events):
    """Return the asks that were bound."""
    return {event.ask for event in events if isinstance(event, v.AllocationBound)}


def test_the_record_is_what_it_was_while_nothing_is_set_aside():
    """No digest of a log that never failed changes by what could be set aside; once it ends, the digest is the old one."""
    engine = engine_with(*cluster(2))
    before = engine.state.digest()
    other = engine_with(*cluster(2))
    other.suspend(START, "cycle", "", FAULT)
    assert other.state.digest() != before
    assert b"suspended" not in snapshot.encode(engine.state)
    assert b"suspended" in snapshot.encode(other.state)


@pytest.mark.parametrize("restart", [False, True])
def test_an_ask_that_is_set_aside_is_not_bound_and_the_next_one_is(restart):
    """Before and after a restart; a configuration that is applied again submits it as it was."""
    engine = engine_with(*cluster(2))
    asked = suspension._submitted(engine.state, engine.state.asks["web-0"])
    engine.suspend(START, "ask", "web-0", FAULT)
    engine = restored(engine) if restart else engine
    assert bound(engine.step(START + 1)) == {"web-1"}
    events = engine.step(START + 2, [v.Proposal(input=queues())])
    (again,) = [event for event in events if isinstance(event, v.AskSubmitted)]
    assert (again.cause, again.created, again.resources) == (
        events[0].seq, START, {"vcore": 2000},
    )  # fmt: skip
    assert (again.application, again.queue, again.user) == (
        asked.application, asked.queue, asked.user,
    )  # fmt: skip
    assert bound(events) == {"web-0"}
    assert not engine.state.suspended


@pytest.mark.parametrize("restart", [False, True])
def test_a_queue_that_is_set_aside_has_no_asks(restart):
    """Those that wait and those that come are set aside one by one; other queues go on; a configuration takes all up."""
    engine = engine_with(*cluster(2), ask("research-1", "research"))
    aside = engine.suspend(START, "queue", "root.web", FAULT)
    assert [(one.kind, one.subject) for one in aside if isinstance(one, v.DecisionSuspended)] == [
        ("queue", "root.web"), ("ask", "web-0"), ("ask", "web-1"),
    ]  # fmt: skip
    assert [one.cause for one in aside] == [
        0,
        aside[0].seq,
        aside[1].seq,
        aside[0].seq,
        aside[3].seq,
    ]
    engine = restored(engine) if restart else engine
    events = engine.step(
        START + 1, [v.Proposal(input=one) for one in (ask("web-2"), ask("research-2", "research"))]
    )
    assert bound(events) == {"research-1", "research-2"}
    assert [one.subject for one in suspension.in_force(engine.state)] == [
        "root.web",
        "web-0",
        "web-1",
        "web-2",
    ]
    events = engine.step(START + 2, [v.Proposal(input=queues())])
    assert bound(events) == {"web-0", "web-1", "web-2"}
    assert not engine.state.suspended


@pytest.mark.parametrize("restart", [False, True])
def test_a_timer_that_is_set_aside_is_never_due_and_then_again(restart):
    """It keeps its time: taken up again it fires as soon as it may."""
    engine = engine_with(*cluster(5))
    engine.step(START + 1)
    engine.step(START + 2, [v.Proposal(input=queues(4))])
    (timer,) = engine.state.timers.armed.values()
    assert engine.next_due() == timer.due
    engine.suspend(START + 3, "timer", timer.id, FAULT)
    engine = restored(engine) if restart else engine
    assert engine.next_due() is None
    assert engine.step(timer.due + 1) == ()
    engine.step(timer.due + 2, [v.Proposal(input=v.RulesAdopted(rules=1))], decide=False)
    if engine.state.suspended:  # adopting the rules in force may be refused
        engine.step(timer.due + 2, [v.Proposal(input=queues(4))], decide=False)
    assert engine.next_due() == timer.due
    assert any(isinstance(event, v.QuotaPreemptionDecided) for event in engine.step(timer.due + 3))


def test_a_timer_of_the_same_id_that_is_armed_anew_is_another_one():
    """The maximum is lowered again after a larger one: the new timer fires."""
    engine = engine_with(*cluster(5))
    engine.step(START + 1)
    engine.step(START + 2, [v.Proposal(input=queues(4))])
    (timer,) = engine.state.timers.armed.values()
    engine.suspend(START + 3, "timer", timer.id, FAULT)
    state = engine.state
    state.timers.cancel(timer.id)
    assert suspension.in_force(state) == ()
    state.timers.arm(type(timer)(timer.due + 5, timer.id, timer.kind, timer.subject, 99))
    assert engine.next_due() == timer.due + 5


@pytest.mark.parametrize("kind", ["cycle", "allocation", "checkpoint"])
def test_a_kind_of_decisions_that_is_set_aside_is_left_out(kind):
    """Inputs are taken as before, and everything else is decided."""
    engine = engine_with(*cluster(5))
    engine.state.checkpoint_every = 1
    engine.suspend(START, kind, "", FAULT)
    events = engine.step(START + 1, [v.Proposal(input=ask("research-1", "research"))])
    assert isinstance(events[0], v.AskSubmitted)
    assert bool(bound(events)) == (kind != "allocation")
    assert any(isinstance(one, v.CheckpointRecorded) for one in events) == (kind != "checkpoint")
    later = engine.step(START + 40_000)
    assert any(isinstance(one, v.CycleStarted) for one in later) == (kind != "cycle")


def test_an_ask_whose_queue_is_gone_is_not_taken_up_again():
    """The event says why; nothing is left of it."""
    engine = engine_with(*cluster(0), ask("research-1", "research"))
    engine.suspend(START, "ask", "research-1", FAULT)
    engine.step(START, [v.Proposal(input=v.ApplicationRemoved(application="research"))])
    assert not engine.state.suspended
    engine = engine_with(*cluster(0), ask("research-1", "research"))
    engine.suspend(START, "ask", "research-1", FAULT)
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "web"}]}
    (fewer,) = from_mapping(
        "yunikorn", {"partitions": [{"name": "default", "queues": [root]}]}, "test"
    )
    events = engine.step(START, [v.Proposal(input=v.ConfigurationApplied(configuration=fewer))])
    (resumed,) = [one for one in events if isinstance(one, v.DecisionResumed)]
    assert "root.research" in resumed.reason
    assert not any(isinstance(one, v.AskSubmitted) for one in events)
    assert not engine.state.suspended


def test_kueue_names_the_workload_that_it_failed_at(monkeypatch):
    """A fault in assigning flavors is that of the head under consideration; set aside, the next head is admitted."""
    manifests = [
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "default"}},
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu"],
                        "flavors": [
                            {
                                "name": "default",
                                "resources": [{"name": "cpu", "nominalQuota": "10"}],
                            }
                        ],
                    }
                ],
            },
        },
    ]
    (configuration,) = from_mapping("kueue", manifests, "test")
    workloads = [
        v.AskSubmitted(ask=name, queue="team", resources={"cpu": 1000}) for name in ("bad", "good")
    ]
    engine = engine_with(v.ConfigurationApplied(configuration=configuration), *workloads)
    honest = Assigner.assign

    def assign(self, wishes):
        if self.ask.id == "bad":
            raise RuntimeError("broken")
        return honest(self, wishes)

    kept = restored(engine)
    monkeypatch.setattr(Assigner, "assign", assign)
    with pytest.raises(StepFailed) as failed:
        engine.step(START)
    assert (failed.value.kind, failed.value.subject) == ("ask", "bad")
    assert failed.value.place.startswith("test_suspension.py:")
    kept.suspend(START, "ask", "bad", FAULT)
    assert bound(kept.step(START + 1)) == {"good"}


def test_a_timer_that_raises_is_named(monkeypatch):
    """The engine knows what it was working on when it raised."""
    engine = engine_with(*cluster(5))
    engine.step(START + 1)
    engine.step(START + 2, [v.Proposal(input=queues(4))])

    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(enforcement, "enforce", broken)
    with pytest.raises(StepFailed) as failed:
        engine.step(START + 100_000)
    assert (failed.value.kind, failed.value.subject) == ("timer", "quota:root.web")
    assert str(failed.value).startswith("timer quota:root.web: RuntimeError: broken (")


def test_an_input_that_raises_is_named_by_its_place(monkeypatch):
    """Its number among the proposals of the step."""
    engine = engine_with(queues(), node())

    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr("evsched.core.validation._application_removed", broken)
    monkeypatch.setitem(
        __import__("evsched.core.validation", fromlist=["_CHECKS"])._CHECKS,
        v.ApplicationRemoved,
        broken,
    )
    proposals = [application("web"), v.ApplicationRemoved(application="web")]
    with pytest.raises(StepFailed) as failed:
        engine.step(START, [v.Proposal(input=one) for one in proposals])
    assert (failed.value.kind, failed.value.subject) == ("input", "1")


def test_want_of_memory_is_no_fault_of_a_subject(monkeypatch):
    """It is raised as it is: nothing is set aside for it."""
    engine = engine_with(*cluster(1))

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr("evsched.core.yunikorn.allocation.allocate", broken)
    with pytest.raises(MemoryError):
        engine.step(START)


def test_an_error_that_was_never_raised_has_no_place():
    """There is nothing to name."""
    assert place_of(ValueError("never")) == "?"

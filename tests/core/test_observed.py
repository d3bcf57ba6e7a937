"""What the cluster itself did is taken into the state as it is, and leads to no decision by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from events import vocabulary as v
from events.bounds import MAX_TERMS
from events.cloudevents import InboxRecord, read_proposal
from events.configuration import QueueSpec, YunikornSpec
from events.frame import encode_event
from events.pods import (
    AntiAffinityTerm,
    LabelRequirement,
    NodeSelectorTerm,
    PodFacts,
    Taint,
    Toleration,
)
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.pods import facts

NOW = 1_767_225_600_000
QUEUES = QueueSpec(
    name="root", parent=True, queues=(QueueSpec(name="a"), QueueSpec(name="b", guaranteed={"cpu": 4}))
)  # fmt: skip
TAINTED = Taint(key="gpu", value="true", effect="NoSchedule")
POD = PodFacts(
    namespace="shop",
    uid="uid-1",
    owner_uid="set-1",
    labels={"app": "web"},
    node_selector={"disk": "ssd"},
    node_affinity=(
        NodeSelectorTerm(
            expressions=(LabelRequirement(key="zone", operator="In", values=("a", "b")),),
            fields=(LabelRequirement(key="metadata.name", operator="NotIn", values=("n9",)),),
        ),
    ),
    tolerations=(Toleration(key="gpu", operator="Exists"),),
    anti_affinity=(AntiAffinityTerm(selector=(LabelRequirement(key="app", operator="Exists"),)),),
    unmodelled=("topology spread",),
)


def cluster(*inputs: v.AnyInput) -> Engine:
    """Return an engine that only records, with two nodes of 4 cpu, after these inputs."""
    engine = Engine()
    engine.lead(NOW, 1, "me")
    configuration = YunikornSpec(root=QUEUES)
    first = [
        v.ConfigurationApplied(configuration=configuration),
        *(v.NodeRegistered(node=name, capacity={"cpu": 4}) for name in ("n1", "n2")),
    ]
    record(engine, *first, *inputs)
    return engine


def record(engine: Engine, *inputs: v.AnyInput, time: int = NOW) -> tuple[v.AnyEvent, ...]:
    """Take inputs without deciding."""
    return engine.step(time, [v.Proposal(input=one) for one in inputs], decide=False)


def ask(name: str = "x", **more: object) -> v.AskSubmitted:
    """Return an ask for 3 cpu."""
    return v.AskSubmitted(ask=name, application="app", queue="root.a", resources={"cpu": 3}, **more)


def refused(events: tuple[v.AnyEvent, ...]) -> list[tuple[str, str]]:
    """Return code and reason of each refusal."""
    return [(one.code, one.reason) for one in events if isinstance(one, v.InputRejected)]


def test_an_observed_binding_makes_the_ask_an_allocation_where_the_cluster_runs_it() -> None:
    """Usage, node and queue are those of a binding that evsched had decided."""
    seen, decided = cluster(ask()), cluster(ask())
    record(seen, v.BindingObserved(ask="x", node="n1", scheduler="default-scheduler"))
    decided.step(NOW, [], decide=True)
    assert decided.state.allocations["x"].node == "n1"
    ours, theirs = decided.state, seen.state
    assert theirs.allocations == ours.allocations
    assert theirs.nodes["n1"].used == ours.nodes["n1"].used
    assert theirs.queues["root.a"].usage == ours.queues["root.a"].usage
    assert not theirs.asks


def test_an_observed_binding_of_what_evsched_bound_changes_nothing() -> None:
    """The cluster confirms what was decided: an event, and the same state."""
    engine = cluster(ask())
    engine.step(NOW, [], decide=True)
    before = dict(engine.state.allocations)
    events = record(engine, v.BindingObserved(ask="x", node="n1"))
    assert [type(one) for one in events] == [v.BindingObserved]
    assert engine.state.allocations == before


def test_an_observed_eviction_counts_as_leaving_and_arms_nothing() -> None:
    """Its room is on the way to be free; whether it is asked again is the peer's matter."""
    engine = cluster(ask(), v.BindingObserved(ask="x", node="n1"))
    record(engine, v.EvictionObserved(allocation="x", reason="PreemptionByScheduler"))
    state = engine.state
    assert state.allocations["x"].eviction_requested == NOW
    assert any(state.queues["root.a"].preempting)
    assert not state.leaving
    assert not state.timers.armed
    record(engine, v.AllocationReleased(allocation="x", reason="preempted"))
    assert not any(state.queues["root.a"].preempting)
    assert not state.nodes["n1"].allocations


def test_a_gap_is_a_note() -> None:
    """It is in the log with both versions, and nothing else changed."""
    engine, same = cluster(), cluster()
    gap = v.ObservationGap(kind="Pod", before="100", after="250", listed=7, reason="410 Gone")
    (event,) = record(engine, gap)
    assert (event.kind, event.before, event.after, event.listed) == ("Pod", "100", "250", 7)
    same.state.seq = engine.state.seq
    assert same.state.digest() == engine.state.digest()


REFUSED: dict[str, tuple[Callable[[], v.AnyInput], str, str]] = {
    "a binding of nothing": (lambda: v.BindingObserved(ask="z", node="n1"), "unknown", "neither waits nor runs"),
    "a binding to no node": (lambda: v.BindingObserved(ask="x"), "invalid", "names no node"),
    "a binding to a node that is not there": (lambda: v.BindingObserved(ask="x", node="n7"), "unknown", "n7"),
    "a binding elsewhere": (lambda: v.BindingObserved(ask="r", node="n2"), "conflict", "expected n1"),
    "a binding with flavors": (lambda: v.BindingObserved(ask="x", node="n1", flavors={"cpu": "f"}), "invalid", "Kueue"),
    "an eviction of what waits": (lambda: v.EvictionObserved(allocation="x"), "unknown", "waits as an ask"),
    "a gap with an escape": (lambda: v.ObservationGap(kind="\x1b[2J"), "invalid", "control characters"),
    "a taint with an escape": (
        lambda: v.NodeUpdated(node="n1", taints=(Taint(key="a\n", effect="NoSchedule"),)), "invalid", "control characters",
    ),
    "a label of a pod with an escape": (lambda: ask("y", pod=PodFacts(labels={"a": "\x00"})), "invalid", "control characters"),
    "In without values": (
        lambda: ask("y", pod=affinity(LabelRequirement(key="a", operator="In"))), "invalid", "expected at least one",
    ),
    "Exists with values": (
        lambda: ask("y", pod=affinity(LabelRequirement(key="a", operator="Exists", values=("b",)))), "invalid", "expected none",
    ),
    "Gt with a word": (
        lambda: ask("y", pod=affinity(LabelRequirement(key="a", operator="Gt", values=("b",)))), "invalid", "one integer",
    ),
    "a field that no node has": (
        lambda: ask("y", pod=PodFacts(node_affinity=(NodeSelectorTerm(
            fields=(LabelRequirement(key="spec.name", operator="In", values=("b",)),)),))), "invalid", "metadata.name",
    ),
    "Gt between pods": (
        lambda: ask("y", pod=PodFacts(anti_affinity=(AntiAffinityTerm(
            selector=(LabelRequirement(key="a", operator="Gt", values=("1",)),)),))), "invalid", "expected In, NotIn",
    ),
    "a toleration of every key by value": (
        lambda: ask("y", pod=PodFacts(tolerations=(Toleration(value="b"),))), "invalid", "expected Exists",
    ),
    "Exists with a value": (
        lambda: ask("y", pod=PodFacts(tolerations=(Toleration(key="a", operator="Exists", value="b"),))), "invalid",
        "expected none",
    ),
}  # fmt: skip


def affinity(one: LabelRequirement) -> PodFacts:
    """Return a pod with one condition on nodes."""
    return PodFacts(node_affinity=(NodeSelectorTerm(expressions=(one,)),))


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_itself_or_the_state_is_refused(name: str) -> None:
    """With the place, what was found and what was expected; nothing of it is applied."""
    make, code, said = REFUSED[name]
    running = v.AllocationRestored(
        allocation="r", application="app", queue="root.a", node="n1", resources={"cpu": 1}
    )
    engine = cluster(ask(), running)
    digest = (dict(engine.state.asks), engine.state.nodes["n1"].taints)
    ((found, reason),) = refused(record(engine, make()))
    assert found == code
    assert said in reason
    assert digest == (dict(engine.state.asks), engine.state.nodes["n1"].taints)


def test_a_list_that_is_too_long_is_malformed() -> None:
    """Bounds are part of the types, and hold before anything is looked at."""
    taints = ",".join(['{"key":"a","effect":"NoSchedule"}'] * (MAX_TERMS + 1))
    data = f'{{"type":"NodeRegistered","node":"n","capacity":{{}},"taints":[{taints}]}}'
    assert "length <= 256" in read_proposal(InboxRecord(data=data.encode()), 0).problem


def test_pods_and_taints_come_back_from_a_snapshot() -> None:
    """All that placement depends on is kept; the uids stay in the log alone."""
    engine = cluster(
        ask(pod=POD),
        v.NodeUpdated(node="n1", taints=(TAINTED,), ready=False),
        v.AllocationRestored(
            allocation="r", application="app", queue="root.a", node="n2", resources={"cpu": 1}, pod=POD
        ),
    )  # fmt: skip
    again = snapshot.decode(snapshot.encode(engine.state), NOW)
    assert again.digest() == engine.state.digest()
    assert (again.nodes["n1"].taints, again.nodes["n1"].ready) == ((TAINTED,), False)
    found = facts(again.asks["x"].pod)
    assert (found.node_selector, found.unmodelled) == (POD.node_selector, POD.unmodelled)
    assert (found.uid, found.owner_uid) == ("", "")
    assert again.allocations["r"].pod == again.asks["x"].pod


def test_what_is_not_said_is_neither_written_nor_digested() -> None:
    """Defaults are left out, so that logs and digests without pods and taints stay as they were."""
    assert b"taint" not in encode_event(v.NodeRegistered(node="n", capacity={}))
    assert b"pod" not in encode_event(ask())
    plain, empty = cluster(ask()), cluster(ask(pod=PodFacts(uid="u")))
    assert plain.state.digest() == empty.state.digest()
    plain = cluster()
    record(plain, v.NodeUpdated(node="n1", taints=(TAINTED,)), v.NodeUpdated(node="n1", taints=()))
    same = cluster()
    same.state.seq = plain.state.seq
    assert plain.state.digest() == same.state.digest()


def test_a_bound_ask_keeps_its_pod() -> None:
    """Other pods compare themselves with its labels as long as it runs."""
    engine = cluster(ask(pod=PodFacts(labels={"app": "web"})))
    engine.step(NOW, [], decide=True)
    assert facts(engine.state.allocations["x"].pod).labels == {"app": "web"}

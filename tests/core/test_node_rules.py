"""Which nodes take which pods: the columns against one node at a time, both against a naive reading, and preemption with them."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from events.pods import (
    AntiAffinityTerm,
    LabelRequirement,
    NodeSelectorTerm,
    PodFacts,
    Taint,
    Toleration,
)
from evsched.core import node_rules
from evsched.core.engine import Engine
from evsched.core.pods import kept
from evsched.core.rules import RULES
from evsched.core.yunikorn import guarantee, node_marks, repulsion, required_node
from evsched.core.yunikorn.columns import columns_of
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import Plan
from tests.core import pods as some
from tests.core.clusters import built, clusters
from tests.core.oracle import World
from tests.core.test_guarantee import decide
from tests.examples import examples

NOW = 1_767_225_600_000
GPU = Taint(key="gpu", value="true", effect="NoSchedule")


def cluster(*inputs: v.AnyInput, rules: int = 2) -> Engine:
    """Return an engine under some rules with two queues, after these inputs; nothing is decided yet."""
    queues = (QueueSpec(name="a"), QueueSpec(name="b", guaranteed={"cpu": 4}))
    root = QueueSpec(name="root", parent=True, queues=queues)
    engine = Engine()
    first: list[v.AnyInput] = [v.RulesAdopted(rules=rules)] if rules > 1 else []
    first.append(v.ConfigurationApplied(configuration=YunikornSpec(root=root)))
    take(engine, *first, *inputs)
    return engine


def take(
    engine: Engine, *inputs: v.AnyInput, decide: bool = False, time: int = NOW
) -> tuple[v.AnyEvent, ...]:
    """Take one step with these inputs."""
    return engine.step(time, [v.Proposal(input=one) for one in inputs], decide=decide)


def node(name: str, **more: object) -> v.NodeRegistered:
    """Return a node of 4 cpu."""
    return v.NodeRegistered(node=name, capacity={"cpu": 4}, **more)


def ask(name: str, pod: PodFacts | None = None, cpu: int = 1, **more: object) -> v.AskSubmitted:
    """Return an ask for cpu in queue a."""
    fields = {"application": "app", "queue": "root.a", "resources": {"cpu": cpu}} | more
    return v.AskSubmitted(ask=name, pod=pod, **fields)


def bound(events: tuple[v.AnyEvent, ...]) -> dict[str, str | None]:
    """Return which asks were bound where."""
    return {one.ask: one.node for one in events if isinstance(one, v.AllocationBound)}


def expression(key: str, operator: str, *values: str) -> PodFacts:
    """Return a pod with one required expression."""
    one = LabelRequirement(key=key, operator=operator, values=values)
    return PodFacts(node_affinity=(NodeSelectorTerm(expressions=(one,)),))


TWO = LabelRequirement(key="zone", operator="In", values=("z2",))
NAMED = LabelRequirement(key="metadata.name", operator="In", values=("n3",))
APART = PodFacts(
    labels={"app": "db"},
    anti_affinity=(
        AntiAffinityTerm(selector=(LabelRequirement(key="app", operator="In", values=("db",)),)),
    ),
)
NODES = {
    "n1": {"labels": {"disk": "ssd", "gen": "7", "zone": "z1"}},
    "n2": {"labels": {"disk": "hdd", "gen": "11", "zone": "z2"}, "taints": (GPU,)},
    "n3": {"labels": {"gen": "x"}, "taints": (Taint(key="soft", effect="PreferNoSchedule"),)},
    "n4": {"labels": {"disk": "ssd"}, "schedulable": False},
}
TOLERANT = (Toleration(key="gpu", operator="Equal", value="true", effect="NoSchedule"),)
TAKING = {
    "a pod that says nothing": (None, "n1 n3"),
    "a selector": (PodFacts(node_selector={"disk": "ssd"}), "n1"),
    "a selector of two labels": (PodFacts(node_selector={"disk": "ssd", "zone": "z2"}), ""),
    "a toleration": (PodFacts(tolerations=TOLERANT), "n1 n2 n3"),
    "a toleration of another value": (PodFacts(tolerations=(replace(TOLERANT[0], value="no"),)), "n1 n3"),
    "a toleration of another effect": (PodFacts(tolerations=(replace(TOLERANT[0], effect="NoExecute"),)), "n1 n3"),
    "a toleration of every taint": (PodFacts(tolerations=(Toleration(operator="Exists"),)), "n1 n2 n3"),
    "a toleration and a selector": (PodFacts(tolerations=TOLERANT, node_selector={"disk": "hdd"}), "n2"),
    "In": (expression("disk", "In", "ssd", "nvme"), "n1"),
    "NotIn holds without the label": (expression("disk", "NotIn", "ssd"), "n3"),
    "Exists": (expression("zone", "Exists"), "n1"),
    "DoesNotExist": (expression("zone", "DoesNotExist"), "n3"),
    "Gt compares integers": (replace(expression("gen", "Gt", "6"), tolerations=TOLERANT), "n1 n2"),
    "Lt compares integers": (replace(expression("gen", "Lt", "11"), tolerations=TOLERANT), "n1"),
    "a field": (PodFacts(node_affinity=(NodeSelectorTerm(fields=(NAMED,)),)), "n3"),
    "terms are alternatives": (
        PodFacts(node_affinity=(NodeSelectorTerm(fields=(NAMED,)), NodeSelectorTerm(expressions=(TWO,))), tolerations=TOLERANT),
        "n2 n3",
    ),
    "an empty term matches nothing": (PodFacts(node_affinity=(NodeSelectorTerm(),)), ""),
    "what is not modelled decides nothing": (PodFacts(unmodelled=("topology spread",)), "n1 n3"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKING)
def test_a_pod_runs_on_the_nodes_that_take_it_alone(name: str) -> None:
    """By the rules of Kubernetes: bound to the first of them, and one at a time each of them takes it."""
    pod, taking = TAKING[name]
    engine = cluster(*(node(one, **says) for one, says in NODES.items()), ask("x", pod))
    state = engine.state
    open_to = [
        one for one, it in state.nodes.items() if node_rules.objection(kept(pod), it) is None
    ]
    assert open_to == taking.split()
    assert bound(take(engine, decide=True)) == ({"x": open_to[0]} if open_to else {})


def test_under_rules_1_nothing_of_it_decides() -> None:
    """A log that 0.1.0 could have led is decided as 0.1.0 would, whatever its nodes and pods say."""
    engine = cluster(
        node("n1", taints=(GPU,)), ask("x", PodFacts(node_selector={"disk": "ssd"})), rules=1
    )
    assert bound(take(engine, decide=True)) == {"x": "n1"}


def test_pods_that_repel_each_other_run_apart() -> None:
    """The second goes elsewhere, the third waits until one of them is gone, and a plain pod goes anywhere."""
    engine = cluster(
        node("n1"), node("n2"), *(ask(name, APART) for name in ("x", "y", "z")), ask("plain")
    )
    found = bound(take(engine, decide=True))
    assert {found["x"], found["y"]} == {"n1", "n2"}
    assert found.keys() == {"x", "y", "plain"}
    events = take(engine, v.AllocationReleased(allocation="y"), decide=True)
    assert bound(events) == {"z": found["y"]}


def test_a_running_pod_keeps_others_away_that_say_nothing_of_it() -> None:
    """Anti-affinity holds both ways: who came first does not matter."""
    guarded = replace(APART, labels={})
    restored = v.AllocationRestored(
        allocation="r", application="app", queue="root.a", node="n1", resources={"cpu": 1}, pod=guarded
    )  # fmt: skip
    engine = cluster(node("n1"), restored, ask("x", PodFacts(labels={"app": "db"})), ask("y"))
    assert bound(take(engine, decide=True)) == {"y": "n1"}


def test_another_namespace_is_not_meant_unless_it_is_named() -> None:
    """A term means the namespace of its own pod, or those that it names."""
    here = replace(APART, namespace="here")
    there = replace(APART, namespace="there")
    engine = cluster(node("n1"), ask("x", here), ask("y", there))
    assert bound(take(engine, decide=True)) == {"x": "n1", "y": "n1"}
    term = replace(APART.anti_affinity[0], namespaces=("here",))
    engine = cluster(node("n1"), ask("x", here), ask("y", replace(there, anti_affinity=(term,))))
    assert bound(take(engine, decide=True)) == {"x": "n1"}


def test_a_waiting_ask_is_bound_when_a_node_gets_what_it_asks_for() -> None:
    """Another label, a taint that goes, a toleration that is met: each is tried at the next step."""
    engine = cluster(
        node("n1", taints=(GPU,)),
        ask("plain"),
        ask("ssd", PodFacts(node_selector={"disk": "ssd"}, tolerations=TOLERANT)),
    )
    assert bound(take(engine, decide=True)) == {}
    events = take(engine, v.NodeUpdated(node="n1", labels={"disk": "ssd"}), decide=True)
    assert bound(events) == {"ssd": "n1"}
    assert bound(take(engine, v.NodeUpdated(node="n1", taints=()), decide=True)) == {"plain": "n1"}


def test_a_taint_frees_the_ask_in_flight_whose_node_it_closes() -> None:
    """As when the node takes nobody any more: the ask waits like any other, and may preempt elsewhere."""
    low = [
        v.AllocationRestored(
            allocation=name, application="low", queue="root.a", node=on, resources={"cpu": 4}
        )
        for name, on in (("r1", "n1"), ("r2", "n2"))
    ]
    want = ask("x", cpu=4, application="high", queue="root.b", created=NOW - 600_000)
    engine = cluster(node("n1"), node("n2"), *low, want)
    (decided,) = [one for one in take(engine, decide=True) if isinstance(one, v.PreemptionDecided)]
    events = take(engine, v.NodeUpdated(node=decided.node, taints=(GPU,)), decide=True)
    assert [one.ask for one in events if isinstance(one, v.PreemptionWithdrawn)] == ["x"]
    later = take(engine, decide=True, time=NOW + 60_000)
    (again,) = [one for one in later if isinstance(one, v.PreemptionDecided)]
    assert again.node != decided.node


def test_a_daemon_waits_for_its_node_to_take_it() -> None:
    """A required node with a taint that its pod does not tolerate gets nobody evicted."""
    running = v.AllocationRestored(
        allocation="r", application="low", queue="root.a", node="n1", resources={"cpu": 4}
    )
    engine = cluster(node("n1", taints=(GPU,)), running, ask("ds", required_node="n1"))
    one = engine.state.asks["ds"]
    found = required_node.find_plan(engine.state, named("default", RULES[2]), one)
    assert found.code == "node-rule"
    assert "gpu=true:NoSchedule" in found.reason


@given(st.integers(0, 2**64))
@examples(150)
def test_the_columns_say_what_each_node_says(seed: int) -> None:
    """Whatever nodes and tasks came, changed and went, the marks are those of one look at each node, and a naive reading's."""
    draw = Random(seed)
    engine = cluster()
    state = engine.state
    small = draw.random() < 0.3
    with (
        patch.object(node_marks, "MOST_KEPT", 1 if small else 512),
        patch.object(node_marks, "SPARE_VALUES", -99 if small else 1024),
        patch.object(repulsion, "MOST_PROFILES", 2 if small else 9999),
    ):
        for number in range(30):
            take(engine, change(draw, number))
            columns = columns_of(state)
            columns.settle()
            for one in list(state.asks.values())[-4:]:
                marks = columns.taking(one.pod)
                for name, row in columns.rows.items():
                    wanted = some.takes(state, one, state.nodes[name])
                    assert marks[row] == wanted
                    assert (node_rules.objection(one.pod, state.nodes[name]) is None) == wanted


def change(draw: Random, number: int) -> v.AnyInput:
    """Return something that happens to nodes and tasks."""
    name, task = f"n{draw.randrange(5)}", f"t{draw.randrange(12)}"
    match draw.choice((0, 0, 0, 1, 2, 3, 3, 4, 5)):
        case 0:
            return ask(f"t{number}", some.pod(draw))
        case 1:
            return node(name, labels=some.labels(draw), taints=some.taints(draw))
        case 2:
            return v.NodeUpdated(node=name, labels=some.labels(draw), taints=some.taints(draw))
        case 3:
            return v.BindingObserved(ask=task, node=name)
        case 4:
            return v.AllocationReleased(allocation=task)
        case _:
            return draw.choice(
                (v.NodeRemoved(node=name), v.NodeUpdated(node=name, schedulable=False))
            )


def with_pods(draw: Random, one: v.AnyInput) -> v.AnyInput:
    """Return an input whose node or pod has conditions now."""
    if isinstance(one, v.NodeRegistered):
        return replace(one, labels=some.labels(draw), taints=some.taints(draw))
    if isinstance(one, v.AskSubmitted | v.AllocationRestored):
        return replace(one, pod=some.pod(draw))
    return one


@given(clusters(), st.integers(0, 2**32))
@examples(60)
def test_preemption_makes_room_on_nodes_that_take_the_pod_alone(
    inputs: list[v.AnyInput], seed: int
) -> None:
    """With taints, selectors and anti-affinity the plan is still the cheapest lawful one, where there is any."""
    draw = Random(seed)
    with patch.dict(RULES, {1: replace(RULES[1], node_rules=True)}):
        state = built([with_pods(draw, one) for one in inputs]).state
        for one in [one for one in state.asks.values() if one.required_node is None]:
            world = World(state)
            found = guarantee.find_plan(state, named("default", RULES[1]), one)
            wanted = world.best(one)
            assert isinstance(found, Plan) == (wanted is not None), found
            if isinstance(found, Plan):
                assert world.broken(one, found.node, found.victims) == []
                victims = tuple(sorted(victim.id for victim in found.victims))
                assert (found.node, victims) == (wanted.node, wanted.victims)
                decide(state, one, found)


def test_what_says_nothing_is_kept_as_nothing() -> None:
    """A pod with uids alone costs its ask no condition, and no byte of the state."""
    assert kept(PodFacts(uid="a", owner_uid="b")) is UNSET
    assert kept(None) is UNSET

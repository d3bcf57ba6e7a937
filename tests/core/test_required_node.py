"""Preemption for asks that may run on one node only, against the oracle and by example."""

from __future__ import annotations

from hypothesis import event, given

from events import vocabulary as v
from evsched.core.reducer import apply
from evsched.core.rules import RULES
from evsched.core.step import Step
from evsched.core.yunikorn import required_node
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import Failure
from tests.core.clusters import NOW, built, clusters
from tests.core.oracle import World
from tests.core.small import ask, engine, node, queue, running, step
from tests.examples import examples

DEFAULT = named("default", RULES[1])


@given(clusters(most=7, nodes=2, required=True))
@examples(90)
def test_the_search_finds_what_the_oracle_finds(inputs):
    """A plan is found exactly when there is one, and none is cheaper; reservations of asks in flight hold as long as they can."""
    state = built(inputs).state
    for one in [one for one in state.asks.values() if one.required_node is not None]:
        world = World(state)
        found = required_node.find_plan(state, DEFAULT, one)
        plans = world.required_plans(one)
        if isinstance(found, Failure):
            event(found.code)
            assert plans == []
        elif plans:
            event(f"victims: {len(found.victims)}")
            assert (
                world.broken_required(one, found.node, [victim.id for victim in found.victims])
                == []
            )
            victims = tuple(
                v.Victim(id=victim.id, queue=victim.queue, reason="") for victim in found.victims
            )
            fields = {
                "ask": one.id,
                "node": found.node,
                "victims": victims,
                "algorithm": "required-node",
            }
            Step(state, NOW, apply).emit(v.PreemptionDecided, cause=one.seq, **fields)
        else:
            event("reservations only")
            assert found.victims == ()
            assert world.fits_required(one)


def test_it_preempts_at_once_without_guarantee_and_through_a_fence():
    """No delay, no guarantee, no fence, no policy: what runs on its node goes, even of the same queue."""
    cluster = engine(
        queue("a", properties={"preemption.policy": "fence"}),
        queue("b", properties={"preemption.policy": "disabled"}),
    )
    step(cluster, 0, node("n1", 4), running("r1", "root.b", "n1", 4))
    events = step(cluster, 1, ask("ds", "root.a", 4, required_node="n1"))
    (decided,) = [one for one in events if isinstance(one, v.PreemptionDecided)]
    assert (decided.node, [one.id for one in decided.victims], decided.algorithm) == (
        "n1",
        ["r1"],
        "required-node",
    )


def test_higher_priorities_and_required_node_pods_are_safe():
    """Neither a more important pod nor another that is bound to the node is a victim."""
    cluster = engine(queue("a"), queue("b"))
    step(
        cluster,
        0,
        node("n1", 4),
        running("high", "root.b", "n1", 2, priority=1),
        running("ds1", "root.b", "n1", 2, required_node="n1"),
    )
    events = step(cluster, 1, ask("ds", "root.a", 1, required_node="n1"))
    assert not [one for one in events if isinstance(one, v.PreemptionDecided)]
    assert (
        cluster.state.asks["ds"].failed
        == "node n1: tasks that may be preempted there do not make enough room"
    )


def test_opted_out_pods_are_the_last_resort():
    """A pod that asked to be spared goes only when nothing else makes room."""
    cluster = engine(queue("a"), queue("b"))
    spared = running("spared", "root.b", "n1", 2, allow_preemption=False)
    step(cluster, 0, node("n1", 4), spared, running("plain", "root.b", "n1", 2))
    first = step(cluster, 1, ask("ds1", "root.a", 2, required_node="n1"))
    assert [
        one.id for event in first if isinstance(event, v.PreemptionDecided) for one in event.victims
    ] == ["plain"]
    second = step(cluster, 2000, ask("ds2", "root.a", 2, required_node="n1"))
    (victim,) = [
        one for event in second if isinstance(event, v.PreemptionDecided) for one in event.victims
    ]
    assert victim.id == "spared"
    assert victim.reason.endswith("(law 1)")


def test_reservations_of_others_make_way():
    """A reservation without victims is released when it is in the way, and nobody dies for what it would have kept."""
    cluster = engine(queue("a"), queue("b"))
    step(cluster, 0, node("n1", 4), running("r1", "root.b", "n1", 2), decide=False)
    step(cluster, 0, ask("other", "root.b", 3, preemption_policy="Never"), decide=False)
    step(
        cluster,
        0,
        v.ReservationRestored(ask="other", node="n1"),
        ask("ds", "root.a", 2, required_node="n1"),
    )
    assert "other" not in cluster.state.reservations
    assert cluster.state.allocations["ds"].node == "n1"
    assert not cluster.state.allocations["r1"].eviction_requested


def test_an_ask_in_flight_loses_its_node_only_when_nothing_else_helps():
    """The preemption of another ask is withdrawn as the last resort; it has lost its node and may preempt anew."""
    cluster = engine(
        queue("a"),
        queue("b", guaranteed={"vcore": 4}, properties={"preemption.delay": "1s"}),
        queue("c"),
    )
    step(cluster, 0, node("n1", 4), running("r1", "root.c", "n1", 4))
    step(cluster, 0, ask("other", "root.b", 4))
    first = step(cluster, 1000)
    assert [one.ask for one in first if isinstance(one, v.PreemptionDecided)] == ["other"]
    second = step(cluster, 2000, ask("ds", "root.a", 4, required_node="n1"))
    assert [
        (one.ask, one.node_lost) for one in second if isinstance(one, v.PreemptionWithdrawn)
    ] == [("other", True)]
    assert [one.ask for one in second if isinstance(one, v.PreemptionDecided)] == ["ds"]
    assert not cluster.state.asks["other"].preempted


def test_a_node_that_takes_nobody_gets_no_room_made():
    """On a closed node nobody is preempted; once it is open again, at once."""
    cluster = engine(queue("a"), queue("b"))
    step(cluster, 0, node("n1", 4, schedulable=False), running("r1", "root.b", "n1", 4))
    assert not [
        one
        for one in step(cluster, 1, ask("ds", "root.a", 4, required_node="n1"))
        if isinstance(one, v.PreemptionDecided)
    ]
    assert [
        one
        for one in step(cluster, 2000, v.NodeUpdated(node="n1", schedulable=True))
        if isinstance(one, v.PreemptionDecided)
    ]


def test_a_maximum_on_the_path_holds_for_it_too():
    """A victim that frees the node but not the queue's maximum is not taken for nothing; one that frees both is."""
    cluster = engine(queue("a", maximum={"vcore": 4}), queue("b"))
    step(
        cluster,
        0,
        node("n1", 4),
        node("n2", 4),
        running("r1", "root.b", "n1", 4),
        running("r2", "root.a", "n2", 4),
    )
    assert not [
        one
        for one in step(cluster, 1, ask("ds", "root.a", 4, required_node="n1"))
        if isinstance(one, v.PreemptionDecided)
    ]
    events = step(cluster, 2000, ask("ds2", "root.a", 4, required_node="n2"))
    assert [
        [one.id for one in event.victims]
        for event in events
        if isinstance(event, v.PreemptionDecided)
    ] == [["r2"]]


def test_a_node_that_was_kept_elsewhere_is_free_once_its_own_is_kept():
    """An ask keeps one node: when its required one is freed of a reservation, it gives back the one it was found with."""
    cluster = engine(queue("a"), queue("b", maximum={"vcore": 4}))
    events = step(
        cluster,
        0,
        *(node("n1", 4), node("n2", 4), node("n3", 4)),
        running("full", "root.b", "n3", 4),
        ask("other", "root.b", 4),
        ask("ds", "root.a", 4, required_node="n1"),
        v.ReservationRestored(ask="ds", node="n2"),
        v.ReservationRestored(ask="other", node="n1"),
    )
    assert [one.node for one in events if isinstance(one, v.NodeReserved)] == ["n1"]
    assert cluster.state.allocations["ds"].node == "n1"
    assert not cluster.state.reservations
    assert not cluster.state.nodes["n2"].reserved

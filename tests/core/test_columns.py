"""Node columns against a plain scan over the nodes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.workloads import Node
from evsched.core.yunikorn.columns import FULL, NodeColumns, columns_of
from evsched.core.yunikorn.index import index_of
from tests.examples import examples

START = 1_767_225_600_000
TYPES = ("vcore", "memory", "gpu")


def engine_with(
    policy: str = "fair", weights: dict[str, int] | None = None, **nodes: dict[str, int]
) -> Engine:
    """Return an engine with one leaf and these nodes."""
    engine = Engine()
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    spec = YunikornSpec(
        root=root,
        node_sort_policy=policy,
        node_sort_weights=weights or {},
        preemption_enabled=False,
    )
    proposals = [v.Proposal(input=v.ConfigurationApplied(configuration=spec))]
    proposals += [
        v.Proposal(input=v.NodeRegistered(node=name, capacity=capacity))
        for name, capacity in nodes.items()
    ]
    events = engine.step(START, proposals, decide=False)
    assert not any(isinstance(event, v.InputRejected) for event in events)
    return engine


def run(engine: Engine, name: str, node: str, **resources: int) -> None:
    """Let an allocation run on a node."""
    restored = v.AllocationRestored(
        allocation=name, application="x", queue="root.a", node=node, resources=resources
    )
    engine.step(START, [v.Proposal(input=restored)], decide=False)


def scan(engine: Engine, resources: dict[str, int]) -> str | None:
    """Return the node that a plain scan finds: the best score among those that fit, then the name."""
    spec, names = engine.state.configuration, engine.state.types.names

    def use(node: Node) -> int:
        weights = {
            index: spec.node_sort_weights.get(names[index], 1000)
            for index, amount in enumerate(node.capacity)
            if amount
        }
        weighed = sum(
            weight * (node.used[index] * FULL // node.capacity[index])
            for index, weight in weights.items()
        )
        return weighed // sum(weights.values()) if sum(weights.values()) else 0

    sign = -1 if spec.node_sort_policy == "binpacking" else 1
    pairs = engine.state.types.shape(resources).pairs
    fitting = [
        (sign * use(node), node.name)
        for node in engine.state.nodes.values()
        if node.schedulable and node.fits(pairs)
    ]
    return min(fitting)[1] if fitting else None


@examples(150)
@given(st.integers(0, 2**64))
def test_places_like_a_plain_scan(seed):
    """After any change to any node, every shape goes where a scan over all nodes would put it."""
    draw = Random(seed)
    names = [f"n{number}" for number in range(draw.choice((1, 4, 9)))]
    capacity = {
        name: {kind: draw.randrange(12) for kind in TYPES[: draw.choice((1, 2, 3))]}
        for name in names
    }
    weights = {kind: draw.choice((0, 1, 1000, 10**9)) for kind in TYPES if draw.random() < 0.5}
    engine = engine_with(draw.choice(("fair", "binpacking")), weights, **capacity)
    shapes = [
        {kind: draw.randrange(1, 4) for kind in draw.sample(TYPES, draw.choice((1, 1, 2)))}
        for _ in range(4)
    ]
    for number in range(60):
        resources = draw.choice(shapes)
        shape = engine.state.shape(
            resources
        )  # a new type of resource drops the columns, so it comes before them
        found = columns_of(engine.state).place(shape)
        assert found == scan(engine, resources)
        match draw.randrange(6):
            case 0:
                name, change = draw.choice(names), {kind: draw.randrange(12) for kind in TYPES}
                changed = v.NodeUpdated(
                    node=name, capacity=draw.choice((None, change)), schedulable=draw.random() < 0.8
                )
                engine.step(START, [v.Proposal(input=changed)], decide=False)
            case 1 if engine.state.allocations:
                gone = v.AllocationReleased(allocation=draw.choice(list(engine.state.allocations)))
                engine.step(START, [v.Proposal(input=gone)], decide=False)
            case _ if found is not None:
                run(engine, f"t{number}", found, **resources)


def test_fair_takes_the_least_used_and_binpacking_the_most_used():
    """Of two nodes that fit, fair takes the emptier one and binpacking the fuller one."""
    for policy, expected in (("fair", "n2"), ("binpacking", "n1")):
        engine = engine_with(policy, n1={"vcore": 10}, n2={"vcore": 10})
        run(engine, "t", "n1", vcore=1)
        assert columns_of(engine.state).place(engine.state.shape({"vcore": 1})) == expected


def test_equal_scores_go_to_the_smaller_name():
    """Names decide between equal nodes, whatever the order in which they were registered."""
    engine = engine_with(n9={"vcore": 10}, n10={"vcore": 10})
    assert columns_of(engine.state).place(engine.state.shape({"vcore": 1})) == "n10"


def test_a_type_that_a_node_lacks_does_not_count_for_its_score():
    """A node with a GPU in use is not fuller in vcores than one without a GPU; its mean counts both types."""
    engine = engine_with(n1={"vcore": 10, "gpu": 2}, n2={"vcore": 10})
    run(engine, "t1", "n1", vcore=4)
    run(engine, "t2", "n2", vcore=3)
    assert columns_of(engine.state).place(engine.state.shape({"vcore": 1})) == "n1"


@pytest.mark.parametrize(
    ("weights", "expected"), [({"vcore": 3000}, "n2"), ({"memory": 3000}, "n1")]
)
def test_weights_decide_which_type_matters(weights, expected):
    """The node that is fuller in the heavier type comes later."""
    engine = engine_with(
        "fair", weights, n1={"vcore": 10, "memory": 10}, n2={"vcore": 10, "memory": 10}
    )
    run(engine, "t1", "n1", vcore=4)
    run(engine, "t2", "n2", memory=4)
    assert columns_of(engine.state).place(engine.state.shape({"vcore": 1})) == expected


def test_what_is_reserved_is_not_available():
    """Room that is kept for anybody is not in the columns; it comes back, as growth, when the reservation ends."""
    engine = engine_with(n1={"vcore": 4})
    columns = columns_of(engine.state)
    asked = v.AskSubmitted(ask="t", application="x", queue="root.a", resources={"vcore": 3})
    engine.step(START, [v.Proposal(input=asked)], decide=False)
    engine.step(START, [v.Proposal(input=v.ReservationRestored(ask="t", node="n1"))], decide=False)
    columns.settle()
    assert columns.available[0].tolist() == [1]
    assert not columns.grown
    engine.step(START, [v.Proposal(input=v.AskWithdrawn(ask="t"))], decide=False)
    columns.settle()
    assert columns.available[0].tolist() == [4]
    assert list(columns.grown) == [0]


def test_heaps_follow_a_long_journal():
    """A heap that has missed more changes than there are nodes is made anew, and the journal is cut now and then."""
    engine = engine_with(n1={"vcore": 1000}, n2={"vcore": 1000})
    columns = columns_of(engine.state)
    small, large = engine.state.shape({"vcore": 1}), engine.state.shape({"vcore": 2})
    for number in range(3000):
        node = columns.place(small)
        assert node == scan(engine, {"vcore": 1})
        if node is not None:
            run(engine, f"t{number}", node, vcore=1)
        if number % 500 == 0:
            assert columns.place(large) == scan(engine, {"vcore": 2})
    assert isinstance(index_of(engine.state).columns, NodeColumns)

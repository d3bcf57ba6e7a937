"""What the judge of this folder once found wrong, each as the smallest scenario that shows it."""

import json

import pytest

from evsched.core.rules import NEWEST
from replays.scenarios.scenario import parse_scenario
from replays.scenarios.simulate import Simulation


def queue(name, *queues, guaranteed=0, maximum=0):
    """Return a queue of queues.yaml; amounts are cores."""
    found = {"name": name}
    resources = {
        key: {"vcore": str(cores)}
        for key, cores in (("guaranteed", guaranteed), ("max", maximum))
        if cores
    }
    if resources:
        found["resources"] = resources
    if queues:
        found |= {"parent": True, "queues": list(queues)}
    return found


def item(name, leaf, cores, **more):
    """Return an allocation or an ask of its own application, a minute old."""
    found = {
        "id": name,
        "application": name,
        "queue": leaf,
        "resources": {"vcore": cores * 1000},
        "created": -60,
    }
    return found | more


def run(*queues, rules=NEWEST, **more):
    """Return a finished simulation of a scenario with these queues below root and one node of 8 cores unless others are given."""
    root = queue("root", *queues) | {"submitacl": "*"}
    scenario = {
        "scenario": 1,
        "name": "found",
        "config": {
            "format": "yunikorn",
            "queues": {"partitions": [{"name": "default", "queues": [root]}]},
        },
        "nodes": [{"name": "n", "capacity": {"vcore": 8000}}],
    }
    simulation = Simulation(
        parse_scenario(json.dumps(scenario | more).encode(), "found.json"), rules
    )
    simulation.run()
    return simulation


def told(simulation):
    """Return who is being evicted for whom."""
    return [
        (one["ask"], [victim["id"] for victim in one["victims"]])
        for one in simulation.decisions
        if one["type"] == "PreemptionDecided"
    ]


def test_one_that_needs_no_victim_does_not_speak_for_one_that_does():
    """The small ask waits for room that is being freed and can have nobody go; the large one, of its queue and priority, can."""
    simulation = run(
        queue("a", guaranteed=8),
        queue("b"),
        running=[
            item("going", "root.b", 6, node="n", preempting=True),
            item("stays", "root.b", 2, node="n"),
        ],
        pending=[item("small", "root.a", 2)],
        steps=[
            {"advance": "20s"},
            {"submit": [item("large", "root.a", 8, created=0)]},
            {"advance": "31s"},
        ],
    )
    assert told(simulation) == [("large", ["stays"])]


def test_a_required_node_takes_over_victims_only_from_a_preemption_that_is_withdrawn():
    """Both need the same share of a maximum; the one that may run on one node only gets it, and no task goes twice."""
    simulation = run(
        queue("q", queue("a", guaranteed=4), queue("b"), maximum=4),
        running=[item("victim", "root.q.b", 4, node="n")],
        pending=[
            item("first", "root.q.a", 4, priority=5),
            item("bound-to-n", "root.q.a", 4, required_node="n", priority=1),
        ],
        evictions={"confirm_after": "40s"},
        steps=[{"advance": "100s"}],
    )
    kinds = [one["type"] for one in simulation.decisions if one["type"].startswith("Preemption")]
    assert kinds[:3] == ["PreemptionDecided", "PreemptionWithdrawn", "PreemptionDecided"]
    assert told(simulation) == [("first", ["victim"]), ("bound-to-n", ["victim"])]
    assert "bound-to-n" in simulation.engine.state.allocations


def test_who_waits_for_no_victim_is_bound_on_its_node_though_others_there_still_wait():
    """The first one's victim is gone; the other's, which goes later, must not send it to another node."""
    simulation = run(
        queue("a", guaranteed=8),
        queue("b"),
        running=[item("v1", "root.b", 4, node="n"), item("v2", "root.b", 4, node="n", priority=1)],
        pending=[
            item("first", "root.a", 4, priority=5),
            item("second", "root.a", 4, priority=5, created=-50),
        ],
        steps=[
            {"advance": "1s"},
            {"node": {"name": "m", "capacity": {"vcore": 8000}}},
            {"release": ["v1"]},
        ],
    )
    assert told(simulation) == [("first", ["v1"]), ("second", ["v2"])]
    assert {name: one.node for name, one in simulation.engine.state.allocations.items()} == {
        "first": "n",
        "v2": "n",
    }


@pytest.mark.parametrize(
    ("rules", "seconds", "expected"),
    [(1, 20, [("ask", ["stays"])]), (2, 20, []), (2, 60, [("ask", ["stays"])])],
)
def test_room_on_a_node_is_of_no_use_below_a_maximum_that_is_only_being_freed(
    rules, seconds, expected
):
    """One node has room, the parent has none until a task leaves that does not.

    Rules 1 take a task on the other node at once, rules 2 when the eviction is overdue.
    """
    simulation = run(
        queue("q", queue("a", guaranteed=4), queue("b"), maximum=4),
        rules=rules,
        nodes=[
            {"name": "m", "capacity": {"vcore": 2000}},
            {"name": "n", "capacity": {"vcore": 8000}},
        ],
        running=[
            item("going", "root.q.b", 2, node="n", preempting=True),
            item("stays", "root.q.b", 2, node="m"),
        ],
        pending=[item("ask", "root.q.a", 2)],
        steps=[{"advance": f"{seconds}s"}],
    )
    assert told(simulation) == expected

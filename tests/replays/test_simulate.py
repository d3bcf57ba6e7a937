"""The simulator: its clock, its victims and its restarts; and every scenario of the repository and beside it."""

import json
from pathlib import Path

import pytest

from replays.scenarios.compare import differences
from replays.scenarios.scenario import ScenarioError, parse_scenario, read_scenario
from replays.scenarios.simulate import Simulation, simulate

OWN = sorted((Path(__file__).resolve().parents[1] / "scenarios").glob("*.yaml"))
QUEUES = {
    "partitions": [
        {
            "name": "default",
            "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}],
        }
    ]
}
BASE = {
    "scenario": 1,
    "name": "base",
    "config": {"format": "yunikorn", "queues": QUEUES},
    "nodes": [{"name": "n", "capacity": {"vcore": 1000}}],
}
ASK = {"id": "one", "application": "x", "queue": "root.a", "resources": {"vcore": 1000}}


def scenario(**more):
    """Return the base scenario with these keys."""
    return parse_scenario(json.dumps(BASE | more).encode(), "base.json")


def decided(document, kind):
    """Return the decisions of this type."""
    return [decision for decision in document["decisions"] if decision["type"] == kind]


@pytest.mark.parametrize("path", OWN, ids=[path.stem for path in OWN])
def test_scenarios_of_the_repository_come_out_as_they_say(path):
    """Each file states one rule of a design document."""
    found = read_scenario(path)
    assert found.expect is not None
    assert differences(found.expect, simulate(found)) == []


@pytest.mark.cases("yunikorn/designed", "kueue/decisions", "kueue/cycles")
def test_scenarios_with_known_answers_come_out_as_they_say(shared_case):
    """Derived by hand from the design documents, or taken from the real scheduler; with reasons, orders and flavors."""
    found = read_scenario(shared_case)
    assert differences(found.expect, simulate(found)) == []


def test_an_ask_is_bound_at_once_and_named_in_seconds():
    """Second 0 is a whole number; what is bound waits no longer."""
    document = simulate(scenario(pending=[ASK]))
    assert decided(document, "AllocationBound") == [
        {"at": 0, "type": "AllocationBound", "ask": "one", "node": "n"}
    ]
    assert document["pending"] == []
    assert len(document["digest"]) == 64


def test_steps_happen_in_order_on_a_virtual_clock():
    """What is submitted later is decided later, to the millisecond; what ends makes room."""
    steps = [
        {"submit": [ASK | {"id": "two"}]},
        {"advance": "1s500ms"},
        {"release": ["one"]},
        {"withdraw": ["three"]},
    ]
    document = simulate(scenario(pending=[ASK], steps=steps))
    assert [(one["at"], one["ask"]) for one in decided(document, "AllocationBound")] == [
        (0, "one"),
        (1.5, "two"),
    ]
    assert [one["code"] for one in decided(document, "InputRejected")] == ["unknown"]


def test_nodes_come_change_and_go():
    """A node of the same name replaces the old one; what ran on a node that is removed is gone."""
    steps = [
        {"submit": [ASK | {"id": "two"}]},
        {"node": {"name": "n", "capacity": {"vcore": 2000}}},
        {"remove_node": "n"},
        {"submit": [ASK | {"id": "three"}]},
        {"node": {"name": "m", "capacity": {"vcore": 1000}, "schedulable": False}},
    ]
    simulation = Simulation(scenario(pending=[ASK], steps=steps))
    document = simulation.run()
    assert [one["ask"] for one in decided(document, "AllocationBound")] == ["one", "two"]
    assert document["pending"] == ["three"]
    assert not simulation.engine.state.allocations


def test_a_restart_changes_nothing():
    """The events' written form holds everything: the same decisions and the same digest as without the restart."""
    steps = [
        {"advance": "5s"},
        {"submit": [ASK | {"id": "two"}]},
        {"advance": "5s"},
        {"release": ["one"]},
        {"advance": "1s"},
    ]
    plain = simulate(scenario(pending=[ASK], steps=steps))
    for place in range(len(steps) + 1):
        restarted = [*steps[:place], {"restart": True}, *steps[place:]]
        assert simulate(scenario(pending=[ASK], steps=restarted)) == plain


def test_a_simulation_is_repeatable():
    """The same file gives the same document."""
    found = read_scenario(OWN[0])
    assert simulate(found) == simulate(found)


def test_a_configuration_that_is_not_valid_refuses_the_file():
    """At the start as well as in a step; it is the file's fault, not the scheduler's."""
    broken = {"format": "yunikorn", "queues": {"partitions": [{"name": "default", "queus": []}]}}
    for more in ({"config": broken}, {"steps": [{"config": broken}]}):
        with pytest.raises(ScenarioError, match="queus"):
            simulate(scenario(**more))
    two = {
        "format": "yunikorn",
        "queues": {
            "partitions": [*QUEUES["partitions"], {**QUEUES["partitions"][0], "name": "gpu"}]
        },
    }
    with pytest.raises(ScenarioError, match="expected one"):
        simulate(scenario(config=two))

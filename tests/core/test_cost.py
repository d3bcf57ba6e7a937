"""Which of several lawful plans is chosen, by example."""

from __future__ import annotations

import pytest

from events.configuration import QueueSpec, YunikornSpec
from evsched.core.configuration_checks import problems
from tests.core.small import ask, engine, node, preemptions, queue, run_until, running, step

HOURS = 3600
TABLE = {
    # name: (cost, what runs: (id, node, vcore, age in seconds, further fields), what is asked,
    # victims)
    "fewer victims before younger": (
        "default",
        [("a1", 1, 1, 1, {}), ("a2", 1, 1, 1, {}), ("b", 2, 2, 9 * HOURS, {})],
        ["b"],
    ),
    "an originator costs more than two others": (
        "default",
        [("a1", 1, 1, 1, {}), ("a2", 1, 1, 1, {}), ("b", 2, 2, 1, {"originator": True})],
        ["a1", "a2"],
    ),
    "one that opted out costs more than an originator": (
        "default",
        [("a", 1, 2, 1, {"allow_preemption": False}), ("b", 2, 2, 9, {"originator": True})],
        ["b"],
    ),
    "lower priority before younger": (
        "default",
        [("a", 1, 2, 1, {"priority": 1}), ("b", 2, 2, 9 * HOURS, {})],
        ["b"],
    ),
    "younger by hours between nodes": (
        "default",
        [("a", 1, 2, 9 * HOURS, {}), ("b", 2, 2, 1, {})],
        ["b"],
    ),
    "minutes do not count between nodes, the name does": (
        "default",
        [("a", 1, 2, 90, {}), ("b", 2, 2, 1, {})],
        ["a"],
    ),
    "every millisecond counts on a node": (
        "default",
        [("a", 1, 2, 90, {}), ("b", 1, 2, 89, {})],
        ["b"],
    ),
    "less waste between nodes": ("default", [("a", 1, 4, 1, {}), ("b", 2, 2, 90, {})], ["b"]),
    "on a node younger before less waste": (
        "default",
        [("a", 1, 4, 1, {}), ("b", 1, 2, 90, {})],
        ["a"],
    ),
    "of equals the one that started last": (
        "default",
        [("a", 1, 2, 1, {}), ("b", 1, 2, 1, {})],
        ["b"],
    ),
    "youngest: minutes count between nodes": (
        "youngest",
        [("a", 1, 2, 90, {}), ("b", 2, 2, 1, {})],
        ["b"],
    ),
    "youngest: before priority": (
        "youngest",
        [("a", 1, 2, 90, {}), ("b", 2, 2, 1, {"priority": 1})],
        ["b"],
    ),
    "smallest: less waste before everything but the number": (
        "smallest",
        [("a", 1, 4, 1, {}), ("b", 1, 2, 9 * HOURS, {"priority": 1})],
        ["b"],
    ),
}


@pytest.mark.parametrize(("cost", "runs", "victims"), TABLE.values(), ids=TABLE.keys())
def test_the_cheapest_plan(cost, runs, victims):
    """Two cores are asked for, by a task of priority 5."""
    cluster = engine(
        queue("a", guaranteed={"vcore": 9}, properties={"preemption.delay": "1s"}),
        queue("b"),
        cost=cost,
    )
    full = {
        number: sum(vcore for _, where, vcore, _, _ in runs if where == number)
        for _, number, *_ in runs
    }
    step(cluster, 0, *(node(f"n{number}", vcore) for number, vcore in full.items()))
    tasks = [
        running(name, "root.b", f"n{where}", vcore, age=age, **rest)
        for name, where, vcore, age, rest in runs
    ]
    step(cluster, 0, *tasks, ask("asker", "root.a", 2, priority=5))
    assert [chosen for _, _, chosen in preemptions(run_until(cluster, 1000))] == [victims]


def test_an_unknown_cost_function_is_refused():
    """The names that there are stand in the answer."""
    spec = YunikornSpec(root=QueueSpec(name="root", parent=True), cost="cheap")
    assert [problem.message for problem in problems(spec)] == [
        "partition default: found preemption.cost 'cheap', expected one of default, smallest, youngest"
    ]

"""What the judge of this folder once found wrong with Kueue's cycles, each as the smallest scenario that shows it."""

import json

from replays.scenarios.scenario import parse_scenario
from replays.scenarios.simulate import Simulation


def queue(name, cpu, cohort="c", **spec):
    """Return a ClusterQueue with one flavor and some cores, which never takes anything back unless `spec` says so."""
    groups = [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}],
        }
    ]
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups, **spec}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec,
    }


def item(name, leaf, cpu, **more):
    """Return a workload of some cores, a minute old."""
    return {"id": name, "queue": leaf, "resources": {"cpu": cpu * 1000}, "created": -60} | more


def runs(name, leaf, cpu, **more):
    """Return an admitted workload."""
    return item(name, leaf, cpu, flavors={"cpu": "f"}, admitted=-10) | more


def configuration(*queues):
    """Return a configuration with these ClusterQueues."""
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
    }
    return {"format": "kueue", "objects": [flavor, *queues]}


def left_waiting(*queues, **more):
    """Return who waits at the end of a scenario with these ClusterQueues."""
    return run(*queues, **more)["pending"]


def decisions(*queues, **more):
    """Return the types of all decisions about a quota in a scenario with these ClusterQueues."""
    return [
        one["type"] for one in run(*queues, **more)["decisions"] if one["type"].startswith("Quota")
    ]


def run(*queues, **more):
    """Return the document of a scenario with these ClusterQueues."""
    scenario = {
        "scenario": 1,
        "name": "found",
        "config": configuration(*queues),
        "steps": [{"advance": "60s"}],
    }
    return Simulation(parse_scenario(json.dumps(scenario | more).encode(), "found.json")).run()


def test_who_only_had_no_room_beside_a_head_that_is_parked_has_another_turn():
    """The large ask may not preempt and keeps its share in that cycle alone; the small one borrows in the next."""
    waiting = left_waiting(
        queue("a", 0),
        queue("b", 10),
        running=[runs("w", "a", 6)],
        pending=[item("large", "b", 6), item("small", "a", 2)],
    )
    assert waiting == ["large"]


def test_an_ask_whose_victims_did_not_help_it_lets_those_behind_it_pass():
    """The quota is lowered before the victim is gone: who told it to go can never run, and stands before nobody any more."""
    own = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    steps = [{"config": configuration(queue("a", 2, **own))}, {"advance": "60s"}]
    waiting = left_waiting(
        queue("a", 4, **own),
        running=[runs("w", "a", 4)],
        pending=[item("large", "a", 4, priority=5), item("small", "a", 1)],
        evictions={"confirm_after": "1s"},
        steps=steps,
    )
    assert waiting == ["large"]


def test_quota_enforcement_counts_who_is_evicted_already_as_gone():
    """Half of what runs is on its way out, and the rest fits the lowered quota: nobody else is evicted."""
    later = queue("a", 2)
    later["metadata"]["annotations"] = {"evsched.io/quota-preemption-delay": "5s"}
    steps = [{"config": configuration(later)}, {"advance": "10s"}]
    running = [runs("gone", "a", 2, evicted=True), runs("stays", "a", 2)]
    assert decisions(queue("a", 4), running=running, steps=steps) == [
        "QuotaPreemptionScheduled",
        "QuotaPreemptionUnhelpful",
    ]

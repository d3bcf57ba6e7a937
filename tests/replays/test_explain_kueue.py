"""Explanations of Kueue: what holds a workload, at which level, what would change it, and who had to go or was spared."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.chain import Head, RecordedStep
from evsched.config import load_texts
from evsched.core.engine import Engine
from replays.explaining.decision import explain_decision, spared_in
from replays.explaining.explain import explain_allocation, explain_ask
from replays.explaining.mentions import mentions
from replays.explaining.plan import plan_ask
from replays.history.steps import copy
from replays.history.views import queues

LOCAL = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: l, namespace: n}}\nspec: {{{}}}\n"
FAIR = "---\napiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfairSharing: {enable: true}\n"
TWO = "[{name: spot, resources: [{name: cpu, nominalQuota: 2}]}, {name: steady, resources: [{name: cpu, nominalQuota: 3}]}]"


def queue(name, quota="nominalQuota: 4", *, cohort="all", more="", flavors=None):
    """Return the manifest of a ClusterQueue with one flavor, or others."""
    lines = [
        "---", "apiVersion: kueue.x-k8s.io/v1beta2", "kind: ClusterQueue", f"metadata: {{name: {name}}}", "spec:",
        "  namespaceSelector: {}", *([f"  cohortName: {cohort}"] if cohort else []), *([f"  {more}"] if more else []),
        "  resourceGroups:", "    - coveredResources: [cpu]",
        f"      flavors: {flavors or f'[{{name: f, resources: [{{name: cpu, {quota}}}]}}]'}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def ask(name, leaf="a", cpu=1000, **more):
    """Return a workload."""
    return v.AskSubmitted(ask=name, queue=leaf, resources={"cpu": cpu}, **more)


class World:
    """A Kueue partition whose steps are kept."""

    def __init__(self, *manifests):
        """Start with a configuration."""
        self.engine, self.steps = Engine(), []
        self.configure(*manifests)

    def configure(self, *manifests):
        """Apply manifests."""
        (spec,) = load_texts([("a.yaml", "".join(manifests))]).configurations
        self.happen(v.ConfigurationApplied(configuration=spec))

    def happen(self, *inputs):
        """Take a step a second later."""
        number = len(self.steps) + 1
        events = self.engine.step(number * 1000, [v.Proposal(input=one) for one in inputs])
        assert not [event for event in events if isinstance(event, v.InputRejected)]
        head = Head(
            next_seq=events[-1].seq + 1, time=number * 1000, frame=number, hash="h", position=number
        )
        self.steps.append(RecordedStep(head, number * 1000, True, events))
        return events

    def explained(self, name):
        """Return why an ask waits."""
        return explain_ask(self.engine, name, mentions(name, self.steps))

    def decision(self, *kinds):
        """Return the explanation of the last decision of these types."""
        engine, found = Engine(), None
        for step in self.steps:
            for event in step.events:
                if isinstance(event, kinds):
                    found = explain_decision(copy(engine), step, event.seq)
            for event in step.events:
                engine.apply(event, step.time)
        return found


HELD = {
    "two flavors, of which any one will do": (
        [queue("a", cohort="", flavors=TWO)],
        [ask("y", cpu=2000), ask("z", cpu=3000), ask("x")],
        ("ClusterQueue a: 1 cpu of flavor spot requested, 2 used, 2 allowed (quota 2). Or: "
         "ClusterQueue a: 1 cpu of flavor steady requested, 3 used, 3 allowed (quota 3). One of these is enough."),
        ["1 cpu of flavor spot less used in ClusterQueue a, or as much more quota",
         "1 cpu of flavor steady less used in ClusterQueue a, or as much more quota"],
    ),
    "a resource that is not covered": (
        [queue("a", cohort="")], [v.AskSubmitted(ask="x", queue="a", resources={"gpu": 1})],
        "ClusterQueue a has no quota for gpu.", ["a quota for gpu in ClusterQueue a"],
    ),
    "a ClusterQueue on hold": (
        [queue("a", more="stopPolicy: Hold")], [ask("x")],
        "ClusterQueue a admits nobody: its stopPolicy is Hold.", ["a stopPolicy of None"],
    ),
    "a LocalQueue on hold": (
        [queue("a"), LOCAL.format("clusterQueue: a, stopPolicy: Hold")], [ask("x", "n/l")],
        "LocalQueue n/l is stopped: nobody who comes through it is admitted.", ["a stopPolicy of None"],
    ),
    "somebody before it": (
        [queue("a", more="queueingStrategy: StrictFIFO")], [ask("big", cpu=9000), ask("x")],
        "Workload big is before it in ClusterQueue a, which is StrictFIFO.", ["the admission or withdrawal of big"],
    ),
    "more than there is": (
        [queue("a", cohort="")], [ask("x", cpu=9000)],
        "ClusterQueue a: 9 cpu of flavor f requested, 0 used, 4 allowed (quota 4).",
        ["5 cpu of flavor f more quota in ClusterQueue a"],
    ),
    "a fixed flavor": (
        [queue("a", cohort="", flavors=TWO)], [ask("y", cpu=2000), ask("x", flavors={"cpu": "spot"})],
        "ClusterQueue a: 1 cpu of flavor spot requested, 2 used, 2 allowed (quota 2).",
        ["1 cpu of flavor spot less used in ClusterQueue a, or as much more quota"],
    ),
    "a lending limit below": (
        [queue("a", "nominalQuota: 4, lendingLimit: 1"), queue("b", "nominalQuota: 2")],
        [ask("b1", "b", 3000), ask("x", "a", 4000)],
        "Cohort all: 1 cpu of flavor f requested, 3 used, 3 allowed (quota 3).",
        ["1 cpu of flavor f less used in Cohort all, or as much more quota"],
    ),
    "nobody may be preempted by it": (
        [queue("a", cohort="", more="preemption: {withinClusterQueue: LowerPriority}")],
        [ask("low", cpu=4000), ask("x", priority=5, preemption_policy="Never")],
        "ClusterQueue a: 1 cpu of flavor f requested, 4 used, 4 allowed (quota 4).",
        ["1 cpu of flavor f less used in ClusterQueue a, or as much more quota",
         "it may not preempt others (preemption policy Never)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_what_holds_a_workload_is_named_with_what_would_change_it(case):
    """One thing each, and the numbers are those of the level that binds."""
    manifests, asks, summary, unblock = HELD[case]
    world = World(*manifests)
    for one in asks:
        world.happen(one)
    digest = world.engine.state.digest()
    found = world.explained("x")
    assert (found.status, found.summary, [one.sentence for one in found.unblock]) == (
        "waits",
        summary,
        unblock,
    )
    assert world.engine.state.digest() == digest


def test_fair_sharing_shows_the_shares_that_spared_somebody():
    """Of the asking queue with the ask, of the other with and without the workload, as the status of Kueue shows them."""
    policies = "preemption: {reclaimWithinCohort: Any}"
    world = World(FAIR, *(queue(name, "nominalQuota: 3", more=policies) for name in "abc"))
    for name in ("a1", "a2", "a3", "a4", "a5"):
        world.happen(ask(name))
    for name in ("b1", "b2", "b3", "b4"):
        world.happen(ask(name, "b"))
    world.happen(ask("b5", "b"))
    found = world.explained("b5")
    assert [(one.queue, one.before, one.after) for one in found.shares] == [
        ("a", 223, 223),
        ("b", 112, 223),
    ]
    spared = {note.subject: note.sentence for note in found.passed_over}
    assert (
        spared["a5"] == "fair sharing spares it: b would have share 223, a has 223, without it 112"
    )
    world.happen(ask("c1", "c"))
    decision = world.decision(v.PreemptionDecided)
    assert [(one.id, one.reason) for one in decision.victims] == [("a5", "InCohortReclamation")]
    assert [(one.queue, one.before, one.after) for one in decision.fair] == [
        ("a", 223, 112),
        ("b", 112, 112),
        ("c", 0, 0),
    ]
    assert [(one.queue, one.before, one.after, one.quota) for one in decision.shares] == [
        ("c", 0, 1000, 3000), ("a", 5000, 4000, 3000),
    ]  # fmt: skip
    assert (decision.for_queue, decision.identical) == ("c", True)
    left = spared_in(decision, "a4")
    assert (left.code, left.for_ask) == ("not-reached", "c1")
    assert spared_in(decision, "c1") is None


def test_who_has_to_go_with_its_queue_is_told_that_it_is_stopped():
    """Nobody needs its quota then, so none is named."""
    world = World(queue("a"))
    world.happen(ask("x"))
    world.configure(queue("a", more="stopPolicy: HoldAndDrain"))
    found = explain_allocation(world.engine, "x", mentions("x", world.steps))
    assert found.status == "leaving"
    assert (
        found.summary
        == "It runs on its quota and was asked to leave at 1970-01-01T00:00:03Z (ClusterQueueStopped)."
    )
    assert found.history[-1].text == "evicted: ClusterQueueStopped"


def test_a_workload_whose_queue_left_the_configuration_is_told_so():
    """It waits for a ClusterQueue that nobody knows any more."""
    world = World(queue("a", more="stopPolicy: Hold"), queue("b"))
    world.happen(ask("x"))
    world.configure(queue("b"))
    assert (
        world.explained("x").summary
        == "ClusterQueue a is no longer in the configuration; it admits nobody."
    )


def test_a_plan_names_flavors_and_podsets():
    """What would be admitted from where."""
    world = World(queue("a", flavors=TWO))
    world.happen(ask("y", cpu=2000))
    assert plan_ask(world.engine, ask("x")).summary == "It would be admitted (cpu from steady)."
    podsets = (
        v.PodSet(name="driver", resources={"cpu": 1000}),
        v.PodSet(name="workers", resources={"cpu": 2000}),
    )
    planned = plan_ask(world.engine, v.AskSubmitted(ask="x", queue="a", podsets=podsets))
    assert (
        planned.summary
        == "It would be admitted (driver: cpu from steady, workers: cpu from steady)."
    )


def test_a_cohort_counts_what_it_lent_in_every_answer():
    """4 of b's 6 may not be lent: of the 12 in use below the cohort 8 count there, in `at` and `status` as in `explain`."""
    world = World(
        queue("a", "nominalQuota: 6"), queue("b", "nominalQuota: 6, lendingLimit: 2"),
    )  # fmt: skip
    world.happen(*(ask(f"b{number}", "b") for number in range(6)))
    world.happen(*(ask(f"a{number}") for number in range(7)))
    (told,) = (one for one in world.explained("a6").quotas if one.queue == "cohort/all")
    (row,) = (one for one in queues(world.engine.state) if one.queue == "cohort/all")
    assert (told.used, told.quota) == (8000, 8000)
    assert (row.usage, row.quota) == ({"f/cpu": told.used}, {"f/cpu": told.quota})
    assert [one.usage for one in queues(world.engine.state) if one.queue == "b"] == [
        {"f/cpu": 6000}
    ]

"""The shadow report: one scenario for each class, and nothing but agreement where the real decisions are evsched's own."""

from __future__ import annotations

from random import Random

import pytest

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    FlavorQuotaSpec,
    KueueSpec,
    QueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from events.pods import PodFacts
from evsched.core.engine import Engine
from replays.checking.shadow import Shadow, ShadowAnswer, ShadowQuestion, shadow
from replays.history.rebuild import History
from replays.history.steps import proposals_of
from tests.replays.logs import START, read, sealed, story, written

QUEUES = tuple(
    QueueSpec(name=name, guaranteed={"vcore": 8}, properties={"preemption.delay": "1s"})
    for name in ("prod", "test")
)
PROD, TEST = "root.prod", "root.test"


class Cluster:
    """A cluster that is recorded, and what its own scheduler does there; steps of (time, events, position)."""

    def __init__(
        self, spec: KueueSpec | None = None, *, decides: bool = False, rules: int = 2
    ) -> None:
        """Begin with two nodes of 8 vcores and two queues that are guaranteed as much, or as told."""
        self.engine = Engine()
        self.decides = decides
        self.steps = [(START, self.engine.lead(START, 1, "leader-1"), 0)]
        self.time = START
        yunikorn = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=QUEUES))
        self.take(
            *([v.RulesAdopted(rules=rules)] if rules > 1 else []),
            v.ConfigurationApplied(configuration=spec or yunikorn),
            *(v.NodeRegistered(node=name, capacity={"vcore": 8}) for name in ("n1", "n2")),
        )

    def take(self, *inputs: v.AnyInput, later: int = 0) -> tuple[v.AnyEvent, ...]:
        """Take a step some milliseconds later."""
        self.time += later
        proposals = [v.Proposal(input=one) for one in inputs]
        events = self.engine.step(self.time, proposals, decide=self.decides)
        assert not [one for one in events if isinstance(one, v.InputRejected)]
        if events:
            self.steps.append((self.time, events, 0))
        return events

    def report(self) -> ShadowAnswer:
        """Return the report over all of it."""
        run = Shadow(Engine())
        for step in read(sealed(self.steps)):
            run.take(step)
        return run.answer()


def ask(name: str, vcore: int = 8, queue: str = PROD, **more: object) -> v.AskSubmitted:
    """Return an ask; each belongs to an application of its own, the older ones first."""
    return v.AskSubmitted(
        ask=name, application=f"app-{name}", queue=queue, resources={"vcore": vcore}, **more
    )


def running(name: str, node: str, queue: str = TEST) -> v.AllocationRestored:
    """Return an allocation of 8 vcores."""
    return v.AllocationRestored(
        allocation=name, application=f"app-{name}", queue=queue, node=node, resources={"vcore": 8}
    )


def bound(name: str, node: str) -> v.BindingObserved:
    """Return a binding by the real scheduler."""
    return v.BindingObserved(ask=name, node=node, scheduler="default-scheduler")


def bound_in(flavor: str) -> v.BindingObserved:
    """Return an admission by Kueue."""
    return v.BindingObserved(ask="w", flavors={"cpu": flavor}, scheduler="kueue")


def evicted(name: str, preemptor: str = "") -> v.EvictionObserved:
    """Return an eviction by the real scheduler."""
    return v.EvictionObserved(
        allocation=name, preemptor=preemptor, scheduler="default-scheduler", reason="Preempted"
    )


FULL = (running("t1", "n1"), running("t2", "n2"))
OLD = ask("a", created=START - 60_000)
SPREAD = PodFacts(unmodelled=("topology spread",))
SCENARIOS: dict[str, tuple[list[tuple[v.AnyInput, ...]], dict[str, int], str]] = {
    "same: the same ask on the same node": ([(ask("a"),), (bound("a", "n1"),)], {"same": 1}, ""),
    "same: the same victim for the same ask": ([(*FULL, OLD), (evicted("t1", "a"),)], {"same": 1}, ""),
    "other-node: the same ask elsewhere": (
        [(ask("a"),), (bound("a", "n2"),)], {"other-node": 1}, "evsched binds it to n1",
    ),
    "other-order: another ask first": (
        [(running("t1", "n1"), ask("a"), ask("b")), (bound("b", "n2"),), (v.AskWithdrawn(ask="a"),)],
        {"other-order": 1, "only-ours": 1}, "come before it",
    ),
    "other-victims: for the same ask": (
        [(*FULL, OLD), (evicted("t2", "a"),)], {"other-victims": 1}, "evsched evicts t1",
    ),
    "only-theirs: a victim, though the queue has its guarantee": (
        [(FULL[0], running("p1", "n2", PROD), OLD), (evicted("t1", "a"),)], {"only-theirs": 1}, "No node has room",
    ),
    "only-theirs: a binding to a node that is closed here": (
        [(FULL[0], ask("a", 4)), (v.NodeUpdated(node="n2", schedulable=False),), (bound("a", "n2"),)],
        {"only-theirs": 1}, "lacks 4m vcore",
    ),
    "only-ours: what waits there for ever": (
        [(ask("a"), ask("b")), (bound("a", "n1"),)], {"same": 1, "only-ours": 1},
        "evsched binds it to n2; the cluster never does",
    ),
    "not-modelled: the pod asks for more": (
        [(ask("a", pod=SPREAD),), (bound("a", "n2"),)], {"not-modelled": 1}, "not decided by: topology spread",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_class_comes_out_as_designed(name: str) -> None:
    """One scenario a class, with the sentence that says why."""
    steps, verdicts, said = SCENARIOS[name]
    cluster = Cluster()
    for inputs in steps:
        cluster.take(*inputs, later=1_000)
    answer = cluster.report()
    assert answer.verdicts == verdicts
    assert said in " ".join(row.text for row in answer.rows)
    assert answer.compared == sum(verdicts.values())
    assert answer.same == verdicts.get("same", 0)


def test_the_headline_counts_both_sides() -> None:
    """Waiting is counted up to the first point at which evsched would have bound; gaps and what is not modelled are counted."""
    cluster = Cluster()
    cluster.take(ask("a", 4), ask("b", 4, pod=SPREAD), v.ObservationGap(kind="Pod"))
    cluster.take(bound("a", "n1"), later=10_000)
    cluster.take(bound("b", "n1"), later=20_000)
    answer = cluster.report()
    assert (answer.theirs.bound, answer.theirs.waited_ms) == (2, 40_000)
    assert (answer.ours.bound, answer.ours.waited_ms) == (2, 20_000)
    assert (answer.gaps, answer.unmodelled) == (1, {"topology spread": 1})
    assert answer.unmet["vcore"] == 8 * 10_000 + 4 * 20_000


def as_observed(steps: list[tuple[int, tuple[v.AnyEvent, ...], int]]) -> Cluster:
    """Return a recording of a cluster whose real scheduler decided what a decided log holds."""
    seen = Cluster.__new__(Cluster)
    seen.engine, seen.decides, seen.steps = Engine(), False, []
    for step in read(sealed(steps)):
        seen.time = step.time
        if isinstance(step.events[0], v.LeaderStarted):
            seen.steps.append((seen.time, seen.engine.begin_term(seen.time, step.events[0]), 0))
            continue
        inputs = proposals_of(step)
        events = seen.engine.step(seen.time, inputs, decide=False)
        seen.steps += [(seen.time, events, 0)] if events else []
        decisions: list[v.AnyInput] = []
        for event in step.events:
            if isinstance(event, v.AllocationBound):
                decisions.append(bound(event.ask, event.node or ""))
            if isinstance(event, v.PreemptionDecided):
                decisions += [evicted(victim.id, event.ask) for victim in event.victims]
        if decisions:
            seen.take(*decisions)
    return seen


def live(seed: int) -> Cluster:
    """Return a cluster that evsched itself ran for a while: asks come and end, victims leave when they are told to."""
    dice = Random(seed)
    cluster = Cluster(decides=True)
    leaving: list[str] = []
    for number in range(40):
        state = cluster.engine.state
        inputs: list[v.AnyInput] = [
            v.AllocationReleased(allocation=name, reason="preempted") for name in leaving
        ]
        stays = [name for name in state.allocations if name not in leaving]
        if dice.random() < 0.7:
            queue = dice.choice((PROD, TEST, TEST))
            inputs.append(
                ask(f"x{number}", dice.choice((2, 4)), queue, priority=dice.choice((0, 1)))
            )
        elif stays:
            inputs.append(v.AllocationReleased(allocation=dice.choice(stays)))
        cluster.take(*inputs, later=dice.choice((500, 3_000)))
        for _ in range(50):
            due = cluster.engine.next_due()
            if due is None or due > cluster.time + 3_000:
                break
            cluster.take(later=max(due - cluster.time, 0))
        leaving = [
            one.id for one in cluster.engine.state.allocations.values() if one.eviction_requested
        ]
    return cluster


@pytest.mark.parametrize("seed", range(4))
def test_evsched_agrees_with_itself(seed: int) -> None:
    """Where the real decisions are evsched's own, every one of them is the same, preemptions included."""
    decided = live(seed)
    answer = as_observed(decided.steps).report()
    made = [type(event) for _, events, _ in decided.steps for event in events]
    assert answer.theirs.bound == made.count(v.AllocationBound) > 10
    assert answer.theirs.preemptions == made.count(v.PreemptionDecided) > 0
    assert [row for row in answer.rows if row.verdict != "same"] == []


async def test_the_question_reads_a_log() -> None:
    """Asked of a log, and with newer rules; a log without observations has nothing to compare."""
    cluster = Cluster(rules=1)
    cluster.take(ask("a", pod=PodFacts(node_selector={"disk": "ssd"})), later=1_000)
    cluster.take(bound("a", "n1"), later=1_000)
    log = await written(sealed(cluster.steps))
    assert (await shadow(History(log), ShadowQuestion())).verdicts == {"same": 1}
    newer = await shadow(History(log), ShadowQuestion(rules=2))
    assert newer.verdicts == {"only-theirs": 1}
    assert (await shadow(History(await written(sealed(story()))), ShadowQuestion())).compared == 0


KUEUE = {
    "same: in the same flavor": (bound_in("spot"), {"same": 1}, ("cpu=spot",)),
    "other-node: in another flavor": (bound_in("reserved"), {"other-node": 1}, ("cpu=spot",)),
}


@pytest.mark.parametrize("name", KUEUE)
def test_with_kueue_the_flavors_are_compared(name: str) -> None:
    """A workload has no node; what it is admitted in stands in its place."""
    seen, verdicts, ours = KUEUE[name]
    flavors = tuple(
        FlavorQuotaSpec(flavor=flavor, quotas={"cpu": QuotaSpec(nominal=4)})
        for flavor in ("spot", "reserved")
    )
    group = ResourceGroupSpec(resources=("cpu",), flavors=flavors)
    team = ClusterQueueSpec(name="team", groups=(group,))
    cluster = Cluster(KueueSpec(cluster_queues=(team,)))
    cluster.take(v.AskSubmitted(ask="w", queue="team", resources={"cpu": 1}), later=1_000)
    cluster.take(seen, later=1_000)
    answer = cluster.report()
    assert (answer.verdicts, answer.rows[0].ours) == (verdicts, ours)

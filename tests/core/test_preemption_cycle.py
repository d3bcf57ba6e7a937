"""The preemption cycle: when it runs, whom it looks at, how much it takes, and what becomes of victims that stay."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.configuration import PaceSpec
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.yunikorn.index import index_of
from tests.core.small import START, ask, engine, node, preemptions, queue, run_until, running, step

DELAY = {"preemption.delay": "1s"}


def cluster_of(nodes, vcore=2, guaranteed=100, **fields):
    """Return a cluster of full nodes, one task of root.b each, in which root.a has a guarantee."""
    made = engine(
        queue("a", guaranteed={"vcore": guaranteed}, properties=DELAY), queue("b"), **fields
    )
    names = [f"n{number}" for number in range(nodes)]
    step(
        made,
        0,
        *(node(name, vcore) for name in names),
        *(running(f"r-{name}", "root.b", name, vcore) for name in names),
    )
    return made


def cycles(events):
    """Return the cycles that ran."""
    return [one for one in events if isinstance(one, v.CycleStarted)]


def test_every_ask_of_a_queue_preempts_until_its_guarantee_is_met():
    """Asks in flight count as usage: the third finds the guarantee met by promises."""
    cluster = cluster_of(4, guaranteed=4)
    step(cluster, 0, *(ask(f"p{number}", "root.a", 2) for number in range(3)))
    decided = preemptions(run_until(cluster, 1000))
    assert [one[0] for one in decided] == ["p0", "p1"]
    assert "law 4" in cluster.state.asks["p2"].failed


def test_asks_preempt_in_the_order_of_scheduling():
    """Priority first, then age: who comes first takes what is left of the guarantee."""
    cluster = cluster_of(4, guaranteed=4)
    old = START - 60_000
    young, older = ask("young", "root.a", 2, created=old + 1), ask("old", "root.a", 2, created=old)
    events = step(cluster, 0, young, older, ask("high", "root.a", 2, priority=5, created=old + 2))
    assert [one[0] for one in preemptions(events)] == ["high", "old"]


def test_the_pace_limits_victims_and_the_next_cycle_goes_on():
    """Two victims a cycle, and a cycle each second, until everybody had a turn."""
    cluster = cluster_of(5, pace=PaceSpec(interval_ms=1000, max_victims=2))
    step(cluster, 0, *(ask(f"p{number}", "root.a", 2) for number in range(5)))
    by_second = [len(preemptions(run_until(cluster, 1000 * second))) for second in (1, 2, 3, 4)]
    assert by_second == [2, 2, 1, 0]
    assert index_of(cluster.state).agenda.next_cycle(1000) is None


def test_the_pace_limits_resources():
    """At most 3 cores a cycle: one victim of 2 each time."""
    cluster = cluster_of(3, pace=PaceSpec(interval_ms=1000, max_resources={"vcore": 3}))
    step(cluster, 0, *(ask(f"p{number}", "root.a", 2) for number in range(3)))
    assert [len(preemptions(run_until(cluster, 1000 * second))) for second in (1, 2, 3)] == [
        1,
        1,
        1,
    ]


def test_a_pace_for_a_resource_that_nobody_has_named_adds_nothing_to_the_state():
    """A cycle looks it up alone, so a replay comes to the same state; and the resource may still come."""
    cluster = cluster_of(1, pace=PaceSpec(max_resources={"gpu": 5}))
    step(cluster, 0, ask("p", "root.a", 2))
    replayed = Engine(snapshot.decode(snapshot.encode(cluster.state), cluster.state.time))
    events = run_until(cluster, 1000)
    assert preemptions(events) == [("p", "n0", ["r-n0"])]
    for event in events:
        replayed.apply(event, cluster.state.time)
    assert replayed.state.digest() == cluster.state.digest()
    gpu = (
        v.NodeRegistered(node="g", capacity={"gpu": 1}),
        v.AskSubmitted(ask="g", queue="root.a", resources={"gpu": 1}),
    )
    step(cluster, 1, *gpu)
    assert cluster.state.allocations["g"].node == "g"


def test_a_plan_beyond_the_pace_is_still_carried_out():
    """The first plan of a cycle is allowed however large, or it would wait for ever."""
    cluster = cluster_of(1, vcore=4, pace=PaceSpec(max_resources={"vcore": 1}))
    step(cluster, 0, ask("p", "root.a", 4))
    assert preemptions(run_until(cluster, 1000)) == [("p", "n0", ["r-n0"])]


def test_an_ask_held_up_by_the_pace_after_it_failed_before_is_not_forgotten():
    """It was tried in vain, then something changed; the pace ends the cycle before its turn, and the next one comes by itself."""
    cluster = cluster_of(2, vcore=2, pace=PaceSpec(interval_ms=1000, max_victims=1))
    step(cluster, 0, ask("p0", "root.a", 3, created=START - 9), ask("p1", "root.a", 3))
    assert preemptions(run_until(cluster, 5000)) == []
    more = [
        node("n8", 3),
        running("r8", "root.b", "n8", 3),
        node("n9", 3),
        running("r9", "root.b", "n9", 3),
    ]
    assert len(preemptions(step(cluster, 5000, *more))) == 1
    assert len(preemptions(run_until(cluster, 7000))) == 1


def test_failed_asks_are_masked_until_something_changes():
    """An ask without a plan is tried once; no further cycle runs before something happens that could help."""
    cluster = cluster_of(1)
    step(cluster, 0, ask("p", "root.a", 3))
    events = run_until(cluster, 60_000)
    assert [one.tried for one in cycles(events)] == [("p",)]
    assert [one.reason for one in events if isinstance(one, v.PreemptionFailed)] == [
        "queue root.a: on no node do its lawful victims make enough room"
    ]
    assert cluster.next_due() is None
    assert cluster.state.missed("p") == 1
    events = [
        *step(cluster, 61_000, v.NodeRegistered(node="n7", capacity={"vcore": 1})),
        *run_until(cluster, 70_000),
    ]
    assert len(cycles(events)) == 1
    assert cluster.state.missed("p") == 2
    assert not [one for one in events if isinstance(one, v.PreemptionFailed)]


def test_equal_asks_fail_together_and_each_says_so_once():
    """A thousand equal asks cost one search; each has its reason, and later changes are told by the first alone."""
    cluster = cluster_of(1)
    step(cluster, 0, *(ask(f"p{number}", "root.a", 3) for number in range(5)))
    events = run_until(cluster, 1000)
    assert len([one for one in events if isinstance(one, v.PreemptionFailed)]) == 5
    events = [
        *step(cluster, 2000, v.AllocationReleased(allocation="r-n0")),
        *run_until(cluster, 5000),
    ]
    assert [one.ask for one in events if isinstance(one, v.PreemptionFailed)] == ["p0"]


def test_an_ask_waits_for_room_that_is_being_freed_but_not_for_ever():
    """What a large victim leaves is enough for a second ask; when the victim stays, the second takes one of its own."""
    cluster = cluster_of(1, vcore=4)
    step(
        cluster,
        0,
        node("n9", 2),
        running("small", "root.b", "n9", 2, age=90_000),
        ask("p0", "root.a", 3),
    )
    assert preemptions(run_until(cluster, 1000)) == [("p0", "n0", ["r-n0"])]
    step(cluster, 1000, ask("p1", "root.a", 1))
    events = run_until(cluster, 2999)
    assert preemptions(events) == []
    assert [one.until for one in events if isinstance(one, v.PreemptionFailed)] == [START + 3000]
    cluster = Engine(snapshot.decode(snapshot.encode(cluster.state), cluster.state.time))
    assert preemptions(run_until(cluster, 3000)) == [("p1", "n9", ["small"])]


def test_an_ask_that_waits_for_room_gets_it():
    """The large victim goes, and nobody else has to."""
    cluster = cluster_of(1, vcore=4)
    step(
        cluster,
        0,
        node("n9", 2),
        running("small", "root.b", "n9", 2, age=90_000),
        ask("p0", "root.a", 3),
        ask("p1", "root.a", 1),
    )
    assert preemptions(run_until(cluster, 1800)) == [("p0", "n0", ["r-n0"])]
    events = step(cluster, 1900, v.AllocationReleased(allocation="r-n0", reason="preempted"))
    assert {one.ask for one in events if isinstance(one, v.AllocationBound)} == {"p0", "p1"}


def test_a_stubborn_victim_stays_and_its_preemptor_does_not_start_over():
    """Told five times, 30 seconds apart, then let alone; the ask waits like any other and preempts no more."""
    cluster = cluster_of(2)
    step(cluster, 0, ask("p", "root.a", 2))
    events = run_until(cluster, 3_600_000)
    assert len(preemptions(events)) == 1
    assert len([one for one in events if isinstance(one, v.EvictionRepeated)]) == 4
    (withdrawn,) = [one for one in events if isinstance(one, v.PreemptionWithdrawn)]
    assert (
        withdrawn.ask,
        withdrawn.node_lost,
        cluster.state.preemptions,
        cluster.state.reservations,
    ) == ("p", False, {}, {})
    assert cluster.next_due() is None
    step(cluster, 3_600_001, v.AllocationReleased(allocation="r-n1"))
    assert cluster.state.allocations["p"].node == "n1"


def test_a_refused_eviction_is_asked_for_again():
    """A refusal changes nothing until the grace time is over."""
    cluster = cluster_of(1)
    step(cluster, 0, ask("p", "root.a", 2))
    run_until(cluster, 1000)
    step(cluster, 2000, v.EvictionRefused(allocation="r-n0", reason="disruption budget"))
    events = run_until(cluster, 31_000)
    assert [
        (one.allocation, one.attempt) for one in events if isinstance(one, v.EvictionRepeated)
    ] == [("r-n0", 2)]


@pytest.mark.parametrize(
    "lost",
    [
        v.NodeRemoved(node="n0"),
        v.NodeUpdated(node="n0", schedulable=False),
        v.NodeUpdated(node="n0", capacity={"vcore": 1}),
    ],
    ids=["removed", "closed", "too small"],
)
def test_an_ask_whose_node_is_lost_preempts_once_more(lost):
    """It is no fault of its own, so it has another turn, at the next cycle and on another node."""
    cluster = cluster_of(2)
    step(cluster, 0, ask("p", "root.a", 2))
    assert preemptions(run_until(cluster, 1000)) == [("p", "n0", ["r-n0"])]
    events = [*step(cluster, 1500, lost), *run_until(cluster, 2000)]
    assert [one.node_lost for one in events if isinstance(one, v.PreemptionWithdrawn)] == [True]
    assert preemptions(events) == [("p", "n1", ["r-n1"])]


def test_the_reserved_node_is_kept_until_every_victim_is_gone():
    """A task that would fit into what the first victim left does not slip in."""
    cluster = engine(queue("a", guaranteed={"vcore": 4}, properties=DELAY), queue("b"))
    step(
        cluster,
        0,
        node("n0", 4),
        running("r1", "root.b", "n0", 2),
        running("r2", "root.b", "n0", 2),
        ask("p", "root.a", 4),
    )
    assert preemptions(run_until(cluster, 1000)) == [("p", "n0", ["r1", "r2"])]
    events = step(
        cluster,
        2000,
        v.AllocationReleased(allocation="r1", reason="preempted"),
        ask("again", "root.b", 2),
    )
    assert not [one for one in events if isinstance(one, v.AllocationBound)]
    events = step(cluster, 3000, v.AllocationReleased(allocation="r2", reason="preempted"))
    assert [one.ask for one in events if isinstance(one, v.AllocationBound)] == ["p"]


def test_what_a_decision_makes_possible_is_tried_again_in_the_same_cycle():
    """The first ask finds too little that may go; a later decision leaves it all but one core, and it has that at once."""
    cluster = engine(
        queue("a", guaranteed={"vcore": 9}, properties=DELAY),
        queue("b", guaranteed={"vcore": 9}, properties={**DELAY, "priority.offset": "5"}),
        queue("c"),
        queue("d", properties={"priority.offset": "3"}),
    )
    old = START - 60_000
    step(
        cluster,
        0,
        node("n0", 7),
        running("low", "root.c", "n0", 1),
        running("high", "root.d", "n0", 6),
    )
    first = ask("first", "root.a", 3, priority=2, created=old)
    events = step(cluster, 0, first, ask("second", "root.b", 4, created=old))
    assert preemptions(events) == [("second", "n0", ["high"]), ("first", "n0", ["low"])]
    assert [one.tried for one in cycles(events)] == [()]


class Notes:
    """A tracer that keeps what it is told."""

    def __init__(self):
        """Start with nothing."""
        self.kept = []

    def wants(self, ask):
        """Hear of every ask."""
        return True

    def note(self, subject, code, **facts):
        """Keep a consideration."""
        self.kept.append((subject, code))


def test_the_tracer_hears_why_everybody_was_passed_over():
    """Each allocation, node and queue that is not taken has the code of the rule."""
    cluster = engine(
        queue("a", guaranteed={"vcore": 9}, properties=DELAY),
        queue("b"),
        queue("c", guaranteed={"vcore": 9}),
        queue("d", properties={"preemption.policy": "disabled"}),
    )
    step(cluster, 0, node("n0", 5), node("n1", 1, schedulable=False))
    step(
        cluster,
        0,
        running("high", "root.b", "n0", 1, priority=9),
        running("under", "root.c", "n0", 1),
        running("shielded", "root.d", "n0", 1),
        running("bound", "root.b", "n0", 1, required_node="n0"),
        running("possible", "root.b", "n0", 1),
        ask("p", "root.a", 2),
    )
    cluster.tracer = Notes()
    run_until(cluster, 1000)
    noted = set(cluster.tracer.kept)
    expected = {
        ("high", "law6"), ("under", "law5"), ("shielded", "disabled"), ("bound", "required-node"), ("possible", "eligible"),
        ("n0", "node-short"), ("n1", "unschedulable"), ("root.c", "law5"), ("root.d", "disabled"), ("root.a", "own-leaf"),
    }  # fmt: skip
    assert expected <= noted

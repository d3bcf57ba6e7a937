"""Cycles as given, when, then: who is considered, admitted, kept waiting, and what is written about it."""

import pytest

from events import vocabulary as v
from events.bounds import MAX_AMOUNT, SUM_LIMIT
from events.configuration import LocalQueueSpec
from tests.core.kueue.plain import Partition, asks, bound, queue, runs, told

FUNGIBLE = {
    "when_can_borrow": "TryNextFlavor",
    "when_can_preempt": "TryNextFlavor",
    "preference": "PreemptionOverBorrowing",
}


def test_an_ask_that_preempts_in_one_resource_and_borrows_in_the_other_preempts():
    """The real scheduler takes it for a fit, and skips it in every cycle; here its victim is evicted."""
    mine = queue(
        "mine",
        "team",
        cpu=4,
        memory=4,
        within_cluster_queue="LowerPriority",
        reclaim_within_cohort="Any",
        **FUNGIBLE,
    )
    partition = Partition(mine, queue("other", "team", cpu=4, memory=4))
    partition.does(
        runs("small", "mine", cpu=4, memory=1),
        runs("big", "other", cpu=4),
        asks("ask", "mine", 1, cpu=2, memory=5),
        decide=False,
    )
    assert told(partition.cycle()) == {"ask": ["small"]}


def test_what_fits_is_admitted_with_its_flavor():
    """The first flavor that fits is written into the admission."""
    partition = Partition(queue("q", flavors={"spot": {"cpu": 1}, "solid": {"cpu": 5}}))
    events = partition.does(asks("ask", "q", cpu=3))
    assert [event.flavors for event in events if isinstance(event, v.AllocationBound)] == [
        {"cpu": "solid"}
    ]
    assert partition.engine.state.allocations["ask"].node is None


def test_podsets_get_their_flavors_one_after_the_other():
    """The second podset sees what the first one takes."""
    partition = Partition(queue("q", flavors={"spot": {"cpu": 3}, "solid": {"cpu": 3}}))
    podsets = (v.PodSet(name="a", resources={"cpu": 2}), v.PodSet(name="b", resources={"cpu": 2}))
    events = partition.does(v.AskSubmitted(ask="ask", queue="q", podsets=podsets))
    (admitted,) = [event for event in events if isinstance(event, v.AllocationBound)]
    assert [podset.flavors for podset in admitted.podsets] == [{"cpu": "spot"}, {"cpu": "solid"}]
    assert partition.engine.state.queues["q"].quota.usage == {0: 2, 1: 2}


@pytest.mark.parametrize("what", ["podsets of one ask", "running workloads"])
def test_sums_that_no_column_could_hold_are_refused(what):
    """Each amount is within bounds, but together they pass the largest sum: it is a refusal, not a crash of the leader later."""
    partition = Partition(queue("q", cpu=4))
    most, number_of = MAX_AMOUNT, SUM_LIMIT // MAX_AMOUNT + 1
    if what == "podsets of one ask":
        podsets = tuple(
            v.PodSet(name=f"p{number}", resources={"cpu": most}) for number in range(number_of)
        )
        events = partition.does(v.AskSubmitted(ask="ask", queue="q", podsets=podsets))
        refused = [event for event in events if isinstance(event, v.InputRejected)]
    else:
        events = partition.does(*(runs(f"w{number}", "q", cpu=most) for number in range(number_of)))
        refused = [event for event in events if isinstance(event, v.InputRejected)]
        assert len(partition.engine.state.allocations) == number_of - 1
    (one,) = refused
    assert one.code == "invalid"
    assert f"makes the sum pass {SUM_LIMIT}" in one.reason
    partition.cycle()


def test_the_preemptor_is_admitted_once_its_victims_are_gone():
    """A victim that has not left still holds its quota; nobody else gets what it frees."""
    partition = Partition(queue("q", cpu=4, within_cluster_queue="LowerPriority"))
    partition.does(runs("victim", "q", cpu=4))
    assert told(partition.after(1, asks("high", "q", 2, cpu=4))) == {"high": ["victim"]}
    assert bound(partition.after(1, asks("low", "q", 1, cpu=1))) == []
    assert bound(
        partition.after(1, v.AllocationReleased(allocation="victim", reason="preempted"))
    ) == ["high"]
    assert list(partition.engine.state.asks) == ["low"]


def test_a_victim_reads_why():
    """The message names the workload, the reason and both paths; what is not known says so."""
    partition = Partition(
        queue("mine", "team", cpu=4, reclaim_within_cohort="Any"), queue("other", "team", cpu=0)
    )
    partition.does(runs("w", "other", cpu=4))
    (decided,) = [
        event
        for event in partition.does(asks("ask", "mine", cpu=2))
        if isinstance(event, v.PreemptionDecided)
    ]
    (victim,) = decided.victims
    assert victim.reason == "InCohortReclamation"
    assert victim.message == (
        "Preempted to accommodate a workload (UID: ask, JobUID: UNKNOWN) due to reclamation within the cohort; "
        "preemptor path: /team/mine; preemptee path: /team/other"
    )
    assert (decided.algorithm, decided.node) == ("classic", None)


def test_a_victim_is_told_once_though_two_need_its_room():
    """The second preemptor counts on a victim that goes already; its own list of victims to wait for stays empty."""
    mine = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "LowerPriority"}
    partition = Partition(
        queue("a", "team", cpu=2, **mine),
        queue("b", "team", cpu=2, **mine),
        queue("c", "team", cpu=0),
    )
    partition.does(runs("w", "c", cpu=4))
    first = partition.does(asks("one", "a", 1, cpu=2), asks("two", "b", 1, cpu=2))
    assert list(told(first).values()) == [["w"]]
    assert partition.engine.state.allocations["w"].attempts == 1
    after = partition.after(1, v.AllocationReleased(allocation="w", reason="preempted"))
    assert sorted(bound(after)) == ["one", "two"]


@pytest.mark.parametrize(("strict", "admitted"), [(False, ["small"]), (True, [])])
def test_a_head_that_does_not_fit_blocks_under_strict_fifo_alone(strict, admitted):
    """``BestEffortFIFO`` looks past it."""
    partition = Partition(queue("q", cpu=4, strict_fifo=strict))
    assert (
        bound(partition.does(asks("huge", "q", age=2, cpu=9), asks("small", "q", age=1, cpu=1)))
        == admitted
    )


def test_a_blocked_queue_goes_on_when_its_head_is_withdrawn():
    """Those behind the head were not considered, and are from then on."""
    partition = Partition(queue("q", cpu=4, strict_fifo=True))
    partition.does(asks("huge", "q", age=2, cpu=9), asks("small", "q", age=1, cpu=1))
    assert bound(partition.does(v.AskWithdrawn(ask="huge"))) == ["small"]


def test_who_is_parked_is_looked_at_again_when_something_ends_in_its_tree():
    """An end in another tree is of no use and starts no cycle."""
    partition = Partition(queue("a", "one", cpu=4), queue("b", "two", cpu=4))
    partition.does(runs("x", "a", cpu=4), runs("y", "b", cpu=4))
    assert bound(partition.does(asks("ask", "a", cpu=4))) == []
    assert partition.after(1, v.AllocationReleased(allocation="y")) == []
    assert bound(partition.after(1, v.AllocationReleased(allocation="x"))) == ["ask"]


def test_a_reason_is_written_once():
    """The same reason again is no news; a cycle in vain leaves one CycleStarted."""
    partition = Partition(queue("q", cpu=4))
    partition.does(runs("x", "q", cpu=3), runs("y", "q", cpu=1))
    first = partition.does(asks("ask", "q", cpu=4))
    assert [type(event) for event in first] == [v.PreemptionFailed, v.CycleStarted]
    assert first[1].tried == ("ask",)
    again = partition.after(1, v.AllocationReleased(allocation="y"))
    assert [type(event) for event in again] == [v.CycleStarted]
    assert again[0].tried == ()


def test_equal_asks_behind_one_that_failed_are_not_searched_again():
    """They are parked with it, in the one CycleStarted."""
    partition = Partition(queue("q", cpu=4))
    partition.does(runs("x", "q", cpu=4))
    events = partition.does(*(asks(f"ask-{number}", "q", cpu=4) for number in range(5)))
    assert [type(event) for event in events] == [v.PreemptionFailed, v.CycleStarted]
    assert len(events[1].tried) == 5


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_queue_on_hold_admits_nobody(policy):
    """Draining tells everybody to go as well; released, the queue admits again."""
    partition = Partition(queue("q", cpu=4))
    partition.does(runs("x", "q", cpu=1))
    events = partition.after(
        1,
        v.ConfigurationApplied(configuration=Partition(queue("q", cpu=4, stop_policy=policy)).spec),
    )
    drained = [
        (event.queue, [(one.id, one.reason) for one in event.victims])
        for event in events
        if isinstance(event, v.QuotaPreemptionDecided)
    ]
    assert drained == ([("q", [("x", "ClusterQueueStopped")])] if policy == "HoldAndDrain" else [])
    assert bound(partition.after(1, asks("ask", "q", cpu=1))) == []
    assert bound(partition.after(1, v.ConfigurationApplied(configuration=partition.spec))) == [
        "ask"
    ]


def test_a_local_queue_on_hold_keeps_its_own_workloads_back():
    """Those that come through another LocalQueue of the same ClusterQueue are admitted, even under ``StrictFIFO``."""
    locals_ = (
        LocalQueueSpec(name="slow", namespace="ns", cluster_queue="q", stop_policy="HoldAndDrain"),
        LocalQueueSpec(name="fast", namespace="ns", cluster_queue="q"),
    )
    partition = Partition(queue("q", cpu=4, strict_fifo=True), local_queues=locals_)
    events = partition.does(
        runs("x", "ns/slow", cpu=1),
        asks("held", "ns/slow", 5, cpu=1),
        asks("free", "ns/fast", cpu=1),
    )
    assert bound(events) == ["free"]
    drained = [event.victims for event in events if isinstance(event, v.QuotaPreemptionDecided)]
    assert [[one.reason for one in victims] for victims in drained] == [["LocalQueueStopped"]]


@pytest.mark.parametrize(
    ("through", "taken"),
    [("good/lq", True), ("bad/lq", False), ("q", False)],
)
def test_a_cluster_queue_takes_the_namespaces_it_names(through, taken):
    """Others are refused with a reason that names both."""
    locals_ = tuple(
        LocalQueueSpec(name="lq", namespace=one, cluster_queue="q") for one in ("good", "bad")
    )
    partition = Partition(
        queue("q", cpu=4, accepts_all_namespaces=False, namespaces=("good",)), local_queues=locals_
    )
    events = partition.does(asks("ask", through, cpu=1))
    assert bound(events) == (["ask"] if taken else [])
    assert [event.code for event in events if isinstance(event, v.InputRejected)] == (
        [] if taken else ["invalid"]
    )


def test_a_preemption_that_was_withdrawn_is_not_tried_again():
    """Victims that will not leave may stay, and the ask tells nobody else to go for ever."""
    partition = Partition(queue("q", cpu=4, within_cluster_queue="LowerPriority"))
    partition.does(runs("x", "q", cpu=4))
    assert told(partition.does(asks("ask", "q", 1, cpu=4))) == {"ask": ["x"]}
    for _ in range(20):
        events = partition.after(40)
        assert told(events) == {}
    assert not partition.engine.state.allocations["x"].eviction_requested
    assert bound(partition.after(1, v.AllocationReleased(allocation="x"))) == ["ask"]


def test_one_step_admits_all_that_fits():
    """Cycles follow each other until nothing more can be done, and nothing is due afterwards."""
    partition = Partition(queue("a", "team", cpu=10), queue("b", "team", cpu=10))
    events = partition.does(
        *(asks(f"{name}{number:02}", name, cpu=1) for number in range(12) for name in "ab")
    )
    assert len(bound(events)) == 20
    assert partition.engine.next_due() is None

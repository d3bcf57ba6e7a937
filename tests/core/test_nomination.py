"""Nomination: an ask that fits into what evictions leave waits for it, within their grace and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.rules import NEWEST
from evsched.core.state import State
from evsched.core.timers import NOMINATION
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import GOING, Failure, find_plan
from replays.scenarios.compare import differences
from replays.scenarios.scenario import read_scenario
from replays.scenarios.simulate import simulate
from tests.core.small import ask, engine, node, queue, run_until, running, step
from tests.examples import examples

GRACE = 30_000


def cluster(rules: int = NEWEST, **high) -> Engine:
    """Return a node of 10 cores: 6 of it a task's that can be preempted, 2 of a protected one, 2 are free.

    Two asks of a queue below its guarantee want 4 cores each. The first preempts the task of 6 at
    1 s; 8 will be free then, and 4 are left for the second.
    """
    live = engine(
        queue("high", guaranteed={"vcore": 20}, properties={"preemption.delay": "1s"}, **high),
        queue("low"),
        queue("kept", guaranteed={"vcore": 20}),
    )
    if rules > 1:
        step(live, 0, v.RulesAdopted(rules=rules))
    step(
        live,
        0,
        node("n1", 10),
        node("n2", 6),
        running("big", "root.low", "n1", 6),
        running("safe", "root.kept", "n1", 2),
        running("other", "root.low", "n2", 6, priority=1),
    )
    step(live, 0, *(ask(name, "root.high", 4, priority=2) for name in ("a", "b")))
    return live


def decided(events: list[v.AnyEvent], *kinds: type) -> list[v.AnyEvent]:
    """Return the events of these types."""
    return [event for event in events if isinstance(event, kinds)]


def ends(name: str) -> v.AllocationReleased:
    """Return that a victim has left."""
    return v.AllocationReleased(allocation=name, reason="preempted")


def test_the_ask_found_waits_for_room_that_is_leaving(shared_folder: Path):
    """Under rules 2 p2 evicts nothing within the grace of the victim of p1; under rules 1 r27 goes for it."""
    found = read_scenario(shared_folder / "found" / "yunikorn" / "surplus-146.json")
    assert differences(found.expect, simulate(found, 2)) == []
    assert differences(found.expect, simulate(found, 1)) != []


def test_an_ask_is_nominated_to_what_a_victim_leaves():
    """The second ask is promised the rest of the room, evicts nothing, and is bound with the first."""
    live = cluster()
    events = run_until(live, 2_000)
    (preempted,) = decided(events, v.PreemptionDecided)
    (nominated,) = decided(events, v.AskNominated)
    assert [one.id for one in preempted.victims] == ["big"]
    assert {preempted.ask, nominated.ask} == {"a", "b"}
    assert nominated.node == preempted.node == "n1"
    events = run_until(live, 20_000)
    assert decided(events, v.PreemptionDecided, v.AskNominated) == []
    bound = decided(list(step(live, 20_000, ends("big"))), v.AllocationBound)
    assert [(one.ask, one.node) for one in bound] == [("a", "n1"), ("b", "n1")]
    assert not any(timer.startswith("nomination") for timer in live.state.timers.armed)


def under_one_maximum() -> Engine:
    """Return two tasks of 6 cores on two nodes, and two asks of 4, all below a maximum of 12.

    The first ask preempts the task on n1, where room for the second is left then. The maximum is
    passed all the same: 6 run on, and the asks want 8.
    """
    live = engine(
        queue(
            "team",
            queue("high", guaranteed={"vcore": 12}, properties={"preemption.delay": "1s"}),
            queue("low"),
            maximum={"vcore": 12},
        ),
        queue("kept", guaranteed={"vcore": 20}),
    )
    step(live, 0, v.RulesAdopted(rules=NEWEST))
    step(
        live,
        0,
        node("n1", 10),
        node("n2", 6),
        running("big", "root.team.low", "n1", 6),
        running("safe", "root.kept", "n1", 2),
        running("other", "root.team.low", "n2", 6, priority=1),
    )
    step(live, 0, *(ask(name, "root.team.high", 4, priority=2) for name in ("a", "b")))
    return live


def test_an_ask_waits_unpromised_while_room_and_maximum_may_come_free():
    """What else ends below the maximum within the grace need not be evicted: the ask is bound without a victim."""
    live = under_one_maximum()
    events = run_until(live, 15_000)
    assert [one.ask for one in decided(events, v.PreemptionDecided)] == ["a"]
    assert decided(events, v.AskNominated) == []
    events = [
        *step(live, 15_000, v.AllocationReleased(allocation="other", reason="completed")),
        *run_until(live, 20_000),
        *step(live, 20_000, ends("big")),
    ]
    assert decided(events, v.PreemptionDecided) == []
    assert {one.ask for one in decided(events, v.AllocationBound)} == {"a", "b"}


def test_it_waits_unpromised_no_longer_than_the_grace():
    """Nothing else ended below the maximum in that time, so the ask evicts what it needs."""
    live = under_one_maximum()
    run_until(live, 15_000)
    events = [*step(live, 20_000, ends("big")), *run_until(live, 35_000)]
    assert [one.ask for one in decided(events, v.AllocationBound)] == ["a"]
    (preempted,) = decided(events, v.PreemptionDecided)
    assert (preempted.ask, [one.id for one in preempted.victims]) == ("b", ["other"])


def test_under_rules_1_it_waits_for_a_second():
    """Then it evicts a task of its own, as ever."""
    live = cluster(rules=1)
    events = run_until(live, 20_000)
    assert decided(events, v.AskNominated) == []
    assert len(decided(events, v.PreemptionDecided)) == 2


def test_a_nomination_ends_with_the_grace():
    """A victim that did not leave in time is no room: the ask preempts elsewhere, at once."""
    live = cluster()
    run_until(live, 1_500)
    (timer,) = [one for name, one in live.state.timers.armed.items() if name.startswith("nom")]
    assert timer.due == live.state.allocations["big"].eviction_requested + GRACE
    events = run_until(live, 45_000)
    (withdrawn,) = decided(events, v.PreemptionWithdrawn)
    assert withdrawn.ask == timer.subject
    assert withdrawn.due == timer.due
    (preempted,) = decided(events, v.PreemptionDecided)
    assert (preempted.ask, [one.id for one in preempted.victims]) == (timer.subject, ["other"])


def test_a_refused_eviction_ends_the_nominations_that_rest_on_it():
    """Nothing is waited for that will not come, and the ask is not nominated to it again."""
    live = cluster()
    run_until(live, 1_500)
    events = [*step(live, 5_000, v.EvictionRefused(allocation="big")), *run_until(live, 10_000)]
    assert len(decided(events, v.PreemptionWithdrawn)) == 1
    assert decided(events, v.AskNominated) == []
    (preempted,) = decided(events, v.PreemptionDecided)
    assert [one.id for one in preempted.victims] == ["other"]


@pytest.mark.parametrize(
    "lost", [v.NodeRemoved(node="n1"), v.NodeUpdated(node="n1", schedulable=False)]
)
def test_a_lost_node_ends_the_nomination(lost: v.AnyInput):
    """The ask may preempt elsewhere, as every ask whose node is lost to it."""
    live = cluster()
    run_until(live, 1_500)
    events = [*step(live, 5_000, lost), *run_until(live, 8_000)]
    assert {one.ask for one in decided(events, v.PreemptionWithdrawn)} == {"a", "b"}
    assert len(decided(events, v.PreemptionDecided)) == 1  # one node is left, with room for one


def test_promised_room_is_not_for_others():
    """A later ask of higher priority finds neither the free cores nor those that are being freed."""
    live = cluster()
    run_until(live, 1_500)
    step(live, 2_000, ask("late", "root.low", 2, priority=9))
    events = [*step(live, 3_000, ends("big")), *run_until(live, 4_000)]
    bound = decided(events, v.AllocationBound)
    assert [one.ask for one in bound] == ["a", "b"]
    assert "late" in live.state.asks


def test_free_room_elsewhere_is_taken():
    """A nominated ask is bound wherever there is room first, and its promise is gone."""
    live = cluster()
    run_until(live, 1_500)
    events = step(live, 2_000, v.AllocationReleased(allocation="other"))
    (bound,) = decided(list(events), v.AllocationBound)
    assert bound.node == "n2"
    assert not any(timer.startswith("nomination") for timer in live.state.timers.armed)


def test_what_is_promised_counts_for_the_guarantee():
    """A third ask cannot preempt on a guarantee that the two asks in flight will use up."""
    live = engine(
        queue("high", guaranteed={"vcore": 8}, properties={"preemption.delay": "1s"}),
        queue("low"),
    )
    step(live, 0, v.RulesAdopted(rules=NEWEST), node("n1", 8), node("n2", 8))
    step(live, 0, running("v1", "root.low", "n1", 8), running("v2", "root.low", "n2", 8))
    step(live, 0, *(ask(name, "root.high", 4) for name in ("a", "b", "c")))
    events = run_until(live, 20_000)
    assert len(decided(events, v.PreemptionDecided)) == 1
    assert len(decided(events, v.AskNominated)) == 1


def test_a_nomination_survives_a_restart():
    """A restored engine ends it at the same moment, and decides the same."""
    live = cluster()
    run_until(live, 1_500)
    again = Engine(snapshot.decode(snapshot.encode(live.state), live.state.time))
    assert again.next_due() == live.next_due()
    assert run_until(again, 60_000) == run_until(live, 60_000)


def test_withdrawing_a_nominated_ask_leaves_nothing_behind():
    """Its promise, its timer and its claim go with it."""
    live = cluster()
    run_until(live, 1_500)
    (name,) = [one.subject for one in live.state.timers.armed.values() if one.kind == "nomination"]
    step(live, 2_000, v.AskWithdrawn(ask=name))
    assert name not in live.state.preemptions
    assert name not in live.state.reservations
    assert not any(one.kind == "nomination" for one in live.state.timers.armed.values())


sizes = st.integers(1, 10)


@given(
    st.lists(st.lists(sizes, min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(1, 7), min_size=2, max_size=5),
    st.lists(st.integers(0, 5), max_size=4),
)
@examples(150)
def test_no_ask_with_a_lawful_plan_waits_longer_than_the_grace(nodes, wants, leave):
    """Whoever waits has no plan, or waits for room within the grace of its victims; and nothing promised is overdrawn."""
    live = engine(
        queue("high", guaranteed={"vcore": 60}, properties={"preemption.delay": "1s"}),
        queue("low"),
    )
    inputs = [v.RulesAdopted(rules=NEWEST)]
    inputs += [node(f"n{k}", max(10, sum(held))) for k, held in enumerate(nodes)]
    inputs += [
        running(f"r{k}-{i}", "root.low", f"n{k}", size)
        for k, held in enumerate(nodes)
        for i, size in enumerate(held)
    ]
    step(live, 0, *inputs)
    step(live, 0, *(ask(f"a{i}", "root.high", size) for i, size in enumerate(wants)))
    since: dict[str, int] = {}
    for second in range(1, 100, 7):
        events = run_until(live, second * 1000)
        state = live.state
        going = [one.id for one in state.allocations.values() if one.eviction_requested]
        if leave and going and leave.pop() % 2:
            events += step(live, second * 1000, ends(going[0]))
        for one in decided(events, v.AskNominated, v.PreemptionFailed):
            event(type(one).__name__)
            if getattr(one, "until", None):
                assert one.ask not in since
                since[one.ask] = one.until - GRACE
        check_promises(live.state)


def check_promises(state: State) -> None:
    """Hold what waits, and what was promised, against the state."""
    for one in state.asks.values():
        if (
            one.id not in state.preemptions
            and one.id in state.unschedulable_since
            and not state.retry_needed
        ):
            plan = find_plan(state, named("default", state.rules), one)
            assert isinstance(plan, Failure)
            assert plan.code != GOING or state.time < one.patient_until <= state.time + GRACE
    for timer in state.timers.armed.values():
        if timer.kind == NOMINATION:
            assert timer.subject in state.preemptions
            assert timer.due <= state.preemptions[timer.subject].decided + GRACE
    for place in state.nodes.values():
        given = sum(
            state.types.shapes[one.shape].pairs[0][1]
            for one in place.allocations.values()
            if one.eviction_requested
        )
        promised = sum(shape.pairs[0][1] for shape in place.reserved.values())
        assert promised <= place.free(0) + given

"""The emulated cluster: what it owes the scheduler, and that a restart does not change it."""

import pytest

from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AllocationRestored,
    AskSubmitted,
    AskWithdrawn,
    EvictionRepeated,
    InputRejected,
    NodeRemoved,
    PreemptionDecided,
    PreemptionWithdrawn,
    QuotaPreemptionDecided,
    Victim,
)
from evsched.agents.emulated.agent import Agent

SECOND = 1000


def ask(name="web", seq=1):
    """Return an ask as the log has it."""
    return AskSubmitted(
        seq=seq,
        ask=name,
        application="app",
        queue="root.a",
        resources={"vcore": 1},
        priority=7,
        created=5,
        uid="u",
    )


def bound(name="web", seq=2):
    """Return the event that bound it."""
    return AllocationBound(seq=seq, cause=1, ask=name, node="n")


def told(*names, seq=3):
    """Return the event that told these to go."""
    return PreemptionDecided(
        seq=seq,
        cause=1,
        ask="x",
        node="n",
        victims=tuple(Victim(id=name, queue="q", reason="r") for name in names),
        algorithm="a",
    )


def fed(*events, **options):
    """Return an agent that has seen these events: one a second from second 1."""
    agent = Agent(**({"grace_ms": 5 * SECOND} | options))
    for second, event in enumerate(events, start=1):
        agent.take(event, second * SECOND)
    return agent


def test_a_life_ends_when_it_was_recorded_to():
    """Counted from the binding; without a recorded life a task runs for ever."""
    agent = fed(ask(), bound(), lives_ms={"web": 10 * SECOND})
    assert agent.next_due() == 12 * SECOND
    assert agent.owed(12 * SECOND - 1) == []
    (done,) = agent.owed(12 * SECOND)
    assert (done.allocation, done.reason, done.proposal) == (
        "web",
        "completed",
        "emulate:end:web:2",
    )
    assert agent.owed(100 * SECOND) == []
    assert fed(ask(), bound()).next_due() is None
    assert fed(ask(), bound(), default_life_ms=1).next_due() == 2 * SECOND + 1


@pytest.mark.parametrize(
    "order",
    [
        told("web"),
        QuotaPreemptionDecided(
            seq=3, cause=1, queue="q", victims=(Victim(id="web", queue="q", reason="r"),), target={}
        ),
    ],
)
def test_a_victim_is_gone_after_its_grace(order):
    """Whoever told it to go; what is no task of this cluster is not released."""
    agent = fed(ask(), bound(), order, told("stranger"))
    assert agent.next_due() == 8 * SECOND
    (gone,) = agent.owed(8 * SECOND)
    assert (gone.allocation, gone.reason, gone.proposal) == (
        "web",
        "preempted",
        "emulate:evict:web:2",
    )


def test_being_told_again_gives_no_more_time():
    """The grace runs from the first time; an agent that owes nothing any more answers a repetition once more."""
    again = EvictionRepeated(seq=4, cause=3, allocation="web", attempt=2)
    agent = fed(ask(), bound(), told("web"), again)
    assert len(agent.owed(8 * SECOND)) == 1
    agent.take(again, 20 * SECOND)
    assert agent.next_due() == 25 * SECOND


def test_who_may_stay_stays():
    """A withdrawn preemption is not carried out, nor is one of a task that has ended meanwhile."""
    assert (
        fed(
            ask(), bound(), told("web"), PreemptionWithdrawn(seq=4, victims=("web",), reason="r")
        ).next_due()
        is None
    )
    ended = AllocationReleased(seq=4, allocation="web")
    assert fed(ask(), bound(), told("web"), ended, lives_ms={"web": 1}).owed(99 * SECOND) == []


@pytest.mark.parametrize(
    ("reason", "comes"),
    [
        ("preempted", 1),
        ("node removed", 1),
        ("completed", 0),
        ("failed", 0),
        ("application removed", 0),
    ],
)
def test_an_evicted_pod_comes_again(reason, comes):
    """As a ReplicaSet does it: the same pod under another name, with a life of its own, at once."""
    agent = fed(
        ask(),
        bound(),
        NodeRemoved(seq=3, node="n"),
        AllocationReleased(seq=4, allocation="web", reason=reason),
    )
    found = agent.owed(4 * SECOND)
    assert len(found) == comes
    for one in found:
        assert (one.ask, one.application, one.queue, one.priority) == ("web~1", "app", "root.a", 7)
        assert (one.seq, one.created, one.uid, one.proposal) == (
            0,
            None,
            None,
            "emulate:again:web~1:2",
        )


def test_successors_are_numbered_and_live_like_the_first():
    """web, web~1, web~2: each runs as long as was recorded for web."""
    gone = AllocationReleased(seq=5, allocation="web~1", reason="preempted")
    agent = fed(ask("web~1"), bound("web~1"), gone, lives_ms={"web": 10})
    assert [one.ask for one in agent.owed(3 * SECOND)] == ["web~2"]
    agent = fed(ask("web~1"), bound("web~1"), lives_ms={"web": 10})
    assert agent.next_due() == 2 * SECOND + 10
    assert (
        fed(
            ask(),
            bound(),
            AllocationReleased(seq=4, allocation="web", reason="preempted"),
            recreate=False,
        ).next_due()
        is None
    )


def test_what_was_found_running_is_looked_after_too():
    """A restored allocation ends, leaves and comes again like one that was bound here."""
    restored = AllocationRestored(
        seq=1, allocation="old", queue="root.a", node="n", resources={"vcore": 1}, preempting=True
    )
    agent = fed(restored, lives_ms={"old": 60 * SECOND})
    assert [one.reason for one in agent.owed(6 * SECOND)] == ["preempted"]
    agent.take(AllocationReleased(seq=2, allocation="old", reason="preempted"), 7 * SECOND)
    assert [one.ask for one in agent.owed(7 * SECOND)] == ["old~1"]


def test_a_restart_owes_what_is_not_in_the_log():
    """What was sent and arrived is not owed again; what was sent and got lost is, under the same id."""
    history = [ask(), bound(), told("web")]
    first = fed(*history)
    sent = first.owed(8 * SECOND)
    assert fed(*history).owed(8 * SECOND) == sent
    arrived = [*history, AllocationReleased(seq=4, allocation="web", reason="preempted")]
    again = fed(*arrived).owed(99 * SECOND)
    assert [one.ask for one in again] == ["web~1"]
    assert fed(*arrived, ask("web~1", seq=5)).owed(99 * SECOND) == []


def test_what_was_refused_is_not_asked_again():
    """After a restart too: the refusal is in the log."""
    history = [ask(), bound(), told("web")]
    for proposal in fed(*history).owed(8 * SECOND):
        refused = InputRejected(seq=4, reason="r", proposal=proposal.proposal, input=proposal)
        assert fed(*history, refused).owed(99 * SECOND) == []


def test_a_withdrawn_ask_is_forgotten():
    """It never runs, so nothing is owed for it."""
    assert (
        fed(ask(), AskWithdrawn(seq=2, ask="web"), told("web"), lives_ms={"web": 1}).next_due()
        is None
    )


def test_long_names_have_ids_that_fit():
    """An id has 128 characters at most, a name 253; the same task keeps the same id."""
    name = "x" * 253
    ids = [fed(ask(name), bound(name), told(name)).owed(99 * SECOND)[0].proposal for _ in range(2)]
    assert ids[0] == ids[1]
    assert len(ids[0]) <= 128


def test_many_tasks_are_owed_in_the_order_of_their_times():
    """Due time and then id, also after most of the heap has become stale."""
    agent = Agent(grace_ms=1, default_life_ms=10_000)
    for number in range(3000):
        agent.take(ask(f"t{number:04}"), number)
        agent.take(bound(f"t{number:04}"), number)
    for number in range(0, 3000, 2):
        agent.take(AllocationReleased(seq=9, allocation=f"t{number:04}"), 5000)
    names = [one.allocation for one in agent.owed(99_999)]
    assert names == sorted(names)
    assert len(names) == 1500

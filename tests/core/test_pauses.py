"""Pauses: who is paused, until when, what a pause holds back and what it does not, and how it ends."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.yunikorn.index import index_of
from tests.core.small import START, ask, engine, node, preemptions, queue, run_until, running, step

TWO = {"application.unschedasks.backoff": "2"}
SECOND = {"preemption.delay": "1s"}
LONGEST = 2**53


def cluster_of(*queues, vcore=4, **fields):
    """Return a cluster with one node; without queues, root.a pauses an application after two asks and root.b nobody."""
    made = engine(*(queues or (queue("a", properties=TWO), queue("b"))), **fields)
    step(made, 0, node("n1", vcore))
    return made


def large(*names, leaf="root.a", **fields):
    """Return asks that fit on no node."""
    return [ask(name, leaf, 99, **fields) for name in names]


def pauses(events):
    """Return who was paused (with the seconds from the start until when) and who resumed (with None)."""
    found = []
    for one in events:
        if isinstance(one, v.ApplicationPaused):
            found.append((one.application, (one.until - START) / 1000))
        elif isinstance(one, v.ApplicationResumed):
            found.append((one.application, None))
    return found


def bound(events):
    """Return what was bound."""
    return [one.ask for one in events if isinstance(one, v.AllocationBound)]


def restarted(cluster):
    """Return an engine that knows the snapshot alone."""
    return Engine(snapshot.decode(snapshot.encode(cluster.state), cluster.state.time))


# ------------------------------------------------------------------------------------ who is paused


def test_an_application_is_paused_with_as_many_asks_as_the_property_says_and_not_with_fewer():
    """Given a threshold of two, the second ask that fits nowhere pauses for 30 s, and the event says what led to it."""
    cluster = cluster_of()
    assert pauses(step(cluster, 0, *large("p1"))) == []
    asked, paused = step(cluster, 1000, *large("p2"))
    assert (paused.application, paused.until, paused.asks, paused.cause) == (
        "new-root.a",
        START + 31_000,
        2,
        asked.seq,
    )
    assert cluster.state.paused == {"new-root.a": START + 31_000}


def test_what_fits_is_bound_first_and_does_not_count():
    """Given two asks that fit and one that does not, nobody is paused; the room that they take makes the next one the second."""
    cluster = cluster_of()
    events = step(cluster, 0, *large("p1"), ask("p2", "root.a", 2), ask("p3", "root.a", 2))
    assert (bound(events), pauses(events)) == (["p2", "p3"], [])
    assert pauses(step(cluster, 0, ask("p4", "root.a", 1))) == [("new-root.a", 30)]


def test_each_application_counts_for_itself():
    """Given two applications with one ask each that fits nowhere, none is paused; the one that gets a second is."""
    cluster = cluster_of()
    assert (
        pauses(step(cluster, 0, *large("p1", application="x"), *large("p2", application="y"))) == []
    )
    assert pauses(step(cluster, 0, *large("p3", application="y"))) == [("y", 30)]


@pytest.mark.parametrize(
    ("vcore", "expected"),
    [(3, []), (5, [("new-root.a", 30)])],
    ids=["a node has room", "no node has room"],
)
def test_what_a_maximum_holds_back_counts_when_no_node_has_room_for_it(vcore, expected):
    """The question is whether a node has room, whatever else is in the way."""
    cluster = cluster_of(queue("a", maximum={"vcore": 2}, properties=TWO))
    assert (
        pauses(step(cluster, 0, ask("p1", "root.a", vcore), ask("p2", "root.a", vcore))) == expected
    )


def test_room_that_others_take_pauses_who_waits_for_a_maximum():
    """Nobody tries these asks while the maximum holds them, and still they have no room from the moment others take it."""
    cluster = cluster_of(queue("a", maximum={"vcore": 2}, properties=TWO), queue("b"))
    assert pauses(step(cluster, 0, ask("p1", "root.a", 3), ask("p2", "root.a", 3))) == []
    assert pauses(step(cluster, 0, ask("q", "root.b", 2))) == [("new-root.a", 30)]


def test_without_the_property_nobody_is_paused():
    """Given a leaf without it, or with 0, a hundred asks that fit nowhere wait as ever, and nothing is due."""
    cluster = cluster_of(
        queue("a", properties={"application.unschedasks.backoff": "0"}),
        queue("b"),
        preemption_enabled=False,
    )
    events = step(
        cluster, 0, *large(*map(str, range(100))), *large(*map(str, range(100, 200)), leaf="root.b")
    )
    assert pauses(events) == []
    assert cluster.next_due() is None
    assert not index_of(cluster.state).order.openings.crowded
    assert not index_of(cluster.state).order.openings.unsure


def test_queues_below_inherit_number_and_delay():
    """Given the properties on a parent, its leaf pauses; one that sets 0 itself does not."""
    above = {**TWO, "application.unschedasks.backoff.delay": "90s"}
    off = queue("off", properties={"application.unschedasks.backoff": "0"})
    cluster = cluster_of(queue("p", queue("a"), off, properties=above))
    events = step(
        cluster, 0, *large("p1", "p2", leaf="root.p.a"), *large("p3", "p4", leaf="root.p.off")
    )
    assert pauses(events) == [("new-root.p.a", 90)]


def test_a_pause_ends_at_the_last_moment_there_is():
    """Given a time shortly before it, no event carries a later one."""
    cluster = cluster_of()
    (*_, paused) = cluster.step(LONGEST - 5, [v.Proposal(input=one) for one in large("p1", "p2")])
    assert paused.until == LONGEST


# ------------------------------------------------------------------------------- what it holds back


def test_room_that_appears_goes_to_others_and_after_the_pause_to_whoever_was_paused():
    """Given a paused application at the head of the order, it gets nothing of a new node until its pause is over."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2", priority=9))
    assert bound(step(cluster, 1000, ask("small", "root.a", 1), ask("q1", "root.b", 1))) == ["q1"]
    assert bound(step(cluster, 2000, node("n2", 200), *large("q2", leaf="root.b"))) == ["q2"]
    events = run_until(cluster, 30_000)
    assert pauses(events) == [("new-root.a", None)]
    assert bound(events) == ["p1", "small"]


def test_other_applications_of_the_leaf_go_on():
    """Given a paused application, another one in its queue is bound, and is paused for itself."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2", application="x"))
    assert bound(step(cluster, 1000, ask("q1", "root.a", 1, application="y"))) == ["q1"]
    assert pauses(step(cluster, 2000, *large("q2", "q3", application="y"))) == [("y", 32)]


def test_the_next_new_application_of_a_stateaware_leaf_has_its_turn():
    """Given the one new application that is looked at, its pause lets the next one start in the same step."""
    cluster = cluster_of(queue("a", properties={**TWO, "application.sort.policy": "stateaware"}))
    events = step(
        cluster, 0, *large("p1", "p2", application="x"), ask("q1", "root.a", 1, application="y")
    )
    assert (pauses(events), bound(events)) == ([("x", 30)], ["q1"])


def test_nobody_is_told_to_go_for_a_paused_application():
    """Given asks that could preempt after a second, they do when their application is looked at again."""
    cluster = cluster_of(
        queue("a", guaranteed={"vcore": 9}, properties={**TWO, **SECOND}), queue("b")
    )
    step(cluster, 0, running("r1", "root.b", "n1", 2), running("r2", "root.b", "n1", 2))
    assert pauses(step(cluster, 0, ask("p1", "root.a", 2), ask("p2", "root.a", 2))) == [
        ("new-root.a", 30)
    ]
    assert cluster.next_due() == START + 30_000
    assert preemptions(run_until(cluster, 29_999)) == []
    events = run_until(cluster, 30_000)
    assert sorted(one[0] for one in preemptions(events)) == ["p1", "p2"]
    assert pauses(events) == [("new-root.a", None)]


def test_who_is_due_to_preempt_is_not_paused_before_that():
    """Given a cycle for others shortly before the pause ends, the asks have their turn in the next, and only then pause."""
    cluster = cluster_of(
        queue("a", properties={**TWO, **SECOND}),
        queue("b", guaranteed={"vcore": 9}, properties=SECOND),
    )
    step(cluster, 0, *large("p1", "p2"))
    step(cluster, 28_700, *large("q", leaf="root.b"))
    events = run_until(cluster, 30_699)
    assert [one.tried for one in events if isinstance(one, v.CycleStarted)] == [("q",)]
    assert pauses(events) == [("new-root.a", None)]
    events = run_until(cluster, 30_700)
    assert [one.tried for one in events if isinstance(one, v.CycleStarted)] == [("p1", "p2")]
    assert pauses(events) == [("new-root.a", 60.7)]


def test_what_happened_in_the_pause_is_made_up_for():
    """Given asks that were tried in vain, a victim that comes in the pause is found after it, though a cycle ran since."""
    cluster = cluster_of(
        queue("a", guaranteed={"vcore": 9}, properties={**TWO, **SECOND}), queue("b")
    )
    old = {"created": START - 60_000}
    assert pauses(
        step(cluster, 0, ask("p1", "root.a", 5, **old), ask("p2", "root.a", 5, **old))
    ) == [("new-root.a", 30)]
    step(cluster, 1000, node("n2", 5), running("r", "root.b", "n2", 5))
    assert preemptions(run_until(cluster, 29_999)) == []
    assert preemptions(run_until(cluster, 30_000)) == [("p1", "n2", ["r"])]


def test_what_is_in_flight_goes_on():
    """Given an ask in flight in a paused application, it is bound when its victim is gone; it does not count itself."""
    cluster = cluster_of(
        queue("a", guaranteed={"vcore": 9}, properties={**TWO, **SECOND}), queue("b")
    )
    step(cluster, 0, running("r1", "root.b", "n1", 4), ask("p1", "root.a", 4))
    assert preemptions(run_until(cluster, 1000)) == [("p1", "n1", ["r1"])]
    assert pauses(step(cluster, 1000, *large("p2"))) == []
    assert pauses(step(cluster, 1000, *large("p3"))) == [("new-root.a", 31)]
    assert bound(
        step(cluster, 2000, v.AllocationReleased(allocation="r1", reason="preempted"))
    ) == ["p1"]
    assert cluster.state.paused


def test_a_node_that_is_reserved_is_used():
    """Given a node that is kept for an ask of a paused application, the ask is bound there when it has room."""
    cluster = cluster_of()
    step(cluster, 0, running("r1", "root.b", "n1", 4), *large("p1", "p2"), ask("p3", "root.a", 3))
    step(cluster, 0, v.ReservationRestored(ask="p3", node="n1"))
    assert bound(step(cluster, 1000, v.AllocationReleased(allocation="r1"))) == ["p3"]


# -------------------------------------------------------------------------------------- how it ends


@pytest.mark.parametrize("restart", [False, True], ids=["one process", "restarted"])
def test_after_the_pause_it_is_looked_at_at_once_and_paused_anew(restart):
    """Given nothing better, the same step ends one pause and begins the next; a restart in between forgets nothing."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2"))
    if restart:
        cluster = restarted(cluster)
    assert pauses(run_until(cluster, 29_999)) == []
    events = run_until(cluster, 30_000)
    assert pauses(events) == [("new-root.a", None), ("new-root.a", 60)]
    (resumed,) = (one for one in events if isinstance(one, v.ApplicationResumed))
    assert resumed.due == START + 30_000
    assert cluster.state.paused == {"new-root.a": START + 60_000}


def test_a_hopeless_application_costs_two_steps_a_pause():
    """Given asks that never fit, an hour of pauses of 30 s has one end and one beginning each, and at most one cycle."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2"))
    events = run_until(cluster, 3_600_000)
    assert len(pauses(events)) == 2 * 120
    assert len([one for one in events if isinstance(one, v.CycleStarted)]) <= 120
    assert len([one for one in events if isinstance(one, v.PreemptionFailed)]) == 2


def configured(cluster, at, **properties):
    """Apply a configuration in which root.a has these properties; return the events."""
    named = {
        f"application.unschedasks.{name.replace('_', '.')}": value
        for name, value in properties.items()
    }
    root = QueueSpec(
        name="root", parent=True, queues=(queue("a", properties=named), queue("b")), submit_acl="*"
    )
    return step(cluster, at, v.ConfigurationApplied(configuration=YunikornSpec(root=root)))


def test_a_configuration_without_pauses_ends_them():
    """Given the property off, whoever is paused is looked at again, by an event that names the configuration as its cause."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2"), *large("p3", "p4", application="b"))
    events = configured(cluster, 1000, backoff="0")
    assert pauses(events) == [("b", None), ("new-root.a", None)]
    assert {one.cause for one in events if isinstance(one, v.ApplicationResumed)} == {events[0].seq}
    assert not [timer for timer in cluster.state.timers.armed.values() if timer.kind == "pause"]
    assert bound(step(cluster, 1000, node("n2", 100))) == ["p1"]


def test_another_delay_is_for_later_pauses():
    """Given a change of number or delay, a pause that is on ends when it was to end."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2"))
    assert pauses(configured(cluster, 1000, backoff="1", backoff_delay="5s")) == []
    assert pauses(run_until(cluster, 30_000)) == [("new-root.a", None), ("new-root.a", 35)]


@pytest.mark.parametrize(
    ("leaves", "stays"),
    [
        ([v.AskWithdrawn(ask="p1")], True),
        ([v.AskWithdrawn(ask="p1"), v.AskWithdrawn(ask="p2")], False),
    ],
    ids=["one of two", "both"],
)
def test_a_pause_ends_with_the_last_ask(leaves, stays):
    """Given an application that keeps running but waits for nothing more, nothing is held back, and a new ask is looked at."""
    cluster = cluster_of()
    step(
        cluster,
        0,
        v.ApplicationSubmitted(application="new-root.a", queue="root.a"),
        ask("runs", "root.a", 1),
        *large("p1", "p2"),
    )
    step(cluster, 1000, *leaves)
    assert bool(cluster.state.paused) is stays
    assert [timer.id for timer in cluster.state.timers.armed.values()] == [
        "pause:new-root.a"
    ] * stays
    assert bound(step(cluster, 2000, ask("again", "root.a", 1))) == ["again"] * (not stays)


def test_a_pause_goes_with_its_application():
    """Given an application that is removed, its timer is off, and one of the same name starts unpaused."""
    cluster = cluster_of()
    step(cluster, 0, *large("p1", "p2"))
    step(cluster, 1000, v.ApplicationRemoved(application="new-root.a"))
    assert (cluster.state.paused, cluster.state.timers.armed) == ({}, {})
    assert bound(step(cluster, 2000, ask("again", "root.a", 1))) == ["again"]

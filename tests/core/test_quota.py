"""When a quota enforcement starts, ends and is decided (seed quota_enforcement, "Quota Preemption Delay")."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, TemplateSpec
from evsched.core.quota import timers as quota_timers
from evsched.core.quota.timers import Rule
from tests.core.quota_clusters import START, Cluster, partition, pod, pods, queue

G = 10**9


@pytest.mark.parametrize(
    ("old", "new", "armed", "delay_ms"),
    [
        pytest.param(Rule({0: 90}, 0), Rule({0: 30}, 60), False, 60, id="a decrease starts it"),
        pytest.param(
            Rule({0: 60}, 60), Rule({0: 50}, 60), True, 60, id="a further decrease starts it anew"
        ),
        pytest.param(Rule({0: 30}, 60), Rule({0: 45}, 60), True, None, id="an increase cancels it"),
        pytest.param(
            Rule({0: 30}, 60), Rule({0: 45}, 60), False, ..., id="an increase alone does nothing"
        ),
        pytest.param(
            Rule({0: 30}, 60),
            Rule({0: 45}, 90),
            True,
            None,
            id="an increase cancels it though the delay changed too",
        ),
        pytest.param(
            Rule({0: 50}, 60), Rule({0: 50}, 50), True, 50, id="another delay starts it anew"
        ),
        pytest.param(
            Rule({0: 50}, 0), Rule({0: 50}, 50), False, 50, id="a delay set later starts it"
        ),
        pytest.param(
            Rule({0: 50}, 60), Rule({0: 50}, 0), True, None, id="no delay any more cancels it"
        ),
        pytest.param(
            Rule({0: 50}, 60),
            Rule({0: 10}, 0),
            False,
            ...,
            id="a decrease without a delay does nothing",
        ),
        pytest.param(
            Rule({}, 0), Rule({0: 50}, 60), False, 60, id="row 2: a first maximum is a decrease"
        ),
        pytest.param(
            Rule({0: 100, 1: 100}, 60),
            Rule({0: 50, 1: 50}, 60),
            False,
            60,
            id="row 3: all types lowered",
        ),
        pytest.param(
            Rule({0: 100, 1: 100}, 60),
            Rule({0: 200, 1: 50}, 60),
            False,
            60,
            id="row 4: one raised, one lowered",
        ),
        pytest.param(
            Rule({0: 100}, 60), Rule({0: 100, 1: 100}, 60), False, 60, id="row 5: a type is added"
        ),
        pytest.param(
            Rule({0: 100, 1: 100}, 60),
            Rule({0: 50}, 60),
            False,
            60,
            id="row 6: a type goes, the other is lowered",
        ),
        pytest.param(
            Rule({0: 100}, 60), Rule({1: 100}, 60), False, 60, id="row 7: a type is replaced"
        ),
        pytest.param(
            Rule({0: 100, 1: 100}, 60),
            Rule({0: 100}, 60),
            True,
            None,
            id="a type that goes is an increase",
        ),
        pytest.param(
            Rule({0: 100}, 60), Rule({}, 60), True, None, id="no maximum any more cancels it"
        ),
        pytest.param(
            Rule({0: 100}, 60), Rule({0: 100}, 60), True, ..., id="no change leaves it alone"
        ),
    ],
)
def test_what_a_change_does_to_the_timer(old, new, armed, delay_ms):
    """The table of `evsched.core.quota.timers`: a delay starts from zero, None cancels, ... leaves the timer as it is."""
    found = quota_timers.change(old, new, armed=armed)
    assert (... if found is None else found.delay_ms) == delay_ms


def test_the_timer_fires_once_at_its_due_time():
    """A decrease is enforced after the delay, at its due time, and never again."""
    cluster = Cluster(
        partition(queue("a", maximum={"memory": 100 * G})), *pods(8, "root.a", {"memory": 10 * G})
    )
    cluster.advance(1)
    cluster.give(partition(queue("a", maximum={"memory": 50 * G}, delay=60)))
    cluster.advance(59.999)
    assert cluster.victims() == []
    cluster.advance(0.001)
    assert cluster.victims() == ["p1", "p2", "p3"]
    cluster.advance(7200)
    assert cluster.quota() == [("Scheduled", None, "root.a"), ("Decided", 61_000, "root.a")]


def test_a_new_leader_fires_an_overdue_timer_with_its_due_time():
    """Nobody led when the timer was due: what it causes says when it should have been."""
    cluster = Cluster(
        partition(queue("a", maximum={"memory": 10 * G}, delay=60)),
        *pods(2, "root.a", {"memory": 10 * G}),
    )
    cluster.restart()
    cluster.now += 100_000
    cluster.give()
    assert cluster.quota()[-1] == ("Decided", 60_000, "root.a")


def test_an_initial_configuration_starts_timers():
    """A maximum set at first is one that was lowered from unlimited; what is restored later counts when it fires."""
    cluster = Cluster(partition(queue("a", maximum={"memory": 10 * G}, delay=60)))
    cluster.give(*pods(2, "root.a", {"memory": 10 * G}))
    cluster.advance(60)
    assert cluster.victims() == ["p1"]


def test_the_switch_turns_timers_off():
    """Switching quota preemption off cancels what was scheduled; switching it on starts nothing by itself."""
    lowered = queue("a", maximum={"memory": 10 * G}, delay=60)
    cluster = Cluster(partition(queue("a")), *pods(2, "root.a", {"memory": 10 * G}))
    cluster.give(partition(lowered))
    cluster.give(partition(lowered, quota_preemption_enabled=False))
    cluster.give(partition(lowered))
    cluster.advance(7200)
    assert cluster.quota() == [("Scheduled", None, "root.a"), ("Cancelled", None, "root.a")]


def test_a_queue_that_is_gone_loses_its_timer():
    """A queue that left the configuration has no maximum any more, though it is still in use."""
    cluster = Cluster(
        partition(queue("a", maximum={"memory": 10 * G}, delay=60)),
        *pods(2, "root.a", {"memory": 10 * G}),
    )
    cluster.give(partition(queue("b")))
    cluster.advance(7200)
    assert [kind for kind, _, _ in cluster.quota()] == ["Scheduled", "Cancelled"]


def test_a_delay_beyond_all_time_still_makes_an_event():
    """The due time ends at the latest moment an event can carry."""
    cluster = Cluster(
        partition(QueueSpec(name="a", maximum={"memory": 1}, quota_preemption_delay_ms=2**53))
    )
    assert cluster.last().at == 2**53


def test_a_leaf_comes_before_its_parent():
    """With one due time the deeper queue is enforced first, and the parent finds what is left to do."""
    before = partition(queue("a", queue("x"), queue("y")))
    after = partition(
        queue(
            "a",
            queue("x", maximum={"vcore": 2}, delay=10),
            queue("y"),
            maximum={"vcore": 5},
            delay=10,
        )
    )
    cluster = Cluster(
        before, *pods(4, "root.a.x", {"vcore": 1}, "x"), *pods(4, "root.a.y", {"vcore": 1}, "y")
    )
    cluster.give(after)
    cluster.advance(10)
    decided = [event for event in cluster.events if isinstance(event, v.QuotaPreemptionDecided)]
    assert [(event.queue, [one.id for one in event.victims]) for event in decided] == [
        ("root.a.x", ["x1", "x2"]),
        ("root.a", ["y1"]),  # x runs its own enforcement and is left out
    ]


def test_never_two_at_a_time_in_one_queue():
    """While victims of an enforcement have not left, the next one of the queue is skipped, visibly."""
    cluster = Cluster(partition(queue("a")), *pods(4, "root.a", {"vcore": 1}))
    cluster.give(partition(queue("a", maximum={"vcore": 3}, delay=10)))
    cluster.advance(10)
    cluster.give(partition(queue("a", maximum={"vcore": 2}, delay=10)))
    cluster.advance(10)
    assert cluster.victims() == ["p1"]
    assert isinstance(cluster.last(), v.QuotaPreemptionUnhelpful)
    assert "skipped, 1 victims" in cluster.last().reason
    cluster.give(v.AllocationReleased(allocation="p1", reason="preempted"))
    cluster.give(partition(queue("a", maximum={"vcore": 1}, delay=10)))
    cluster.advance(10)
    assert cluster.victims() == ["p1", "p2", "p3"]


def test_existing_dynamic_queues_are_left_as_they_are():
    """Lowering a template starts no timer for a queue that was made by it."""
    made = v.QueueCreated(seq=0, queue="root.users.u1")
    users = QueueSpec(
        name="users",
        parent=True,
        template=TemplateSpec(maximum={"vcore": 9}, quota_preemption_delay_ms=1000),
    )
    lowered = QueueSpec(
        name="users",
        parent=True,
        template=TemplateSpec(maximum={"vcore": 1}, quota_preemption_delay_ms=1000),
    )
    cluster = Cluster(partition(users))
    cluster.engine.apply(v.QueueCreated(seq=cluster.engine.state.seq + 1, queue=made.queue), START)
    cluster.give(*pods(4, "root.users.u1", {"vcore": 1}))
    cluster.give(partition(lowered))
    cluster.advance(7200)
    assert cluster.quota() == []
    assert cluster.engine.state.queues["root.users.u1"].maximum == {
        cluster.engine.state.types.index["vcore"]: 9
    }


small = st.none() | st.fixed_dictionaries(
    {}, optional={"vcore": st.integers(1, 6), "memory": st.integers(1, 6)}
)
changes = st.lists(
    st.tuples(st.integers(1, 40), small, st.sampled_from([0, 10, 25]), st.booleans()),
    min_size=1,
    max_size=8,
)


def naive_timers(steps):
    """Return how the timers of one queue ended (kind, second), by the seed's sentences alone."""
    found, now, due, maximum, delay = [], 0, None, {}, 0
    for wait, written, new_delay, _ in [*steps, (10_000, None, 0, False)]:
        now += wait
        if due is not None and due <= now:
            found.append(("fired", due))
            due = None
        new = written or {}
        decrease = any(new[kind] < maximum.get(kind, 10**9) for kind in new)
        running = due is not None
        if not new or new_delay == 0:
            due = None
        elif decrease or (new == maximum and new_delay != delay):
            due = now + new_delay
        elif new != maximum:
            due = None
        maximum, delay = new, new_delay
        if running and due is None:
            found.append(("cancelled", 0))
    return found


@given(changes)
@settings(deadline=None)
def test_timers_survive_restarts_at_random_places(steps):
    """Whatever is changed and whenever the process restarts, each timer ends once: at its due time, or cancelled."""
    cluster = Cluster(partition(queue("a")), pod("p", "root.a", {"vcore": 3, "memory": 3}))
    expected = naive_timers(steps)
    for wait, maximum, delay, restart in steps:
        cluster.advance(wait / 2)
        if restart:
            cluster.restart()
        cluster.advance(wait - wait / 2)
        if restart:
            cluster.restart()
        cluster.give(partition(queue("a", maximum=maximum or None, delay=delay)))
    cluster.advance(9_999)
    ended = []
    for event in cluster.events:
        if isinstance(event, v.QuotaPreemptionCancelled):
            ended.append(("cancelled", 0))
        elif isinstance(event, v.QuotaPreemptionDecided | v.QuotaPreemptionUnhelpful):
            ended.append(("fired", (event.due - START) // 1000))
    assert ended == expected

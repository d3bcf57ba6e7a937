"""Limits on users, groups and the number of applications."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import LimitSpec, QueueSpec, YunikornSpec
from evsched.core.yunikorn import limits
from evsched.core.yunikorn.index import index_of
from tests.core.counting import counts_of
from tests.core.quota_clusters import Cluster


def cluster(*found, **fields):
    """Return a cluster whose queue root.p has these limits, above the leaves x and y."""
    most = fields.get(
        "max_applications", 0
    )  # queues below one with maxapplications must have it too
    leaves = (
        QueueSpec(name="x", max_applications=most),
        QueueSpec(name="y", max_applications=most),
    )
    above = QueueSpec(name="p", parent=True, queues=leaves, limits=found, **fields)
    return Cluster(
        YunikornSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=(above,)))
    )


def running(name, leaf, user, amount=1, groups=(), application=None):
    """Return a running task; every task is an application of its own unless it says otherwise."""
    resources = {"vcore": amount}
    return v.AllocationRestored(
        allocation=name,
        application=application or f"app-{name}",
        queue=f"root.p.{leaf}",
        user=user,
        groups=groups,
        node="n",
        resources=resources,
    )


def waiting(name, leaf, user, amount=1, groups=(), application=None):
    """Return a task that asks."""
    resources = {"vcore": amount}
    return v.AskSubmitted(
        ask=name,
        application=application or f"app-{name}",
        queue=f"root.p.{leaf}",
        user=user,
        groups=groups,
        resources=resources,
    )


def bound(where):
    """Return the asks that were bound, in their order."""
    return [event.ask for event in where.events if isinstance(event, v.AllocationBound)]


@pytest.mark.parametrize(
    ("found", "fields", "there", "asked", "reason"),
    [
        pytest.param(
            [LimitSpec(users=("ann",), max_resources={"vcore": 3})],
            {},
            [("ann", 2)],
            ("ann", 1),
            None,
            id="up to the limit",
        ),
        pytest.param(
            [LimitSpec(users=("ann",), max_resources={"vcore": 3})],
            {},
            [("ann", 2)],
            ("ann", 2),
            ("root.p", "user ann", "vcore", 2, 2, 3),
            id="a user's limit holds over all leaves below",
        ),
        pytest.param(
            [LimitSpec(users=("ann",), max_resources={"vcore": 3})],
            {},
            [("ann", 3)],
            ("bob", 9),
            None,
            id="of others it is not",
        ),
        pytest.param(
            [LimitSpec(users=("ann",), max_resources={"memory": 3})],
            {},
            [("ann", 3)],
            ("ann", 9),
            None,
            id="other types",
        ),
        pytest.param(
            [LimitSpec(users=("*",), max_resources={"vcore": 3})],
            {},
            [("ann", 3)],
            ("bob", 3),
            None,
            id="* is one limit for each user",
        ),
        pytest.param(
            [
                LimitSpec(users=("ann",), max_resources={"vcore": 9}),
                LimitSpec(users=("*",), max_resources={"vcore": 1}),
            ],
            {},
            [],
            ("ann", 5),
            None,
            id="who is named has that limit, not the one for everybody",
        ),
        pytest.param(
            [LimitSpec(groups=("dev",), max_resources={"vcore": 3})],
            {},
            [("ann", 2)],
            ("bob", 2),
            ("root.p", "group dev", "vcore", 2, 2, 3),
            id="a group is one pool",
        ),
        pytest.param(
            [
                LimitSpec(groups=("hr",), max_resources={"vcore": 9}),
                LimitSpec(groups=("*",), max_resources={"vcore": 3}),
            ],
            {},
            [("ann", 2)],
            ("bob", 2),
            ("root.p", "group *", "vcore", 2, 2, 3),
            id="everybody else is one pool",
        ),
        pytest.param(
            [],
            {"max_applications": 2},
            [("ann", 1), ("bob", 1)],
            ("ann", 1),
            ("root.p", "", "", 2, 1, 2),
            id="maxapplications of the queue",
        ),
        pytest.param(
            [LimitSpec(users=("ann",), max_applications=1)],
            {},
            [("ann", 1)],
            ("ann", 1),
            ("root.p", "user ann", "", 1, 1, 1),
            id="maxapplications of a user",
        ),
    ],
)
def test_what_a_limit_holds_back(found, fields, there, asked, reason):
    """Ann and bob are in group dev; what runs is in leaf x, what asks in leaf y."""
    where = cluster(*found, **fields)
    where.give(
        *(running(str(i), "x", user, amount, ("dev",)) for i, (user, amount) in enumerate(there))
    )
    user, amount = asked
    where.engine.step(
        where.now, [v.Proposal(input=waiting("new", "y", user, amount, ("dev",)))], decide=False
    )
    state = where.engine.state
    ask = state.asks["new"]
    assert (
        limits.blocks(
            state, state.applications[ask.application], state.types.shapes[ask.shape].pairs
        )
        == reason
    )


def test_an_application_that_runs_may_go_on():
    """Maxapplications keeps applications from starting, not those that run from growing; who waits starts when one has ended."""
    where = cluster(max_applications=1)
    where.give(running("1", "x", "ann", application="old"))
    where.give(waiting("2", "x", "ann", application="old"), waiting("3", "y", "bob"))
    assert bound(where) == ["2"]
    where.give(v.AllocationReleased(allocation="1"))
    where.advance(60)
    assert bound(where) == ["2"]
    where.give(v.AllocationReleased(allocation="2"))
    where.advance(60)
    assert bound(where) == ["2", "3"]


def test_an_ask_over_a_users_limit_waits_and_holds_nobody_up():
    """It is passed over, others are bound, and it follows when the user has room again."""
    where = cluster(LimitSpec(users=("*",), max_resources={"vcore": 2}))
    where.give(
        waiting("1", "x", "ann", 2),
        waiting("2", "x", "ann", 1),
        waiting("3", "y", "bob", 1),
        waiting("4", "y", "ann", 1),
    )
    assert bound(where) == ["1", "3"]
    where.restart()
    where.give(v.AllocationReleased(allocation="1"))
    where.advance(60)
    assert sorted(bound(where)) == ["1", "2", "3", "4"]


def test_nothing_is_counted_while_nothing_is_limited():
    """The index is not there without limits, so that a replay does not pay for it."""
    where = cluster()
    where.give(waiting("1", "x", "ann"))
    assert bound(where) == ["1"]
    assert index_of(where.engine.state).limits is None


def test_nobody_is_preempted_for_an_ask_over_a_limit():
    """The queue is below its guarantee and its delay has passed, but the user may have no more."""
    tree = (
        QueueSpec(
            name="a",
            guaranteed={"vcore": 10**7},
            limits=(LimitSpec(users=("ann",), max_resources={"vcore": 1}),),
        ),
        QueueSpec(name="b"),
    )
    where = Cluster(
        YunikornSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=tree))
    )
    where.give(
        v.AskSubmitted(ask="full", queue="root.b", application="b", resources={"vcore": 10**7})
    )
    where.give(
        v.AskSubmitted(
            ask="more", queue="root.a", application="a", user="ann", resources={"vcore": 2}
        )
    )
    where.give(
        v.AskSubmitted(
            ask="less", queue="root.a", application="c", user="ann", resources={"vcore": 1}
        )
    )
    where.advance(60)
    assert [event.ask for event in where.events if isinstance(event, v.PreemptionDecided)] == [
        "less"
    ]


specs = st.lists(
    st.builds(
        LimitSpec,
        users=st.sampled_from([(), ("ann",), ("bob", "eve"), ("*",)]),
        groups=st.sampled_from([(), ("dev",), ("ops",)]),
        max_resources=st.none() | st.builds(lambda n: {"vcore": n}, st.integers(1, 6)),
        max_applications=st.integers(0, 3),
    ).filter(lambda one: (one.users or one.groups) and (one.max_resources or one.max_applications)),
    max_size=3,
)
people = st.sampled_from([("ann", ("dev",)), ("bob", ("ops", "dev")), ("eve", ())])
tasks = st.lists(
    st.tuples(
        st.integers(0, 3),
        people,
        st.sampled_from("xy"),
        st.integers(1, 3),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=15,
)


@given(specs, st.integers(0, 3), tasks)
@settings(deadline=None)
def test_limits_are_kept_and_the_index_is_right(found, most, submitted):
    """Whatever comes and goes: no limit is passed by a binding, and the index is what a new one built from the state would be."""
    try:
        where = cluster(*found, max_applications=most)
    except AssertionError:
        return  # the configuration breaks a rule
    for number, (application, (user, groups), leaf, amount, ends, restarts) in enumerate(submitted):
        name = f"app-{user}-{leaf}-{application}"
        where.give(waiting(str(number), leaf, user, amount, groups, name))
        state = where.engine.state
        if ends and state.allocations:
            where.give(v.AllocationReleased(allocation=next(iter(state.allocations))))
        if restarts:
            where.advance(40)  # some are old enough to preempt, so that asks are in flight
        _check(state)
        known = index_of(state).limits
        if known is not None:
            assert counts_of(known) == counts_of(limits.LimitIndex(state))
        if restarts:
            where.restart()


def _check(state):
    """Count by hand what each user runs, and hold it against the limit that names them; the same for the queue."""
    parent = state.queues["root.p"]
    apps = [one for one in state.applications.values() if one.allocations]
    assert not parent.max_applications or len(apps) <= parent.max_applications
    for limit in parent.limits:
        for user in limit.users:
            own = [app for app in apps if user == app.user]
            held = sum(
                state.types.shapes[one.shape].resources["vcore"]
                for app in own
                for one in app.allocations.values()
            )
            assert held <= (limit.max_resources or {}).get("vcore", held)
            assert not limit.max_applications or len(own) <= limit.max_applications

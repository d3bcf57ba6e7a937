"""How much has to go when a quota is enforced, and who (seed quota_enforcement)."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core.engine import Engine
from evsched.core.quota import plan as quota_plan
from evsched.core.quota import victims as quota_victims
from evsched.core.quota.targets import over, releasable, shares
from evsched.core.workloads import Allocation
from tests.core.quota_clusters import (
    START,
    Cluster,
    below,
    judge,
    partition,
    pod,
    pods,
    queue,
    unmet,
)

TABLE = [
    pytest.param({"memory": 100}, {"memory": 50}, {"memory": 80}, {"memory": 30}, id="row 1"),
    pytest.param({}, {"memory": 50}, {"memory": 80}, {"memory": 30}, id="row 2"),
    pytest.param(
        {"memory": 100, "vcore": 100},
        {"memory": 50, "vcore": 50},
        {"memory": 80, "vcore": 80},
        {"memory": 30, "vcore": 30},
        id="row 3",
    ),
    pytest.param(
        {"memory": 100, "vcore": 100},
        {"memory": 200, "vcore": 50},
        {"memory": 100, "vcore": 80},
        {"vcore": 30},
        id="row 4",
    ),
    pytest.param(
        {"memory": 100},
        {"memory": 100, "vcore": 100},
        {"memory": 50, "vcore": 500},
        {"vcore": 400},
        id="row 5",
    ),
    pytest.param(
        {"memory": 100, "vcore": 100},
        {"memory": 50},
        {"memory": 80, "vcore": 100},
        {"memory": 30},
        id="row 6",
    ),
    pytest.param(
        {"memory": 100}, {"vcore": 100}, {"memory": 100, "vcore": 500}, {"vcore": 400}, id="row 7"
    ),
]


@pytest.mark.parametrize(("current", "new", "usage", "target"), TABLE)
def test_the_seeds_table(current, new, usage, target):
    """Every row starts the timer, and has the preemptable resources that the seed gives."""
    cluster = Cluster(
        partition(queue("a", queue("b", maximum=current or None))), pod("all", "root.a.b", usage)
    )
    cluster.give(partition(queue("a", queue("b", maximum=new, delay=10))))
    cluster.advance(10)
    assert cluster.last().target == target


@given(st.integers(0, 10**30), st.lists(st.integers(0, 10**20), max_size=8))
def test_shares_are_exact(target, weights):
    """The parts add up to what can be had, nobody exceeds its weight, and no part is a unit away from its exact share."""
    parts = shares(target, weights)
    total = sum(weights)
    assert sum(parts) == min(target, total)
    assert all(0 <= part <= weight for part, weight in zip(parts, weights, strict=True))
    if total > target:
        assert all(
            abs(part * total - target * weight) < total
            for part, weight in zip(parts, weights, strict=True)
        )


@given(st.integers(0, 60), st.lists(st.integers(0, 20), max_size=6))
def test_shares_go_to_the_largest_remainders(target, weights):
    """The units missing after rounding down go one by one to the largest remainder, the first among equals."""
    total = sum(weights)
    if total <= target:
        assert shares(target, weights) == weights
        return
    naive = [target * weight // total for weight in weights]
    rest = [target * weight % total for weight in weights]
    while sum(naive) < target:
        best = rest.index(max(rest))
        naive[best] += 1
        rest[best] = -1
    assert shares(target, weights) == naive


# ------------------------------------------------------------------------------------------ victims

allocations = st.lists(
    st.builds(
        Allocation,
        id=st.text("abc", min_size=1, max_size=3),
        application=st.just("x"),
        queue=st.just("root.a"),
        node=st.just("n"),
        shape=st.just(0),
        priority=st.integers(-2, 2) | st.sampled_from([-(2**31), 2**31 - 1]),
        created=st.integers(0, 4) | st.sampled_from([2**52, 2**53]),
        bound=st.just(0),
        seq=st.just(1),
        allow_preemption=st.booleans(),
        originator=st.booleans(),
    ),
    max_size=150,
    unique_by=lambda one: one.id,
)


@given(allocations)
def test_columns_sort_like_the_key(found):
    """The quick sort of many candidates is the plain one by `candidate_order`."""
    plain = sorted(found, key=quota_victims.candidate_order)
    assert [found[place] for place in quota_victims.in_order(found)] == plain
    few, quota_victims.FEW = quota_victims.FEW, 1
    try:
        assert [found[place] for place in quota_victims.in_order(found)] == plain
    finally:
        quota_victims.FEW = few


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {"priority": 5},
            {"originator": True},
            id="non-originators before originators, whatever their priority",
        ),
        pytest.param(
            {"priority": -1, "allow_preemption": False}, {}, id="lower priority before the opt-out"
        ),
        pytest.param(
            {"created": START - 10**6},
            {"allow_preemption": False},
            id="who agreed before who opted out",
        ),
        pytest.param({"created": START - 1}, {"created": START - 2}, id="the younger first"),
    ],
)
def test_the_order_of_victims(first, second):
    """The seed's four rules, each one deciding before the next."""
    cluster = Cluster(
        partition(queue("a")),
        pod("b-first", "root.a", {"vcore": 1}, **first),
        pod("a-second", "root.a", {"vcore": 1}, **second),
    )
    cluster.give(partition(queue("a", maximum={"vcore": 1}, delay=10)))
    cluster.advance(10)
    assert cluster.victims() == ["b-first"]


def test_daemonsets_and_those_that_leave_are_spared():
    """A task that is bound to its node stays; one that is being evicted counts as gone and is not asked again."""
    cluster = Cluster(
        partition(queue("a")),
        pod("daemon", "root.a", {"vcore": 1}, required_node="n"),
        pod("leaving", "root.a", {"vcore": 1}, preempting=True),
        pod("plain", "root.a", {"vcore": 1}),
    )
    cluster.give(partition(queue("a", maximum={"vcore": 1}, delay=10)))
    cluster.advance(10)
    assert cluster.victims() == ["plain"]


def test_the_seeds_example_of_little_help():
    """100 used of 50 guaranteed, five tasks of 20: two may go, the third would break the guarantee."""
    before = partition(queue("a", guaranteed={"memory": 50}))
    after = partition(queue("a", guaranteed={"memory": 50}, maximum={"memory": 60}, delay=10))
    cluster = Cluster(before, *pods(5, "root.a", {"memory": 20}))
    cluster.give(after)
    cluster.advance(10)
    assert cluster.victims() == ["p1", "p2"]
    assert cluster.last().unmet == {}
    cluster = Cluster(before, *pods(5, "root.a", {"memory": 21}))
    cluster.give(after)
    cluster.advance(10)
    assert cluster.victims() == ["p1", "p2"]
    assert cluster.last().target == {"memory": 45}
    assert cluster.last().unmet == {"memory": 3}


@pytest.mark.parametrize(("miss", "helps"), [(6, False), (7, True), (100, True), (0, False)])
def test_miss_says_how_much_may_stay(miss, helps):
    """3 of 45 stay, which is 6.67 percent: with a lower miss nobody is preempted, and the event says why."""
    fields = {"guaranteed": {"memory": 50}}
    cluster = Cluster(partition(queue("a", **fields)), *pods(5, "root.a", {"memory": 21}))
    cluster.give(
        partition(queue("a", maximum={"memory": 60}, delay=10, **fields), quota_miss_percent=miss)
    )
    cluster.advance(10)
    assert bool(cluster.victims()) is helps
    if not helps:
        assert cluster.last().unmet == {"memory": 3}
        assert cluster.last().reason == (
            f"queue root.a: 3 of 45 memory above the maximum would stay, quota.preemption.miss allows {miss} percent"
        )


def test_nobody_can_go():
    """When no victim is lawful the event counts why, in words."""
    fields = {"guaranteed": {"vcore": 4}}
    cluster = Cluster(
        partition(queue("a", **fields)),
        *pods(2, "root.a", {"vcore": 2}),
        pod("daemon", "root.a", {"vcore": 1}, required_node="n"),
    )
    cluster.give(partition(queue("a", maximum={"vcore": 4}, delay=10, **fields)))
    cluster.advance(10)
    assert cluster.last() == v.QuotaPreemptionUnhelpful(
        seq=cluster.last().seq,
        cause=cluster.last().cause,
        due=START + 10_000,
        queue="root.a",
        reason="queue root.a: nobody can be preempted: 1 belong to their node (DaemonSet), 2 are needed for a guarantee",
        target={"vcore": 1},
        unmet={"vcore": 1},
    )


def test_leftovers_are_offered_to_the_others():
    """Child x could release 10 by its guarantee, but only in one piece of 11; what it cannot give, y gives."""
    before = partition(queue("a", queue("x", guaranteed={"memory": 12}), queue("y")))
    after = partition(
        queue(
            "a", queue("x", guaranteed={"memory": 12}), queue("y"), maximum={"memory": 32}, delay=10
        )
    )
    cluster = Cluster(
        before, *pods(2, "root.a.x", {"memory": 11}, "x"), *pods(20, "root.a.y", {"memory": 1}, "y")
    )
    cluster.give(after)
    cluster.advance(10)
    assert cluster.last().target == {"memory": 10}
    assert cluster.victims() == [f"y{i}" for i in range(1, 11)]


def test_nobody_goes_in_vain_when_several_children_overshoot():
    """Both children would give 5 for their part of 3; one of them is enough to meet 5, so the elder pod stays."""
    cluster = Cluster(
        partition(queue("a", queue("x"), queue("y"))),
        pod("old", "root.a.x", {"vcore": 5}, created=START - 9000),
        pod("young", "root.a.y", {"vcore": 5}, created=START - 1000),
    )
    cluster.give(partition(queue("a", queue("x"), queue("y"), maximum={"vcore": 5}, delay=10)))
    cluster.advance(10)
    assert cluster.victims() == ["young"]


resources = st.fixed_dictionaries(
    {}, optional={"vcore": st.integers(1, 6), "memory": st.integers(1, 6)}
).filter(bool)
limits = st.none() | st.fixed_dictionaries(
    {}, optional={"vcore": st.integers(1, 15), "memory": st.integers(1, 15)}
)


@st.composite
def clusters(draw):
    """Return a cluster of two levels, the queue to enforce, and its new maximum."""
    tree = {"a": {"x": {"1": {}, "2": {}}, "y": {}}, "b": {}}

    def build(name, below):
        children = [build(*one) for one in below.items()]
        held = {kind: sum(one.get(kind, 0) for _, one in children) for kind in ("vcore", "memory")}
        guaranteed = {
            kind: max(amount, held[kind]) for kind, amount in (draw(limits) or {}).items()
        }
        return queue(
            name, *(child for child, _ in children), guaranteed=guaranteed or None
        ), held | guaranteed

    specs = partition(*(build(*one)[0] for one in tree.items()))
    leaves = ["root.a.x.1", "root.a.x.2", "root.a.y", "root.b"]
    running = [
        pod(
            f"p{i:02}",
            draw(st.sampled_from(leaves)),
            draw(resources),
            priority=draw(st.integers(0, 1)),
            created=START - draw(st.integers(0, 3)),
            originator=draw(st.booleans()),
            allow_preemption=draw(st.booleans()),
            required_node=draw(st.sampled_from([None, None, None, "n"])),
            preempting=draw(st.sampled_from([False, False, False, True])),
        )
        for i in range(draw(st.integers(0, 14)))
    ]
    cluster = Cluster.__new__(Cluster)
    cluster.engine, cluster.now, cluster.events = Engine(), START, []
    cluster.give(
        specs, v.NodeRegistered(node="n", capacity={"vcore": 10**7, "memory": 10**13}), *running
    )
    maximum = draw(
        st.dictionaries(st.sampled_from(["vcore", "memory"]), st.integers(0, 20), min_size=1)
    )
    return (
        cluster,
        draw(st.sampled_from(["root.a", "root.a.x", "root.a.y", "root.b", "root.a.x.1"])),
        maximum,
    )


@given(clusters())
@settings(deadline=None)
def test_plans_are_lawful_minimal_and_leave_nobody_who_could_help(found):
    """No guarantee is broken, no victim is there in vain, and nobody else could lawfully go and bring the target nearer."""
    cluster, path, maximum = found
    state = cluster.engine.state
    where = state.queues[path]
    target = over(where, state.types.limits(maximum))
    state.grow_vectors()
    plan = quota_plan.QuotaPlan(state, where, target)
    names = [one.id for one in plan.victims()]
    judge(state, where, target, names)
    assert plan.unmet() == {
        kind: amount for kind, amount in unmet(state, where, target, names).items() if amount
    }
    codes = {passed.allocation: passed.code for passed in quota_plan.passed_over(state, plan)}
    assert {*codes} == {one.id for one in below(where)} - {*names}
    assert all(codes[one.id] == "leaving" for one in below(where) if one.eviction_requested)


@given(clusters())
@settings(deadline=None)
def test_columns_choose_like_plain_loops(found):
    """Fronts over columns, fronts that give up early, and one candidate after the other: all the same victims."""
    cluster, path, maximum = found
    state = cluster.engine.state
    where = state.queues[path]
    target = over(where, state.types.limits(maximum))
    state.grow_vectors()

    def chosen(few, fronts):
        with mock.patch.multiple(quota_victims, FEW=few, MOST_FRONTS=fronts):
            return [one.id for one in quota_plan.QuotaPlan(state, where, target).victims()]

    plain = chosen(48, 64)
    assert chosen(0, 64) == plain
    assert chosen(0, 2) == plain
    assert chosen(0, 0) == plain


@given(clusters(), st.data())
@settings(deadline=None)
def test_a_child_never_has_to_give_more_than_lies_above_its_guarantee(found, data):
    """The parts of children add up to the smaller of target and all that is releasable, type by type."""
    cluster, _, _ = found
    state = cluster.engine.state
    parent = state.queues[data.draw(st.sampled_from(["root", "root.a", "root.a.x"]))]
    for index in range(state.width):
        weights = [releasable(child, index, 0) for child in parent.children.values()]
        target = data.draw(st.integers(0, 40))
        parts = shares(target, weights)
        assert sum(parts) == min(target, sum(weights))
        for child, part in zip(parent.children.values(), parts, strict=True):
            assert part == 0 or child.usage[index] - child.preempting[
                index
            ] - part >= child.guaranteed.get(index, 0)


def test_a_tracer_hears_why_everyone_stays():
    """Each one that stays is noted with the rule that decided and the queue whose rule it is."""

    class Notes(list):
        def wants(self, ask):
            """Hear of every ask."""
            return True

        def note(self, subject, code, **facts):
            self.append((subject, code, facts.get("queue")))

    cluster = Cluster(
        partition(queue("a", guaranteed={"vcore": 2})),
        *pods(4, "root.a", {"vcore": 1}),
        pod("daemon", "root.a", {"vcore": 1}, required_node="n"),
        pod("memory", "root.a", {"memory": 1}),
    )
    cluster.give(partition(queue("a", guaranteed={"vcore": 2}, maximum={"vcore": 3}, delay=10)))
    cluster.engine.tracer = notes = Notes()
    cluster.advance(10)
    assert [one for one in notes if one[0] != "cycle"][:6] == [
        ("p1", "chosen", "root.a"),
        ("p2", "chosen", "root.a"),
        ("p3", "not-needed", "root.a"),
        ("p4", "not-needed", "root.a"),
        ("daemon", "required-node", "root.a"),
        ("memory", "type", "root.a"),
    ]

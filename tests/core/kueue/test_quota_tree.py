"""The quota tree: what is shared, kept, borrowed, and what could be; and the shares of fair sharing, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core.kueue.model import UNLIMITED, quota_of
from evsched.core.kueue.shares import NOT_BORROWING, WEIGHTLESS, share_of, status
from evsched.core.kueue.trial import QuotaOverlay
from tests.core.kueue import naive
from tests.core.kueue.cohorts import engine_with, problem
from tests.core.kueue.plain import Partition, cohort, queue, runs
from tests.examples import examples


def quota(partition, path):
    """Return the quotas of a queue by its path."""
    return quota_of(partition.engine.state.queues[path])


@examples(150)
@given(st.integers(0, 2**32), st.booleans())
def test_every_number_is_the_recounted_one(seed, fair):
    """Subtree and local quota, usage, availability, potential and shares agree with definitions computed from nothing."""
    spec, running, _ = problem(seed, fair=fair)
    engine, tree, trial = engine_with(spec, running), naive.Tree(spec, running), QuotaOverlay()
    for path, found in engine.state.queues.items():
        one = quota_of(found)
        node = ("q" if found.leaf else "c", one.name)
        for index, resource in one.resource_of.items():
            key = (engine.state.types.names[index].split("/", 1)[0], resource)
            assert one.subtree.get(index, 0) == tree.subtree(node, key), path
            assert one.local.get(index, 0) == tree.local(node, key), path
            assert one.usage.get(index, 0) == tree.usage(node, key), path
            assert one.potential(index) == tree.potential(node, key), path
            assert trial.room(one, index) == tree.available(node, key), path
        borrows, weightless, value = tree.share(node)
        share = share_of(one, one.usage)
        assert (share != NOT_BORROWING) is borrows
        assert (share >= WEIGHTLESS) is weightless
        if borrows and not weightless:
            assert share == int(value / 10**9 * 2**256)
            assert status(one, one.usage) == -int(-(value * 1000) // 1)


@given(
    st.lists(
        st.tuples(st.integers(1, 2**62), st.integers(1, 2**62), st.integers(1, 2**62)),
        min_size=2,
        max_size=2,
    )
)
def test_shares_order_as_fractions_do(pairs):
    """Whatever the size of the amounts, equal shares are equal and a larger one is larger."""
    exact = [Fraction(excess, lendable * weight) for excess, lendable, weight in pairs]
    scaled = [(excess << 256) // (lendable * weight) for excess, lendable, weight in pairs]
    assert (exact[0] < exact[1]) is (scaled[0] < scaled[1])
    assert (exact[0] == exact[1]) is (scaled[0] == scaled[1])


def test_shares_that_floating_point_confuses_are_told_apart():
    """Two ratios that are one float64 are two shares."""
    big = 2**53
    assert float(big) * 1000.0 / float(3) == float(big + 1) * 1000.0 / float(3)
    partition = Partition(
        queue("a", "team", cpu=0), queue("b", "team", cpu=0), queue("c", "team", cpu=3 * big)
    )
    low, high = quota(partition, "a"), quota(partition, "b")
    assert share_of(low, {0: big}) < share_of(high, {0: big + 1})


def test_equal_shares_that_floating_point_confuses_are_equal():
    """A fifth of five is one, whatever the order of divisions."""
    assert 5 * 1000.0 / 12 / 5 != 1 * 1000.0 / 12 / 1
    heavy = queue("a", "team", cpu=0, weight_nano=5_000_000_000)
    partition = Partition(heavy, queue("b", "team", cpu=0), queue("c", "team", cpu=12))
    assert share_of(quota(partition, "a"), {0: 5}) == share_of(quota(partition, "b"), {0: 1})


def test_a_borrower_without_weight_is_above_every_other():
    """Among themselves such queues compare by what they borrow."""
    queues = [
        queue(name, "team", cpu=0, weight_nano=weight)
        for name, weight in (("a", 0), ("b", 0), ("c", 2))
    ]
    partition = Partition(*queues, queue("d", "team", cpu=1000))
    small, large, light = (quota(partition, name) for name in "abc")
    assert share_of(light, {0: 1000}) < share_of(small, {0: 1}) < share_of(large, {0: 2})
    assert status(small, {0: 1}) == 2**63 - 1


def test_a_borrower_with_nothing_to_lend_has_share_zero():
    """It borrows all the same, so it can give victims."""
    partition = Partition(queue("a", "team", cpu=0), queue("b", "team", cpu=0))
    assert share_of(quota(partition, "a"), {0: 5}) == 0
    assert share_of(quota(partition, "a"), {0: 0}) == NOT_BORROWING


def test_what_is_kept_back_does_not_count_above():
    """A lending limit keeps quota at home, and usage of that part is invisible to the cohort."""
    partition = Partition(queue("a", "team", cpu=(5, None, 2)), queue("b", "team", cpu=1))
    partition.does(runs("w", "a", cpu=4))
    assert quota(partition, "cohort/team").subtree == {0: 3}
    assert quota(partition, "cohort/team").usage == {0: 1}
    assert QuotaOverlay().available(quota(partition, "b"), 0) == 2


def test_a_cohort_that_is_only_named_exists():
    """It has no quota of its own, stands in the tree, and its height is that of a cohort with queues only."""
    partition = Partition(queue("a", "team", cpu=5), cohorts=(cohort("division", "team", cpu=2),))
    team = quota(partition, "cohort/team")
    assert (team.subtree, team.height, quota(partition, "cohort/division").height) == ({0: 7}, 1, 0)
    assert quota(partition, "a").tree_path() == "/team/a"


def test_the_largest_quota_is_exact():
    """What int64 holds is counted exactly; what could be borrowed beyond it saturates there."""
    partition = Partition(
        queue("a", "team", cpu=UNLIMITED), queue("b", "team", cpu=(0, UNLIMITED, None))
    )
    assert quota(partition, "cohort/team").subtree == {0: UNLIMITED}
    partition.does(runs("w", "a", cpu=2**53))
    assert QuotaOverlay().available(quota(partition, "b"), 0) == UNLIMITED - 2**53
    assert quota(partition, "b").potential(0) == UNLIMITED


@pytest.mark.parametrize("dotted", ["team.a", "a"])
def test_a_queue_that_left_the_configuration_drains(dotted):
    """Its workloads run on, use nobody's quota, and the queue goes with the last of them."""
    partition = Partition(queue(dotted, "team", cpu=5), queue("b", "team", cpu=5))
    partition.does(runs("w", dotted, cpu=8))
    partition.after(
        1, v.ConfigurationApplied(configuration=Partition(queue("b", "team", cpu=5)).spec)
    )
    assert quota(partition, "cohort/team").usage == {}
    assert partition.engine.state.queues[dotted].draining
    partition.after(1, v.AllocationReleased(allocation="w"))
    assert dotted not in partition.engine.state.queues

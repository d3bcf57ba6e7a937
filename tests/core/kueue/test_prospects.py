"""Workloads that a cycle passes over: never one that it could have done something for."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core.engine import Engine
from evsched.core.kueue.admission import VAIN
from evsched.core.kueue.cycle import Cycle
from evsched.core.kueue.index import prospects_of
from evsched.core.kueue.model import quota_in
from evsched.core.kueue.reach import LARGE
from evsched.core.kueue.search import Searcher
from tests.core.kueue.cohorts import START, configuration
from tests.core.kueue.plain import Partition, asks, bound, cohort, queue, runs
from tests.core.kueue.test_history import step_of
from tests.examples import examples

seeds = st.integers(0, 2**32)


def passed_over(engine: Engine) -> list[str]:
    """Return the waiting workloads for which, by the bound, a cycle could do nothing."""
    state = engine.state
    prospects = prospects_of(state)
    found = []
    for name, ask in state.asks.items():
        quota = quota_in(state.queues[ask.queue])
        waits_for = name in state.preemptions and state.preemptions[name].waiting_for
        if quota is not None and not waits_for and not prospects.tree(quota.top).passes(name):
            found.append(name)
    return found


def look(engine: Engine, name: str) -> str:
    """Return what a cycle with this head alone makes of it."""
    state = engine.state
    cycle = Cycle(state, Searcher(state))
    (nominee,) = cycle.nominate([state.asks[name]], 1, 0)
    cycle.handle(nominee)
    return nominee.outcome


def begun(seed: int, *, fair: bool) -> tuple[Random, Engine, list[v.AnyInput]]:
    """Return dice, an engine that decides by rules 2, and the first input of a random history."""
    dice, engine = Random(seed), Engine()
    engine.step(START, [v.Proposal(input=v.RulesAdopted(rules=2))])
    return dice, engine, [v.ConfigurationApplied(configuration=configuration(dice, fair=fair))]


@pytest.mark.parametrize("fair", [False, True])
def test_a_workload_that_is_passed_over_would_be_looked_at_in_vain(fair):
    """The bound of room and victims is never below what a whole look finds, and it does rule out some."""
    ruled_out = []

    @examples(150)
    @given(seeds)
    def check(seed):
        dice, engine, inputs = begun(seed, fair=fair)
        now = START
        for number in range(12):
            engine.step(now, [v.Proposal(input=one) for one in inputs])
            inputs = step_of(dice, engine, number)
            now += dice.choice([0, 1, 1000, 40_000])
            for name in passed_over(engine):
                ruled_out.append(name)
                assert look(engine, name) in VAIN

    check()
    assert len(ruled_out) > 100


@pytest.mark.parametrize("fair", [False, True])
def test_the_index_of_prospects_is_what_one_built_anew_says(fair):
    """After every step the columns that were told of each change rule out the same workloads as new ones."""

    @examples(60)
    @given(seeds)
    def check(seed):
        dice, engine, inputs = begun(seed, fair=fair)
        for number in range(12):
            engine.step(START + number, [v.Proposal(input=one) for one in inputs])
            inputs = step_of(dice, engine, number)
            kept = passed_over(engine)
            engine.state.index = None
            assert kept == passed_over(engine)

    check()


def looked_at(partition: Partition, *inputs: v.AnyInput) -> int:
    """Return how many workloads the cycles of a step with these inputs consider."""
    counted = []
    consider = Searcher.consider
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Searcher, "consider", lambda self: (counted.append(1), consider(self)))
        partition.after(1, *inputs)
    return len(counted)


def full_tree(strategy: bool) -> Partition:
    """Return ten queues that are full, each with a workload that waits for 5, and rules 2."""
    partition = Partition(
        *(queue(f"q{number}", "top", cpu=10, strict_fifo=strategy) for number in range(10)),
        cohorts=(cohort("top"),),
    )
    partition.does(v.RulesAdopted(rules=2))
    names = range(10)
    partition.does(*(runs(f"a{number}", f"q{number}", cpu=8) for number in names))
    partition.does(*(runs(f"b{number}", f"q{number}", cpu=2) for number in names))
    partition.does(*(asks(f"w{number}", f"q{number}", cpu=5) for number in names))
    return partition


@pytest.mark.parametrize("strict", [False, True])
def test_an_end_that_helps_no_workload_costs_no_look(strict):
    """2 are free after the end, every workload wants 5."""
    assert looked_at(full_tree(strict), v.AllocationReleased(allocation="b3")) == 0


@pytest.mark.parametrize("strict", [False, True])
def test_an_end_that_helps_is_looked_into(strict):
    """8 are free after the end; one of those that want 5 is admitted."""
    partition = full_tree(strict)
    assert len(bound(partition.after(1, v.AllocationReleased(allocation="a3")))) == 1


def test_what_is_too_large_to_calculate_with_is_looked_at():
    """In a tree with a quota of 2**61 nothing is ruled out."""
    partition = Partition(queue("q", "top", cpu=LARGE), cohorts=(cohort("top", cpu=2**61),))
    partition.does(v.RulesAdopted(rules=2))
    partition.does(runs("a", "q", cpu=2**61 + LARGE - 3), asks("w", "q", cpu=5))
    assert bound(partition.after(1, v.AllocationReleased(allocation="a"))) == ["w"]


def test_a_strict_head_that_is_passed_over_keeps_its_room():
    """Its queue may not reclaim; what ends goes to no borrower as long as the head waits for it."""
    partition = Partition(
        queue("own", "top", cpu=10, strict_fifo=True),
        queue("other", "top", cpu=10),
        cohorts=(cohort("top"),),
    )
    partition.does(v.RulesAdopted(rules=2))
    partition.does(runs("a", "own", cpu=4), runs("b", "other", cpu=16), asks("w", "own", cpu=8))
    assert bound(partition.does(asks("x", "other", cpu=1))) == []
    assert (
        bound(partition.after(1, v.AllocationReleased(allocation="a"), asks("y", "other", cpu=1)))
        == []
    )
    assert bound(partition.after(1, v.AllocationReleased(allocation="b"))) == ["w", "x", "y"]

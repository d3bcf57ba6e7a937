"""A cycle that its budget cuts: bounded, whole in the end, and the same after a restart."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from evsched.core import rules, snapshot
from evsched.core.engine import Engine
from evsched.core.kueue.cycle import Cycle
from tests.core.kueue.cohorts import START, configuration
from tests.core.kueue.test_history import check_books, run, step_of
from tests.examples import examples

STEPS_TO_QUIET = 2000

seeds = st.integers(0, 2**32)


@pytest.fixture(params=[1, 70, 10**9])
def cut(request, monkeypatch):
    """Let both versions of the rules cut cycles after little work, or not at all, and pass over the hopeless."""
    for version in (1, 2):
        with_budget = replace(
            rules.RULES[version],
            cycle_budget=request.param,
            keeps_victims=True,
            skips_hopeless=True,
        )
        monkeypatch.setitem(rules.RULES, version, with_budget)


def quiet(engine: Engine, now: int) -> int:
    """Take the steps that are due within a second; return the time then."""
    for _ in range(STEPS_TO_QUIET):
        due = engine.next_due()
        if due is None or due > now + 1000:
            return now
        now = max(now, due)
        engine.step(now)
    raise AssertionError("the engine is never done")


def again(engine: Engine, now: int) -> list[v.AnyEvent]:
    """Return what a cautious cycle still admits: without a budget, and every waiting workload is looked at once more."""
    twin = Engine(snapshot.decode(snapshot.encode(engine.state), now))
    twin.state.dirty_cohorts = dict.fromkeys(twin.state.root.children)
    return [event for event in twin.step(now + 1) if isinstance(event, v.AllocationBound)]


def test_a_step_does_no_more_than_its_budget_allows(monkeypatch):
    """A round nominates one waiting workload beyond its budget at most, those that preempt already excepted."""
    budget = 200
    monkeypatch.setitem(rules.RULES, 2, replace(rules.RULES[2], cycle_budget=budget))
    nominate, most = Cycle.nominate, []

    def counted(self, heads, *given):
        found = nominate(self, heads, *given)
        waiting = [one for one in found if one.ask.id not in self._state.preemptions]
        most.append(len(waiting))
        return found

    monkeypatch.setattr(Cycle, "nominate", counted)
    dice = Random(3)
    engine = Engine()
    engine.step(START, [v.Proposal(input=v.RulesAdopted(rules=2))])
    spec = configuration(dice, fair=False)
    queues = [one.name for one in spec.cluster_queues]
    inputs: list[v.AnyInput] = [v.ConfigurationApplied(configuration=spec)]
    inputs += [
        v.AskSubmitted(ask=f"w{number}", queue=dice.choice(queues), resources={"cpu": 1})
        for number in range(200)
    ]
    engine.step(START, [v.Proposal(input=one) for one in inputs])
    quiet(engine, START)
    assert max(most) <= budget // 32 + 1
    assert len(most) > 20


def test_everything_has_its_turn_in_the_end(cut):
    """Once nothing is due any more, a cycle without a budget admits no workload that the cut ones left waiting."""

    @examples(25)
    @given(seeds)
    def check(seed):
        dice = Random(seed)
        engine = Engine()
        inputs: list[v.AnyInput] = [
            v.ConfigurationApplied(configuration=configuration(dice, fair=dice.random() < 0.5))
        ]
        now = START
        for number in range(12):
            engine.step(now, [v.Proposal(input=one) for one in inputs])
            check_books(engine)
            inputs = step_of(dice, engine, number)
            now += dice.choice([0, 1, 1000])
            if dice.random() < 0.3:
                now = quiet(engine, now)
        now = quiet(engine, now)
        with pytest.MonkeyPatch.context() as whole:
            for version in (1, 2):
                uncut = replace(rules.RULES[version], cycle_budget=0, skips_hopeless=False)
                whole.setitem(rules.RULES, version, uncut)
            assert again(engine, now) == []

    check()


@pytest.mark.parametrize("way", ["restart", "forget"])
def test_a_cut_cycle_goes_on_after_a_restart(way, cut):
    """Restarts from a snapshot, or dropped indices, between the steps of one pass change no decision."""

    @examples(25)
    @given(seeds)
    def check(seed):
        assert run(seed)[:2] == run(seed, **{way: True})[:2]

    check()

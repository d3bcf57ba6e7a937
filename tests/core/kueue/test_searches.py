"""The victim searches against a naive second implementation, and what must hold of every result."""

import pytest
from hypothesis import given

from events import vocabulary as v
from evsched.core.kueue import classic as classic_search
from evsched.core.kueue import fair as fair_search
from evsched.core.kueue.model import quota_of
from evsched.core.kueue.trial import QuotaOverlay
from replays.scenarios.kueue import OrderedKueue
from tests.core.kueue import naive
from tests.core.kueue.cohorts import engine_with, problems
from tests.examples import examples


def contested_of(spec, running, ask):
    """Return the (flavor, resource) pairs of an ask that do not fit now."""
    tree = naive.Tree(spec, running)
    return [
        key for key, amount in ask.usage if amount > max(0, tree.available(("q", ask.queue), key))
    ]


def found_by_engine(spec, running, ask):
    """Return the victims that the engine finds for an ask whose flavors are given, as (id, reason), and the engine."""
    engine = engine_with(spec, running, ask)
    step = engine.begin(engine.state.time)
    OrderedKueue().search_once(step)
    decided = [event for event in step.events if isinstance(event, v.PreemptionDecided)]
    return [(one.id, one.reason) for event in decided for one in event.victims], engine


@examples(400)
@given(problems(fair=False))
def test_the_classic_search_finds_what_the_rules_say(problem):
    """Victims, reasons and their order are those of the naive search."""
    spec, running, ask = problem
    contested = contested_of(spec, running, ask)
    expected = naive.classic(spec, running, ask, contested) if contested else []
    assert found_by_engine(spec, running, ask)[0] == expected


@examples(400)
@given(problems(fair=True))
def test_the_fair_search_finds_what_the_rules_say(problem):
    """Victims, reasons and their order are those of the naive search."""
    spec, running, ask = problem
    contested = contested_of(spec, running, ask)
    expected = naive.fair(spec, running, ask, contested) if contested else []
    assert found_by_engine(spec, running, ask)[0] == expected


@pytest.mark.parametrize("fair", [False, True])
def test_giving_up_early_gives_up_nothing(fair):
    """A search that looks ahead after its first victim ends the ones that cannot succeed, and no other."""
    module, oracle = (fair_search, naive.fair) if fair else (classic_search, naive.classic)

    @examples(400)
    @given(problems(fair=fair))
    def check(problem):
        spec, running, ask = problem
        contested = contested_of(spec, running, ask)
        expected = oracle(spec, running, ask, contested) if contested else []
        assert found_by_engine(spec, running, ask)[0] == expected

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MANY", 1)
        check()


@pytest.mark.parametrize("fair", [False, True])
def test_every_victim_is_needed(fair):
    """The ask fits when all victims are gone, and no longer when any but the last one taken is back."""

    @examples(150)
    @given(problems(fair=fair))
    def check(problem):
        spec, running, ask = problem
        victims, _ = found_by_engine(spec, running, ask)
        if not victims:
            return
        gone = {name for name, _ in victims}
        tree = naive.Tree(spec, [one for one in running if one.id not in gone])
        assert naive.fits(tree, ask)
        # Where the search went for a place within the nominal quota, that is what every victim is
        # needed for.
        within = naive.fits(tree, ask, borrowing=False) and not fair
        back = [[one for one in running if one.id not in gone - {name}] for name in gone]
        superfluous = [
            rest for rest in back if naive.fits(naive.Tree(spec, rest), ask, borrowing=not within)
        ]
        assert len(superfluous) <= 1

    check()


@examples(200)
@given(problems(fair=False))
def test_a_search_leaves_no_trace(problem):
    """A search that is thrown away changes neither the state nor what a trial sees."""
    spec, running, ask = problem
    engine = engine_with(spec, running, ask)
    before = engine.state.digest()
    found_by_engine(spec, running, ask)
    trial = QuotaOverlay()
    for queue in engine.state.queues.values():
        quota = quota_of(queue)
        for index in range(engine.state.width):
            assert trial.usage(quota).get(index, 0) == quota.usage.get(index, 0)
    assert engine.state.digest() == before

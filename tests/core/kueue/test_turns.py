"""Whose turn it is: the tournament that is kept up against one that is played anew for every turn."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from evsched.core.kueue.cycle import Nominee
from evsched.core.kueue.flavors import FIT, FlavorAssignment
from evsched.core.kueue.model import quota_of
from evsched.core.kueue.trial import QuotaOverlay
from evsched.core.kueue.turns import turns
from evsched.core.kueue.waiting import place_of
from evsched.core.workloads import Ask
from tests.core.kueue import naive
from tests.core.kueue.cohorts import START, engine_with, problem
from tests.examples import examples


def nominees_of(dice, engine):
    """Return a nominee for most queues, with the level that it has to borrow at."""
    found, trial = [], QuotaOverlay()
    for path, one in engine.state.queues.items():
        quota = quota_of(one)
        if not one.leaf or dice.random() < 0.2:
            continue
        usage = {index: dice.randint(0, 4) for index in dice.sample(sorted(quota.nominal), 2)}
        level = max(trial.borrow_level(quota, index, amount)[0] for index, amount in usage.items())
        ask = Ask(
            id=path,
            application=path,
            queue=path,
            shape=0,
            priority=dice.randint(0, 1),
            created=START,
            seq=1,
            uid=path,
        )
        found.append(Nominee(ask, quota, FlavorAssignment(FIT, level, ({},), usage, (), ""), []))
    return found


def naive_turns(spec, running, engine, nominees):
    """Yield the nominees by the rules of the tournament, everything computed anew each time."""
    names = engine.state.types.names
    tree, left = naive.Tree(spec, running), {("q", one.queue.name): one for one in nominees}

    def work(one):
        usage = tuple(
            (tuple(names[index].split("/")), amount)
            for index, amount in one.assignment.usage.items()
        )
        return naive.Work(one.ask.id, one.queue.name, usage, 0, 0)

    def standing(node, one):
        tree.extra.append(work(one))
        share = tree.share(node)[1:]
        borrows = tree.above(node, [key for key, _ in work(one).usage])
        tree.extra.pop()
        return borrows, share, place_of(one.ask)

    def winner(node):
        if node[0] == "q":
            return left.get(node)
        meeting = [(child, winner(child)) for kind in tree.children(node) for child in kind]
        meeting = [(child, one) for child, one in meeting if one is not None]
        return min(meeting, key=lambda pair: standing(*pair))[1] if meeting else None

    while left:
        top = min((tree.path(node)[-1] for node in left), key=lambda node: order_of(engine, node))
        best = winner(top)
        yield best
        del left["q", best.queue.name]
        tree.extra.append(work(best))


def order_of(engine, node):
    """Return the place of a node in the configuration."""
    return engine.state.queues[node[1] if node[0] == "q" else f"cohort/{node[1]}"].order


@examples(200)
@given(st.integers(0, 2**32))
def test_the_fair_order_is_that_of_tournaments_played_anew(seed):
    """Every nominee that had its turn counts for the next."""
    spec, running, _ = problem(seed, fair=True)
    engine = engine_with(spec, running)
    nominees, trial, found = nominees_of(Random(seed), engine), QuotaOverlay(), []
    for nominee in turns(spec, trial, nominees):
        trial.add(nominee.queue, nominee.assignment.usage.items())
        found.append(nominee.ask.id)
    assert found == [one.ask.id for one in naive_turns(spec, running, engine, nominees)]


@examples(50)
@given(st.integers(0, 2**32))
def test_the_classic_order_borrows_least_first(seed):
    """Then the higher priority, then the older, then the smaller uid."""
    spec, running, _ = problem(seed, fair=False)
    engine = engine_with(spec, running)
    nominees = nominees_of(Random(seed), engine)
    found = [
        (one.assignment.level, -one.ask.priority, one.ask.created, one.ask.uid)
        for one in turns(spec, QuotaOverlay(), nominees)
    ]
    assert found == sorted(found)

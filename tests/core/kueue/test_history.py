"""Random histories of a Kueue partition: the books are right after every step, replay and restart change nothing."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.kueue.candidates import entry_of, is_leaving
from evsched.core.kueue.index import index_of
from evsched.core.kueue.model import quota_of
from evsched.core.rules import NEWEST
from tests.core.kueue.cohorts import START, configuration, random_limits
from tests.examples import examples


def step_of(dice: Random, engine: Engine, number: int) -> list[v.AnyInput]:
    """Return what comes through the inbox next, sensible or not."""
    state = engine.state
    queues = [one.name for one in state.configuration.cluster_queues]
    found: list[v.AnyInput] = []
    for part in range(dice.randint(1, 3)):
        kind = dice.random()
        if kind < 0.5:
            amounts = {"cpu": dice.randint(1, 5)} | (
                {"memory": dice.randint(0, 4)} if dice.random() < 0.3 else {}
            )
            podsets = ()
            if dice.random() < 0.15:
                podsets = (
                    v.PodSet(name="head", resources={"cpu": 1}),
                    v.PodSet(name="workers", resources=amounts),
                )
            found.append(
                v.AskSubmitted(
                    ask=f"t{number}-{part}",
                    queue=dice.choice(queues),
                    resources={} if podsets else amounts,
                    podsets=podsets,
                    priority=dice.randint(-1, 3),
                    created=None if dice.random() < 0.5 else START - dice.randint(0, 9) * 1000,
                )
            )
        elif kind < 0.75 and state.allocations:
            told = [one for one in state.allocations.values() if one.eviction_requested]
            gone = dice.choice(told or list(state.allocations.values()))
            found.append(
                v.AllocationReleased(
                    allocation=gone.id,
                    reason="preempted" if gone.eviction_requested else "completed",
                )
            )
        elif kind < 0.82 and state.asks:
            found.append(v.AskWithdrawn(ask=dice.choice(list(state.asks))))
        elif kind < 0.86:
            found.append(
                v.ConfigurationApplied(configuration=random_limits(dice, state.configuration))
            )
        elif kind < 0.9 and state.allocations:
            found.append(v.EvictionRefused(allocation=dice.choice(list(state.allocations))))
        elif kind > 0.97:
            found.append(v.RulesAdopted(rules=NEWEST))
    return found


def check_books(engine: Engine) -> None:
    """Compare everything that is kept incrementally with a recount from what runs and waits."""
    state = engine.state
    usage: dict[str, dict[int, int]] = {}
    for one in state.allocations.values():
        own = usage.setdefault(one.queue, {})
        for index, amount in state.types.shapes[one.shape].pairs:
            own[index] = own.get(index, 0) + amount
    for queue in state.queues.values():
        quota = queue.quota
        if quota is None:
            continue
        expected = usage.get(queue.path, {}) if queue.leaf else {}
        for child in (*quota.queues, *quota.cohorts):
            for index, amount in child.usage.items():
                expected[index] = expected.get(index, 0) + max(
                    0, amount - child.local.get(index, 0)
                )
        assert {k: n for k, n in quota.usage.items() if n} == {
            k: n for k, n in expected.items() if n
        }
        for index in range(state.width) if quota.parent is not None else ():
            borrows = any(quota.borrowers.get(index, ()))
            if queue.leaf:
                borrows = quota.usage.get(index, 0) > quota.nominal.get(index, 0)
            assert (quota in quota.parent.borrowers.get(index, {})) is borrows
    assert set(state.unschedulable_since) <= set(state.asks)
    candidates = index_of(state).candidates
    if candidates is not None:
        listed = [
            (entry[3], leaving)
            for queue in state.queues.values()
            if queue.quota is not None
            for group in candidates.groups(queue.quota)
            for leaving, entries in ((True, group.leaving), (False, group.staying))
            for entry in entries
            if entries == sorted(entries)
        ]
        runs = [
            one for one in state.allocations.values() if state.queues[one.queue].quota is not None
        ]
        assert sorted(listed) == sorted((entry_of(one)[3], is_leaving(one)) for one in runs)


def run(
    seed: int, *, restart: bool = False, forget: bool = False, check: bool = False
) -> tuple[list, str, Engine]:
    """Live through a history; return all steps with their events, the digest of the end, and the engine.

    ``restart`` rebuilds the engine from a snapshot now and then, ``forget`` drops the indices;
    neither may matter.
    """
    dice, chance = Random(seed), Random(seed + 1)
    engine = Engine()
    spec = configuration(dice, fair=dice.random() < 0.5)
    now, frames = START, []
    inputs: list[v.AnyInput] = [v.ConfigurationApplied(configuration=spec)]
    for number in range(25):
        events = engine.step(now, [v.Proposal(input=one) for one in inputs])
        frames.append((now, events))
        if check:
            check_books(engine)
        due = engine.next_due()
        assert due is None or due > now, "nothing may be due again right after a step"
        if restart and chance.random() < 0.3:
            engine = Engine(snapshot.decode(snapshot.encode(engine.state), now))
        if forget and chance.random() < 0.3:
            engine.state.index = None
        inputs = step_of(dice, engine, number)
        now += dice.choice([0, 1, 1000, 40_000])
    return frames, engine.state.digest(), engine


seeds = st.integers(0, 2**32)


@examples(80)
@given(seeds)
def test_the_books_are_right_after_every_step(seed):
    """Usage, borrowers and candidates are what a recount gives, and no step leaves something due at once."""
    run(seed, check=True)


@examples(60)
@given(seeds)
def test_a_replay_gives_the_same_state(seed):
    """Applying the recorded events gives the digest of the live engine."""
    frames, digest, _ = run(seed)
    engine = Engine()
    for time, events in frames:
        for event in events:
            engine.apply(event, time)
    assert engine.state.digest() == digest
    check_books(engine)


@pytest.mark.parametrize("way", ["restart", "forget"])
def test_nothing_hangs_on_memory(way):
    """Restarts from a snapshot, or dropped indices, at random moments change no decision."""

    @examples(60)
    @given(seeds)
    def check(seed):
        plain, changed = run(seed), run(seed, **{way: True})
        assert plain[0] == changed[0]
        assert plain[1] == changed[1]

    check()


@examples(60)
@given(seeds)
def test_nobody_is_admitted_beyond_the_quota(seed):
    """Right after an admission nothing of the tree is overcommitted, as long as no quota was lowered."""
    dice = Random(seed)
    spec = configuration(dice, fair=dice.random() < 0.5)
    engine = Engine()
    inputs: list[v.AnyInput] = [v.ConfigurationApplied(configuration=spec)]
    for number in range(15):
        engine.step(START + number, [v.Proposal(input=one) for one in inputs])
        for queue in engine.state.queues.values():
            quota = quota_of(queue)
            if quota.parent is None:
                assert all(
                    amount <= quota.subtree.get(index, 0) for index, amount in quota.usage.items()
                )
        inputs = [
            one
            for one in step_of(dice, engine, number)
            if not isinstance(one, v.ConfigurationApplied)
        ]

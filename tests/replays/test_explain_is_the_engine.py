"""What an explanation says would happen is what the engine then does: at random moments of random histories of each family.

And where it will do nothing about an ask, the explanation names what holds it.
"""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import LimitSpec
from evsched.core.engine import Engine
from replays.explaining.ahead import STEPS_AHEAD
from replays.explaining.explain import explain_ask
from tests.core.histories import START
from tests.core.kueue import cohorts
from tests.core.kueue.test_history import step_of
from tests.core.seeded import configuration, proposal

MOMENTS = 2000
CAPACITY = {"vcore": 10_000, "memory": 20}
PROMISES = ("next", "tried")


def done(events, ask):
    """Return what these events do about an ask: (code, node, victims)."""
    for event in events:
        if isinstance(event, v.AllocationBound) and event.ask == ask:
            return "bound", event.node, ()
        if isinstance(event, v.PreemptionDecided) and event.ask == ask:
            return "preempts", event.node, tuple(one.id for one in event.victims)
    tried = [event for event in events if isinstance(event, v.CycleStarted) and ask in event.tried]
    return ("tried" if tried else "waits"), None, ()


def said(promise):
    """Return the same of what was said."""
    return promise.code, promise.node, tuple(one.id for one in promise.victims)


def check(engine, ask):
    """Explain an ask, let the engine go on by itself, compare, and return what happened to the ask first."""
    digest = engine.state.digest()
    found = explain_ask(engine, ask)
    assert engine.state.digest() == digest
    assert found.causes
    assert found.summary
    promised = [note.facts["code"] for note in found.unblock if note.code in PROMISES]
    if found.later is None:
        assert found.causes[0].code != "nothing", found
    if found.later is None or promised:
        assert promised == ([found.later.code] if found.later else [])
    else:  # an attempt in vain is no promise
        assert found.later.code == "tried"
    for number in range(STEPS_AHEAD):
        due = engine.next_due()
        if not number:
            assert found.next.time == (None if due is None else max(due, engine.state.time))
        elif due is None:
            break
        time = max(engine.state.time, due or 0)
        happened = done(engine.step(time), ask)
        if not number:
            assert said(found.next) == happened
        if happened[0] != "waits":
            assert found.later is not None
            assert said(found.later) == happened
            assert found.later.time in (time, None)
            return found.later.code
    assert found.later is None
    return "waits"


def came(dice, number, *, enabled):
    """Return what comes through the inbox of a YuniKorn partition next, with preemption on or off where it is configured."""
    found = proposal(dice, number)
    if isinstance(found, v.ConfigurationApplied):
        limits = (LimitSpec(users=("*",), max_resources={"vcore": 9000}, max_applications=2),)
        root = replace(found.configuration.root, limits=limits if dice.random() < 0.3 else ())
        spec = replace(found.configuration, root=root, preemption_enabled=enabled)
        return replace(found, configuration=spec)
    if isinstance(found, v.AskSubmitted):
        return replace(
            found,
            required_node=f"n{dice.randrange(3)}" if dice.random() < 0.1 else None,
            preemption_policy="Never" if dice.random() < 0.1 else "PreemptLowerPriority",
            user=dice.choice(["ann", "bob"]),
            allow_preemption=dice.random() < 0.8,
        )
    return found


@pytest.mark.parametrize("enabled", [True, False], ids=["preemption on", "preemption off"])
def test_an_explanation_of_yunikorn_is_what_the_engine_does(enabled):
    """At each of 1,000 moments: by when, on which node and at whose cost an ask runs, or that nothing happens to it."""
    moments, seed, codes = 0, 0, set()
    while moments < MOMENTS // 2:
        dice, engine = Random(seed), Engine()
        spec = replace(configuration(dice), preemption_enabled=enabled)
        inputs = [
            v.ConfigurationApplied(configuration=spec),
            *(v.NodeRegistered(node=f"n{one}", capacity=CAPACITY) for one in range(2)),
        ]
        for number in range(40):
            time = max(START, engine.state.time + dice.choice([1, 1000, 11_000]))
            proposals = [v.Proposal(input=one) for one in inputs]
            engine.step(time, proposals, decide=dice.random() < 0.7)
            if engine.state.asks:
                moments += 1
                codes.add(check(engine, dice.choice(list(engine.state.asks))))
            inputs = [came(dice, number, enabled=enabled) for _ in range(dice.randrange(1, 5))]
        seed += 1
    assert codes == {"bound", "waits"} | ({"preempts", "tried"} if enabled else set())


@pytest.mark.parametrize("fair", [True, False], ids=["fair sharing", "classic"])
def test_an_explanation_of_kueue_is_what_the_engine_does(fair):
    """At each of 1,000 moments: whether the next cycle admits a workload or at whose cost, or that nothing happens to it."""
    moments, seed, codes = 0, 0, set()
    while moments < MOMENTS // 2:
        dice, engine = Random(seed), Engine()
        inputs = [v.ConfigurationApplied(configuration=cohorts.configuration(dice, fair=fair))]
        for number in range(25):
            decide = dice.random() < 0.6
            time = engine.state.time + dice.choice([0, 1, 1000, 40_000])
            engine.step(max(time, START), [v.Proposal(input=one) for one in inputs], decide=decide)
            if engine.state.asks:
                moments += 1
                codes.add(check(engine, dice.choice(list(engine.state.asks))))
            inputs = step_of(dice, engine, number)
        seed += 1
    assert codes == {"bound", "preempts", "tried", "waits"}

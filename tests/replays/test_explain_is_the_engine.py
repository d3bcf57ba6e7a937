"""What an explanation says is what the engine does, at random moments of random histories.

What would happen happens. Where an ask waits, every cause is named, and each of them is one: with
what has to go gone, in a copy, the ask is served, and with less it is not.
"""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import LimitSpec, QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from replays.explaining.ahead import STEPS_AHEAD
from replays.explaining.explain import explain_ask
from tests.core.histories import START
from tests.core.kueue import cohorts
from tests.core.kueue.test_history import step_of
from tests.core.seeded import LEAVES, proposal
from tests.replays.lifting import check_causes

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


def check(engine, ask, dice):
    """Explain an ask, let the engine go on by itself, compare; return what happened, and why not."""
    digest = engine.state.digest()
    found = explain_ask(engine, ask)
    assert engine.state.digest() == digest
    held = check_causes(engine, found, dice)
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
            return {found.later.code} | held
    assert found.later is None
    return {"waits"} | held


def limits(dice):
    """Return limits by chance, of users, groups and everybody."""
    found = []
    for _ in range(dice.choice([0, 0, 1, 2])):
        whom = dice.choice(
            [("users", ("ann",)), ("users", ("*",)), ("groups", ("dev",)), ("groups", ("*",))]
        )
        most = {"vcore": dice.randrange(2, 10) * 1000} if dice.random() < 0.7 else None
        applications = dice.choice([0, 1, 2]) if most else 1
        found.append(
            LimitSpec(**{whom[0]: whom[1]}, max_resources=most, max_applications=applications)
        )
    # A limit for everybody stands behind those that name somebody.
    return tuple(sorted(found, key=lambda one: "*" in one.users + one.groups))


def tree(dice, *, enabled):
    """Return three leaves in which everything that can hold an ask does so now and then."""

    def queue(name, queues=()):
        properties = {"preemption.delay": dice.choice(["1s", "10s"])}
        if not queues and dice.random() < 0.3:
            properties["application.sort.policy"] = "stateaware"
        if not queues and dice.random() < 0.3:
            properties |= {
                "application.unschedasks.backoff": "1",
                "application.unschedasks.backoff.delay": "5s",
            }
        return QueueSpec(
            name=name,
            parent=bool(queues),
            queues=queues,
            guaranteed=None if queues else dice.choice([None, {"vcore": 4000}]),
            maximum=dice.choice([None, None, {"vcore": 8000, "memory": 12}, {"vcore": 3000}]),
            max_applications=dice.choice([0, 0, 0, 1]),
            limits=limits(dice),
            properties=properties,
        )

    above = queue("p", (queue("b"), queue("c")))
    root = QueueSpec(
        name="root", parent=True, queues=(queue("a"), above), limits=limits(dice), submit_acl="*"
    )
    return YunikornSpec(root=root, preemption_enabled=enabled)


def came(dice, number, *, enabled):
    """Return what comes through the inbox of a YuniKorn partition next."""
    found = proposal(dice, number)
    if isinstance(found, v.ConfigurationApplied):
        return replace(found, configuration=tree(dice, enabled=enabled))
    if isinstance(found, v.AskSubmitted):
        leaf = dice.choice(LEAVES)
        large = dice.random() < 0.1
        return replace(
            found,
            queue=leaf,
            application=f"{leaf}-{dice.randrange(3)}",
            resources={"vcore": 12_000, "memory": 30} if large else found.resources,
            required_node=f"n{dice.randrange(3)}" if dice.random() < 0.15 else None,
            preemption_policy="Never" if dice.random() < 0.1 else "PreemptLowerPriority",
            user=dice.choice(["ann", "bob"]),
            groups=dice.choice([(), ("dev",), ("ops",)]),
        )
    if isinstance(found, v.NodeRegistered) and dice.random() < 0.5:
        return v.NodeUpdated(node=found.node, schedulable=dice.random() < 0.5)
    return found


@pytest.mark.parametrize("enabled", [True, False], ids=["preemption on", "preemption off"])
def test_an_explanation_of_yunikorn_is_what_the_engine_does(enabled):
    """At each of 1,000 moments: by when, on which node and at whose cost an ask runs, or that nothing happens to it."""
    moments, seed, codes = 0, 0, set()
    while moments < MOMENTS // 2:
        dice, engine = Random(seed), Engine()
        spec = tree(dice, enabled=enabled)
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
                codes |= check(engine, dice.choice(list(engine.state.asks)), dice)
            inputs = [came(dice, number, enabled=enabled) for _ in range(dice.randrange(1, 5))]
        seed += 1
    assert codes >= {"bound", "waits"} | ({"preempts", "tried"} if enabled else set())
    assert codes >= {"queue-maximum", "limit", "behind", "paused", "no-node", "too-large"}


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
                codes |= check(engine, dice.choice(list(engine.state.asks)), dice)
            inputs = step_of(dice, engine, number)
        seed += 1
    assert codes >= {"bound", "preempts", "tried", "waits"}
    assert codes >= {"quota", "queue-stopped", "queue-gone", "strict-fifo", "in-flight"}

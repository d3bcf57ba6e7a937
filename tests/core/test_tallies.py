"""A replay that counts at its end gives what one gives that counts all along: the truth, every tally, what is due next."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import (
    KueueSpec,
    LimitSpec,
    LocalQueueSpec,
    PlacementRuleSpec,
    QueueSpec,
    TemplateSpec,
    YunikornSpec,
)
from events.errors import LogDamaged
from events.frame import encode_event
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.recorded import IMPOSSIBLE, apply_recorded
from evsched.core.state import State
from evsched.core.tallies import uncounted
from tests.core.histories import NODES, START, configurations, first_step, histories, settle
from tests.core.kueue import cohorts
from tests.core.kueue.test_history import run
from tests.core.test_history import check_sums
from tests.examples import examples

Log = list[tuple[int, v.AnyEvent]]
CAPACITY = {"vcore": 10_000, "memory": 20}


def tallies(state: State) -> dict[str, object]:
    """Return everything that `evsched.core.tallies` counts."""
    applications = state.applications.values()
    queues = (state.root, *state.queues.values())
    quotas = [queue.quota for queue in state.queues.values() if queue.quota is not None]
    return {
        "queues": {one.path: (one.usage, one.pending, one.preempting, one.claimed, one.pending_asks) for one in queues},
        "members": {queue.path: set(queue.applications) for queue in queues},
        "quotas": {quota.path: {index: amount for index, amount in quota.usage.items() if amount} for quota in quotas},
        "borrowers": {
            quota.path: {index: {one.path for one in found} for index, found in quota.borrowers.items() if found}
            for quota in quotas
        },
        "applications": {one.id: (one.usage, one.priorities, set(one.asks), set(one.allocations)) for one in applications},
        "running": {one.id: one.running for one in applications if one.running != len(one.allocations)},
        "nodes": {node.name: (node.used, set(node.allocations)) for node in state.nodes.values()},
        "reserved": {node.name: {ask: shape.index for ask, shape in node.reserved.items()} for node in state.nodes.values()},
        "lost": {name: (node.used, set(node.allocations)) for name, node in state.lost.items()},
        "total": state.total,
    }  # fmt: skip


def check(log: Log, begin: int, end: int) -> None:
    """Replay a log all along, and with the events from ``begin`` to ``end`` uncounted; compare there, and at the end."""
    counted, other = Engine(), Engine()
    for time, event in log[:end]:
        counted.apply(event, time)
    for time, event in log[:begin]:
        other.apply(event, time)
    with uncounted(other.state):
        for time, event in log[begin:end]:
            other.apply(event, time)
    for rest in (log[end:], []):
        assert tallies(other.state) == tallies(counted.state)
        assert other.state.digest() == counted.state.digest()
        assert other.next_due() == counted.next_due()
        for time, event in rest:
            counted.apply(event, time)
            other.apply(event, time)


def places(data: st.DataObject, log: Log) -> tuple[int, int]:
    """Return two places of a log, in the middle of steps too."""
    one, two = (data.draw(st.integers(0, len(log))) for _ in range(2))
    return min(one, two), max(one, two)


@given(configurations(), histories, st.data())
@examples(80)
def test_yunikorn(configuration, history, data):
    """Any part of a log of queues and nodes may go uncounted."""
    engine, log, time = Engine(), [], START
    for index, (later, inputs, _) in enumerate([(0, [], False), *history]):
        for at, events in settle(engine, time + later - 1):
            log.extend((at, event) for event in events)
        time += later
        proposals = (
            first_step(configuration)
            if index == 0
            else [v.Proposal(input=proposed) for proposed in inputs]
        )
        log.extend((time, event) for event in engine.step(time, proposals))
    begin, end = places(data, log)
    check(log, begin, end)
    check(log, 0, len(log))


@given(st.integers(0, 2**32), st.data())
@examples(60)
def test_kueue(seed, data):
    """Any part of a log of cohorts may go uncounted."""
    log = [(time, event) for time, events in run(seed)[0] for event in events]
    begin, end = places(data, log)
    check(log, begin, end)
    check(log, 0, len(log))


def test_tallies_are_there_when_a_replay_is_interrupted():
    """However the block is left, the state is whole."""
    engine = Engine()

    def interrupted(inner: Engine) -> None:
        inner.apply(v.NodeRegistered(seq=1, node="n1", capacity={"vcore": 8}), START)
        raise InterruptedError

    with pytest.raises(InterruptedError), uncounted(engine.state):
        interrupted(engine)
    assert engine.state.counting
    assert engine.state.nodes["n1"].used == [0]


@pytest.mark.parametrize(
    "event",
    [
        v.AllocationBound(seq=9, cause=8, ask="waits", node="nowhere"),
        v.AllocationBound(seq=9, cause=8, ask="nobody", node="n1"),
        v.AllocationRestored(
            seq=9,
            allocation="new",
            application="x",
            queue="root.a",
            resources={"vcore": 1},
            node="nowhere",
        ),
        v.AllocationReleased(seq=9, allocation="nobody"),
        v.AskWithdrawn(seq=9, ask="nobody"),
        v.AskSubmitted(seq=9, ask="new", queue="root.nowhere", resources={"vcore": 1}),
        v.NodeRemoved(seq=9, node="nowhere"),
    ],
    ids=lambda event: f"{type(event).__name__}-{event.seq}",
)
@pytest.mark.parametrize("count", [True, False], ids=["counted", "uncounted"])
def test_what_cannot_be_is_noticed_at_its_place(event, count):
    """An event that nothing led to raises, whether tallies are kept or not, and they are right afterwards."""
    engine = Engine()
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    engine.step(START, first_step(YunikornSpec(root=root)))
    engine.step(
        START,
        [v.Proposal(input=v.AskSubmitted(ask="waits", queue="root.a", resources={"vcore": 10**9}))],
    )
    with pytest.raises(IMPOSSIBLE), nullcontext() if count else uncounted(engine.state):
        engine.apply(event, START)
    check_sums(engine.state)


def small() -> Engine:
    """Return an engine with an application in ``root.a``; one ask of it runs, one waits."""
    engine = Engine()
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), QueueSpec(name="b"))
    )
    engine.step(START, first_step(YunikornSpec(root=root)))
    came = [v.ApplicationSubmitted(application="x", queue="root.a")]
    came += [
        v.AskSubmitted(ask=name, application="x", resources={"vcore": n})
        for name, n in [("runs", 10), ("waits", 10**9)]
    ]
    engine.step(START, [v.Proposal(input=one) for one in came])
    assert (list(engine.state.allocations), list(engine.state.asks)) == (["runs"], ["waits"])
    return engine


TWICE = [
    v.ApplicationSubmitted(seq=90, application="x"),
    v.ApplicationPlaced(seq=91, application="x", queue="root.b"),
]


@pytest.mark.parametrize(
    ("events", "missing"),
    [
        ([v.QueueRemoved(seq=92, queue="root.a")], "root.a"),
        ([*TWICE, v.ApplicationRemoved(seq=92, application="x")], "'x'"),
    ],
    ids=["a queue in use is gone", "an application came twice and went once"],
)
def test_what_cannot_be_counted_is_damage(events, missing):
    """Where events that no scheduler wrote leave something without a place, the log is damaged, not the program."""
    engine = small()
    with pytest.raises(LogDamaged, match=f"after event 92 .*{missing}"), uncounted(engine.state):
        apply_recorded(engine, events, START, 7)


def test_the_first_error_is_the_one_told():
    """What cannot be counted after an error does not stand before it."""
    engine = small()
    events = [
        v.QueueRemoved(seq=90, queue="root.a"),
        v.AllocationReleased(seq=91, allocation="nobody"),
    ]
    with (
        pytest.raises(LogDamaged, match=r"event 91, AllocationReleased, .*nobody") as raised,
        uncounted(engine.state),
    ):
        apply_recorded(engine, events, START, 7)
    assert raised.value.position == 7


def test_a_look_from_within_spoils_nothing():
    """Who asks too early what is due, and so makes an index, gets no answer of any use, but does not change the next one."""
    engine = small()
    engine.step(START + 60_000)
    other = Engine(snapshot.decode(snapshot.encode(engine.state), START + 60_000))
    came = v.AskSubmitted(
        seq=engine.state.seq + 1, ask="more", application="x", resources={"vcore": 20_000}
    )
    engine.apply(came, START + 61_000)
    with uncounted(other.state):
        other.next_due()
        other.apply(came, START + 61_000)
    assert other.next_due() == engine.next_due() is not None


# ----------------------------------------------------------------------- what is decided afterwards


def queues_yaml(dice: Random) -> YunikornSpec:
    """Return a tree with limits, sort policies, a template, and a rule that makes a queue for each user."""

    def leaf(name: str, **fields: object) -> QueueSpec:
        properties = {
            "preemption.delay": "1s",
            "application.sort.policy": dice.choice(["fair", "fifo", "stateaware"]),
        }
        if dice.random() < 0.3:
            properties |= {
                "application.unschedasks.backoff": "1",
                "application.unschedasks.backoff.delay": "5s",
            }
        limits = (
            LimitSpec(users=("*",), max_resources={"vcore": 8000}),
            LimitSpec(groups=("g",), max_applications=2),
        )
        return QueueSpec(
            name=name,
            guaranteed=dice.choice([None, {"vcore": 2000}]),
            maximum=dice.choice([None, {"vcore": dice.choice([2000, 9000]), "gpu": 2}]),
            quota_preemption_delay_ms=dice.choice([None, 1000]),
            limits=dice.choice([(), limits[:1], limits]),
            max_applications=dice.choice([0, 0, 2]),
            properties=properties,
            **fields,
        )

    template = TemplateSpec(
        guaranteed=dice.choice([None, {"vcore": 3000}]),
        maximum=dice.choice([None, {"vcore": 6000, "disk": 3}]),
    )
    queues = [leaf("a"), QueueSpec(name="p", parent=True, queues=(leaf("b"), leaf("c")))]
    if dice.random() < 0.3:
        del queues[0]  # what is in it goes on in a queue that drains
    return YunikornSpec(
        root=QueueSpec(
            name="root",
            parent=True,
            submit_acl="*",
            queues=(*queues, QueueSpec(name="users", parent=True, template=template)),
        ),
        placement_rules=(
            PlacementRuleSpec(name="provided"),
            PlacementRuleSpec(name="user", create=True, parent=PlacementRuleSpec(name="fixed", value="users")),
        ),
        quota_preemption_enabled=True,
    )  # fmt: skip


def manifests(dice: Random) -> KueueSpec:
    """Return cohorts with limits on lending, and two LocalQueues."""
    spec = cohorts.configuration(dice, fair=dice.random() < 0.5)
    names = [one.name for one in spec.cluster_queues]
    local = tuple(
        LocalQueueSpec(name=f"l{number}", namespace="n", cluster_queue=dice.choice(names))
        for number in range(2)
    )
    return replace(spec, local_queues=local)


def some_queue(dice: Random, state: State) -> str:
    """Return a name that a producer could give as its queue, or none."""
    leaves = [queue.path for queue in state.queues.values() if queue.leaf]
    return dice.choice(["", "root.users.new", *state.local_queues, *leaves])


def an_input(dice: Random, engine: Engine, number: int) -> list[v.AnyInput]:
    """Return what comes through the inbox next, sensible or not, for whatever family is in force."""
    state = engine.state
    kueue = isinstance(state.configuration, KueueSpec)
    amounts = {"cpu": dice.randint(1, 5)} if kueue else {"vcore": dice.randint(1, 8) * 500}
    if dice.random() < 0.1:
        amounts[dice.choice(["memory", "gpu", "disk", f"rare{number}"])] = dice.randint(0, 2)
    who = {"user": dice.choice(["ann", "bob"]), "groups": dice.choice([(), ("g",), ("g", "h")])}
    podsets = tuple(v.PodSet(name=name, resources=amounts) for name in ("head", "rest"))
    common = {
        "queue": some_queue(dice, state),
        "application": "" if kueue else dice.choice(["x", "y", "z", ""]),
        "priority": dice.randint(-1, 2),
        "created": dice.choice([None, START - 60_000]),
        "allow_preemption": dice.random() < 0.8,
        **({"podsets": podsets} if kueue and dice.random() < 0.2 else {"resources": amounts}),
        **who,
    }
    runs, waits, nodes = list(state.allocations), list(state.asks), list(state.nodes)
    told = [one.id for one in state.allocations.values() if one.eviction_requested]
    kind = dice.randrange(16)
    if kind < 7 or (kind == 12 and dice.random() < 0.8):
        required = dice.choice(NODES) if dice.random() < 0.1 else None
        return [v.AskSubmitted(ask=f"t{number}", required_node=required, **common)]
    if kind == 7 and runs:
        gone = dice.choice(told or runs)
        return [v.AllocationReleased(allocation=gone)]
    if kind == 8 and waits:
        return [v.AskWithdrawn(ask=dice.choice(waits))]
    if kind == 9:
        name = dice.choice(NODES)
        if name in nodes:
            return [
                v.NodeRemoved(node=name),
                *([v.NodeRegistered(node=name, capacity=CAPACITY)] if dice.random() < 0.5 else []),
            ]
        return [
            v.NodeRegistered(
                node=name, capacity=CAPACITY | ({"gpu": 2} if dice.random() < 0.3 else {})
            )
        ]
    if kind == 10:
        flags = {"preempting": dice.random() < 0.5, "evicted": kueue and dice.random() < 0.5}
        where = None if kueue and dice.random() < 0.7 else dice.choice(nodes or ["nowhere"])
        return [v.AllocationRestored(allocation=f"r{number}", node=where, **flags, **common)]
    if kind == 11:
        return [
            v.ConfigurationApplied(configuration=manifests(dice) if kueue else queues_yaml(dice))
        ]
    if kind == 12:
        # The family may only change in an empty partition.
        empty = [v.AskWithdrawn(ask=name) for name in waits] + [
            v.AllocationReleased(allocation=name) for name in runs
        ]
        empty += [v.ApplicationRemoved(application=name) for name in state.applications]
        return [
            *empty,
            v.ConfigurationApplied(configuration=queues_yaml(dice) if kueue else manifests(dice)),
        ]
    if kind == 13:
        return [
            v.ApplicationSubmitted(
                application=dice.choice(["x", "y", "z"]), queue=some_queue(dice, state), **who
            )
        ]
    if kind == 14:
        return [v.ApplicationRemoved(application=dice.choice([*state.applications, "x"]))]
    if waits and runs and dice.random() < 0.3:
        return observed(dice, waits, runs, None if kueue else dice.choice(nodes or ["nowhere"]))
    if runs and dice.random() < 0.5:
        return [v.EvictionRefused(allocation=dice.choice(told or runs))]
    if waits and nodes:
        return [v.ReservationRestored(ask=dice.choice(waits), node=dice.choice(nodes))]
    return [
        v.NodeUpdated(
            node=dice.choice(NODES),
            capacity=dice.choice([None, CAPACITY]),
            schedulable=dice.random() < 0.7,
        )
    ]


def observed(
    dice: Random, waits: list[str], runs: list[str], where: str | None
) -> list[v.AnyInput]:
    """Return what a cluster's own scheduler might have done."""
    return [
        v.BindingObserved(ask=dice.choice(waits), node=where),
        v.EvictionObserved(allocation=dice.choice(runs), preemptor=dice.choice(["", *waits])),
    ]


def follow(
    dice: Random, other: Engine, time: int, events: Sequence[v.AnyEvent], block: ExitStack
) -> None:
    """Apply a step's events, blocks beginning and ending anywhere among them; ``block`` has the one that is open."""
    for event in events:
        if dice.random() < 0.15:
            block.close()
            if dice.random() < 0.7:
                block.enter_context(uncounted(other.state))
        other.apply(event, time)


@given(st.integers(0, 2**32))
@examples(90)
def test_what_is_decided_afterwards_is_the_same(seed):
    """Whoever follows in blocks, at any time, goes on deciding as the one does who counted and kept indices all along."""
    dice = Random(seed)
    live, other, block, now = Engine(), Engine(), ExitStack(), START
    kind = dice.choice([queues_yaml, manifests])
    inputs: list[v.AnyInput] = [
        v.ConfigurationApplied(configuration=kind(dice)),
        *(v.NodeRegistered(node=name, capacity=CAPACITY) for name in NODES[:2]),
    ]
    for number in range(40):
        proposals = [v.Proposal(input=one) for one in inputs]
        follows = dice.random() < 0.6
        decided = None
        if not follows:
            block.close()
            decided = other.step(now, proposals)
        events = live.step(now, proposals)
        if decided is not None:
            assert list(map(encode_event, decided)) == list(map(encode_event, events))
            if dice.random() < 0.5:
                block.enter_context(uncounted(other.state))
        else:
            follow(dice, other, now, events, block)
            other.state.time = live.state.time
        assert other.state.digest() == live.state.digest()
        if other.state.counting:
            assert tallies(other.state) == tallies(live.state)
            assert other.next_due() == live.next_due()
        inputs = [
            one
            for part in range(dice.randint(0, 3))
            for one in an_input(dice, live, 10 * number + part)
        ]
        due = live.next_due()
        now = (
            max(now, due)
            if due is not None and dice.random() < 0.3
            else now + dice.choice([0, 1, 1000, 31_000])
        )
    block.close()
    assert tallies(other.state) == tallies(live.state)

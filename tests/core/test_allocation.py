"""Who is bound where: the incremental allocation cycle against the naive one, over random histories; and its particulars."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import LimitSpec, QueueSpec, YunikornSpec
from evsched.core import configuration_checks
from evsched.core.engine import Engine
from evsched.core.workloads import Allocation
from evsched.core.yunikorn import bindable, ranking
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.limits import LimitIndex
from evsched.core.yunikorn.maxima import first_exceeded
from evsched.core.yunikorn.waiting import WaitingOrder
from tests.core import naive_allocation as naive
from tests.core import pods as some
from tests.core.counting import counts_of, summary
from tests.examples import examples

START = 1_767_225_600_000
LEAVES = ("root.a", "root.b", "root.p.c", "root.p.d", "root.p.q.e")
LARGE = 2**31 - 1

AMOUNTS = (
    *({"vcore": cores} for cores in (1, 2, 3)),
    {"vcore": 2, "memory": 1},
    {"memory": 3},
    {"vcore": 1, "gpu": 1},
)
GUARANTEED = (None, None, {"vcore": 1}, {"vcore": 3, "memory": 1}, {"memory": 2})
MAXIMA = (None, None, {"vcore": 5}, {"vcore": 7}, {"vcore": 9, "memory": 5}, {"memory": 4})
CAPACITIES = ({"vcore": 4, "memory": 4}, {"vcore": 8}, {"vcore": 6, "memory": 2, "gpu": 2})
PROPERTIES = {
    "priority.policy": (None, None, "fence"),
    "priority.offset": (None, None, "-3", "2", str(LARGE), str(-LARGE)),
    "application.sort.priority": (None, None, None, "disabled"),
    "application.sort.policy": ("fair", "fifo", "stateaware"),
    "application.unschedasks.backoff": (None, None, None, "1", "2", "4"),
    "application.unschedasks.backoff.delay": (None, "1ms", "2s"),
}
USERS = (
    LimitSpec(users=("ann",), max_resources={"vcore": 6}),
    LimitSpec(users=("*",), max_applications=2),
)
GROUPS = (
    LimitSpec(groups=("red",), max_resources={"vcore": 5}),
    LimitSpec(groups=("*",), max_resources={"vcore": 4}),
)


def configuration(draw: Random) -> YunikornSpec:
    """Return a valid tree of five leaves on three levels with random limits and properties."""
    while configuration_checks.problems(spec := some_configuration(draw)):
        pass
    return spec


def some_configuration(draw: Random) -> YunikornSpec:
    """Return such a tree, valid or not."""

    def make(name: str, *children: QueueSpec) -> QueueSpec:
        drawn = {key: draw.choice(values) for key, values in PROPERTIES.items()}
        return QueueSpec(
            name=name,
            parent=bool(children),
            queues=children,
            guaranteed=draw.choice(GUARANTEED),
            maximum=draw.choice(MAXIMA),
            properties={key: value for key, value in drawn.items() if value is not None},
            limits=draw.choice(((), (), (), USERS, GROUPS)),
            max_applications=draw.choice((0, 0, 0, 1, 2)),
        )

    below = make("p", make("c"), make("d"), make("q", make("e")))
    disabled = draw.choice(({}, {}, {"application.sort.priority": "disabled"}))
    return YunikornSpec(
        root=QueueSpec(
            name="root",
            parent=True,
            submit_acl="*",
            queues=(make("a"), make("b"), below),
            properties=disabled,
        ),
        preemption_enabled=False,
        node_sort_policy=draw.choice(("fair", "binpacking")),
        node_sort_weights=draw.choice(({}, {"vcore": 0}, {"vcore": 3000})),
    )


def inputs(draw: Random, engine: Engine) -> v.AnyInput:
    """Return something that could happen to a cluster, sensible more often than not; an application belongs to one leaf."""
    state = engine.state
    node = draw.choice(("n1", "n2", "n3", "n4"))
    waits, runs = draw.choice((*state.asks, "t0")), draw.choice((*state.allocations, "t0"))
    queue = draw.choice((*LEAVES, *(path for path, parent in state.dynamic.items() if not parent)))
    fields = {
        "application": f"{draw.choice('xyz')}-{queue}",
        "queue": queue,
        "user": draw.choice(("ann", "bob")),
        "groups": draw.choice((("red",), ("blue",), ())),
        "resources": draw.choice(AMOUNTS),
        "created": START - draw.randrange(4),
        "priority": draw.choice((0, 0, 1, 2, -LARGE, LARGE)),
    }
    match draw.choices(range(9), (60, 25, 4, 2, 3, 1, 3, 1, 2))[0]:
        case 0:
            required = draw.choice((None, None, None, None, node))
            name = f"t{draw.randrange(500)}"
            return v.AskSubmitted(ask=name, required_node=required, pod=some.pod(draw), **fields)
        case 1:
            return v.AllocationReleased(allocation=runs)
        case 2:
            return v.AskWithdrawn(ask=waits)
        case 3:
            return v.NodeRegistered(node=node, capacity=draw.choice(CAPACITIES), **some.says(draw))
        case 4:
            capacity = draw.choice((None, *CAPACITIES))
            says = draw.choice((some.says(draw), {}))
            schedulable = draw.choice((None, True, True, False))
            return v.NodeUpdated(node=node, capacity=capacity, schedulable=schedulable, **says)
        case 5:
            return v.NodeRemoved(node=node)
        case 6:
            return v.ReservationRestored(ask=waits, node=node)
        case 7:
            return v.ApplicationRemoved(application=draw.choice((*state.applications, "none")))
        case _:
            name = f"r{draw.randrange(500)}"
            return v.AllocationRestored(allocation=name, node=node, pod=some.pod(draw), **fields)


def first_step(spec: YunikornSpec) -> list[v.Proposal]:
    """Return the proposals that set a cluster up: a configuration and two nodes."""
    return [
        v.Proposal(input=v.ConfigurationApplied(configuration=spec)),
        v.Proposal(input=v.NodeRegistered(node="n1", capacity={"vcore": 8, "memory": 4})),
        v.Proposal(input=v.NodeRegistered(node="n2", capacity={"vcore": 8, "memory": 4, "gpu": 1})),
    ]


def decided(engine: Engine, asker: str, node: str, *victims: Allocation) -> v.PreemptionDecided:
    """Return the decision that an ask gets a node from these victims."""
    told = tuple(v.Victim(id=one.id, queue=one.queue, reason="test") for one in victims)
    return v.PreemptionDecided(
        seq=engine.state.seq + 1, ask=asker, node=node, victims=told, algorithm="guarantee"
    )


def disturb(draw: Random, engine: Engine) -> v.AnyEvent | None:
    """Return a decision as preemption would write it (not a lawful one), a queue made or gone, or None."""
    state = engine.state
    waiting = [
        ask for ask in state.asks if ask not in state.preemptions and ask not in state.reservations
    ]
    if waiting and state.nodes and draw.random() < 0.4:
        node = draw.choice(list(state.nodes.values()))
        staying = [one for one in node.allocations.values() if not one.eviction_requested]
        return decided(engine, draw.choice(waiting), node.name, *staying[: draw.randrange(3)])
    if draw.random() < 0.1:
        path = draw.choice(("root.dynamic", "root.p.q.dynamic"))
        known = state.queues.get(path)
        if known is None:
            return v.QueueCreated(seq=state.seq + 1, queue=path)
        if not known.applications:
            return v.QueueRemoved(seq=state.seq + 1, queue=path)
    if state.preemptions and draw.random() < 0.3:
        flight = draw.choice(list(state.preemptions.values()))
        return v.PreemptionWithdrawn(
            seq=state.seq + 1, ask=flight.ask, victims=tuple(flight.waiting_for), reason="test"
        )
    return None


def allocate_naively(engine: Engine) -> list[tuple[str, str]]:
    """End the pauses that are over, bind what the oracle picks, one by one, and pause whom it pauses; return all of it."""
    state, done = engine.state, []
    over = [
        timer
        for timer in state.timers.armed.values()
        if timer.kind == "pause" and timer.due <= state.time
    ]
    for timer in sorted(over, key=lambda timer: (timer.due, timer.id)):
        end = v.ApplicationResumed(
            seq=state.seq + 1, cause=timer.cause, due=timer.due, application=timer.subject
        )
        engine.apply(end, state.time)
        done.append((timer.subject, "resumed"))
    while True:
        while (found := naive.pick(state)) is not None:
            engine.apply(naive.bound_event(state, *found), state.time)
            done.append(found)
        pauses = naive.to_be_paused(state)
        for pause in pauses:
            engine.apply(replace(pause, seq=state.seq + 1), state.time)
            done.append((pause.application, "paused"))
        if not pauses:
            return done


@examples(130)
@given(st.integers(0, 2**64))
@example(99)
@example(169)
def test_binds_what_the_naive_one_binds_in_the_same_order(seed):
    """Whatever happened before, the incremental cycle binds the same asks to the same nodes in the same order."""
    draw = Random(seed)
    clever, plain = Engine(), Engine()
    rules = draw.choice((1, 2, 2))  # rules 1 know nothing of pods and taints
    start = [v.Proposal(input=v.RulesAdopted(rules=rules)), *first_step(configuration(draw))]
    for engine in (clever, plain):
        engine.step(START, start, decide=False)
    time = START
    for _ in range(12):
        time += draw.choice((0, 0, 1, 1000, 2000))  # too little for a second eviction request
        event = disturb(draw, plain)
        if event is not None:
            for engine in (clever, plain):
                engine.apply(event, time)
        if draw.random() < 0.1:
            clever.state.index = None
        proposals = [v.Proposal(input=inputs(draw, plain)) for _ in range(draw.choice((1, 2, 12)))]
        decide = draw.random() < 0.8
        events = clever.step(time, proposals, decide=decide)
        plain.step(time, proposals, decide=False)
        expected = allocate_naively(plain) if decide else []
        assert bound_and_paused(events) == expected
    assert clever.state.digest() == plain.state.digest()
    order, known = index_of(clever.state).order, index_of(clever.state).limits
    assert known is None or counts_of(known) == counts_of(LimitIndex(clever.state))
    if order is not None:
        rebuilt = WaitingOrder(clever.state)
        order.settle()
        rebuilt.settle()
        assert summary(order) == summary(rebuilt)


@examples(40)
@given(st.integers(0, 2**64))
def test_where_looking_one_by_one_ends_changes_no_decision(seed):
    """Vectorised looks, and marks that are computed anew at every chance, bind what single looks and few computations do."""
    draw = Random(seed)
    single = Engine()
    with (
        patch.object(ranking, "FEW", 0),
        patch.object(ranking, "SORT_SHARE", 10**9),
        patch.object(bindable, "FEW", draw.choice((0, 1, 16))),
        patch.object(bindable, "WRONG_MARKS", draw.choice((0, 10**9))),
    ):
        vectorised = Engine()
        for engine in (single, vectorised):
            engine.step(START, first_step(configuration(Random(seed))), decide=False)
        time, steps = START, []
        for _ in range(12):
            time += draw.choice((0, 0, 1, 1000, 2000))
            event = disturb(draw, vectorised)
            proposals = [
                v.Proposal(input=inputs(draw, vectorised)) for _ in range(draw.choice((1, 2, 12)))
            ]
            if event is not None:
                vectorised.apply(event, time)
            found = vectorised.step(time, proposals)
            steps.append((event, time, proposals, found))
    for event, time, proposals, found in steps:
        if event is not None:
            single.apply(event, time)
        assert single.step(time, proposals) == found


# -------------------------------------------------------------------------------------- particulars


def ask(name: str, queue: str = "root.a", vcore: int = 1, **fields: object) -> v.Proposal:
    """Return the proposal of an ask."""
    application = f"app-{queue}"
    return v.Proposal(
        input=v.AskSubmitted(
            ask=name, queue=queue, application=application, resources={"vcore": vcore}, **fields
        )
    )


def cluster(*queues: QueueSpec, vcore: int = 10, nodes: int = 1) -> Engine:
    """Return an engine with these queues below root and equal nodes n1, n2, …."""
    engine = Engine()
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    spec = YunikornSpec(root=root, preemption_enabled=False)
    proposals = [v.Proposal(input=v.ConfigurationApplied(configuration=spec))]
    proposals += [
        v.Proposal(input=v.NodeRegistered(node=f"n{number + 1}", capacity={"vcore": vcore}))
        for number in range(nodes)
    ]
    engine.step(START, proposals)
    return engine


def bound(events: tuple[v.AnyEvent, ...]) -> list[tuple[str, str | None]]:
    """Return (ask, node) of what was bound."""
    return [(event.ask, event.node) for event in events if isinstance(event, v.AllocationBound)]


def bound_and_paused(events: tuple[v.AnyEvent, ...]) -> list[tuple[str, str | None]]:
    """Return (ask, node) of what was bound, and which applications were paused and resumed."""
    found = []
    for event in events:
        if isinstance(event, v.AllocationBound):
            found.append((event.ask, event.node))
        elif isinstance(event, v.ApplicationPaused | v.ApplicationResumed):
            found.append(
                (event.application, type(event).__name__.removeprefix("Application").lower())
            )
    return found


def test_an_ask_that_fits_nowhere_holds_nobody_up():
    """A large ask in front is passed over; a smaller one of the same application is bound."""
    engine = cluster(QueueSpec(name="a"), vcore=4)
    events = engine.step(START, [ask("large", vcore=5, priority=9), ask("small", vcore=4)])
    assert bound(events) == [("small", "n1")]


def test_room_that_is_reserved_goes_to_nobody_else():
    """While a node is reserved for an ask in flight, others do not get its room; it does, once its victim is gone."""
    engine = cluster(QueueSpec(name="a"), QueueSpec(name="b"), vcore=4)
    engine.step(START, [ask("victim", vcore=3)])
    engine.step(START, [ask("asker", "root.b", vcore=4)])
    engine.apply(decided(engine, "asker", "n1", engine.state.allocations["victim"]), START)
    assert bound(engine.step(START, [ask("thief", vcore=1, priority=100)])) == []
    gone = v.Proposal(input=v.AllocationReleased(allocation="victim", reason="preempted"))
    assert bound(engine.step(START, [gone])) == [("asker", "n1")]


def test_an_ask_in_flight_is_not_bound_elsewhere_while_its_victims_leave():
    """Its victims are being evicted for it; only when they are gone and the node will not do is it bound elsewhere."""
    engine = cluster(QueueSpec(name="a"), QueueSpec(name="b"), vcore=4)
    engine.step(START, [ask("victim", vcore=3)])
    engine.step(START, [ask("asker", "root.b", vcore=4)])
    engine.apply(decided(engine, "asker", "n1", engine.state.allocations["victim"]), START)
    assert (
        bound(
            engine.step(
                START, [v.Proposal(input=v.NodeRegistered(node="n2", capacity={"vcore": 9}))]
            )
        )
        == []
    )
    closed = v.Proposal(input=v.NodeUpdated(node="n1", schedulable=False))
    gone = v.Proposal(input=v.AllocationReleased(allocation="victim", reason="preempted"))
    assert bound(engine.step(START, [closed, gone])) == [("asker", "n2")]


def test_what_was_promised_counts_for_everybody_else():
    """An ask in flight has a claim on the maximum of its queue; another ask does not take it, the claimant does."""
    engine = cluster(QueueSpec(name="a", maximum={"vcore": 4}), QueueSpec(name="b"), vcore=4)
    engine.step(START, [ask("victim", "root.b", vcore=3)])
    engine.step(START, [ask("asker", vcore=3)])
    engine.apply(decided(engine, "asker", "n1", engine.state.allocations["victim"]), START)
    leaf = engine.state.queues["root.a"]
    pairs = engine.state.types.shape({"vcore": 2}).pairs
    assert first_exceeded(leaf, pairs) is leaf
    assert (
        first_exceeded(leaf, engine.state.types.shape({"vcore": 3}).pairs, nominated=False) is None
    )


def test_who_comes_and_goes_while_nobody_waits_is_forgotten():
    """No cycle looks at asks that are withdrawn in the step that brought them, so nothing may be kept for it."""
    engine = cluster(QueueSpec(name="a"), vcore=4)
    engine.step(START, [ask("first", vcore=1)])
    order = index_of(engine.state).order
    for number in range(500):
        gone = v.Proposal(input=v.AskWithdrawn(ask=f"t{number}"))
        engine.step(START + number, [ask(f"t{number}", vcore=9), gone])
    assert index_of(engine.state).order is order
    leaf = order.queue_nodes["root.a"]
    kept = [
        one
        for part in (order, order.openings, order._walk, order.bindable, leaf, leaf.tops)
        for one in (getattr(part, name) for name in (getattr(part, "__slots__", ()) or vars(part)))
        if isinstance(one, list | dict) and len(one) > 150
    ]
    assert not kept


def test_a_cycle_without_news_looks_at_nothing(monkeypatch):
    """When nothing changed that could help, no ask is tried again."""
    engine = cluster(QueueSpec(name="a"), vcore=1)
    engine.step(START, [ask(f"t{number}", vcore=2) for number in range(5)])
    order = index_of(engine.state).order
    monkeypatch.setattr(type(order), "first", lambda _: pytest.fail("the order was walked"))
    engine.step(START + 1)
    engine.step(START + 2, [v.Proposal(input=v.AskWithdrawn(ask="t0"))])


def test_a_required_node_is_the_only_one():
    """An ask with a required node waits for it although others are free, and is bound when it has room."""
    engine = cluster(QueueSpec(name="a"), vcore=2, nodes=2)
    engine.step(START, [ask("here", vcore=2, required_node="n1")])
    assert bound(engine.step(START, [ask("too", vcore=2, required_node="n1")])) == []
    assert bound(
        engine.step(START, [v.Proposal(input=v.AllocationReleased(allocation="here"))])
    ) == [("too", "n1")]


def test_limits_of_users_are_asked():
    """What a limit holds back is passed over and tried again when something was freed."""
    engine = cluster(
        QueueSpec(name="a", limits=(LimitSpec(users=("nobody",), max_resources={"vcore": 2}),)),
        vcore=9,
    )
    assert bound(engine.step(START, [ask("one", vcore=2), ask("two", vcore=2)])) == [("one", "n1")]
    assert bound(
        engine.step(START, [v.Proposal(input=v.AllocationReleased(allocation="one"))])
    ) == [("two", "n1")]


class Notes:
    """A tracer that keeps (subject, code)."""

    def __init__(self):
        """Start without notes."""
        self.taken: list[tuple[str, str]] = []

    def wants(self, ask: str) -> bool:
        """Hear of every ask."""
        return True

    def note(self, subject: str, code: str, **facts: object) -> None:
        """Keep one note."""
        assert facts
        self.taken.append((subject, code))


def test_the_tracer_hears_what_holds_each_ask_up():
    """An explanation names for every ask that waits the maximum, limit, node or victims that it waits for."""
    held = (LimitSpec(users=("*",), max_resources={"vcore": 2}),)
    engine = cluster(
        QueueSpec(name="a", limits=held),
        QueueSpec(name="b", maximum={"vcore": 3}),
        QueueSpec(name="c"),
        vcore=4,
    )
    engine.step(START, [ask("runs", vcore=2)])
    engine.step(START, [ask("flies", "root.c", vcore=4)])
    engine.apply(decided(engine, "flies", "n1", engine.state.allocations["runs"]), START)
    proposals = [
        ask("over", vcore=1),
        ask("full", "root.b", vcore=4),
        ask("there", "root.c", required_node="n1"),
    ]
    engine.tracer = notes = Notes()
    engine.step(START, [*proposals, ask("large", "root.c", vcore=5)])
    assert {"flies", "over", "full", "there", "large"} == set(engine.state.asks)
    expected = {
        ("flies", "in-flight"),
        ("over", "limit"),
        ("full", "max"),
        ("there", "required-node"),
        ("large", "no-node"),
    }
    assert expected <= set(notes.taken)

"""Nodes that join and leave: what is kept row by row equals what is built from the state, after any history."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.rules import RULES
from evsched.core.workloads import Ask
from evsched.core.yunikorn import preemption, victim_pages
from evsched.core.yunikorn import victims as victims_module
from evsched.core.yunikorn.columns import NodeColumns, columns_of
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import find_plan
from evsched.core.yunikorn.victims import VictimIndex
from tests.examples import examples

START = 1_767_225_600_000
COST = named("default", RULES[1])


def cluster(*, preempts: bool = False) -> Engine:
    """Return an engine with two leaves, the first of which has a guarantee, and no nodes."""
    engine = Engine()
    leaves = (
        QueueSpec(name="a", guaranteed={"vcore": 10**6, "memory": 10**6}),
        QueueSpec(name="b"),
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    spec = YunikornSpec(root=root, preemption_enabled=preempts)
    engine.step(START, [v.Proposal(input=v.ConfigurationApplied(configuration=spec))])
    return engine


def change(draw: Random, engine: Engine, number: int) -> v.AnyInput:
    """Return a node that joins, leaves or changes, or an allocation that begins or ends."""
    nodes, running = list(engine.state.nodes), list(engine.state.allocations)
    match draw.choices(range(5), (4, 2, 1, 8, 4))[0]:
        case 1 if nodes:
            return v.NodeRemoved(node=draw.choice(nodes))
        case 2 if nodes:
            return v.NodeUpdated(node=draw.choice(nodes), schedulable=draw.random() < 0.7)
        case 3 if nodes:
            return v.AllocationRestored(
                allocation=f"r{number}",
                application=f"app-{draw.randrange(3)}",
                queue="root.b",
                node=draw.choice(nodes),
                resources={"vcore": draw.randrange(1, 4), "memory": draw.randrange(1, 4)},
                priority=draw.randrange(3),
                allow_preemption=draw.random() < 0.8,
                created=START - draw.randrange(1000),
            )
        case 4 if running:
            return v.AllocationReleased(allocation=draw.choice(running))
        case _:
            capacity = {"vcore": draw.randrange(6, 16), "memory": draw.randrange(6, 16)}
            return v.NodeRegistered(node=f"n{draw.randrange(40)}", capacity=capacity)


def contents(index: VictimIndex) -> dict[str, object]:
    """Return what the columns say of each node, by name."""
    sums = [index.sums(column) for column in index.amounts]
    found: dict[str, object] = {}
    for page, name in enumerate(index.names):
        if name is None:
            assert not index.open[page]
            assert not any(column[page] for column in sums)
        else:
            start, end = int(index.starts[page]), index.page_end(page)
            here = [one.id for one in index.slots[start:end] if one is not None]
            rows = [
                (
                    int(index.priority[place]),
                    int(index.flags[place]),
                    *(int(c[place]) for c in index.amounts),
                )
                for place in range(start, start + len(here))
            ]
            space = [int(column[page]) for column in index.space]
            largest = index.largest_first(0)[start:end]
            assert sorted(largest.tolist()) == list(range(start, end))
            assert np.all(np.diff(index.amounts[0][largest]) <= 0)
            found[name] = (here, rows, space, bool(index.open[page]))
    ranks = {name: index.rank(page) for page, name in enumerate(index.names) if name is not None}
    assert sorted(ranks, key=ranks.__getitem__) == sorted(ranks)
    return found


@examples(30)
@given(st.integers(0, 2**64))
def test_columns_and_pages_that_were_patched_equal_new_ones(seed):
    """Free space, order of places and plans are the same, whatever joined, left, filled up or was emptied."""
    draw = Random(seed)
    engine = cluster()
    columns_of(engine.state)
    with patch.object(victims_module, "FEWEST_SPARE", draw.choice((1, 256))):
        for number in range(60):
            engine.step(START, [v.Proposal(input=change(draw, engine, number))], decide=False)
            if draw.random() < 0.3:
                check(draw, engine)
        check(draw, engine)


def check(draw: Random, engine: Engine) -> None:
    """Compare the columns and the pages with those that are built from the state."""
    state = engine.state
    if not state.width:
        return
    columns, fresh = columns_of(state), NodeColumns(state)
    for vcore in (1, 5, 9):
        shape = state.shape({"vcore": vcore, "memory": draw.randrange(1, 9)})
        rows = columns.fitting(shape.pairs).nonzero()[0]
        fitting = {columns.names[row] for row in rows.tolist()}
        assert fitting == {fresh.names[row] for row in fresh.fitting(shape.pairs).nonzero()[0]}
        assert columns.place(shape) == fresh.place(shape)
        assert columns._scan(shape.pairs) == fresh._scan(shape.pairs) == fresh.place(shape)
    patched = victims_module.of(state, COST)
    built = VictimIndex(state, COST)
    while draw.random() < 0.8 and built.read(draw.choice((1, 3, 100))):
        pass
    built.refresh()
    assert contents(patched) == contents(built)
    amounts = {"vcore": draw.randrange(1, 12), "memory": draw.randrange(1, 12)}
    ask = Ask(
        id="asker", application="x", queue="root.a", shape=state.shape(amounts).index,
        priority=5, created=START, seq=1,
    )  # fmt: skip
    found = find_plan(state, COST, ask)
    state.index.victims = built
    assert find_plan(state, COST, ask) == found
    state.index.victims = patched


@examples(30)
@given(st.integers(0, 2**64))
def test_reading_ahead_changes_no_decision(seed):
    """Whether the index of victims is read in slices before the cycle, between steps or in it, the events are the same."""
    draw = Random(seed)
    ahead, plain = cluster(preempts=True), cluster(preempts=True)
    time, decided = START, 0
    for number in range(40):
        time += draw.choice((0, 1000, 31_000))
        proposals = [v.Proposal(input=change(draw, plain, number * 10 + one)) for one in range(4)]
        if draw.random() < 0.4:
            resources = {"vcore": draw.randrange(1, 9), "memory": draw.randrange(1, 9)}
            asked = v.AskSubmitted(
                ask=f"t{number}", application="x", queue="root.a", resources=resources, created=time
            )
            proposals.append(v.Proposal(input=asked))
        with patch.object(preemption, "SLICE", 1):
            found = ahead.step(time, proposals)
            while draw.random() < 0.5 and ahead.look_ahead():
                pass
        assert plain.step(time, proposals) == found
        decided += any(isinstance(event, v.PreemptionDecided) for event in found)
    assert ahead.next_due() == plain.next_due()
    event(f"{min(decided, 3)} steps or more with preemptions")


def test_what_was_read_ahead_is_not_read_again():
    """A cluster is read in slices between the steps while an ask waits for its turn; no step reads any until then."""
    engine = cluster(preempts=True)
    inputs = [v.NodeRegistered(node=f"n{one:02}", capacity={"vcore": 1}) for one in range(10)]
    inputs += [
        v.AllocationRestored(
            allocation=f"r{one}", application="app", queue="root.b", node=f"n{one:02}",
            resources={"vcore": 1},
        )
        for one in range(10)
    ]  # fmt: skip
    asked = v.AskSubmitted(
        ask="t", application="x", queue="root.a", resources={"vcore": 1}, created=START
    )
    read: list[int] = []
    slices = victim_pages.read

    def counted(state, cost, names, number):
        read.append(len(names))
        return slices(state, cost, names, number)

    with patch.object(preemption, "SLICE", 3), patch.object(victim_pages, "read", counted):
        engine.step(START, [v.Proposal(input=one) for one in inputs], decide=False)
        engine.step(START, [v.Proposal(input=asked)])
        assert read == []
        assert engine.look_ahead()
        assert engine.look_ahead()
        assert engine.look_ahead()
        assert not engine.look_ahead()
        assert not engine.look_ahead()
        events = engine.step(START + 31_000)
    assert read == [3, 3, 3, 1]
    assert any(isinstance(event, v.PreemptionDecided) for event in events)

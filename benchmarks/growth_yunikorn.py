"""How the cost of a YuniKorn step grows with the cluster: sizes that double, with the exponent.

*All different*: every ask has amounts and an application of its own, and nearly all of them fit into
what one task leaves. A step in which one task ends must not look at each of them. Limit: one first
fit over all of them in NumPy.

*Preemption*: full nodes of ten equal pods, and an ask that takes three of one node. The *later*
ones, which find the index of victims kept up to date, and those after a node *joined*, the next
allocation included, are measured by the median. Before the *first* one the index is read in slices,
as it is between the steps of a leader while an ask waits for its turn. Limit: one sum over all
allocations, by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from statistics import median

import numpy as np

from benchmarks import preemption
from benchmarks.clusters import START, cluster, taken_in, tree
from benchmarks.growth import exponent
from benchmarks.rows import Benchmark, Row, measured
from events.configuration import QueueSpec
from events.vocabulary import (
    AllocationReleased,
    AnyInput,
    AskSubmitted,
    NodeRegistered,
    Proposal,
)
from evsched.core.yunikorn import victims
from evsched.core.yunikorn.columns import columns_of
from evsched.core.yunikorn.guarantee import Plan
from evsched.core.yunikorn.preemption import SLICE

STEPS = 40
TARGET_MS = 3.0
EXPONENT = 1.1


def all_different(leaves: int, asks: int) -> tuple[float, float]:
    """Return the milliseconds of a step in which one task ends while all that waits is different, and of one first fit."""
    draw = Random(1)
    parents = max(1, leaves // 50)
    below = [
        QueueSpec(
            name=f"p{one}",
            parent=True,
            queues=tuple(QueueSpec(name=f"l{two}") for two in range(leaves // parents)),
        )
        for one in range(parents)
    ]
    inputs: list[AnyInput] = cluster(100, tree(*below))
    inputs += [
        AskSubmitted(
            ask=f"t{number}",
            application=f"one-{number}",
            queue=f"root.p{number % parents}.l{number // parents % (leaves // parents)}",
            resources={
                "vcore": draw.randrange(1000, 24_000),
                "memory": draw.randrange(1, 64) * 2**30 + number,
            },
            priority=draw.randrange(4),
            created=START,
        )
        for number in range(asks)
    ]
    engine = taken_in(inputs)
    engine.step(START)
    running = list(engine.state.allocations)
    draw.shuffle(running)
    with measured() as churning:
        for one in running[:STEPS]:
            engine.step(START, [Proposal(input=AllocationReleased(allocation=one))])
    amounts = [np.arange(asks) for _ in range(2)]
    with measured() as limit:
        for _ in range(STEPS):
            fits = (amounts[0] <= asks // 2) & (amounts[1] <= asks // 2)
            fits.argmax()
    return churning.seconds / STEPS * 1e3, limit.seconds / STEPS * 1e3


def curve(
    name: str,
    sizes: Iterable[int],
    target: float,
    measure: Callable[[int], tuple[float, float]],
    limit_name: str,
) -> Iterable[Row]:
    """Yield a row for each size and one for the exponent; the target is for the largest size, and smaller ones meet it too."""
    found: dict[int, float] = {}
    for size in sizes:
        found[size], limit = measure(size)
        yield Row(
            name=name.format(f"{size:,}"),
            value=found[size],
            unit="ms",
            better="less",
            target=target,
            limit=limit,
            limit_name=limit_name,
        )
    yield Row(
        name=f"the exponent of that, {min(found):,} to {max(found):,}",
        value=exponent(found),
        unit="",
        better="less",
        target=EXPONENT,
    )


def preemptions(nodes: int) -> dict[str, tuple[float, float]]:
    """Return milliseconds by what is measured (see above), each with the limit."""
    engine = preemption.ready(
        [*preemption.cluster(nodes, mixed=False), *preemption.asks(17, vcore=3000)]
    )
    state, times, joined = engine.state, [], []
    waiting = list(state.asks.values())
    columns_of(state)
    slices, left = [], True
    while left:
        with measured() as one:
            left = victims.prepare(state, preemption.COST, SLICE)
        slices.append(one.seconds * 1e3)
    for ask in waiting[:9]:
        with measured() as one:
            assert isinstance(preemption.decide(engine, ask), Plan)
        times.append(one.seconds * 1e3)
    for number, ask in enumerate(waiting[9:]):
        node = NodeRegistered(node=f"node-{number}-new", capacity={"vcore": 1})
        with measured() as one:
            engine.step(state.time, [Proposal(input=node)], decide=False)
            columns_of(state).place(state.types.shapes[ask.shape])
            assert isinstance(preemption.decide(engine, ask), Plan)
        joined.append(one.seconds * 1e3)
    limit = preemption.one_sum(engine)
    return {
        "slice": (max(slices), limit),
        "first": (times[0], limit),
        "later": (median(times[1:]), limit),
        "joined": (median(joined), limit),
    }


def nodes() -> Iterable[Row]:
    """Measure preemptions in clusters of up to 50,000 nodes: the first, later ones, and those after a node joined."""
    found = {size: preemptions(size) for size in (6_250, 12_500, 25_000, 50_000)}
    for key, name, target in (
        ("later", "a later preemption, {} nodes of 10 pods", 20.0),
        ("joined", "a node joins, allocation and next preemption, {} nodes of 10 pods", 20.0),
        ("slice", "the longest slice of what is read ahead, {} nodes of 10 pods", 50.0),
        ("first", "the first preemption after that, {} nodes of 10 pods", 100.0),
    ):
        yield from curve(
            name,
            found,
            target,
            lambda size, key=key: found[size][key],
            "one sum over all allocations",
        )


def different() -> Iterable[Row]:
    """Measure steps in which one task ends while tens of thousands of asks wait, all of them different."""
    for name, sizes, leaves in (
        ("1,000 leaves", (5_000, 10_000, 20_000, 40_000), 1000),
        ("2 leaves", (6_250, 12_500, 25_000, 50_000), 2),
    ):
        yield from curve(
            f"a step in which one task ends, {{}} asks all different in {name}",
            sizes,
            TARGET_MS,
            lambda asks, leaves=leaves: all_different(leaves, asks),
            "one first fit",
        )


BENCHMARKS: dict[str, Benchmark] = {"different": different, "nodes": nodes}

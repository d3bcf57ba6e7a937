"""How many asks are bound per second, and how long a step takes in which little happens.

Limit: the events that a cycle writes, taken through the reducer alone; what a cycle costs beyond that is deciding.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.clusters import START, from_file, taken_in, waiting
from benchmarks.rows import Benchmark, Row, measured
from events.vocabulary import AllocationBound, AllocationReleased, AnyInput, AskSubmitted, Proposal

TARGET = 15_000
PEER = "the peer: 11,200/s"


def bind(name: str, inputs: list[AnyInput], target: float | None = None, note: str = "") -> Row:
    """Measure the one step that binds all asks, events and reducer included."""
    engine, replayed = taken_in(inputs), taken_in(inputs)
    with measured() as binding:
        events = engine.step(START)
    with measured() as replaying:
        for event in events:
            replayed.apply(event, START)
    bound = sum(isinstance(event, AllocationBound) for event in events)
    assert engine.state.digest() == replayed.state.digest()
    return Row(
        name=f"asks bound, {name}",
        value=bound / binding.seconds,
        unit="asks/s",
        target=target,
        limit=bound / replaying.seconds,
        limit_name="the same events through the reducer alone",
        note=note,
    )


def flat() -> Iterable[Row]:
    """One priority."""
    for nodes, asks in ((1000, 10_000), (5000, 50_000)):
        inputs = from_file(f"alloc-{nodes}nodes-{asks}asks-flat") or waiting(nodes, asks, priorities=False)
        yield bind(f"{nodes} nodes, {asks} asks, one priority", inputs, TARGET, PEER if nodes == 5000 else "")


def prio() -> Iterable[Row]:
    """Many priorities."""
    for nodes, asks in ((1000, 10_000), (5000, 50_000)):
        inputs = from_file(f"alloc-{nodes}nodes-{asks}asks-prio") or waiting(nodes, asks, priorities=True)
        yield bind(f"{nodes} nodes, {asks} asks, ten priorities", inputs, TARGET, PEER if nodes == 5000 else "")


def shapes() -> Iterable[Row]:
    """Many different shapes, so that equal asks are rare."""
    yield bind("5000 nodes, 50000 asks of 500 shapes", waiting(5000, 50_000, priorities=True, shapes=500))


def full() -> Iterable[Row]:
    """A full cluster with a long queue: one task ends, one is bound, everybody else waits on."""
    engine = taken_in(waiting(500, 50_000, priorities=True, shapes=20))
    engine.step(START)
    running, waits = list(engine.state.allocations), len(engine.state.asks)
    steps = 2000
    with measured() as binding:
        bound = 0
        for name in running[:steps]:
            events = engine.step(START, [Proposal(input=AllocationReleased(allocation=name))])
            bound += sum(isinstance(event, AllocationBound) for event in events)
    yield Row(
        name=f"a step in which one task ends, {waits} asks wait in vain",
        value=binding.seconds / steps * 1e6,
        unit="us/step",
        better="less",
        note=f"{bound / steps:.2f} bound a step",
    )
    with measured() as idle:
        for number in range(steps):
            ask = AskSubmitted(ask=f"late{number}", application="app-0", resources={"vcore": 64_001}, created=START)
            engine.step(START, [Proposal(input=ask)])
    name = f"a step with an ask that fits nowhere, {waits} wait"
    yield Row(name=name, value=idle.seconds / steps * 1e6, unit="us/step", better="less")


BENCHMARKS: dict[str, Benchmark] = {"flat": flat, "prio": prio, "shapes": shapes, "full": full}

"""How many asks are bound per second, and how long a step takes in which little happens.

Limit: the events that a cycle writes, taken through the reducer alone; what a cycle costs beyond
that is deciding.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from benchmarks.clusters import START, cluster, from_file, leaf, taken_in, tree, waiting
from benchmarks.rows import Benchmark, Row, measured
from events.configuration import LimitSpec, QueueSpec
from events.vocabulary import AllocationBound, AllocationReleased, AnyInput, AskSubmitted, Proposal
from evsched.core.engine import Engine

TARGET = 15_000
PEER = "the peer: 11,200/s"
STEPS = 2000


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
        inputs = from_file(f"alloc-{nodes}nodes-{asks}asks-flat") or waiting(
            nodes, asks, priorities=False
        )
        yield bind(
            f"{nodes} nodes, {asks} asks, one priority",
            inputs,
            TARGET,
            PEER if nodes == 5000 else "",
        )


def prio() -> Iterable[Row]:
    """Many priorities."""
    for nodes, asks in ((1000, 10_000), (5000, 50_000)):
        inputs = from_file(f"alloc-{nodes}nodes-{asks}asks-prio") or waiting(
            nodes, asks, priorities=True
        )
        yield bind(
            f"{nodes} nodes, {asks} asks, ten priorities",
            inputs,
            TARGET,
            PEER if nodes == 5000 else "",
        )


def shapes() -> Iterable[Row]:
    """Many different shapes, so that equal asks are rare."""
    yield bind(
        "5000 nodes, 50000 asks of 500 shapes", waiting(5000, 50_000, priorities=True, shapes=500)
    )


def full() -> Iterable[Row]:
    """A full cluster with a long queue: one task ends, one is bound, everybody else waits on."""
    engine = taken_in(waiting(500, 50_000, priorities=True, shapes=20))
    yield churn(engine, "equal nodes, 20 shapes")
    waits = len(engine.state.asks)
    with measured() as idle:
        for number in range(STEPS):
            ask = AskSubmitted(
                ask=f"late{number}", application="app-0", resources={"vcore": 64_001}, created=START
            )
            engine.step(START, [Proposal(input=ask)])
    name = f"a step with an ask that fits nowhere, {waits} wait"
    yield Row(name=name, value=idle.seconds / STEPS * 1e6, unit="us/step", better="less")


def crowded() -> Iterable[Row]:
    """Full clusters that are hard to order: nearly every ask of its own shape; every leaf at its maximum; limits."""
    draw = Random(1)
    asks: list[AnyInput] = [
        AskSubmitted(
            ask=f"t{number}",
            application=f"one-{number}",
            queue=leaf(number % 2),
            resources={
                "vcore": draw.randrange(1000, 24_000),
                "memory": draw.randrange(1, 64) * 2**30,
            },
            priority=draw.randrange(4),
            created=START,
        )
        for number in range(8000)
    ]
    yield churn(taken_in([*cluster(200), *asks]), "every ask and application different", steps=200)
    below = tuple(QueueSpec(name=f"l{two}", maximum={"vcore": 5000}) for two in range(50))
    leaves = tuple(QueueSpec(name=f"p{one}", parent=True, queues=below) for one in range(20))
    asks = [
        ask(number, f"x{number % 1000}", f"root.p{number % 20}.l{number // 20 % 50}")
        for number in range(25_000)
    ]
    yield churn(taken_in([*cluster(200, tree(*leaves)), *asks]), "1,000 leaves at their maximum")
    queue = QueueSpec(name="a", max_applications=100)
    asks = [ask(number, f"x{number // 2}", "root.a") for number in range(10_000)]
    yield churn(taken_in([*cluster(200, tree(queue)), *asks]), "maxapplications 100", steps=150)
    queue = QueueSpec(name="a", limits=(LimitSpec(users=("*",), max_resources={"vcore": 10_000}),))
    asks = [
        ask(number, f"x{number // 4}", "root.a", f"u{number // 4 % 200}")
        for number in range(20_000)
    ]
    yield churn(
        taken_in([*cluster(200, tree(queue)), *asks]), "a limit for each of 200 users", steps=1000
    )
    asks = [ask(number, f"x{number // 4}", "root.a") for number in range(20_000)]
    for name, properties in (
        ("5,000 applications of a stateaware leaf", {"application.sort.policy": "stateaware"}),
        ("5,000 applications watched for a pause", {"application.unschedasks.backoff": "3"}),
    ):
        queue = QueueSpec(name="a", properties=properties)
        yield churn(taken_in([*cluster(200, tree(queue)), *asks]), name)


def ask(number: int, application: str, queue: str, user: str = "ann") -> AnyInput:
    """Return an ask of one core."""
    one_core = {"vcore": 1000}
    return AskSubmitted(
        ask=f"t{number}",
        application=application,
        queue=queue,
        user=user,
        resources=one_core,
        created=START,
    )


def churn(engine: Engine, name: str, steps: int = STEPS) -> Row:
    """Bind what fits, then measure steps in each of which one task ends."""
    engine.step(START)
    running, waits = list(engine.state.allocations), len(engine.state.asks)
    Random(3).shuffle(running)
    bound = 0
    with measured() as churning:
        for one in running[:steps]:
            events = engine.step(START, [Proposal(input=AllocationReleased(allocation=one))])
            bound += sum(isinstance(event, AllocationBound) for event in events)
    return Row(
        name=f"a step in which one task ends, {waits} wait, {name}",
        value=churning.seconds / steps * 1e6,
        unit="us/step",
        better="less",
        note=f"{bound / steps:.2f} bound a step",
    )


BENCHMARKS: dict[str, Benchmark] = {
    "flat": flat,
    "prio": prio,
    "shapes": shapes,
    "full": full,
    "crowded": crowded,
}

"""How long one preemption decision takes for an ask that is below its queue's guarantee, and how long asks that fail take.

*Uniform*: full nodes of ten equal pods in 50 leaves, an ask that takes three victims of one node
(the peer's own scenarios, which are used when they lie beside the repository). *Mixed*: pods of
many sizes and two resources, priorities, originators and opt-outs; an ask takes one, two or five of
them. *Failing*: no node can make room. *Backlog*: a whole cycle in which tens of thousands of asks
are tried in vain again.

The figure of a decision is its search and what applying it does to the indices; they are kept up to
date from one decision to the next, so the first one, which builds them, is shown by itself. Limit:
a single sum over all allocations in NumPy, by node.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from random import Random
from statistics import median

import numpy as np

from benchmarks.clusters import SHARED, START
from benchmarks.rows import Benchmark, Row, measured
from events.configuration import QueueSpec, YunikornSpec
from events.vocabulary import (
    AllocationRestored,
    AnyInput,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
    PreemptionDecided,
    Proposal,
    Victim,
)
from evsched.core.engine import Engine
from evsched.core.reducer import apply
from evsched.core.rules import RULES
from evsched.core.step import Step
from evsched.core.workloads import Ask
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import Failure, Plan, find_plan
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.victims import VictimIndex
from replays.scenarios.scenario import parse_scenario
from replays.scenarios.staging import Staging

TARGET_MS = 10.0
PEER_MS = {100: 23, 1000: 197, 5000: 1071}
COST = named("default", RULES[1])
DELAY_MS = 31_000


def from_file(nodes: int) -> list[AnyInput] | None:
    """Return the inputs of a scenario file beside the repository; None when it is not there."""
    path = SHARED / f"preempt-{nodes}nodes.json.gz"
    return (
        Staging(parse_scenario(gzip.decompress(path.read_bytes()), path.name)).beginning()
        if path.exists()
        else None
    )


def tree(
    guaranteed: dict[str, int], others: dict[str, int] | None
) -> tuple[ConfigurationApplied, list[str]]:
    """Return 50 leaves below five parents and their paths; the first has a guarantee of its own."""
    parents = []
    for parent in range(5):
        leaves = [
            QueueSpec(name=f"l{leaf}", guaranteed=others if parent or leaf else guaranteed)
            for leaf in range(10)
        ]
        parents.append(QueueSpec(name=f"p{parent}", parent=True, queues=tuple(leaves)))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=tuple(parents))
    paths = [f"root.p{parent}.l{leaf}" for parent in range(5) for leaf in range(10)]
    return ConfigurationApplied(configuration=YunikornSpec(root=root)), paths


def cluster(
    nodes: int, pods: int = 10, *, mixed: bool, others: dict[str, int] | None = None
) -> list[AnyInput]:
    """Return the inputs of a full cluster."""
    chance = Random(1)
    configuration, paths = tree({"vcore": 10**9, "memory": 10**12}, others)
    inputs: list[AnyInput] = [configuration]
    for number in range(nodes):
        used = {"vcore": 0, "memory": 0}
        here: list[AnyInput] = []
        for pod in range(pods):
            resources = {"vcore": 1000, "memory": 1000}
            if mixed:
                resources = {
                    "vcore": chance.choice([250, 500, 1000, 2000, 4000]),
                    "memory": chance.randrange(100, 8000),
                }
            for name, amount in resources.items():
                used[name] += amount
            leaf = paths[1 + (number * pods + pod) % (len(paths) - 1)]
            here.append(
                AllocationRestored(
                    allocation=f"r{number}-{pod}",
                    application=f"app-{leaf}",
                    queue=leaf,
                    node=f"node-{number:05}",
                    resources=resources,
                    priority=chance.choice([0, 0, 0, 5, 10]) if mixed else 0,
                    allow_preemption=not mixed or chance.random() < 0.9,
                    originator=mixed and chance.random() < 0.1,
                    created=START - chance.randrange(10**8),
                )
            )
        inputs += [NodeRegistered(node=f"node-{number:05}", capacity=used), *here]
    return inputs


def ready(inputs: list[AnyInput]) -> Engine:
    """Return an engine that has taken in everything and decided nothing."""
    engine = Engine()
    engine.step(START, [Proposal(input=one) for one in inputs], decide=False)
    engine.state.time = START + DELAY_MS
    return engine


def asks(count: int, **resources: int) -> list[AnyInput]:
    """Return equal asks of the leaf with the large guarantee."""
    return [
        AskSubmitted(
            ask=f"a{number}",
            application=f"new-{number}",
            queue="root.p0.l0",
            resources=resources,
            created=START,
        )
        for number in range(count)
    ]


def decide(engine: Engine, ask: Ask) -> Plan | Failure:
    """Look for a plan and, when there is one, write it down."""
    found = find_plan(engine.state, COST, ask)
    if isinstance(found, Plan):
        victims = tuple(Victim(id=one.id, queue=one.queue, reason="") for one in found.victims)
        fields = {"ask": ask.id, "node": found.node, "victims": victims, "algorithm": "guarantee"}
        Step(engine.state, engine.state.time, apply).emit(
            PreemptionDecided, cause=ask.seq, **fields
        )
    return found


def row(name: str, engine: Engine, note: str = "") -> Row:
    """Measure one ask after the other."""
    times: list[float] = []
    victims: list[int] = []
    for ask in list(engine.state.asks.values()):
        with measured() as one:
            found = decide(engine, ask)
        times.append(one.seconds * 1e3)
        victims.append(len(found.victims) if isinstance(found, Plan) else 0)
    return Row(
        name=f"preemption, {name}, {median(victims):.0f} victims",
        value=median(times[1:]),
        unit="ms",
        target=TARGET_MS,
        better="less",
        limit=one_sum(engine),
        limit_name="one sum over all allocations",
        note=f"{note}the first one {times[0]:.0f} ms, the slowest of the others {max(times[1:]):.1f} ms",
    )


def one_sum(engine: Engine) -> float:
    """Return the milliseconds of one sum by node."""
    index = index_of(engine.state).victims
    assert isinstance(index, VictimIndex)
    with measured() as watch:
        for _ in range(100):
            np.add.reduceat(np.where(index.flags == 0, index.amounts[0], 0), index.starts)
    return watch.seconds * 10


def uniform() -> Iterable[Row]:
    """The peer's own scenarios, or the like."""
    for nodes, peer_ms in PEER_MS.items():
        inputs = from_file(nodes) or [*cluster(nodes, mixed=False), *asks(20, vcore=3000)]
        yield row(f"{nodes} full nodes of 10 pods", ready(inputs), f"the peer: {peer_ms} ms; ")


def mixed() -> Iterable[Row]:
    """Many sizes, two resources, everything that laws and cost look at."""
    for amounts in (
        {"vcore": 3000},
        {"vcore": 6000, "memory": 9000},
        {"vcore": 14_000, "memory": 30_000},
    ):
        yield row(
            "5000 nodes of 10 mixed pods", ready([*cluster(5000, mixed=True), *asks(12, **amounts)])
        )
    yield row(
        "1000 nodes of 100 mixed pods",
        ready([*cluster(1000, 100, mixed=True), *asks(12, vcore=3000)]),
    )


def failing() -> Iterable[Row]:
    """Nothing may go, or what may go is too little."""
    guaranteed = ready([*cluster(5000, mixed=True, others={"vcore": 10**7}), *asks(12, vcore=3000)])
    yield row("5000 nodes, every queue at its guarantee", guaranteed)
    yield row(
        "5000 nodes, more than any node has",
        ready([*cluster(5000, mixed=True), *asks(12, vcore=500_000)]),
    )


def backlog() -> Iterator[Row]:
    """A cycle that tries everybody again, as after any change."""
    for name, sizes in (("50000 equal asks", 1), ("50000 asks of 1000 sizes", 1000)):
        inputs = cluster(5000, mixed=False)
        inputs += [
            AskSubmitted(
                ask=f"a{number}", application=f"new-{number % 50}", queue="root.p0.l0",
                resources={"vcore": 300_000 + number % sizes}, created=START,
            )
            for number in range(50_000)
        ]  # fmt: skip
        engine = ready(inputs)
        times = []
        for second in range(4):
            change = NodeRegistered(node=f"new-{second}", capacity={"vcore": 1})
            with measured() as one:
                engine.step(START + DELAY_MS + 2000 * second, [Proposal(input=change)])
            times.append(one.seconds * 1e3)
        note = f"the first cycle, which writes down why each of them fails, {times[0]:.0f} ms"
        yield Row(
            name=f"preemption cycle, {name} in vain",
            value=median(times[1:]),
            unit="ms",
            better="less",
            note=note,
        )


BENCHMARKS: dict[str, Benchmark] = {
    "uniform": uniform,
    "mixed": mixed,
    "failing": failing,
    "backlog": backlog,
}

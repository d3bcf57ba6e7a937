"""How long one quota enforcement takes, from the due timer to the applied decision.

The scenario files beside the repository are used when they are there; the other clusters are made
here: *equal* (50 leaves below five parents, tasks of one core, the maximum halved) and *mixed*
(sixteen sizes, two resources, priorities, originators, opt-outs, guarantees everywhere).

The figure is the whole step: the search for victims, the event, and what applying it does, which is
to request every eviction and to arm its timer. Each repetition starts from a snapshot, so nothing
is warm but the code; the median counts. Limit: the same event through the reducer alone; what a
step costs beyond that is deciding.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from benchmarks.clusters import SHARED, START
from benchmarks.rows import Benchmark, Row, measured
from events.configuration import QueueSpec, YunikornSpec
from events.vocabulary import (
    AllocationRestored,
    AnyInput,
    ConfigurationApplied,
    NodeRegistered,
    Proposal,
    QuotaPreemptionDecided,
)
from evsched.core import snapshot
from evsched.core.engine import Engine
from replays.scenarios.scenario import parse_scenario
from replays.scenarios.staging import Staging

TARGET_MS = 50.0
REPEAT = 9


class Case(NamedTuple):
    """A cluster whose timer is armed: a snapshot, the time of the snapshot, and when the timer is due."""

    data: bytes
    time: int
    due: int


def armed(first: list[AnyInput], second: list[AnyInput], start: int) -> Case:
    """Return a cluster that took in its first inputs, and then a configuration that lowers a maximum."""
    engine = Engine()
    for inputs in (first, second):
        engine.step(start, [Proposal(input=one) for one in inputs], decide=False)
    due = min(timer.due for timer in engine.state.timers.armed.values() if timer.kind == "quota")
    return Case(snapshot.encode(engine.state), start, due)


def from_file(name: str) -> Case | None:
    """Return the cluster of a scenario file beside the repository; None when it is not there."""
    path = SHARED / f"{name}.json.gz"
    if not path.exists():
        return None
    scenario = parse_scenario(gzip.decompress(path.read_bytes()), name)
    staging = Staging(scenario)
    lowered: list[AnyInput] = [
        staging.configured(step.config) for step in scenario.steps if step.config
    ]
    return armed(staging.beginning(), lowered, scenario.start_ms)


def made(count: int, *, mixed: bool) -> Case:
    """Return a cluster of so many tasks in 50 leaves."""
    chance = random.Random(1)
    sizes = (
        [{"vcore": 250 * (1 + i % 4), "memory": 2**28 * (1 + i // 4)} for i in range(16)]
        if mixed
        else [{"vcore": 1000}]
    )
    guaranteed = {"vcore": count * 3} if mixed else None
    used = 0
    tasks: list[AnyInput] = []
    for number in range(count):
        resources = chance.choice(sizes)
        used += resources["vcore"]
        leaf = number % 50
        tasks.append(
            AllocationRestored(
                allocation=f"t{number}",
                application=f"app-{leaf}-{number % 4}",
                queue=f"root.all.p{leaf // 10}.l{leaf % 10}",
                node=f"n{number // 10}",
                resources=resources,
                priority=chance.randrange(5) if mixed else 0,
                allow_preemption=not mixed or chance.random() < 0.9,
                originator=mixed and number < 200,
                created=START - chance.randrange(10**8),
            )
        )

    def tree(maximum: int, delay_ms: int | None) -> ConfigurationApplied:
        leaves = tuple(QueueSpec(name=f"l{i}", guaranteed=guaranteed) for i in range(10))
        parents = tuple(QueueSpec(name=f"p{i}", parent=True, queues=leaves) for i in range(5))
        whole = QueueSpec(
            name="all",
            parent=True,
            queues=parents,
            maximum={"vcore": maximum},
            quota_preemption_delay_ms=delay_ms,
        )
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(whole,))
        return ConfigurationApplied(
            configuration=YunikornSpec(root=root, quota_preemption_enabled=True)
        )

    nodes = [
        NodeRegistered(node=f"n{i}", capacity={"vcore": 10_000, "memory": 2**40})
        for i in range(count // 10)
    ]
    return armed([tree(used, None), *nodes, *tasks], [tree(used // 2, 60_000)], START)


def enforce(name: str, case: Case, note: str = "") -> Row:
    """Measure the step in which the timer fires."""
    deciding, replaying, victims = [], [], 0
    for _ in range(REPEAT):
        engine = Engine(snapshot.decode(case.data, case.time))
        with measured() as step:
            events = engine.step(case.due)
        deciding.append(step.seconds)
        victims = sum(
            len(event.victims) for event in events if isinstance(event, QuotaPreemptionDecided)
        )
        replayed = Engine(snapshot.decode(case.data, case.time))
        with measured() as apply:
            for event in events:
                replayed.apply(event, case.due)
        replaying.append(apply.seconds)
        assert engine.state.digest() == replayed.state.digest()
    return Row(
        name=f"quota enforcement, {name}, {victims} victims",
        value=median(deciding) * 1e3,
        unit="ms",
        target=TARGET_MS,
        better="less",
        limit=median(replaying) * 1e3,
        limit_name="the same event through the reducer alone",
        note=note,
    )


def recorded() -> Iterable[Row]:
    """The peer's own scenarios, or the like."""
    for count, peer_ms in ((10_000, 64), (50_000, 350)):
        case = from_file(f"quota-{count}allocs") or made(count, mixed=False)
        yield enforce(f"{count} equal allocations", case, f"the peer: {peer_ms} ms")


def mixed() -> Iterable[Row]:
    """Many sizes and guarantees, so that equal neighbours are rare."""
    yield enforce("50000 allocations of 16 sizes", made(50_000, mixed=True))


BENCHMARKS: dict[str, Benchmark] = {"recorded": recorded, "mixed": mixed}

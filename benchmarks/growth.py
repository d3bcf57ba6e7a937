"""How the cost of a step grows with the cluster: the same work at sizes that double, with its exponent.

A step must cost what it changes, not what is there. So each curve measures one everyday change (a
workload ends) in clusters of growing size, and the exponent is the slope of a straight line through
the logarithms: 0 is a cost that does not depend on the size, 1 one that is proportional to it.

*tree* is one cohort tree of four levels with ten workloads a ClusterQueue, oversubscribed by three
quarters, so that nearly every queue has waiting workloads and many of them could preempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random

from benchmarks.kueue import START, configuration, group
from benchmarks.rows import Benchmark, Row, measured
from events.configuration import ClusterQueueSpec, CohortSpec
from events.vocabulary import AllocationReleased, AnyInput, AskSubmitted, Proposal, RulesAdopted
from evsched.core.engine import Engine
from evsched.core.rules import NEWEST

TREE_SIZES = (25, 50, 100, 200, 400)
TREE_TARGET_MS = {400: 50.0, 1000: 100.0, 4000: 200.0}
WORKLOADS = 10
WIDE_SIZES = (625, 1250, 2500, 5000, 10_000)
WIDE_TARGET_MS = {"ends": 20.0, "is submitted": 5.0}
FEW_WORKLOADS = 4
ENDS = 20
EXPONENT = 1.1


def tree(
    queues: int, *, fair: bool, workloads: int = WORKLOADS, preempts: bool = True
) -> list[AnyInput]:
    """Return one cohort tree with waiting workloads: a top, divisions, teams, ClusterQueues."""
    chance = Random(1)
    wide = max(2, round(queues ** (1 / 3)))
    cohorts = [CohortSpec(name="top")]
    cohorts += [CohortSpec(name=f"d{i}", parent="top") for i in range(wide)]
    cohorts += [CohortSpec(name=f"t{i}", parent=f"d{i % wide}") for i in range(wide * wide)]
    policies = {
        "within_cluster_queue": "LowerPriority" if preempts else "Never",
        "reclaim_within_cohort": "Any" if preempts else "Never",
    }
    specs = [
        ClusterQueueSpec(
            name=f"q{i}",
            cohort=f"t{i % (wide * wide)}",
            groups=group(cpu=4 * workloads),
            **policies,
        )
        for i in range(queues)
    ]
    asks = [
        AskSubmitted(
            ask=f"w{number}-{i}",
            queue=f"q{number}",
            resources={"cpu": chance.randrange(2, 13)},
            priority=chance.randrange(5),
            created=START - chance.randrange(1_000_000),
        )
        for number in range(queues)
        for i in range(workloads)
    ]
    return [configuration(specs, fair=fair, cohorts=tuple(cohorts)), *asks]


class Clock:
    """Takes the steps of an engine one after the other, each as soon as it is due.

    Attributes:
        longest: CPU seconds of the longest step so far.
        steps: CPU seconds of each.
    """

    def __init__(self, engine: Engine) -> None:
        """Begin at the start of the benchmarks' time."""
        self.engine = engine
        self.now = START
        self.steps: list[float] = []

    def take(self, *inputs: AnyInput) -> None:
        """Take one step with these inputs, and those that are due at once after it."""
        proposals = [Proposal(input=one) for one in inputs]
        while True:
            with measured() as watch:
                self.engine.step(self.now, proposals)
            self.steps.append(watch.seconds)
            proposals = []
            due = self.engine.next_due()
            if due is None or due > self.now + 1:
                return
            self.now = max(self.now, due)

    def evict(self) -> None:
        """Let everything leave that was asked to, until nobody is any more."""
        for _ in range(100):
            leaving = [
                one.id for one in self.engine.state.allocations.values() if one.eviction_requested
            ]
            if not leaving:
                return
            self.now += 1
            self.take(*(AllocationReleased(allocation=name) for name in leaving))


def after_ends(queues: int, *, fair: bool) -> float:
    """Return the 99th percentile of the milliseconds of a step after one workload of a full tree ended."""
    engine = Engine()
    engine.step(START, [Proposal(input=RulesAdopted(rules=NEWEST))])
    engine.step(START, [Proposal(input=one) for one in tree(queues, fair=fair)], decide=False)
    clock = Clock(engine)
    clock.take()
    clock.evict()
    chance = Random(2)
    clock.steps.clear()
    for _ in range(ENDS):
        clock.now += 1
        clock.take(AllocationReleased(allocation=chance.choice(sorted(engine.state.allocations))))
    return sorted(clock.steps)[int(len(clock.steps) * 0.99)] * 1000


def without_preemption(queues: int) -> Iterable[tuple[str, float]]:
    """Yield the 99th percentiles of a step, in ms, after one workload ended and after one was submitted; none preempts."""
    engine = Engine()
    engine.step(START, [Proposal(input=RulesAdopted(rules=NEWEST))])
    inputs = tree(queues, fair=False, workloads=FEW_WORKLOADS, preempts=False)
    engine.step(START, [Proposal(input=one) for one in inputs], decide=False)
    clock, chance = Clock(engine), Random(2)
    clock.take()

    def gone() -> AnyInput:
        return AllocationReleased(allocation=chance.choice(sorted(engine.state.allocations)))

    def come() -> AnyInput:
        number = len(clock.steps)
        return AskSubmitted(
            ask=f"n{number}", queue=f"q{chance.randrange(queues)}", resources={"cpu": 9}
        )

    for what, make in (("ends", gone), ("is submitted", come)):
        clock.steps.clear()
        for _ in range(ENDS):
            clock.now += 1
            clock.take(make())
        yield what, sorted(clock.steps)[int(len(clock.steps) * 0.99)] * 1000


def exponent(curve: dict[int, float]) -> float:
    """Return the slope of the straight line through the logarithms of sizes and times."""
    points = [(math.log(size), math.log(max(value, 1e-9))) for size, value in curve.items()]
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    above = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
    return above / sum((x - middle[0]) ** 2 for x, _ in points)


def curve(name: str, sizes: Iterable[int], measure: Callable[[int], float]) -> Iterable[Row]:
    """Yield a row for each size, and one for the exponent."""
    found: dict[int, float] = {}
    for size in sizes:
        found[size] = measure(size)
        yield Row(
            name=name.format(size),
            value=found[size],
            unit="ms",
            better="less",
            target=TREE_TARGET_MS.get(size),
        )
    low, high = min(found), max(found)
    yield Row(
        name=f"the exponent of that, {low} to {high}",
        value=exponent(found),
        unit="",
        better="less",
        target=EXPONENT,
    )


def trees() -> Iterable[Row]:
    """Measure what the end of one workload costs in one cohort tree, classic and fair."""
    for fair in (False, True):
        name = "Kueue, one tree of {} queues, " + ("fair sharing" if fair else "classic")
        yield from curve(
            f"{name}, one workload ends, p99 step",
            TREE_SIZES,
            lambda queues, fair=fair: after_ends(queues, fair=fair),
        )


def wide_trees() -> Iterable[Row]:
    """Measure the end and the submission of one workload in wide trees in which none preempts."""
    found: dict[str, dict[int, float]] = {}
    for size in WIDE_SIZES:
        for what, value in without_preemption(size):
            found.setdefault(what, {})[size] = value
    for what, values in found.items():
        for size, value in values.items():
            yield Row(
                name=f"Kueue, one tree of {size} queues, no preemption, one workload {what}, p99 step",
                value=value,
                unit="ms",
                better="less",
                target=WIDE_TARGET_MS[what] if size == WIDE_SIZES[-1] else None,
            )
        yield Row(
            name=f"the exponent of that, one workload {what}",
            value=exponent(values),
            unit="",
            better="less",
            target=EXPONENT,
        )


BENCHMARKS: dict[str, Benchmark] = {"trees": trees, "wide-trees": wide_trees}

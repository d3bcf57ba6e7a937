"""How long one victim search of Kueue takes, and how fast cycles admit.

The scenario files beside the repository are used when they are there, and their victims compared;
else cohorts of the same shape are made: one flat cohort, half of the queues use half of their
quota, the other half one and a half times theirs. *few* asks for two or three victims, *many* for
the whole nominal quota back, *fail* can never succeed. *trees* are cohorts in cohorts with two
resources, which the files have not.

A search is measured on a ready state: the first one builds the index of candidates, which is told
of every change from then on; what that costs is a row of its own. The limit of a search is one look
at every borrowing queue.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.rows import Benchmark, Row, measured
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    KueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from events.vocabulary import (
    AllocationBound,
    AllocationRestored,
    AnyInput,
    AskSubmitted,
    ConfigurationApplied,
    Proposal,
)
from evsched.core.engine import Engine
from evsched.core.kueue.model import quota_of
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.trial import QuotaOverlay
from replays.scenarios.kueue import parts_of, requirements
from replays.scenarios.scenario import Scenario, parse_scenario
from replays.scenarios.staging import Staging

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "perf" / "kueue"
START = 1_767_225_600_000
SIZES = ((10, 10), (10, 100), (100, 100), (1000, 10), (1000, 100))
PEER_MS = {
    ("classic", "few"): 333,
    ("fair", "few"): 355,
    ("classic", "fail"): 420,
    ("fair", "fail"): 1534,
}
"""What the real scheduler needs at 1,000 x 100."""
TARGET_MS = {"few": 10.0, "many": 10.0, "fail": 100.0}
SMALL_TARGET_MS = 0.5
BATCHES, SEARCHES = 9, 5


def target_ms(kind: str, queues: int, workloads: int) -> float | None:
    """Return what is promised for a size; None when nothing is."""
    if (queues, workloads) == (10, 10):
        return SMALL_TARGET_MS
    return TARGET_MS[kind] if (queues, workloads) == (1000, 100) else None


# --------------------------------------------------------------------------------------- partitions


def group(**nominal: int) -> tuple[ResourceGroupSpec, ...]:
    """Return quotas in one flavor."""
    quotas = {name: QuotaSpec(nominal=amount) for name, amount in nominal.items()}
    return (
        ResourceGroupSpec(
            resources=tuple(nominal), flavors=(FlavorQuotaSpec(flavor="default", quotas=quotas),)
        ),
    )


def configuration(
    queues: Iterable[ClusterQueueSpec], *, fair: bool, cohorts: tuple[CohortSpec, ...] = ()
) -> ConfigurationApplied:
    """Return the configuration of some ClusterQueues."""
    strategies = ("LessThanOrEqualToFinalShare", "LessThanInitialShare") if fair else ()
    spec = KueueSpec(
        cluster_queues=tuple(queues), cohorts=cohorts, fair_sharing=fair, fair_strategies=strategies
    )
    return ConfigurationApplied(configuration=spec)


def workload(number: int, queue: str, chance: Random, **resources: int) -> AllocationRestored:
    """Return a workload that runs."""
    age = chance.randrange(100_000)
    return AllocationRestored(
        allocation=f"w{number}",
        queue=queue,
        resources=resources,
        flavors=dict.fromkeys(resources, "default"),
        priority=chance.randrange(10),
        created=START - age,
        admitted=START - age,
    )


def made(kind: str, queues: int, workloads: int, *, fair: bool) -> list[AnyInput]:
    """Return a flat cohort of the shape of the scenario files."""
    chance, nominal = Random(1), workloads * 10_000
    policies = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
    specs = [
        ClusterQueueSpec(name=f"q{i}", cohort="pool", groups=group(cpu=nominal), **policies)
        for i in range(queues)
    ]
    inputs: list[AnyInput] = [configuration(specs, fair=fair)]
    for number in range(queues):
        size = 5000 if number % 2 else 15_000
        if number == 0:
            size = 0 if kind == "many" else 8000
        elif number == 1:
            size = 20_000 if kind == "many" else 12_000
        inputs += [
            workload(number * workloads + i, f"q{number}", chance, cpu=size)
            for i in range(workloads if size else 0)
        ]
    amount = {"few": 40_000, "many": nominal, "fail": 9 * queues * nominal // 10}[kind]
    ask = AskSubmitted(
        ask="ask",
        queue="q0",
        resources={"cpu": amount},
        flavors={"cpu": "default"},
        priority=5,
        created=START,
    )
    return [*inputs, ask]


def tree(queues: int, workloads: int, *, fair: bool) -> list[AnyInput]:
    """Return cohorts in cohorts: one top, ten divisions, ten teams each with a little quota of their own; two resources."""
    chance = Random(1)
    cohorts = [CohortSpec(name="top"), *(CohortSpec(name=f"d{i}", parent="top") for i in range(10))]
    cohorts += [
        CohortSpec(name=f"t{i}", parent=f"d{i % 10}", groups=group(cpu=workloads, memory=workloads))
        for i in range(100)
    ]
    policies = {
        "within_cluster_queue": "LowerPriority",
        "reclaim_within_cohort": "Any",
        "borrow_within_cohort": "LowerPriority",
    }
    quotas = group(cpu=workloads * 10, memory=workloads * 10)
    specs = [
        ClusterQueueSpec(name=f"q{i}", cohort=f"t{i % 100}", groups=quotas, **policies)
        for i in range(queues)
    ]
    inputs: list[AnyInput] = [configuration(specs, fair=fair, cohorts=tuple(cohorts))]
    for number in range(queues):
        size = 5 if number % 3 else 20
        for i in range(workloads if number else 0):
            resources = {"cpu": size, "memory": chance.randint(1, size)}
            inputs.append(workload(number * workloads + i, f"q{number}", chance, **resources))
    wanted = {"cpu": workloads * 8, "memory": workloads * 2}
    ask = AskSubmitted(
        ask="ask", queue="q0", resources=wanted, flavors=dict.fromkeys(wanted, "default"), priority=5, created=START,
        preempt_resources=tuple(wanted),
    )  # fmt: skip
    return [*inputs, ask]


def from_file(name: str) -> Scenario | None:
    """Return a scenario of the files beside the repository; None when they are not there."""
    path = FOLDER / f"{name}.json.gz"
    return parse_scenario(gzip.decompress(path.read_bytes()), name) if path.exists() else None


def expected(scenario: Scenario) -> list[str]:
    """Return the ids of the victims that the file has, sorted."""
    preemptions = (scenario.observed.preemptions if scenario.observed is not None else None) or ()
    return sorted(
        victim if isinstance(victim, str) else victim.id
        for one in preemptions
        for victim in one.victims
    )


# ------------------------------------------------------------------------------------------ figures


def ready(inputs: list[AnyInput]) -> Engine:
    """Return an engine that has taken in everything and decided nothing."""
    engine = Engine()
    engine.step(START, [Proposal(input=one) for one in inputs], decide=False)
    return engine


def search(engine: Engine) -> list[str]:
    """Search victims for the only ask; return their ids, sorted."""
    state = engine.state
    (ask,) = state.asks.values()
    queue = quota_of(state.queues[ask.queue])
    parts = parts_of(state, ask)
    trial = QuotaOverlay()
    request, contested = requirements(state, trial, queue, parts or [])
    targets = Searcher(state).search(trial, ask, queue, request or {}, contested)
    return sorted(target.allocation.id for target in targets)


def look(engine: Engine) -> int:
    """Look once at every queue that borrows, which no search can do without."""
    (ask,) = engine.state.asks.values()
    levels, used = [quota_of(engine.state.queues[ask.queue]).top], 0
    for level in levels:
        for index, children in level.borrowers.items():
            for child in children:
                if child.spec is None and child not in levels:
                    levels.append(child)
                used += child.usage.get(index, 0)
    return used


def rows(
    name: str,
    inputs: list[AnyInput],
    target: float | None,
    note: str = "",
    want: list[str] | None = None,
) -> Iterable[Row]:
    """Measure the first search, then those on the ready state."""
    engine = ready(inputs)
    with measured() as first:
        victims = search(engine)
    assert want is None or victims == want, f"{name}: {victims} found, {want} recorded"
    times, looks = [], []
    for _ in range(BATCHES):
        with measured() as batch:
            for _ in range(SEARCHES):
                search(engine)
        times.append(batch.seconds / SEARCHES)
        with measured() as batch:
            for _ in range(SEARCHES):
                look(engine)
        looks.append(batch.seconds / SEARCHES)
    yield Row(
        name=f"{name}, {len(victims)} victims",
        value=median(times) * 1e3,
        unit="ms",
        target=target,
        better="less",
        limit=median(looks) * 1e3,
        limit_name="one look at every borrowing queue",
        note=f"{note}the first one {first.seconds * 1e3:.1f} ms",
    )


def searches(algorithm: str) -> Iterable[Row]:
    """All sizes and kinds of one algorithm."""
    for kind in TARGET_MS:
        for queues, workloads in SIZES:
            scenario = from_file(f"{algorithm}-{kind}-{queues:04}x{workloads:03}")
            inputs = (
                made(kind, queues, workloads, fair=algorithm == "fair")
                if scenario is None
                else Staging(scenario).beginning()
            )
            want = None if scenario is None else expected(scenario)
            peer = PEER_MS.get((algorithm, kind)) if (queues, workloads) == (1000, 100) else None
            note = f"the peer: {peer} ms; " if peer else ""
            yield from rows(
                f"{algorithm} {kind} {queues} x {workloads}",
                inputs,
                target_ms(kind, queues, workloads),
                note,
                want,
            )


def classic() -> Iterable[Row]:
    """The classic search."""
    return searches("classic")


def fair() -> Iterable[Row]:
    """The fair search."""
    return searches("fair")


def trees() -> Iterable[Row]:
    """Cohorts in cohorts, two resources."""
    for algorithm in ("classic", "fair"):
        yield from rows(
            f"{algorithm} in a tree of 111 cohorts, 1000 x 50",
            tree(1000, 50, fair=algorithm == "fair"),
            10.0,
        )


def admission() -> Iterable[Row]:
    """Ten asks for each of a thousand queues, all admitted in one step of ten cycles."""
    for algorithm in ("classic", "fair"):
        specs = [
            ClusterQueueSpec(name=f"q{i}", cohort="pool", groups=group(cpu=10)) for i in range(1000)
        ]
        asks = [
            AskSubmitted(ask=f"a{i}-{n}", queue=f"q{i}", resources={"cpu": 1})
            for i in range(1000)
            for n in range(10)
        ]
        engine = ready([configuration(specs, fair=algorithm == "fair"), *asks])
        with measured() as deciding:
            events = engine.step(START)
        admitted = sum(isinstance(event, AllocationBound) for event in events)
        yield Row(
            name=f"admissions, {algorithm}, {admitted} in 1000 queues",
            value=admitted / deciding.seconds,
            unit="/s",
        )


BENCHMARKS: dict[str, Benchmark] = {
    "classic": classic,
    "fair": fair,
    "trees": trees,
    "admission": admission,
}

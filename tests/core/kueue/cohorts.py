"""Random cohort trees with workloads in them, small enough for the naive searches."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    KueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from evsched.core.engine import Engine
from tests.core.kueue.naive import Tree, Work, fits

START = 1_767_225_600_000
FLAVORS = ("a", "b")
RESOURCES = ("cpu", "memory")
COHORTS = ("top", "left", "right", "deep")
PARENTS = {"left": "top", "right": "top", "deep": "left"}
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
WEIGHTS = (0, 500_000_000, 1_000_000_000, 1_000_000_000, 3_000_000_000)


def _groups(dice: Random, *, limits: bool, most: int) -> tuple[ResourceGroupSpec, ...]:
    """Return one resource group over both flavors."""

    def limit() -> int | None:
        return dice.randint(0, 6) if limits and dice.random() < 0.25 else None

    def quota() -> QuotaSpec:
        nominal, lending = dice.randint(0, most), limit()
        return QuotaSpec(
            nominal=nominal,
            borrowing_limit=limit(),
            lending_limit=None if lending is None else min(lending, nominal),
        )

    flavors = tuple(
        FlavorQuotaSpec(flavor=flavor, quotas={name: quota() for name in RESOURCES})
        for flavor in FLAVORS
    )
    return (ResourceGroupSpec(resources=RESOURCES, flavors=flavors),)


def configuration(dice: Random, *, fair: bool) -> KueueSpec:
    """Return some ClusterQueues in up to four cohorts, with random quotas, limits, weights and policies."""
    cohorts = tuple(
        CohortSpec(
            name=name,
            parent=PARENTS.get(name),
            groups=_groups(dice, limits=name != "top", most=2) if dice.random() < 0.3 else (),
            weight_nano=dice.choice(WEIGHTS),
        )
        for name in COHORTS
    )
    flat = dice.random() < 0.3
    queues = []
    for number in range(dice.randint(2, 6)):
        cohort = "top" if flat else dice.choice((*COHORTS, *COHORTS, *COHORTS, None))
        reclaim = dice.choice(["Any", "Any", "LowerPriority", "Never"])
        borrow = dice.choice(["Never", "LowerPriority"]) if reclaim != "Never" else "Never"
        queues.append(
            ClusterQueueSpec(
                name=f"q{number}",
                cohort=cohort,
                groups=_groups(dice, limits=cohort is not None, most=8),
                strict_fifo=dice.random() < 0.3,
                within_cluster_queue=dice.choice(
                    ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
                ),
                reclaim_within_cohort=reclaim,
                borrow_within_cohort=borrow,
                max_priority_threshold=dice.choice([None, 0, 1, 2]) if borrow != "Never" else None,
                weight_nano=dice.choice(WEIGHTS),
                when_can_preempt=dice.choice(["MayStopSearch", "TryNextFlavor"]),
            )
        )
    return KueueSpec(
        cohorts=cohorts,
        cluster_queues=tuple(queues),
        fair_sharing=fair,
        fair_strategies=dice.choice([(FINAL,), (INITIAL,), (FINAL, INITIAL)]),
        preempt_within_nominal=dice.random() < 0.7,
    )


def random_limits(dice: Random, spec: KueueSpec) -> KueueSpec:
    """Return a configuration with the same queues, some with other quotas, some on hold, perhaps one missing."""
    queues = []
    for one in spec.cluster_queues:
        changed = one
        if dice.random() < 0.4:
            changed = replace(changed, groups=_groups(dice, limits=one.cohort is not None, most=8))
        if dice.random() < 0.4:
            changed = replace(
                changed, stop_policy=dice.choice(["None", "None", "Hold", "HoldAndDrain"])
            )
        if dice.random() < 0.4:
            changed = replace(changed, quota_preemption_delay_ms=dice.choice([0, 1000, 60_000]))
        queues.append(changed)
    if len(queues) > 2 and dice.random() < 0.2:
        queues.pop(dice.randrange(len(queues)))
    return replace(spec, cluster_queues=tuple(queues))


def _work(dice: Random, spec: KueueSpec, name: str, most: int) -> Work:
    """Return a workload of some queue."""
    flavor = dice.choice((*FLAVORS[:1], *FLAVORS))
    amounts = {"cpu": dice.randint(1, most)}
    if dice.random() < 0.3:
        amounts["memory"] = dice.randint(0, most)
    return Work(
        id=name,
        queue=dice.choice(spec.cluster_queues).name,
        usage=tuple(((flavor, resource), amount) for resource, amount in amounts.items()),
        priority=dice.randint(-1, 3),
        created=START - dice.randint(0, 5) * 1000,
        admitted=START - dice.randint(0, 5) * 1000,
        evicted=dice.random() < 0.1,
    )


def problem(seed: int, *, fair: bool) -> tuple[KueueSpec, list[Work], Work]:
    """Return a configuration, what runs (as much as fits, sometimes more), and an ask with its flavors."""
    dice = Random(seed)
    spec = configuration(dice, fair=fair)
    tree, careful = Tree(spec, []), dice.random() < 0.8
    for number in range(dice.randint(4, 18)):
        work = _work(dice, spec, f"w{number:02}", 4)
        if not careful or fits(tree, work):
            tree.running.append(work)
    for _ in range(5):
        ask = _work(dice, spec, "ask", 6)
        if not fits(tree, ask) and all(
            amount <= tree.potential(("q", ask.queue), key) for key, amount in ask.usage
        ):
            break
    return spec, tree.running, ask


def problems(*, fair: bool) -> st.SearchStrategy[tuple[KueueSpec, list[Work], Work]]:
    """Return a configuration, what runs, and an ask; drawn by a seed, as plain draws hardly ever give a full cohort."""
    return st.integers(0, 2**32).map(lambda seed: problem(seed, fair=fair))


def restored(one: Work) -> v.AllocationRestored:
    """Return the input that brings in a workload that runs."""
    return v.AllocationRestored(
        allocation=one.id,
        queue=one.queue,
        resources={key[1]: amount for key, amount in one.usage},
        flavors={key[1]: key[0] for key, _ in one.usage},
        priority=one.priority,
        created=one.created,
        admitted=one.admitted,
        evicted=one.evicted,
    )


def submitted(one: Work) -> v.AskSubmitted:
    """Return the input that brings in an ask with fixed flavors."""
    return v.AskSubmitted(
        ask=one.id,
        queue=one.queue,
        resources={key[1]: amount for key, amount in one.usage},
        flavors={key[1]: key[0] for key, _ in one.usage},
        priority=one.priority,
        created=one.created,
    )


def engine_with(spec: KueueSpec, running: list[Work], ask: Work | None = None) -> Engine:
    """Return an engine in this situation that has decided nothing."""
    engine = Engine()
    inputs = [v.ConfigurationApplied(configuration=spec), *map(restored, running)]
    if ask is not None:
        inputs.append(submitted(ask))
    events = engine.step(START, [v.Proposal(input=one) for one in inputs], decide=False)
    assert not [event for event in events if isinstance(event, v.InputRejected)], events
    return engine

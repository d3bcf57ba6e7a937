"""Random cohort trees with workloads in them, small enough for the naive searches."""

from __future__ import annotations

from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import ClusterQueueSpec, CohortSpec, FlavorQuotaSpec, KueueSpec, QuotaSpec, ResourceGroupSpec
from evsched.core.engine import Engine
from tests.core.kueue.naive import Work

START = 1_767_225_600_000
FLAVORS = ("a", "b")
RESOURCES = ("cpu", "memory")
COHORTS = ("top", "left", "right", "deep")
PARENTS = {"left": "top", "right": "top", "deep": "left"}
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
WEIGHTS = (0, 500_000_000, 1_000_000_000, 1_000_000_000, 3_000_000_000)


@st.composite
def groups(draw: st.DrawFn, *, limits: bool, resources: int = 2) -> tuple[ResourceGroupSpec, ...]:
    """Return one resource group over both flavors."""
    names = RESOURCES[:resources]
    optional = st.none() | st.integers(0, 6) if limits else st.none()

    def quota() -> QuotaSpec:
        nominal = draw(st.integers(0, 8))
        lending = draw(optional)
        return QuotaSpec(nominal=nominal, borrowing_limit=draw(optional), lending_limit=None if lending is None else min(lending, nominal))

    flavors = tuple(FlavorQuotaSpec(flavor=flavor, quotas={name: quota() for name in names}) for flavor in FLAVORS)
    return (ResourceGroupSpec(resources=names, flavors=flavors),)


@st.composite
def configurations(draw: st.DrawFn, *, fair: bool | None = None) -> KueueSpec:
    """Return up to five ClusterQueues in up to four cohorts, with random quotas, limits, weights and policies."""
    cohorts = tuple(
        CohortSpec(
            name=name,
            parent=PARENTS.get(name),
            groups=draw(st.just(()) | groups(limits=name != "top")),
            weight_nano=draw(st.sampled_from(WEIGHTS)),
        )
        for name in COHORTS
    )
    queues = []
    for number in range(draw(st.integers(2, 5))):
        cohort = draw(st.sampled_from((*COHORTS, *COHORTS, None)))
        reclaim = draw(st.sampled_from(["Any", "LowerPriority", "Never"]))
        queues.append(
            ClusterQueueSpec(
                name=f"q{number}",
                cohort=cohort,
                groups=draw(groups(limits=cohort is not None)),
                strict_fifo=draw(st.booleans()),
                within_cluster_queue=draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
                reclaim_within_cohort=reclaim,
                borrow_within_cohort=draw(st.sampled_from(["Never", "LowerPriority"])) if reclaim != "Never" else "Never",
                max_priority_threshold=draw(st.none() | st.integers(-1, 2)),
                weight_nano=draw(st.sampled_from(WEIGHTS)),
                when_can_preempt=draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            )
        )
    return KueueSpec(
        cohorts=cohorts,
        cluster_queues=tuple(queues),
        fair_sharing=draw(st.booleans()) if fair is None else fair,
        fair_strategies=draw(st.sampled_from([(FINAL,), (INITIAL,), (FINAL, INITIAL)])),
        preempt_within_nominal=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def works(draw: st.DrawFn, spec: KueueSpec, name: str, *, most: int = 4) -> Work:
    """Return a workload of some queue."""
    flavor = draw(st.sampled_from(FLAVORS))
    amounts = draw(st.fixed_dictionaries({"cpu": st.integers(0, most)}, optional={"memory": st.integers(1, most)}))
    return Work(
        id=name,
        queue=draw(st.sampled_from([one.name for one in spec.cluster_queues])),
        usage=tuple(((flavor, resource), amount) for resource, amount in amounts.items()),
        priority=draw(st.integers(-1, 3)),
        created=START - draw(st.integers(0, 5)) * 1000,
        admitted=START - draw(st.integers(0, 5)) * 1000,
        evicted=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def problems(draw: st.DrawFn, *, fair: bool) -> tuple[KueueSpec, list[Work], Work]:
    """Return a configuration, what runs, and an ask with its flavors."""
    spec = draw(configurations(fair=fair))
    running = [draw(works(spec, f"w{number:02}")) for number in range(draw(st.integers(1, 12)))]
    return spec, running, draw(works(spec, "ask", most=9))


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

"""Two cluster partitions with a policy family each, over every kind of stream that needs no broker, with a clock that is told."""

import pytest

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    FlavorQuotaSpec,
    FlavorSpec,
    KueueSpec,
    QueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from events.streams import open_streams
from evsched.core.engine import Engine
from replays.checking.verify import verify
from tests.service.clocked import START, Leader

DELAY = 60_000


def manifests(nominal):
    """Return two ClusterQueues that share their cores; web has this many."""

    def queue(name, cores):
        flavor = FlavorQuotaSpec(flavor="f", quotas={"cpu": QuotaSpec(nominal=cores * 1000)})
        return ClusterQueueSpec(
            name=name, cohort="all", groups=(ResourceGroupSpec(resources=("cpu",), flavors=(flavor,)),),
            reclaim_within_cohort="Any", accepts_all_namespaces=True, quota_preemption_delay_ms=DELAY,
        )  # fmt: skip

    return KueueSpec(
        flavors=(FlavorSpec(name="f"),), cluster_queues=(queue("lab", 4), queue("web", nominal))
    )


def queues(maximum):
    """Return two queues of a node; test may use this many cores."""
    prod = QueueSpec(name="prod", guaranteed={"vcore": 4000}, properties={"preemption.delay": "1s"})
    test = QueueSpec(
        name="test", maximum={"vcore": maximum * 1000}, properties={"quota.preemption.delay": "60s"}
    )
    return YunikornSpec(
        root=QueueSpec(name="root", parent=True, queues=(prod, test)), quota_preemption_enabled=True
    )


FAMILIES = {
    0: (
        queues,
        "root.test",
        "root.prod",
        "vcore",
        [v.NodeRegistered(node="n1", capacity={"vcore": 10_000})],
    ),
    1: (manifests, "web", "lab", "cpu", []),
}
"""For each cluster partition: its configuration by the cores of the weaker side, both sides, the resource, what else there is."""


def asked(name, queue, resource):
    """Return an ask for two cores."""
    return v.AskSubmitted(ask=name, application=name[0], queue=queue, resources={resource: 2000})


async def preempted(leader, family):
    """Let the weaker side take everything and the stronger one reclaim; return the decision."""
    spec, weak, strong, resource, more = family
    asks = [asked(f"w{number}", weak, resource) for number in range(5)]
    await leader.happen(
        START, v.ConfigurationApplied(configuration=spec(10 if more else 6)), *more, *asks
    )
    found = [
        *await leader.happen(START + 1000, asked("s1", strong, resource)),
        *await leader.happen(START + 3000),
    ]
    (decided,) = (event for event in found if isinstance(event, v.PreemptionDecided))
    await leader.happen(
        START + 4000,
        *(v.AllocationReleased(allocation=one.id, reason="preempted") for one in decided.victims),
    )
    assert "s1" in leader.engine.state.allocations
    return decided


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_each_partition_keeps_its_family_across_a_restart(kind, tmp_path):
    """Both preempt, both have a quota lowered, both are restarted before the delay has passed; both enforce it then."""
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'both.db'}"
    algorithms = {}
    for number, family in FAMILIES.items():
        async with open_streams(url, number) as streams:
            await streams.log.create()
            leader = Leader(streams, 1)
            await leader.start(START)
            algorithms[number] = (await preempted(leader, family)).algorithm
            lowered = await leader.happen(
                START + 10_000, v.ConfigurationApplied(configuration=family[0](4))
            )
            (timer,) = (event for event in lowered if isinstance(event, v.QuotaPreemptionScheduled))
            assert (timer.queue, timer.at) == (family[1], START + 10_000 + DELAY)

            again = Leader(streams, 2)
            await again.start(START + 40_000)
            assert again.engine.state.timers.armed == leader.engine.state.timers.armed
            early = await again.happen(timer.at - 1)
            assert not [event for event in early if isinstance(event, v.QuotaPreemptionDecided)]
            (decided,) = (
                event
                for event in await again.happen(timer.at)
                if isinstance(event, v.QuotaPreemptionDecided)
            )
            assert (decided.due, decided.queue, len(decided.victims)) == (
                timer.at,
                family[1],
                2 if number == 0 else 1,
            )
            steps = await again.steps()
            assert steps[-1].events[-1].seq == again.engine.state.seq
            assert verify(Engine(), steps) is None
    assert algorithms == {0: "guarantee", 1: "classic"}

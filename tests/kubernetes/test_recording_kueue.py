"""Recording the objects of Kueue from a real API server: the log says what is admitted, and under which quotas."""

import asyncio

import pytest

from events.vocabulary import (
    AllocationReleased,
    ConfigurationApplied,
    EvictionObserved,
    InputRejected,
)
from evsched.agents.kubernetes.connection import connected
from evsched.agents.kubernetes.kueue import GROUP, KueueQueues, workloads_in
from evsched.agents.kubernetes.masking import Masking
from evsched.config import load_texts
from tests.kubernetes import kueue as made
from tests.kubernetes.manifests import component, path_of
from tests.kubernetes.world import World

NAMESPACE = {"kind": "Namespace", "metadata": {"name": "kueue-system"}}

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(120)]


@pytest.fixture
async def world(control_plane):
    """Return a world with Kueue's kinds, one ClusterQueue for its namespace, and no nodes."""
    found = World(control_plane)
    try:
        await found.open(nodes=0)
        await asyncio.to_thread(grant, control_plane.api)
        found.kueue = await asyncio.to_thread(made.Kueue, control_plane.api, found.namespace)
        for one in (
            made.manifest("ResourceFlavor", "default-flavor", spec={}),
            made.manifest("Cohort", "company", spec={}),
            made.cluster_queue(
                "team", "8", {"matchLabels": {"kubernetes.io/metadata.name": found.namespace}}
            ),
            made.manifest("LocalQueue", "jobs", spec={"clusterQueue": "team"}),
        ):
            await asyncio.to_thread(found.kueue.create, one)
        yield found
    finally:
        await asyncio.to_thread(found.kueue.remove)
        await found.close()


def grant(api):
    """Give the agent what the component for Kueue gives it, in the namespace that it names."""
    for one in [NAMESPACE, *component("kueue")]:
        path = path_of(one)
        if api.ask("GET", f"{path}/{one['metadata']['name']}").status_code == 404:
            api.create(path, one)


async def record(world):
    """Record the world's Workloads, with the rights of the manifests."""
    async with connected(world.plane.agent) as source:
        (version,) = await source.versions(GROUP)

    def read(text):
        return load_texts([("the cluster", text)]).configurations[0]

    queues = KueueQueues("kueue-system", version, Masking(), read)
    await world.record(queues=queues, workloads=workloads_in(version))


def holding(world):
    """Return what the log says holds quota, with its flavors."""
    return {
        one.id: {part.name: part.flavors for part in one.podsets}
        for one in world.observer.engine.state.allocations.values()
    }


async def test_workloads_and_their_quotas_are_followed(world):
    """Found admitted, seen waiting, preempted and waiting again, over a new quota and a restart; nothing is refused."""
    kueue, train = world.kueue, f"{world.namespace}/train"
    state = world.observer.engine.state
    await asyncio.to_thread(kueue.create, made.workload("found"))
    await asyncio.to_thread(kueue.write, "found", made.admitted("team", "2"))
    await record(world)
    await world.observer.until(lambda: holding(world))
    await asyncio.to_thread(kueue.create, made.workload("train", cpu="3"))
    await world.observer.until(lambda: train in state.asks)
    await asyncio.to_thread(kueue.write, "train", made.admitted("team", "6"))
    await world.observer.until(lambda: train in holding(world))
    assert holding(world)[train] == {"main": {"cpu": "default-flavor"}}
    uid = await asyncio.to_thread(kueue.create, made.workload("urgent", cpu="3", priority=10))
    await asyncio.to_thread(kueue.write, "train", made.preempted("team", "6", uid))
    await world.observer.until(lambda: world.said(EvictionObserved))
    await world.kill()
    await asyncio.to_thread(kueue.write, "train", made.requeued(uid))
    await asyncio.to_thread(kueue.write, "urgent", made.admitted("team", "6"))
    raised = {"spec": made.cluster_queue("team", "16", {"matchLabels": None})["spec"]}
    await asyncio.to_thread(kueue.patch, "ClusterQueue", "team", raised)
    await record(world)
    urgent = f"{world.namespace}/urgent"
    await world.observer.until(lambda: urgent in holding(world) and train in state.asks)
    await asyncio.to_thread(kueue.delete, "Workload", "train")
    await world.observer.until(lambda: train not in state.asks)
    (leaving,) = world.said(EvictionObserved)
    assert (leaving.allocation, leaving.preemptor) == (train, urgent)
    assert [one.reason for one in world.said(AllocationReleased)] == ["preempted"]
    first, *_, last = (one.configuration for one in world.said(ConfigurationApplied))
    assert first.cluster_queues[0].namespaces == (world.namespace,)
    assert last.cluster_queues[0].accepts_all_namespaces
    assert world.said(InputRejected) == []

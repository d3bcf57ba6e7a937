"""Recording a real control plane: in the end the log says what the cluster is, object by object."""

import asyncio

import pytest

from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    BindingObserved,
    ConfigurationApplied,
    EvictionObserved,
    InputRejected,
    NodeRegistered,
)
from evsched.agents.kubernetes.yunikorn import YunikornQueues
from evsched.config import load_texts
from tests.kubernetes.cut import Cut
from tests.kubernetes.manifests import component, path_of
from tests.kubernetes.workload import node_body, pod_body, replica_set
from tests.kubernetes.world import NODES

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


async def fill(world, replicas=12):
    """Create pods by a ReplicaSet and let the stand-in bind them."""
    path = f"/apis/apps/v1/namespaces/{world.namespace}/replicasets"
    await world.do("create", path, replica_set("web", replicas))
    while world.stand_in.bound < replicas:
        await world.schedule()
        await asyncio.sleep(0.02)


async def test_from_the_first_list_on_the_log_follows_the_cluster(world):
    """Nodes and pods that were there are found, those that come are followed from waiting to bound to gone."""
    await fill(world, 6)
    await world.record()
    await world.equal()
    restored = len(world.said(AllocationRestored))
    assert restored == 6
    await world.do(
        "patch",
        f"/apis/apps/v1/namespaces/{world.namespace}/replicasets/web",
        {"spec": {"replicas": 10}},
    )
    await world.observer.until(lambda: len(world.observer.engine.state.asks) == 4)
    while world.stand_in.bound < 10:
        await world.schedule()
    await world.equal()
    bindings = world.said(BindingObserved)
    assert {(one.scheduler, one.node is None) for one in bindings} == {("stand-in", False)}
    assert len(bindings) == 4
    assert all(one.at is not None for one in bindings)
    await world.do(
        "patch",
        f"/apis/apps/v1/namespaces/{world.namespace}/replicasets/web",
        {"spec": {"replicas": 0}},
    )
    await world.observer.until(lambda: not world.observer.engine.state.allocations)
    await world.equal()
    assert len(world.said(AllocationReleased)) == 10
    assert world.said(InputRejected) == world.gaps() == []
    await world.keep("from-the-first-list")


@pytest.mark.own_control_plane
async def test_history_that_is_gone_is_a_gap_and_the_log_is_right_behind_it(world):
    """While the agent is away etcd is compacted and the API server restarted: 410, a list, the difference, both versions."""
    cut = Cut(int(world.plane.url.rpartition(":")[2]))
    await cut.start()
    try:
        way = world.plane.way(cut.port)
        await fill(world)
        await world.record(way)
        await world.equal()
        assert world.gaps() == []
        cut.cut()
        victim = (await world.pods())[0]["metadata"]["name"]
        await world.do(
            "delete",
            f"/api/v1/namespaces/{world.namespace}/pods/{victim}",
            {"gracePeriodSeconds": 0},
        )
        await asyncio.to_thread(world.plane.compact)
        await asyncio.to_thread(world.plane.stop_server)
        await asyncio.to_thread(world.plane.start_server)
        await world.do("create", f"/api/v1/namespaces/{world.namespace}/pods", pod_body("late-0"))
        cut.mend()
        await world.observer.until(world.gaps)
        await world.schedule()
        await world.equal()
    finally:
        await cut.stop()
    gaps = {gap.kind: gap for gap in world.gaps()}
    assert "Pod" in gaps
    assert int(gaps["Pod"].before) < int(gaps["Pod"].after)
    assert "410" in gaps["Pod"].reason
    assert gaps["Pod"].vanished == 1
    assert gaps["Pod"].appeared >= 1
    assert world.said(InputRejected) == []
    await world.keep("history-is-gone")


@pytest.mark.own_control_plane
async def test_a_cut_network_loses_nothing_and_leaves_no_gap(world):
    """The watch goes on behind its last word, so what happened meanwhile is told change by change."""
    cut = Cut(int(world.plane.url.rpartition(":")[2]))
    await cut.start()
    try:
        way = world.plane.way(cut.port)
        await world.record(way)
        await fill(world)
        await world.equal()
        cut.cut()
        pod = pod_body("short-0")
        path = f"/api/v1/namespaces/{world.namespace}/pods"
        await world.do("create", path, pod)
        await world.schedule()
        await world.do("delete", f"{path}/short-0", {"gracePeriodSeconds": 0})
        cut.mend()
        short = f"{world.namespace}/short-0"
        await world.observer.until(
            lambda: any(one.allocation == short for one in world.said(AllocationReleased))
        )
        await world.equal()
    finally:
        await cut.stop()
    assert any(one.ask == short for one in world.said(BindingObserved))
    assert world.said(InputRejected) == world.gaps() == []
    await world.keep("network-is-cut")


async def test_an_agent_that_is_killed_and_started_again_repeats_nothing(world):
    """Pods come and go while it is away; the next one says from where it goes on, and proposes the difference alone."""
    await world.record()
    await fill(world)
    await world.equal()
    await world.kill()
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    victim = (await world.pods())[0]["metadata"]["name"]
    await world.do("delete", f"{path}/{victim}", {"gracePeriodSeconds": 0})
    while world.stand_in.bound < 13:
        await world.schedule()
        await asyncio.sleep(0.02)
    counted = len(world.observer.events)
    await world.record()
    await world.observer.until(lambda: {"Node", "Pod"} <= {gap.kind for gap in world.gaps()})
    await world.equal()
    fresh = [type(one).__name__ for one in world.observer.events[counted:]]
    assert sorted(set(fresh) - {"ObservationGap", "NodeUpdated"}) == [
        "AllocationReleased",
        "AllocationRestored",
    ]
    assert world.said(InputRejected) == []


async def test_a_pod_created_again_under_its_name_is_another_task(world):
    """The log ends the first, by its uid, before it begins the second."""
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    await world.record()
    for _ in range(2):
        await world.do("create", path, pod_body("again-0"))
        await world.schedule()
        await world.equal()
        await world.do("delete", f"{path}/again-0", {"gracePeriodSeconds": 0})
    await world.do("create", path, pod_body("again-0"))
    await world.equal()
    name = f"{world.namespace}/again-0"
    assert len([one for one in world.said(AllocationReleased) if one.allocation == name]) == 2
    assert world.said(InputRejected) == []


async def test_a_node_that_vanishes_takes_its_pods_along(world):
    """The node goes with what ran on it; when it joins again it is empty, or holds what is still bound to it."""
    await world.record()
    await fill(world)
    await world.equal()
    home = (await world.pods())[0]["spec"]["nodeName"]
    await world.do("delete", f"{NODES}/{home}")
    await world.observer.until(lambda: home not in world.observer.engine.state.nodes)
    await world.do("create", NODES, node_body(home, world.namespace))
    await world.observer.until(lambda: home in world.observer.engine.state.nodes)
    await world.equal()
    assert [one.node for one in world.said(NodeRegistered)].count(home) == 2
    assert world.said(InputRejected) == []


async def test_an_eviction_through_the_api_is_observed_with_its_reason(world):
    """The condition DisruptionTarget of the victim is in the log before its end, with the words of who evicts."""
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    await world.record()
    await world.do("create", path, pod_body("victim-0"))
    await world.schedule()
    await world.equal()
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "victim-0", "namespace": world.namespace},
    }
    await world.do("create", f"{path}/victim-0/eviction", eviction)
    name = f"{world.namespace}/victim-0"
    await world.observer.until(
        lambda: any(one.allocation == name for one in world.said(AllocationReleased))
    )
    (observed,) = world.said(EvictionObserved)
    assert (observed.allocation, observed.reason) == (name, "EvictionByEvictionAPI")
    (ended,) = world.said(AllocationReleased)
    assert ended.reason == "evicted"
    await world.equal()
    await world.keep("eviction")


QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: web
            resources: {max: {vcore: %s}}
"""


async def test_the_queues_of_yunikorn_are_the_log_s_and_each_version_is_applied(world):
    """The ConfigMap comes before the pods; a new version is applied, one with a fault is not, and a pod is where it says."""
    for one in [{"kind": "Namespace", "metadata": {"name": "yunikorn"}}, *component("yunikorn")]:
        await world.do("create", path_of(one), one)
    queues = YunikornQueues("yunikorn", lambda text: load_texts([("q", text)]).configurations[0])
    maps = "/api/v1/namespaces/yunikorn/configmaps"
    await world.do("create", maps, config_map(QUEUES % 4))
    pod = pod_body("web-0")
    pod["metadata"]["labels"] |= {"queue": "root.web", "applicationId": "shop"}
    await world.do("create", f"/api/v1/namespaces/{world.namespace}/pods", pod)
    # With the rights that the component gives, and no others.
    await world.record(world.plane.agent, queues)
    await world.observer.until(lambda: world.observer.engine.state.asks)
    assert world.observer.engine.state.applications["shop"].leaf.path == "root.web"
    await world.do("patch", f"{maps}/yunikorn-configs", {"data": {"queues.yaml": "partitions: 7"}})
    await world.do("patch", f"{maps}/yunikorn-configs", {"data": {"queues.yaml": QUEUES % 8}})
    await world.observer.until(lambda: len(world.said(ConfigurationApplied)) == 2)
    await world.equal()
    last = world.said(ConfigurationApplied)[-1]
    assert last.document == QUEUES % 8
    assert last.configuration.root.queues[0].maximum == {"vcore": 8000}
    assert world.said(InputRejected) == []
    await world.do("delete", "/api/v1/namespaces/yunikorn")


def config_map(text):
    """Return YuniKorn's ConfigMap with these queues."""
    return {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": text}}

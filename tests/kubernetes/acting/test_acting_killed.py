"""Acting on a real control plane by agents that die at a counted request, and on nodes that go."""

import asyncio

import pytest

from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    BindingObserved,
    PreemptionDecided,
)
from tests.kubernetes.acting.test_acting_real import create, fill, mine, world
from tests.kubernetes.workload import node_body

__all__ = ["world"]  # the fixture

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


class Fuse:
    """Stands between an agent and the API server, and ends the agent at a request.

    Attributes:
        blown: It has.
    """

    def __init__(self, world, at, *, after):
        self._world = world
        self._at = at
        self._after = after
        self._count = 0
        self._source = None
        self.blown = asyncio.Event()

    def around(self, source):
        """Stand in front of a source."""
        self._source = source
        return self

    def page(self, kind, after):
        """Hand on."""
        return self._source.page(kind, after)

    def watch(self, kind, version):
        """Hand on."""
        return self._source.watch(kind, version)

    async def send(self, request):
        """Hand on, or die before or after that."""
        counted = "/leases" not in request.path and not self.blown.is_set()
        self._count += counted
        if not counted or self._count != self._at:
            return await self._source.send(request)
        if self._after:
            await self._source.send(request)
        self.blown.set()
        return await asyncio.Event().wait()


async def test_agents_that_die_at_every_request_of_a_preemption_leave_one_of_each(world):
    """Rehearsal, condition, Event, eviction, condition, Binding: each agent dies at one, the next one goes on."""
    world.act()
    await fill(world)
    await world.stop()
    await create(world, "urgent", "high")
    died = 0
    for point in range(1, 8):
        # Each agent has done what is done: it dies at its first request, before and then after it.
        fuse = Fuse(world, 1, after=bool(point % 2))
        world.act(f"agent-{point}", through=fuse.around)
        blown = asyncio.create_task(fuse.blown.wait())

        async def over(blown=blown):
            return blown.done() or bool(await world.home("urgent"))

        await world.until(over)
        died += blown.done()
        blown.cancel()
        await world.stop(f"agent-{point}")
    world.act("last")

    async def runs():
        confirmed = [one.ask for one in mine(world, BindingObserved)]
        return confirmed.count(f"{world.namespace}/urgent") == 1

    await world.until(runs)
    await world.equal()
    assert died > 4
    (decided,) = world.said(PreemptionDecided)
    assert len(mine(world, AllocationReleased)) == len(decided.victims) == 1
    events = await world.do("get", f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events")
    assert len([one for one in events["items"] if one["reason"] == "Preempted"]) == 1
    (bound,) = [one for one in mine(world, AllocationBound) if one.ask.endswith("urgent")]
    found = await world.pod("urgent")
    assert found["metadata"]["annotations"]["evsched.io/decision"] == str(bound.seq)


async def test_a_node_that_vanishes_takes_its_pods_along_and_waiting_ones_get_another(world):
    """The log ends what ran there; pods that come are bound to the node that comes."""
    world.act()
    await fill(world, 2)
    await world.do("delete", f"/api/v1/nodes/{world.node(0)}")
    await world.until(lambda: len(mine(world, AllocationReleased)) == 2)
    assert {one.reason for one in mine(world, AllocationReleased)} == {"node removed"}
    await create(world, "late-0", "low")
    fresh = node_body(world.node(7), world.namespace)
    await world.do("create", "/api/v1/nodes", fresh)

    async def runs():
        return await world.home("late-0") == world.node(7)

    await world.until(runs)
    await world.equal()

"""A leader that observes: it takes what is proposed and decides nothing, while another scheduler runs the cluster."""

import asyncio

from msgspec.structs import replace

from events.vocabulary import (
    AllocationBound,
    BindingObserved,
    LeaderStarted,
    QuotaPreemptionDecided,
)
from tests.service.inputs import cluster, queues
from tests.service.processes import Process
from tests.service.test_member import PACE, told
from tests.service.virtual import until

OBSERVING = replace(PACE, observes=True)


def observer(world, seed=0):
    """Start a process that decides nothing."""
    world.processes.append(Process(world.store, seed=seed, pace=OBSERVING))
    return world.processes[-1]


def knows(process, what):
    """Return the asks or allocations that a process knows; nothing while it has not read the log."""
    engine = process.member.engine
    return () if engine is None else tuple(getattr(engine.state, what))


@told
async def test_what_is_proposed_is_taken_and_nothing_is_decided(world):
    """Asks wait however much room there is; what the cluster's own scheduler bound runs."""
    process = observer(world)
    await world.propose(*cluster())
    await until(lambda: knows(process, "asks"))
    ask = knows(process, "asks")[0]
    await world.propose(BindingObserved(ask=ask, node="node-1"))
    await until(lambda: knows(process, "allocations"))
    assert ask not in knows(process, "asks")
    history = await world.end()
    assert history.only(AllocationBound) == []
    (started,) = history.only(LeaderStarted)
    assert started.observes


@told
async def test_no_timer_fires_and_no_step_is_written_without_a_proposal(world):
    """A lowered maximum is not enforced, long after it was due, and the leader stays quiet meanwhile."""
    process = observer(world)
    await world.propose(*cluster())
    await until(lambda: knows(process, "asks"))
    for ask in knows(process, "asks"):
        await world.propose(BindingObserved(ask=ask, node="node-1"))
    await until(lambda: not knows(process, "asks"))
    await world.propose(queues(web_cores=2, delay="1s"))
    await until(lambda: process.member.engine.next_due() is not None)
    await asyncio.sleep(1)
    written = len(world.store.log)
    await asyncio.sleep(60)
    assert len(world.store.log) == written
    history = await world.end()
    assert history.only(QuotaPreemptionDecided) == []


@told
async def test_a_leader_that_decides_takes_over_where_one_observed(world):
    """The frames say which steps decided, so the whole log verifies; what still waits is bound from then on."""
    first = observer(world)
    await world.propose(*cluster())
    await until(lambda: knows(first, "asks"))
    await first.stop()
    second = world.start()
    await until(lambda: knows(second, "allocations"))
    assert not second.member.engine.state.observed
    history = await world.end()
    assert history.only(AllocationBound)
    assert [one.observes for one in history.only(LeaderStarted)] == [True, False]

"""A step that takes longer than the lease: its leader still gives signs of life, so it stays the leader."""

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from events.streams import open_streams
from events.vocabulary import AllocationBound, LeaderStarted
from evsched.core.yunikorn.family import YunikornFamily
from evsched.service.environment import SystemClock
from evsched.service.leading import FEW, Pace
from evsched.service.member import Member
from tests.service.histories import check
from tests.service.inputs import ask, cluster
from tests.service.virtual import until

pytestmark = [pytest.mark.serial, pytest.mark.timeout(120)]

PACE = Pace(beat=0.2, lease=1.0)
LEASES = 3
MANY = [ask(f"too-large-{number}", cores=11) for number in range(FEW)]


@pytest.fixture(params=["sqlite", "kafka"])
def url(request, tmp_path):
    """Return the address of a log that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'log.db'}"
    bootstrap = request.getfixturevalue("kafka_bootstrap")
    return f"kafka://{bootstrap}/{request.getfixturevalue('kafka_topic_name')}"


class Slow:
    """Allocation that works and works, without ever giving the interpreter away, until it is told to end."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.enough = threading.Event()

    def __call__(self, family, step):
        """Take long when somebody waits who is called slow."""
        if "slow" in step.state.asks and not self.enough.is_set():
            self.begun.set()
            while not self.enough.is_set():
                pass
        REAL(family, step)


REAL = YunikornFamily.allocate


async def test_a_step_of_several_leases_deposes_nobody(url, monkeypatch):
    """With two standbys: the heartbeats go on through the step, the term stays what it was, and the step is decided once."""
    slow = Slow()

    def allocate(family, step):
        slow(family, step)

    monkeypatch.setattr(YunikornFamily, "allocate", allocate)
    async with AsyncExitStack() as stack:
        outside = await stack.enter_async_context(open_streams(url))
        await outside.log.create()
        members, tasks = [], []
        try:
            for role in ("leading", "standby", "standby"):
                streams = await stack.enter_async_context(open_streams(url))
                member = Member(streams, SystemClock(), pace=PACE)
                members.append(member)
                tasks.append(asyncio.create_task(member.run()))
                await until(lambda member=member, role=role: member.role == role and member.ready)
            await outside.inbox.propose([*cluster(0), ask("slow"), *MANY], "test")
            await asyncio.to_thread(slow.begun.wait, 60)
            first = await outside.log.last_heartbeat()
            beat = first
            deadline = asyncio.get_running_loop().time() + 60
            while beat.number < first.number + LEASES * PACE.lease / PACE.beat:
                assert asyncio.get_running_loop().time() < deadline, "no signs of life"
                await asyncio.sleep(PACE.beat)
                beat = await outside.log.last_heartbeat()
            assert (beat.leader, beat.term) == (first.leader, first.term)
            assert sorted(member.role for member in members) == ["leading", "standby", "standby"]
        finally:
            slow.enough.set()
            for member in members:
                member.stop()
            await asyncio.gather(*tasks)
        history = await check(outside)
        assert len(history.only(LeaderStarted)) == first.term
        assert [event.ask for event in history.only(AllocationBound)] == ["slow"]

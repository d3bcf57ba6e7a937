"""What goes wrong in one cluster partition stays there."""

import asyncio
import logging

import pytest
import structlog

from events.vocabulary import AllocationBound
from evsched.service import member as members
from evsched.service.assignment import Everything
from evsched.service.process import Service
from tests.service.histories import check
from tests.service.inputs import ask, cluster
from tests.service.processes import Process
from tests.service.test_member import PACE, World
from tests.service.virtual import simulate


class Partitions:
    """Two cluster partitions of one process.

    Attributes:
        worlds: One for each, with its store.
        service: Runs both.
    """

    def __init__(self, assignment=None):
        self.worlds = [World(), World()]
        self.processes = [
            Process(world.store, seed=number, pace=PACE) for number, world in enumerate(self.worlds)
        ]
        for number, process in enumerate(self.processes):
            process.task.cancel()
            process.member.partition = number
        self.service = Service(
            [process.member for process in self.processes], assignment or Everything()
        )
        self.task = asyncio.create_task(self.service.run())

    def poison(self, number, message="no room for this"):
        """Let the leader of a partition fail at whatever it reads."""

        async def read(*_, **__):
            raise RuntimeError(message)

        self.processes[number].member._streams.inbox.read = read


def test_a_fault_in_one_partition_touches_no_other():
    """The other partition goes on deciding, and the process is not ready as a whole."""

    async def story():
        both = Partitions()
        await asyncio.sleep(1)
        assert both.service.ready
        both.poison(1)
        await both.worlds[0].propose(*cluster())
        await both.worlds[1].propose(*cluster())
        await asyncio.sleep(60)
        assert both.service.members[0].role == "leading"
        assert both.service.members[1].role == "failed"
        assert not both.service.ready
        assert both.service.failed == (both.service.members[1],)
        assert not both.task.done()
        both.service.stop()
        await both.task
        history = await check(both.worlds[0].outside)
        assert len(history.only(AllocationBound)) == 5

    simulate(story())


def test_when_every_partition_gave_up_the_process_ends():
    """There is nothing left to serve."""

    async def story():
        both = Partitions()
        await asyncio.sleep(1)
        both.poison(0)
        both.poison(1)
        await asyncio.wait_for(both.task, 60)
        assert both.service.failed == both.service.members
        assert [str(one.failure) for one in both.service.failed] == ["no room for this"] * 2

    simulate(story())


def test_a_fault_that_goes_away_is_survived():
    """The member throws its state away, tries again a little later, and serves."""

    async def story():
        both = Partitions()
        await asyncio.sleep(1)
        inbox = both.processes[1].member._streams.inbox
        both.poison(1)
        await asyncio.sleep(0.5)
        del inbox.read
        await both.worlds[1].propose(*cluster())
        await asyncio.sleep(10)
        assert both.service.ready
        both.service.stop()
        await both.task
        history = await check(both.worlds[1].outside)
        assert len(history.only(AllocationBound)) == 5

    simulate(story())


def test_what_is_said_of_a_fault_names_its_place():
    """Partition, frame, position, event, cause and line of the program; no ExceptionGroup."""

    async def story():
        both = Partitions()
        await both.worlds[1].propose(*cluster(), ask("last"))
        await asyncio.sleep(1)
        both.poison(1)
        await asyncio.sleep(60)
        both.service.stop()
        await both.task

    with structlog.testing.capture_logs() as lines:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
        logger = structlog.get_logger()
        members._log, kept = logger, members._log
        try:
            simulate(story())
        finally:
            members._log = kept
    (given_up,) = [line for line in lines if line["event"] == "partition given up"]
    assert given_up["partition"] == 0  # of the streams in memory
    assert given_up["cause"] == "RuntimeError: no room for this"
    assert given_up["place"].startswith("test_process.py:")
    assert given_up["seq"] > 10
    assert given_up["position"] > 0
    assert [line["event"] for line in lines].count("fault, trying again") == members.FAULTS - 1


@pytest.mark.parametrize("times", [1, 3])
def test_a_fault_in_the_assignment_ends_nobody(times):
    """It is told, and assignment begins again."""

    class Assignment(Everything):
        left = times
        begun = 0

        async def run(self, taken):
            self.begun += 1
            if self.left:
                self.left -= 1
                raise RuntimeError("group")
            await super().run(taken)

    async def story():
        assignment = Assignment()
        both = Partitions(assignment)
        await asyncio.sleep(20)
        assert both.service.ready
        assert assignment.begun == times + 1
        both.service.stop()
        await both.task

    simulate(story())

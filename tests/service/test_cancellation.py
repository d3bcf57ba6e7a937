"""Who cancels a member ends it, also while the member waits for the end of a task of its own."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from evsched.service.ending import ended
from tests.service.processes import Process, ProcessLog
from tests.service.test_member import PACE, World
from tests.service.virtual import simulate, until

LINGER_S = 1.0


class Lingering(ProcessLog):
    """A log whose calls take long to end when they are cancelled, as those of a broker that is away do.

    Attributes:
        lingers: Whether one of them is about to end.
    """

    lingers = False

    @asynccontextmanager
    async def _lingering(self):
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self.lingers = True
            await asyncio.sleep(LINGER_S)
            raise

    async def follow(self, after=-1):
        """See `EventLog.follow`."""
        async with self._lingering():
            async for batch in super().follow(after):
                yield batch

    async def heartbeat(self, beat):
        """See `EventLog.heartbeat`."""
        async with self._lingering():
            await super().heartbeat(beat)
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("leads", [False, True])
def test_a_member_that_is_cancelled_ends(leads):
    """A standby that is about to lead, and a leader whose term is over, while its own tasks end slowly."""

    async def story():
        world = World()
        first = world.start()
        await asyncio.sleep(1)
        second = Process(world.store, 7, PACE)
        second.member._streams.log = log = Lingering(world.store, second)
        await asyncio.sleep(1)
        await first.stop()
        if leads:
            await until(lambda: second.member.role == "leading")
            log.lingers, second.lose = False, 1.0
            await world.fill()
        await until(lambda: log.lingers)
        await asyncio.sleep(LINGER_S / 2)
        assert not second.task.done()
        second.task.cancel()
        await asyncio.wait([second.task], timeout=10)
        assert second.task.cancelled()

    simulate(story())


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_task_raised_is_raised(fails):
    """Its cancellation is not, and an error of its own is."""

    async def work():
        try:
            await asyncio.sleep(10)
        finally:
            if fails:
                raise LookupError

    async def story():
        task = asyncio.create_task(work())
        await asyncio.sleep(1)
        if not fails:
            await ended(task)
            return
        with pytest.raises(LookupError):
            await ended(task)

    simulate(story())


async def test_a_fault_of_its_own_task_does_not_take_the_place_of_a_cancellation():
    """Who is cancelled ends, whatever a task of its own raises when it is ended; who is not is told of it."""

    async def faulty():
        try:
            await asyncio.sleep(60)
        finally:
            raise ConnectionError

    async def cancelled():
        own = asyncio.create_task(faulty())
        try:
            await asyncio.sleep(60)
        finally:
            await ended(own)

    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    own = asyncio.create_task(faulty())
    await asyncio.sleep(0)
    with pytest.raises(ConnectionError):
        await ended(own)

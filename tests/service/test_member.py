"""One cluster partition, its leader and its standbys, in virtual time over streams in memory."""

import asyncio
import inspect

import pytest

from events.errors import LogUnreachable
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from events.vocabulary import (
    AllocationBound,
    LeaderStarted,
    PreemptionDecided,
    QuotaPreemptionDecided,
)
from evsched.service import watching
from evsched.service.leading import Pace
from tests.service.histories import check
from tests.service.inputs import ask, cluster, queues
from tests.service.processes import Process
from tests.service.virtual import START_MS, simulate, until

PACE = Pace(beat=0.5, lease=2.5)


class World:
    """A store and those who work on it."""

    def __init__(self):
        self.store = MemoryStore()
        self.outside = Streams(MemoryLog(self.store), MemoryInbox(self.store))
        self.processes = []

    def start(self, **options):
        """Start a process."""
        process = Process(self.store, seed=len(self.processes), pace=PACE, **options)
        self.processes.append(process)
        return process

    async def start_two(self):
        """Start a process that leads, and one that stands by."""
        first = self.start()
        await asyncio.sleep(0.2)
        return first, self.start()

    async def fill(self):
        """Propose a cluster and give time to take it in."""
        await self.propose(*cluster())
        await asyncio.sleep(1)

    async def propose(self, *inputs):
        """Propose these."""
        await self.outside.inbox.propose(inputs, "test")

    async def end(self):
        """Stop everything in order and hold the log against all rules."""
        for process in self.processes:
            if process.alive:
                await process.stop()
        return await check(self.outside)


def told(story):
    """Make a test of a story: it is given a new world and runs in virtual time."""

    def test(**arguments):
        simulate(story(World(), **arguments))

    test.__doc__ = story.__doc__
    told_of = inspect.signature(story)
    test.__signature__ = told_of.replace(parameters=list(told_of.parameters.values())[1:])
    return test


def seconds(history, kind):
    """Return when events of a type happened, seconds since the start."""
    return [
        (step.time - START_MS) / 1000
        for step in history.steps
        for event in step.events
        if isinstance(event, kind)
    ]


@told
async def test_alone_it_leads_at_once_and_decides(world):
    """Nobody ever led, so nobody is waited for; what is proposed is decided in the same breath."""
    process = world.start()
    await asyncio.sleep(0.2)
    assert process.member.role == "leading"
    assert process.member.ready
    await world.propose(*cluster())
    await asyncio.sleep(0.2)
    history = await world.end()
    assert len(history.only(AllocationBound)) == 5
    assert process.member.role == "stopped"
    assert not process.member.ready


@told
async def test_a_standby_waits_for_the_lease_of_a_leader_that_was_killed(world):
    """Not shorter, and not much longer; its state is warm, so it decides at once."""
    first, second = await world.start_two()
    await world.fill()
    assert (second.member.role, second.member.ready) == ("standby", True)
    assert second.member.engine.state.digest() == first.member.engine.state.digest()
    await first.kill()
    killed = asyncio.get_running_loop().time()
    await until(lambda: second.member.role == "leading")
    waited = asyncio.get_running_loop().time() - killed
    assert PACE.lease - PACE.beat <= waited <= PACE.lease + PACE.beat
    history = await world.end()
    assert len(history.only(LeaderStarted)) == 2


@pytest.mark.parametrize("later", [0.0, 0.08, 0.16])
@told
async def test_a_standby_beside_a_leader_that_is_gone_leads_at_once(world, later):
    """Where the end of a process can be seen it is, long before the next look at the heartbeats, whenever that is."""
    first, second = await world.start_two()
    await world.fill()
    await asyncio.sleep(later)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "surely_gone", lambda name: bool(name) and not first.alive)
        await first.kill()
        killed = asyncio.get_running_loop().time()
        await until(lambda: second.member.role == "leading")
        waited = asyncio.get_running_loop().time() - killed
    assert waited <= PACE.beat / 5
    await world.end()


@told
async def test_after_a_graceful_stop_nobody_waits(world):
    """The last heartbeat says that it resigned."""
    first, second = await world.start_two()
    await asyncio.sleep(1)
    await first.stop()
    stopped = asyncio.get_running_loop().time()
    await until(lambda: second.member.role == "leading")
    assert asyncio.get_running_loop().time() - stopped < PACE.beat
    await world.end()


@told
async def test_who_is_not_assigned_comes_second(world):
    """A vacant partition is taken by the one it is assigned to; another comes in only when that one does not."""
    other = world.start(assigned=lambda: False)
    await asyncio.sleep(PACE.lease)
    assert other.member.role == "standby"
    await asyncio.sleep(PACE.beat * 2)
    assert other.member.role == "leading"
    own = world.start()
    await asyncio.sleep(1)
    assert own.member.role == "standby"
    other.member.resign()
    await asyncio.sleep(1)
    assert (own.member.role, other.member.role) == ("leading", "standby")
    await world.end()


@told
async def test_a_backlog_is_read_before_anything_is_decided(world):
    """Nothing is decided on a picture that is known to be stale: the frames say so, and a late release still counts."""
    await world.propose(*cluster(0), *(ask(f"web-{one}", cores=1) for one in range(2500)))
    world.start()
    await asyncio.sleep(1)
    history = await world.end()
    assert [step.decided for step in history.steps] == [False, False, False, True]
    assert [step.head.inbox_next for step in history.steps] == [0, 1000, 2000, 2504]
    assert {event.seq for event in history.only(AllocationBound)} <= {
        event.seq for event in history.steps[-1].events
    }


@told
async def test_a_preemption_fires_when_it_is_due(world):
    """The leader sleeps until then and no longer."""
    world.start()
    await world.fill()
    await world.propose(ask("research-1", "research"))
    await asyncio.sleep(60)
    history = await world.end()
    (asked,) = [
        step.time
        for step in history.steps
        for event in step.events
        if getattr(event, "ask", "") == "research-1"
    ][:1]
    (fired,) = seconds(history, PreemptionDecided)
    assert 30_000 <= fired * 1000 + START_MS - asked <= 30_010


@pytest.mark.parametrize(
    ("down", "fires"), [((20, 30), 61.0), ((20, 100), 100.0), ((59, 63), 63.0)]
)
@told
async def test_a_timer_outlives_the_process(world, down, fires):
    """It fires once: at its time when somebody leads then, otherwise as soon as somebody does."""
    first = world.start()
    await world.fill()
    await world.propose(queues(4))
    await asyncio.sleep(down[0])
    await first.kill()
    await asyncio.sleep(down[1] - down[0])
    world.start()
    await asyncio.sleep(60)
    history = await world.end()
    (fired,) = seconds(history, QuotaPreemptionDecided)
    assert fires <= fired <= fires + PACE.lease + 2.0


@told
async def test_a_clock_that_is_set_back_neither_stops_nor_hurries_a_timer(world):
    """The record's time goes on at the pace of a clock that nobody sets."""
    process = world.start()
    await world.fill()
    await world.propose(queues(4))
    await asyncio.sleep(10)
    process.clock.offset_ms = -3_600_000
    await asyncio.sleep(49)
    assert not (await check(world.outside)).only(QuotaPreemptionDecided)
    await asyncio.sleep(2)
    history = await world.end()
    (fired,) = seconds(history, QuotaPreemptionDecided)
    assert 60.9 <= fired <= 61.1


@told
async def test_after_an_unknown_outcome_it_leads_again_at_once(world):
    """It reads the log, sees what became of the write, and opens a term of its own; nobody waits for its lease."""
    process = world.start()
    await asyncio.sleep(0.2)
    process.lose = 1.0
    await world.propose(*cluster())
    await asyncio.sleep(0.05)
    process.lose = 0.0
    await asyncio.sleep(0.5)
    assert process.member.role == "leading"
    history = await world.end()
    assert len(history.only(AllocationBound)) == 5


@pytest.mark.parametrize("round_", range(20))
@told
async def test_a_leader_that_was_paused_past_its_lease_decides_nothing(world, round_):
    """Paused anywhere; when it comes back another leads, and what it writes changes nobody's state."""
    first, second = await world.start_two()
    await world.propose(*cluster())
    await asyncio.sleep(0.5 + round_ * 0.0137)
    first.paused = True
    await world.propose(queues(4), ask("research-1", "research"))
    await asyncio.sleep(PACE.lease * 2)
    assert second.member.role == "leading"
    assert first.member.role == "leading"
    assert not first.member.ready
    terms = len((await check(world.outside)).steps)
    first.resume()
    await world.propose(ask("web-late"))
    await asyncio.sleep(2)
    assert (first.member.role, second.member.role) == ("standby", "leading")
    history = await world.end()
    assert len(history.only(LeaderStarted)) == 2
    assert len(history.steps) > terms


@told
async def test_an_idle_leader_that_was_overtaken_notices(world):
    """Without anything to write it looks now and then whether its term is still in force."""
    first, second = await world.start_two()
    await asyncio.sleep(0.5)
    first.paused = True
    await asyncio.sleep(PACE.lease * 2)
    first.resume()
    await asyncio.sleep(PACE.beat * 3)
    assert (first.member.role, second.member.role) == ("standby", "leading")
    await world.end()


@told
async def test_many_that_start_together_agree(world):
    """Whoever loses a race stands by; there is one leader, and every state is the same."""
    await world.propose(*cluster())
    for _ in range(5):
        world.start()
    await asyncio.sleep(5)
    assert sorted(one.member.role for one in world.processes) == ["leading", *["standby"] * 4]
    assert all(one.member.ready for one in world.processes)
    assert len({one.member.engine.state.digest() for one in world.processes}) == 1
    await world.end()


@told
async def test_a_log_that_is_away_is_asked_again(world):
    """A standby keeps its state meanwhile and is ready again when the log is back."""
    process = world.start()
    await world.fill()
    engine = process.member.engine
    reach = process.reach

    async def away(**_):
        raise LogUnreachable("simulated", "away")

    process.reach = away
    await asyncio.sleep(12)
    assert (process.member.role, process.member.ready) == ("starting", False)
    process.reach = reach
    await asyncio.sleep(5)
    assert process.member.role == "leading"
    assert process.member.engine is engine
    await world.end()


@told
async def test_a_damaged_log_is_left_alone(world):
    """The member gives up, says where, and writes nothing more."""
    first = world.start()
    await world.fill()
    await first.kill()
    world.store.log[1] = world.store.log[1].replace(b"web-0", b"web-7")
    end = len(world.store.log)
    second = world.start()
    await second.task
    assert second.member.role == "failed"
    assert second.member.failure.position == 1
    assert len(world.store.log) == end


@told
async def test_a_log_whose_tail_was_lost_is_left_alone(world):
    """The last heartbeat knew a longer log."""
    first = world.start()
    await world.fill()
    await first.kill()
    del world.store.log[-1]
    second = world.start()
    await asyncio.wait_for(second.task, 60)
    assert second.member.role == "failed"
    assert "ends" in second.member.failure.reason


@told
async def test_it_can_be_stopped_while_it_rebuilds(world):
    """A long log is not read to its end first, and nothing is led."""
    first = world.start()
    await world.fill()
    await first.stop()
    second = world.start()
    second.paused = True
    await asyncio.sleep(5)
    second.member.stop()
    await asyncio.sleep(0.01)
    second.resume()
    await second.task
    assert second.member.role == "stopped"
    history = await world.end()
    assert len(history.only(LeaderStarted)) == 1


@told
async def test_a_log_that_is_away_for_a_day_is_still_asked(world):
    """However many attempts there were, the next one comes after the longest pause."""
    process = world.start()
    assert process.member._patience(1) == PACE.retry
    assert process.member._patience(20_000) == PACE.retry_most
    await world.end()

"""A leader whose clock is wrong when it starts: the broker's clock bounds its stamps, and both are named."""

import asyncio
import time
from functools import partialmethod

import pytest
import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from structlog.testing import capture_logs

from events import errors
from events.chain import ChainReader
from events.streams import open_streams
from events.streams.kafka_access import STAMPED
from events.streams.kafka_topics import heartbeat_settings, settings, topic_names
from events.streams.leadership import Leadership
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from events.vocabulary import AllocationBound
from evsched.service.environment import AHEAD_MS, BoundedClock, SystemClock, environment
from evsched.service.leading import Pace
from evsched.service.member import Member
from tests.service.histories import check
from tests.service.inputs import ask, cluster
from tests.service.virtual import START_MS, VirtualClock, simulate, until

DAY_MS = 86_400_000
SEND = AIOKafkaProducer.send


class StampedLog(MemoryLog):
    """A log that is kept where the clock is right."""

    async def heartbeat(self, beat):
        """See `EventLog.heartbeat`."""
        await super().heartbeat(beat)
        return VirtualClock().now()

    async def clock(self):
        """See `EventLog.clock`."""
        return VirtualClock().now()


def wrong(ms, real=VirtualClock):
    """Return a clock that is ahead."""
    clock = real()
    begun = clock.now
    clock.now = lambda: begun() + ms
    return clock


async def led(store, clock, seconds=3.0):
    """Let a process lead for some seconds and return what it said."""
    structlog.reset_defaults()
    streams = Streams(StampedLog(store), MemoryInbox(store))
    member = Member(streams, BoundedClock(clock), pace=Pace())
    with capture_logs() as lines:
        task = asyncio.create_task(member.run())
        await until(lambda: member.ready)
        await streams.inbox.propose([*cluster(0), ask("a")], "test")
        await asyncio.sleep(seconds)
        member.stop()
        await task
    return [line for line in lines if line["event"] in ("clock ahead", "log ahead")]


def test_a_clock_a_day_ahead_at_the_start_moves_nothing():
    """The first frame is stamped within the bound already, and a line names both clocks, once."""

    async def story():
        store = MemoryStore()
        (line,) = await led(store, wrong(DAY_MS))
        history = await check(Streams(MemoryLog(store), MemoryInbox(store)))
        now = START_MS + asyncio.get_running_loop().time() * 1000
        assert all(START_MS <= step.time <= now for step in history.steps)
        assert history.only(AllocationBound)
        assert line["by_ms"] == DAY_MS
        assert (line["clock"][:10], line["broker"][:10]) == ("2026-01-02", "2026-01-01")

    simulate(story())


def test_a_broker_whose_clock_is_behind_stops_nobody():
    """The earlier clock is followed: all machines are ahead of such a broker, and the log goes on."""

    async def story():
        store = MemoryStore()
        for _ in range(2):
            await led(store, wrong(AHEAD_MS + 1))
        history = await check(Streams(MemoryLog(store), MemoryInbox(store)))
        assert history.steps[-1].time - history.steps[0].time >= 3_000
        assert history.steps[-1].head.term == 2

    simulate(story())


def test_a_log_that_is_ahead_goes_on_at_the_pace_of_time():
    """A frame whose clock was a day ahead cannot be taken back; it is told, and what follows is neither refused nor still."""

    async def story():
        store = MemoryStore()
        ahead = environment(wrong(DAY_MS))
        await Leadership.acquire(MemoryLog(store), ChainReader(), lambda step: None, ahead)
        begun = asyncio.get_running_loop().time()
        (line,) = await led(store, VirtualClock())
        took = (asyncio.get_running_loop().time() - begun) * 1000
        history = await check(Streams(MemoryLog(store), MemoryInbox(store)))
        assert line["event"] == "log ahead"
        assert DAY_MS - 5000 <= line["by_ms"] <= DAY_MS
        assert history.only(AllocationBound)
        passed = history.steps[-1].time - history.steps[0].time
        assert passed <= took

    simulate(story())


async def test_the_broker_tells_the_time(kafka_bootstrap, kafka_topic_name):
    """By its own clock, without that a heartbeat is lost or made up."""
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        log = streams.log
        await log.create()
        begun = time.time_ns() // 1_000_000
        first = await log.clock()
        assert await log.last_heartbeat() is None
        leader = await Leadership.acquire(
            log, ChainReader(), lambda step: None, environment(SystemClock())
        )
        beat, kept = await leader.heartbeat(1)
        second = await log.clock()
        assert await log.last_heartbeat() == beat
        assert begun <= first <= kept <= second <= time.time_ns() // 1_000_000


async def test_a_process_two_hours_ahead_leads_on_kafka(kafka_bootstrap, kafka_topic_name):
    """With topics that the broker stamps nothing is refused, and the log's time is the broker's."""
    clock = BoundedClock(wrong(7_200_000, SystemClock))
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.create()
        member = Member(streams, clock)
        task = asyncio.create_task(member.run())
        await until(lambda: member.ready)
        member.stop()
        await task
        history = await check(streams)
        assert history.steps[-1].time <= time.time_ns() // 1_000_000


async def test_topics_of_earlier_releases_tell_no_time(
    kafka_bootstrap, kafka_topic_name, monkeypatch
):
    """They are used as they are; what is stamped two hours ahead the broker refuses, in words that say why."""
    names = topic_names(kafka_topic_name)
    client = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await client.start()
    await client.create_topics(
        [
            NewTopic(topic, 1, 1, topic_configs=(heartbeat_settings if hides else settings)(1))
            for topic, hides in ((names.log, False), (names.inbox, False), (names.heartbeat, True))
        ]
    )
    await client.close()
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.check()
        assert await streams.log.clock() is None
        late = round(time.time() + 7_200) * 1000
        monkeypatch.setattr(AIOKafkaProducer, "send", partialmethod(SEND, timestamp_ms=late))
        with pytest.raises(errors.AppendRefused, match=STAMPED[1]):
            await Leadership.acquire(
                streams.log, ChainReader(), lambda step: None, environment(SystemClock())
            )

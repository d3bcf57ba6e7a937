"""Three brokers, some killed, standing still or restarted under load: decisions go on, nothing is lost or doubled."""

import asyncio
import signal
import time
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from itertools import pairwise

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from events.chain import ChainReader
from events.errors import StreamError
from events.streams import open_streams
from events.streams.kafka_topics import topic_names
from events.streams.reading import read_steps
from events.vocabulary import LeaderStarted
from tests.kafka.three import COUNT, ThreeBrokers
from tests.service.inputs import ask, cluster, release
from tests.service.running import Running
from tests.service.test_kafka import finish, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

INPUTS_PER_S = 300
BATCH = 6
DECIDES_AGAIN_S = 5.0
"""How long decisions may take to go on: after a broker of three is gone or stands still, or once two are back."""
AWAY_S = 20.0
SETTLED_MS = 300
"""What was under way when a broker or a leader was stopped is over after this."""
LEASE_S = 2.5
SOME = 300
"""Inputs that are proposed and taken before something happens to the brokers, and after it."""


@pytest.fixture(scope="module")
def brokers():
    """Return three brokers; each test starts those that do not run."""
    three = ThreeBrokers()
    yield three
    three.stop()


class Flow:
    """Proposes 300 inputs a second, tasks that come and end, and skips what it could not send in time.

    Attributes:
        proposed: How many were taken.
    """

    def __init__(self, inbox):
        self.proposed = 0
        self._inbox = inbox

    async def run(self):
        """Propose until cancelled."""
        await self._send(cluster(0))
        count, begun = 0, time.monotonic()
        while True:
            tasks = [f"t{count + number}" for number in range(BATCH // 2)]
            await self._send([*map(ask, tasks), *map(release, tasks)])
            count += len(tasks)
            due = begun + (count // (BATCH // 2)) * BATCH / INPUTS_PER_S
            if due < time.monotonic() - 1:
                begun += time.monotonic() - due
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _send(self, inputs):
        while True:
            try:
                self.proposed += len(await self._inbox.propose(inputs, "test"))
            except StreamError:
                # It may have arrived; the ids say that they are the same.
                await asyncio.sleep(0.1)
            else:
                return

    async def taken(self, count):
        """Return when so many more were taken."""
        enough = self.proposed + count
        async with asyncio.timeout(60):
            while self.proposed < enough:  # noqa: ASYNC110 - a number that another task counts
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def running(self):
        """Let it propose for as long as the body runs."""
        task = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class Stage:
    """A leader, a standby and a producer over three brokers.

    Attributes:
        three: The brokers.
        topic: The log's.
    """

    def __init__(self, three, url, streams, processes, topic):
        self.three, self.url, self.streams, self.processes, self.topic = (
            three,
            url,
            streams,
            processes,
            topic,
        )
        self._reader, self._seen = ChainReader(), []

    async def log_leader(self):
        """Return the number of the broker that leads the log's topic."""
        client = AIOKafkaAdminClient(bootstrap_servers=self.three.bootstrap)
        await client.start()
        try:
            (found,) = await client.describe_topics([self.topic])
        finally:
            await client.close()
        return found["partitions"][0]["leader"] - 1

    async def goes_on(self, since_ms, kind=None, seconds=60.0):
        """Wait for a decided step after a moment, or one with an event of a kind; return how many seconds after, by its stamp."""
        async with asyncio.timeout(seconds):
            while True:
                for time_ms, decided, kinds in self._seen:
                    if time_ms > since_ms and (decided if kind is None else kind in kinds):
                        return (time_ms - since_ms) / 1000
                await self._look()

    async def _look(self):
        with suppress(StreamError):
            async with aclosing(read_steps(self.streams.log, self._reader)) as batches:
                async for steps in batches:
                    self._seen += [
                        (one.time, one.decided, {type(event) for event in one.events})
                        for one in steps
                    ]
        await asyncio.sleep(0.2)


def now_ms():
    """Return the time, as a leader stamps it."""
    return time.time_ns() // 1_000_000


@pytest.fixture
async def stage(brokers, kafka_topic_name, tmp_path):
    """Return a leader and a standby at work; in the end, hold their log against all rules."""
    await asyncio.to_thread(brokers.start)
    await asyncio.to_thread(brokers.wait_for_all)
    url = f"kafka://{brokers.bootstrap}/{kafka_topic_name}"
    with ExitStack() as stack:
        processes = []
        for name in ("first", "second"):
            running = Running(tmp_path, "run", "--log", url, "--create-topics", name=name)
            stack.callback(running.kill)
            await asyncio.to_thread(running.start)
            await until(lambda running=running: bool(running.roles()), 60, running)
            processes.append(running)
        streams = open_streams(url)
        try:
            made = Stage(brokers, url, streams, processes, topic_names(kafka_topic_name).log)
            async with Flow(streams.inbox).running() as flow:
                await flow.taken(SOME)
                yield made
                await flow.taken(SOME)
            history = await finish(streams, *processes)
            seconds = (history.steps[-1].time - history.steps[0].time) / 1000
            gaps = sorted((b.time - a.time) / 1000 for a, b in pairwise(history.steps))[-3:]
            terms = len(history.only(LeaderStarted))
            print(
                f"{flow.proposed} proposed in {seconds:.0f} s, {terms} terms, longest gaps {gaps}"
            )
            for running in processes:
                assert not running.over, running.said()[-3000:]
                assert await asyncio.to_thread(running.stop) == 0
        finally:
            await streams.close()


@pytest.mark.parametrize(
    "limit_s",
    [None, pytest.param(DECIDES_AGAIN_S, marks=pytest.mark.brokers)],
    ids=["at all", "in time"],
)
async def test_the_broker_of_the_log_is_killed(stage, limit_s):
    """Two brokers are a majority: decisions go on, on a machine of its own within 5 s."""
    number = await stage.log_leader()
    at = now_ms()
    await asyncio.to_thread(stage.three.brokers[number].kill)
    took = await stage.goes_on(at + SETTLED_MS) + SETTLED_MS / 1000
    print(f"decides again {took:.1f} s after")
    assert limit_s is None or took < limit_s


@pytest.mark.brokers
async def test_the_broker_of_the_log_stands_still(stage):
    """Stopped for 15 s with all connections open, and continued: decisions go on within 5 s of the stop."""
    broker = stage.three.brokers[await stage.log_leader()]
    at = now_ms()
    broker.pause()
    try:
        took = await stage.goes_on(at + SETTLED_MS) + SETTLED_MS / 1000
        await asyncio.sleep(max(0.0, 15 - took))
    finally:
        broker.resume()
    print(f"decides again {took:.1f} s after")
    assert took < DECIDES_AGAIN_S


@pytest.mark.brokers
async def test_two_of_three_are_away(stage):
    """For 20 s nothing can be written; once two are back decisions go on within 5 s."""
    number = await stage.log_leader()
    gone = [number, (number + 1) % COUNT]
    for one in gone:
        await asyncio.to_thread(stage.three.brokers[one].kill)
    await asyncio.sleep(AWAY_S)
    first = await asyncio.to_thread(stage.three.start, *gone)
    took = await stage.goes_on(round(first * 1000))
    print(f"decides again {took:.1f} s after")
    assert took < DECIDES_AGAIN_S


@pytest.mark.brokers
async def test_all_are_restarted_one_after_the_other(stage):
    """As an upgrade does it: each in order, the next when all are in service; decisions go on within 5 s of every stop."""
    for number in range(COUNT):
        at = now_ms()
        await asyncio.to_thread(stage.three.brokers[number].terminate)
        took = await stage.goes_on(at + SETTLED_MS) + SETTLED_MS / 1000
        await asyncio.to_thread(stage.three.start, number)
        await asyncio.to_thread(stage.three.wait_for_all)
        print(f"broker {number}: decides again {took:.1f} s after")
        assert took < DECIDES_AGAIN_S


@pytest.mark.brokers
async def test_the_leader_stands_still(stage):
    """Stopped for 10 s and continued: the standby leads within the lease and a second, and the other finds itself overtaken."""
    (leader,) = [one for one in stage.processes if one.leading()]
    at = now_ms()
    leader.signal(signal.SIGSTOP)
    try:
        took = await stage.goes_on(at, LeaderStarted)
        await asyncio.sleep(max(0.0, 10 - took))
    finally:
        leader.signal(signal.SIGCONT)
    print(f"led again {took:.1f} s after")
    assert took < LEASE_S + 1

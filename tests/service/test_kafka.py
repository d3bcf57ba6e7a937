"""The service over a real Kafka: leaders and brokers are killed, partitions move, and nothing is lost or doubled."""

import asyncio
import random
import socket
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest

from events.errors import StreamError
from events.streams import open_streams
from events.streams.protocols import Streams
from events.vocabulary import LeaderStarted
from tests.kafka.guarded import MASTER, SECRET
from tests.service.histories import History, check
from tests.service.inputs import ask, cluster, release
from tests.service.running import Running, digest, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PARTITIONS = 4


@pytest.fixture
def run(tmp_path):
    """Return a function that starts `evsched run`; all are killed in the end."""
    with ExitStack() as stack:

        def start(url, *options, name="run", **environment):
            running = Running(
                tmp_path,
                "run",
                "--log",
                url,
                "--create-topics",
                *options,
                name=name,
                environment=environment,
            )
            stack.callback(running.kill)
            return running.start()

        yield start


class Producer:
    """Proposes to every partition without a pause, and goes on when the broker was away.

    Attributes:
        proposed: How many proposals were taken, by partition.
    """

    def __init__(self, all_streams: list[Streams]):
        self.proposed = [0] * len(all_streams)
        self._streams = all_streams
        self._stopped = False

    async def run(self):
        """Propose until stopped."""
        await asyncio.gather(
            *(self._propose(number, streams) for number, streams in enumerate(self._streams))
        )

    async def _propose(self, number, streams):
        await self._send(number, streams, cluster(0))
        count = 0
        while not self._stopped:
            count += 1
            gone = [release(f"t{count - 3}")] if count > 3 else []
            await self._send(number, streams, [ask(f"t{count}"), *gone])
            await asyncio.sleep(0.01)

    async def _send(self, number, streams, inputs):
        while True:
            try:
                self.proposed[number] += len(await streams.inbox.propose(inputs, "test"))
            except StreamError:
                # It may have arrived; the id says that it is the same.
                await asyncio.sleep(0.2)
            else:
                return

    @asynccontextmanager
    async def working(self):
        """Let it propose for as long as the body runs."""
        task = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            self._stopped = True
            await asyncio.wait_for(task, 60)


@asynccontextmanager
async def opened(url, partitions=1):
    """Open the streams of all partitions."""
    everything = [open_streams(url, number) for number in range(partitions)]
    try:
        yield everything
    finally:
        for streams in everything:
            await streams.close()


async def finish(streams: Streams, *running: Running) -> History:
    """Wait until everything proposed was answered, then hold the log against all rules."""
    for _ in range(1000):
        history = await History.of(streams.log)
        if history.steps[-1].head.inbox_next == await streams.inbox.end():
            break
        await asyncio.sleep(0.1)
    assert history.steps[-1].head.inbox_next == await streams.inbox.end()
    return await check(
        streams, [one for each in running for one in each.acknowledged(streams.log.name)]
    )


async def until(holds, seconds, *running):
    """Wait in a thread, so that the producer goes on."""
    return await asyncio.to_thread(wait_until, holds, seconds, *running)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.fuzz)])
async def test_a_killed_leader_loses_nothing(run, kafka_bootstrap, kafka_topic_name, kills):
    """Killed at random instants and started again; what it acknowledged is in the log, and what was proposed is answered once."""
    url, chance = f"kafka://{kafka_bootstrap}/{kafka_topic_name}", random.Random(3)
    process = run(url)
    process.wait_ready()
    async with opened(url) as (streams,):
        async with Producer([streams]).working():
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0, 0.5))
                await asyncio.to_thread(process.kill)
                process.start()
                took = await until(lambda: process.leading() == {0}, 60, process)
                print(f"ready again after {took:.2f} s")
            await asyncio.sleep(0.3)
        history = await finish(streams, process)
        await asyncio.to_thread(process.stop)
        history = await finish(streams, process)
    # A member that was killed stays in Kafka's group for a while; is the partition given to it,
    # there is one more term.
    assert len(history.only(LeaderStarted)) > kills
    assert len(process.acknowledged()) > kills
    assert (
        await asyncio.to_thread(digest, url, 1)
        == await asyncio.to_thread(digest, url, 2)
        == history.digest
    )


@pytest.mark.parametrize(
    "away",
    [(0.0, 4.0), pytest.param((0.0, 0.5, 1.0, 2.0, 4.0) * 2, marks=pytest.mark.fuzz)],
    ids=len,
)
async def test_a_broker_that_is_killed_is_waited_for(run, mortal_kafka, kafka_topic_name, away):
    """The leader and the standby go on by themselves when the broker is back."""
    broker = mortal_kafka
    url = f"kafka://{broker.bootstrap}/{kafka_topic_name}"
    first = run(url, name="first")
    first.wait_ready()
    second = run(url, name="second")
    second.wait_ready()
    async with opened(url) as (streams,):
        async with Producer([streams]).working():
            for seconds in away:
                await asyncio.sleep(1)
                await asyncio.to_thread(broker.kill)
                await asyncio.sleep(seconds)
                await asyncio.to_thread(broker.start)
                took = await until(
                    lambda: {*first.leading(), *second.leading()} == {0}, 60, first, second
                )
                print(f"away for {seconds} s, ready again after {took:.2f} s")
            await asyncio.sleep(1)
        await finish(streams, first, second)
        for process in (first, second):
            assert await asyncio.to_thread(process.stop) == 0
        await finish(streams, first, second)


async def test_four_partitions_on_two_processes(run, kafka_bootstrap, kafka_topic_name):
    """Each has one leader; when a process is killed the other leads all of them, and gives half of them back later."""
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    everything = set(range(PARTITIONS))
    first = run(url, "--partitions", str(PARTITIONS), name="first")
    await until(lambda: first.leading() == everything, 60, first)
    second = run(url, name="second")
    await until(
        lambda: len(first.leading()) == len(second.leading()) == PARTITIONS // 2, 60, first, second
    )
    assert first.leading() | second.leading() == everything
    async with opened(url, PARTITIONS) as all_streams:
        async with Producer(all_streams).working():
            await asyncio.sleep(1)
            await asyncio.to_thread(first.kill)
            took = await until(lambda: second.leading() == everything, 60, second)
            print(f"leads all after {took:.2f} s")
            first.start()
            await until(
                lambda: len(first.leading()) == len(second.leading()) == PARTITIONS // 2,
                90,
                first,
                second,
            )
            await asyncio.sleep(1)
        for streams in all_streams:
            await finish(streams, first, second)
        for process in (first, second):
            assert await asyncio.to_thread(process.stop) == 0
        for number, streams in enumerate(all_streams):
            history = await finish(streams, first, second)
            assert {event.leader for event in history.only(LeaderStarted)}
            assert (
                await asyncio.to_thread(digest, url, number, "--partition", str(number))
                == history.digest
            )


async def test_a_broker_that_wants_a_password(run, guarded_kafka, kafka_topic_name, tmp_path):
    """With the right one it leads; with another it ends with code 3; neither is ever said."""
    url = f"kafka://{guarded_kafka.bootstrap}/{kafka_topic_name}"
    options = (
        "--kafka-protocol",
        "SASL_PLAINTEXT",
        "--kafka-mechanism",
        "PLAIN",
        "--kafka-username",
        MASTER,
    )
    secret = tmp_path / "password"
    secret.write_text(f"{SECRET}\n")
    refused = run(url, *options, name="refused", EVSCHED_KAFKA_PASSWORD="wrong-secret")
    accepted = run(url, *options, name="accepted", EVSCHED_KAFKA_PASSWORD_FILE=str(secret))
    await until(lambda: accepted.leading() == {0}, 60, accepted)
    assert await asyncio.to_thread(refused.wait, 60) == 3
    assert await asyncio.to_thread(accepted.stop) == 0
    assert "Authentication" in refused.said()
    assert "-secret" not in refused.said() + accepted.said()


async def test_a_start_waits_for_brokers_that_come_back(run, kafka_bootstrap, kafka_topic_name):
    """Where several are named, none of which answers yet: the process says so and goes on by itself."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    host, _, there = kafka_bootstrap.rpartition(":")
    process = run(f"kafka://127.0.0.1:{port},127.0.0.1:{port}/{kafka_topic_name}")
    await until(lambda: "start tried again" in process.said(), 60, process)

    async def pass_on(reader, writer):
        """Let a client learn of the brokers, as the one that came back would."""
        onward_reader, onward_writer = await asyncio.open_connection(host, int(there))
        await asyncio.gather(pump(reader, onward_writer), pump(onward_reader, writer))

    async def pump(source, sink):
        with suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()

    async with await asyncio.start_server(pass_on, "127.0.0.1", port):
        await until(lambda: process.leading() == {0}, 60, process)
    assert await asyncio.to_thread(process.stop) == 0

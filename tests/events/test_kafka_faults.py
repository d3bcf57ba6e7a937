"""Lost and late replies: what was acknowledged is there once and in order, nothing else; a naive writer fails the same test."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiokafka
import aiokafka.client
import aiokafka.conn
import pytest

from events import errors
from events.chain import ChainReader, RecordedStep
from events.frame import encode_event
from events.streams import EventLog, Leadership, open_streams
from events.streams.kafka_access import KafkaAccess
from events.streams.kafka_topics import create_topics
from events.vocabulary import NodeRemoved
from tests.events.proxy import FATES, FaultyBroker
from tests.events.world import names_in, steps_of, world, write

DEADLINE_S = 0.5
WRITERS = 4


@pytest.fixture
async def faulty(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FaultyBroker]:
    """Return a proxy before the shared broker; clients of this process talk to it, whatever address the broker tells them."""
    proxy = FaultyBroker(kafka_bootstrap, seed=7, rate=30, late_s=DEADLINE_S * 1.5)
    await proxy.start()

    async def through_the_proxy(host: str, port: int, **options: Any) -> Any:
        return await aiokafka.conn.create_conn("127.0.0.1", proxy.port, **options)

    monkeypatch.setattr(aiokafka.client, "create_conn", through_the_proxy)
    yield proxy
    await proxy.stop()


async def lead_and_write(
    log: EventLog, faulty: FaultyBroker, faults: int, acknowledged: list[str]
) -> int:
    """Write steps until there were enough faults, leading anew after each unknown outcome; return how often that was."""
    unknown = 0
    while faulty.faults.total() < faults:
        seen: list[RecordedStep] = []
        try:
            leader = await Leadership.acquire(log, ChainReader(), seen.append, world())
            found = names_in(seen)
            # What was acknowledged is there; at most the one step of unknown outcome came to it.
            assert found[: len(acknowledged)] == acknowledged
            assert len(found) <= len(acknowledged) + 1
            acknowledged[:] = found
            while faulty.faults.total() < faults:
                name = f"n{len(acknowledged)}"
                await write(leader, name)
                acknowledged.append(name)
        except (errors.NotLeading, errors.EnvironmentFault):
            unknown += 1
    return unknown


@pytest.mark.parametrize("faults", [80, pytest.param(2_000, marks=pytest.mark.fuzz)])
async def test_no_frame_is_torn_lost_or_doubled(
    kafka_bootstrap: str, kafka_topic_name: str, faulty: FaultyBroker, faults: int
) -> None:
    """Four leaders write through a network that loses a third of their requests and replies."""
    await create_topics(
        KafkaAccess(bootstrap=kafka_bootstrap), kafka_topic_name, partitions=WRITERS
    )
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    opened = [open_streams(url, partition, timeout=DEADLINE_S) for partition in range(WRITERS)]
    acknowledged: list[list[str]] = [[] for _ in opened]
    try:
        unknown = await asyncio.gather(
            *(
                lead_and_write(one.log, faulty, faults, names)
                for one, names in zip(opened, acknowledged, strict=True)
            )
        )
        faulty.rate = 0
        for one, names in zip(opened, acknowledged, strict=True):
            found = names_in(await steps_of(one.log))
            assert found[: len(names)] == names
            assert found == [f"n{number}" for number in range(len(found))]
            assert len(found) - len(names) <= 1
    finally:
        for one in opened:
            await one.close()
    assert set(faulty.faults) == set(FATES)
    assert min(unknown) > 0, "the faults were enough to make outcomes unknown"


async def test_a_naive_writer_fails_it(
    kafka_bootstrap: str, kafka_topic_name: str, faulty: FaultyBroker
) -> None:
    """A plain producer that tries again doubles what it writes: so the faults are real."""
    topic = f"{kafka_topic_name}-naive"
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=kafka_bootstrap, acks="all", request_timeout_ms=500
    )
    await producer.start()
    written = []
    try:
        while faulty.faults.total() < 40:
            value = encode_event(NodeRemoved(node=f"n{len(written)}"))
            for _ in range(20):
                try:
                    await producer.send_and_wait(topic, value)
                except aiokafka.errors.KafkaError:
                    continue
                break
            written.append(value)
    finally:
        faulty.rate = 0
        await producer.stop()
    found = await read_all(kafka_bootstrap, topic)
    assert set(found) == set(written)
    assert len(found) > len(written), "some were written twice"


async def read_all(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values of a topic with one partition."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        place = aiokafka.TopicPartition(topic, 0)
        end = (await consumer.end_offsets([place]))[place]
        values: list[bytes] = []
        async with asyncio.timeout(20):
            while len(values) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    values += [record.value for record in records]
        return values
    finally:
        await consumer.stop()

"""What is Kafka's own: topics that keep everything, deadlines, a broker that goes away, secrets that stay secret."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete

from events import errors
from events.chain import ChainReader, RecordedStep
from events.cloudevents import InboxRecord
from events.streams import Leadership, Streams, open_streams
from events.streams.kafka_access import KafkaAccess
from events.streams.kafka_topics import (
    check_topics,
    create_topics,
    heartbeat_settings,
    settings,
    topic_names,
)
from events.vocabulary import NodeRemoved
from tests.events.acl import DESCRIBE_CONFIGS, READ, WRITE, grant
from tests.events.world import lead, names_in, records_of, steps_of, world, write
from tests.kafka.broker import KafkaBroker
from tests.kafka.guarded import SECRET, login

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def admin(kafka_bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    """Return somebody who may do anything to the shared broker's topics."""
    client = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await client.start()
    yield client
    await client.close()


@pytest.fixture
def access(kafka_bootstrap: str) -> KafkaAccess:
    """Return the shared broker's address as the adapter takes it."""
    return KafkaAccess(bootstrap=kafka_bootstrap)


@pytest.fixture
async def streams(kafka_bootstrap: str, kafka_topic_name: str) -> AsyncIterator[Streams]:
    """Return streams in new topics."""
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as opened:
        await opened.log.create()
        yield opened


async def make(
    admin: AIOKafkaAdminClient, name: str, partitions: dict[str, int], **drift: dict[str, str]
) -> None:
    """Make the three topics as they should be, but for this drift (by topic: log, inbox, heartbeat)."""
    topics = []
    for kind, topic in topic_names(name)._asdict().items():
        right = heartbeat_settings(1) if kind == "heartbeat" else settings(1)
        config = right | drift.get(kind, {})
        topics.append(NewTopic(topic, partitions.get(kind, 1), 1, topic_configs=config))
    await admin.create_topics(topics)


DRIFTS = {
    "records are deleted after seven days": (
        "log",
        {"retention.ms": "604800000"},
        "retention.ms is 604800000, expected -1",
    ),
    "records are deleted when there are many": (
        "inbox",
        {"retention.bytes": "1000000"},
        "retention.bytes is 1000000",
    ),
    "a log is compacted": (
        "log",
        {"cleanup.policy": "compact"},
        "cleanup.policy is compact, expected delete",
    ),
    "frames are too large for a topic": (
        "log",
        {"max.message.bytes": "100000"},
        "max.message.bytes is 100000",
    ),
    "a lagging replica may lead": (
        "log",
        {"unclean.leader.election.enable": "true"},
        "unclean.leader.election.enable is",
    ),
    "a lagging replica of the heartbeats may lead": (
        "heartbeat",
        {"unclean.leader.election.enable": "true"},
        "unclean.leader.election.enable is",
    ),
    "heartbeats pile up": (
        "heartbeat",
        {"cleanup.policy": "delete"},
        "cleanup.policy is delete, expected compact",
    ),
}


@pytest.mark.parametrize("drift", DRIFTS)
async def test_it_is_refused_when(
    admin: AIOKafkaAdminClient, access: KafkaAccess, kafka_topic_name: str, drift: str
) -> None:
    """A topic that may lose history is not worked with; creating does not hide that."""
    kind, config, said = DRIFTS[drift]
    await make(admin, kafka_topic_name, {}, **{kind: config})
    async with open_streams(f"kafka://{access.bootstrap}/{kafka_topic_name}") as opened:
        for call in (
            opened.log.check,
            opened.log.create,
            lambda: lead(opened.log),
            lambda: opened.log.append(b"{}"),
        ):
            with pytest.raises(errors.TopicMisconfigured) as caught:
                await call()
            assert said in str(caught.value)
            assert caught.value.topic == f"{kafka_topic_name}-{kind}"


async def test_partition_counts_that_differ_are_refused(
    admin: AIOKafkaAdminClient, access: KafkaAccess, kafka_topic_name: str
) -> None:
    """Otherwise a proposal could go where no log is."""
    await make(admin, kafka_topic_name, {"inbox": 2})
    with pytest.raises(
        errors.TopicMisconfigured, match=r"inbox: number of partitions is 2, expected 1"
    ):
        await check_topics(access, kafka_topic_name)


async def test_a_partition_that_is_not_there_is_refused(
    access: KafkaAccess, kafka_topic_name: str
) -> None:
    """The message says how many there are."""
    await create_topics(access, kafka_topic_name, partitions=2)
    assert (await check_topics(access, kafka_topic_name)).partitions == 2
    async with open_streams(
        f"kafka://{access.bootstrap}/{kafka_topic_name}", partition=5
    ) as opened:
        with pytest.raises(
            errors.TopicMisconfigured, match=r"number of partitions is 2, expected at least 6"
        ):
            await opened.log.check()
        with pytest.raises(errors.StreamMissing):
            await opened.inbox.propose([NodeRemoved(node="n")])


async def test_looking_for_topics_does_not_make_them(
    admin: AIOKafkaAdminClient, access: KafkaAccess, kafka_topic_name: str
) -> None:
    """The broker would make them by itself, to be deleted after seven days."""
    async with open_streams(f"kafka://{access.bootstrap}/{kafka_topic_name}") as opened:
        calls: list[Callable[[], Awaitable[object]]] = [
            opened.log.check,
            opened.log.end,
            opened.log.last_heartbeat,
            opened.inbox.end,
            lambda: opened.inbox.read(0),
            lambda: opened.inbox.propose([NodeRemoved(node="n")]),
            lambda: lead(opened.log),
        ]
        for call in calls:
            with pytest.raises(errors.StreamMissing):
                await call()
    assert not [topic for topic in await admin.list_topics() if topic.startswith(kafka_topic_name)]


async def test_a_deleted_beginning_is_found(
    admin: AIOKafkaAdminClient, streams: Streams, kafka_bootstrap: str
) -> None:
    """Reading from the start does not silently begin later; neither does the inbox."""
    leader = await lead(streams.log)
    await write(leader, "a")
    await streams.inbox.propose([NodeRemoved(node="n"), NodeRemoved(node="m")])
    for topic in (streams.log._topic, streams.inbox._topic):
        await admin.delete_records(
            {aiokafka.TopicPartition(topic, 0): RecordsToDelete(before_offset=1)}
        )
    with pytest.raises(errors.PositionLost):
        await records_of(streams.log)
    with pytest.raises(errors.PositionLost):
        await streams.inbox.read(0)
    assert [proposal.position for proposal in await streams.inbox.read(1)] == [1]


async def test_a_record_travels_as_a_cloudevent_with_the_partition_as_key(
    streams: Streams, kafka_bootstrap: str
) -> None:
    """Any client of Kafka sees what it is, and JSON in the value."""
    leader = await lead(streams.log)
    await streams.inbox.propose([NodeRemoved(node="n", proposal="p1")], "me")
    consumer = aiokafka.AIOKafkaConsumer(
        streams.log._topic,
        streams.inbox._topic,
        bootstrap_servers=kafka_bootstrap,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        found = {}
        async with asyncio.timeout(20):
            while len(found) < 2:
                record = await consumer.getone()
                found[record.topic] = record
    finally:
        await consumer.stop()
    frame, proposal = found[streams.log._topic], found[streams.inbox._topic]
    assert frame.key == proposal.key == b"0"
    assert dict(frame.headers)["ce_source"] == f"/evsched/{leader.head.log_id}".encode()
    assert dict(proposal.headers)["ce_id"] == b"p1"
    assert proposal.value == b'{"type":"NodeRemoved","proposal":"p1","node":"n"}'


async def test_a_refused_record_does_not_poison_the_next(streams: Streams) -> None:
    """The client's producer would refuse everything after it; a new one takes its place."""
    with pytest.raises(errors.AppendRefused):
        await streams.inbox.put([InboxRecord(data=b"x" * 2_000_000)])
    assert await streams.inbox.put([InboxRecord(data=b"small")]) == (0,)


async def test_many_small_and_large_records_go_in_one_call(streams: Streams) -> None:
    """More than a batch holds: all arrive in order."""
    records = [
        InboxRecord(data=b"%d " % number + b"x" * (number % 7 * 9_000)) for number in range(300)
    ]
    assert await streams.inbox.put(records) == tuple(range(300))
    found = []
    while len(found) < 300:
        found += await streams.inbox.read(len(found), limit=77)
    assert [proposal.raw.split(" ")[0] for proposal in found] == [
        str(number) for number in range(300)
    ]


async def test_a_broker_that_is_not_there_is_reported_in_time() -> None:
    """Every call ends by its deadline with an error that says so, and nothing hangs in the end."""
    begun = time.monotonic()
    async with open_streams("kafka://127.0.0.1:9/none", timeout=1.0) as opened:
        for call in (
            opened.log.check,
            opened.log.create,
            opened.log.end,
            lambda: opened.inbox.read(0),
        ):
            with pytest.raises(errors.LogUnreachable):
                await call()
    assert time.monotonic() - begun < 20


async def test_one_request_that_is_left_open_is_not_the_end_of_a_call(
    kafka_bootstrap: str, kafka_topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stands still answers nothing; another one is asked within the deadline of the call."""
    asked = aiokafka.AIOKafkaConsumer.end_offsets
    left_open = iter([True, True])

    async def end_offsets(
        consumer: aiokafka.AIOKafkaConsumer, places: list[aiokafka.TopicPartition]
    ) -> object:
        if next(left_open, False):
            raise aiokafka.errors.KafkaTimeoutError("left open")
        return await asked(consumer, places)

    monkeypatch.setattr(aiokafka.AIOKafkaConsumer, "end_offsets", end_offsets)
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as opened:
        await opened.log.create()
        assert await opened.log.end() == 0


def test_it_refuses_to_start_without_assertions() -> None:
    """The client checks its own state by assertions, which `python -O` takes away."""
    program = "from events.streams import open_streams; open_streams('kafka://127.0.0.1:9/x')"
    ended = subprocess.run(
        [sys.executable, "-O", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "ConfigurationError: python: runs with -O" in ended.stderr


async def test_a_killed_broker_loses_nothing(
    mortal_kafka: KafkaBroker, kafka_topic_name: str
) -> None:
    """Killed in the middle of writing, again and again: what was acknowledged is there once, in order, and nothing else is."""
    broker = mortal_kafka
    async with open_streams(
        f"kafka://{broker.bootstrap}/{kafka_topic_name}", timeout=5.0
    ) as opened:
        await opened.log.create()
        acknowledged: list[str] = []
        written = asyncio.create_task(write_on(opened, acknowledged, 40))
        for rounds in (1, 2):
            while len(acknowledged) < rounds * 12 and not written.done():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(broker.start)
        await asyncio.wait_for(written, 90)
        assert (
            names_in(await steps_of(opened.log))
            == acknowledged
            == [f"n{number}" for number in range(40)]
        )


async def write_on(streams: Streams, acknowledged: list[str], count: int) -> None:
    """Write one step after the other, leading anew after every failure, as the service does."""
    while len(acknowledged) < count:
        seen: list[RecordedStep] = []
        try:
            leader = await Leadership.acquire(streams.log, ChainReader(), seen.append, world())
            acknowledged[:] = names_in(seen)
            while len(acknowledged) < count:
                await write(leader, f"n{len(acknowledged)}")
                acknowledged.append(f"n{len(acknowledged)}")
                await asyncio.sleep(0.02)
        except (errors.NotLeading, errors.EnvironmentFault):
            await asyncio.sleep(0.2)


async def test_a_wrong_password_is_denied_and_no_password_is_shown(
    guarded_kafka: KafkaBroker, kafka_topic_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The right one works; neither errors nor the client's logs, at any level, hold one."""
    caplog.set_level(logging.DEBUG)
    url = f"kafka://{guarded_kafka.bootstrap}/{kafka_topic_name}"
    async with open_streams(url, security=login()) as opened:
        await opened.log.create()
        await write(await lead(opened.log), "a")
        assert names_in(await steps_of(opened.log)) == ["a"]
    async with open_streams(url, security=login(secret="letmein"), timeout=5.0) as opened:
        with pytest.raises(errors.AccessDenied) as caught:
            await opened.log.check()
        with pytest.raises(errors.AccessDenied):
            await opened.inbox.propose([NodeRemoved(node="n")])
    for secret in (SECRET, "letmein"):
        assert secret not in caplog.text
        assert secret not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    assert os.environ.get("EVSCHED_KAFKA_PASSWORD") is None


async def test_each_role_needs_no_more_than_its_rights(
    guarded_kafka: KafkaBroker, kafka_topic_name: str
) -> None:
    """Leader, producer and auditor work with the least rights; everything else is refused, within its deadline."""
    url = f"kafka://{guarded_kafka.bootstrap}/{kafka_topic_name}"

    def streams_of(user: str) -> Streams:
        return open_streams(url, security=login(user), timeout=5.0)

    names = topic_names(kafka_topic_name)
    admin = KafkaAccess(bootstrap=guarded_kafka.bootstrap, security=login())
    await create_topics(admin, kafka_topic_name)
    client = AIOKafkaAdminClient(**admin.options())
    await client.start()
    await grant(client, "leader", names.log, READ, WRITE, DESCRIBE_CONFIGS)
    await grant(client, "leader", names.heartbeat, READ, WRITE, DESCRIBE_CONFIGS)
    await grant(client, "leader", names.inbox, READ, DESCRIBE_CONFIGS)
    await grant(client, "producer", names.inbox, WRITE)
    await grant(client, "auditor", names.log, READ)
    await client.close()

    async with (
        streams_of("leader") as leading,
        streams_of("producer") as producing,
        streams_of("auditor") as auditing,
    ):
        leader = await lead(leading.log)
        await producing.inbox.propose([NodeRemoved(node="n")], "producer")
        assert len(await leading.inbox.read(0)) == 1
        await write(leader, "n", inbox_next=1)
        assert await leading.log.last_heartbeat() is None
        await leader.heartbeat(1)
        assert names_in(await steps_of(auditing.log)) == ["n"]
        async with streams_of("evil") as evil:
            denied: list[Callable[[], Awaitable[object]]] = [
                lambda: lead(evil.log),
                lambda: evil.log.append(b'{"log_id":"l","term":9,"leader":"e","frame":1,"time":1}'),
                lambda: records_of(evil.log),
                lambda: evil.inbox.propose([NodeRemoved(node="n")]),
                lambda: evil.inbox.read(0),
                evil.log.create,
                lambda: producing.inbox.read(0),
                lambda: lead(producing.log),
                lambda: auditing.log.append(
                    b'{"log_id":"l","term":9,"leader":"e","frame":1,"time":1}'
                ),
                lambda: auditing.inbox.propose([NodeRemoved(node="n")]),
            ]
            for call in denied:
                with pytest.raises(errors.AccessDenied):
                    await call()
        assert await leading.log.end() == 2
        assert await leading.inbox.end() == 1

"""The topics of evsched: made with settings under which nothing is ever lost, and verified at every start.

A broker makes a missing topic by itself when somebody writes to it or reads it, and keeps its
records for seven days. So topics are made explicitly, and whoever finds one with other settings
than these refuses to work with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code
from aiokafka.protocol.metadata import MetadataRequest

from events.errors import AccessDenied, AppendRefused, StreamMissing, TopicMisconfigured
from events.streams.kafka_access import STAMPED, KafkaAccess, explained, meaning, to_its_end

MESSAGE_BYTES = 1_048_588
SAFE_REPLICAS = 3
"""With this many replicas, two must have a record before it counts."""


class TopicNames(NamedTuple):
    """The three topics of a cluster."""

    log: str
    inbox: str
    heartbeat: str


def topic_names(name: str) -> TopicNames:
    """Return the topics that belong to a name."""
    return TopicNames(f"{name}-log", f"{name}-inbox", f"{name}-heartbeat")


def settings(replicas: int) -> dict[str, str]:
    """Return what log and inbox are made with, and must have."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "max.message.bytes": str(MESSAGE_BYTES),
        "min.insync.replicas": "2" if replicas >= SAFE_REPLICAS else "1",
        "unclean.leader.election.enable": "false",
    }


def heartbeat_settings(replicas: int) -> dict[str, str]:
    """Return what the heartbeats' topic is made with: of each key only the latest record stays."""
    return {
        "cleanup.policy": "compact",
        "min.insync.replicas": "2" if replicas >= SAFE_REPLICAS else "1",
        "unclean.leader.election.enable": "false",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.1",
    }


_AT_LEAST = ("max.message.bytes", "min.insync.replicas")
_HEARTBEAT_MUST = ("cleanup.policy", "min.insync.replicas", "unclean.leader.election.enable")


async def create_topics(
    access: KafkaAccess, name: str, partitions: int = 1, replicas: int | None = None
) -> None:
    """Make those of the three topics that do not exist, and wait until they can be used. Those that exist stay as they are.

    Args:
        access: The broker.
        name: Of the cluster; the topics are called after it.
        partitions: How many cluster partitions there may be.
        replicas: Copies of each record; None: three, or as many as there are brokers.
    """
    names = topic_names(name)
    async with _admin(access, name, patient=True) as admin:
        if replicas is None:
            replicas = min(SAFE_REPLICAS, len((await admin.describe_cluster())["brokers"]))
        there = await _described(admin, names)
        wanted = [
            NewTopic(
                topic,
                partitions,
                replicas,
                topic_configs={
                    **(heartbeat_settings if topic == names.heartbeat else settings)(replicas),
                    STAMPED[0]: STAMPED[1],
                },
            )
            for topic in names
            if topic not in there
        ]
        if wanted:
            answer = await admin.create_topics(wanted)
            for topic, code, *message in answer.topic_errors:
                error = for_code(code)
                if code and error is not TopicAlreadyExistsError:
                    reason = f"{error.__name__}: {message[0] if message and message[0] else error.description}"
                    raise (
                        AccessDenied(topic, reason)
                        if "Authorization" in error.__name__
                        else AppendRefused(topic, reason)
                    )
        # The broker answers before every replica knows.
        while len(await _described(admin, names)) < len(names):  # noqa: ASYNC110 - and nobody tells when they do
            await asyncio.sleep(0.05)


class Topics(NamedTuple):
    """What `check_topics` found.

    Attributes:
        partitions: How many each topic has.
        stamped: Whether brokers stamp heartbeats by their own clock.
    """

    partitions: int
    stamped: bool


async def check_topics(access: KafkaAccess, name: str, at_least: int = 1) -> Topics:
    """Verify the three topics and return what there is to know of them.

    Args:
        access: The broker.
        name: Of the cluster.
        at_least: How many partitions there must be.

    Raises:
        StreamMissing: One does not exist.
        TopicMisconfigured: One has settings under which history could be lost, or another number of
            partitions than the others.
        AccessDenied: We may not see one.
    """
    names = topic_names(name)
    async with _admin(access, name) as admin:
        there = await _described(admin, names)
        for topic in names:
            if topic not in there:
                raise StreamMissing(topic)
        counts = {topic: len(there[topic]["partitions"]) for topic in names}
        if counts[names.log] < at_least:
            raise TopicMisconfigured(
                names.log, "number of partitions", str(counts[names.log]), f"at least {at_least}"
            )
        for topic in names:
            if counts[topic] != counts[names.log]:
                raise TopicMisconfigured(
                    topic,
                    "number of partitions",
                    str(counts[topic]),
                    f"{counts[names.log]} as {names.log} has",
                )
        found = await _settings_of(admin, names)
        for topic in names:
            replicas = min(len(partition["replicas"]) for partition in there[topic]["partitions"])
            _compare(topic, found[topic], replicas, is_heartbeat=topic == names.heartbeat)
    setting, wanted = STAMPED
    return Topics(counts[names.log], found[names.heartbeat].get(setting) == wanted)


async def must_exist(access: KafkaAccess, topic: str, at_least: int) -> None:
    """Raise StreamMissing unless this topic exists and has so many partitions; asking does not make it."""
    async with _admin(access, topic) as admin:
        there = await _described(admin, (topic,))
        if topic not in there or len(there[topic]["partitions"]) < at_least:
            raise StreamMissing(f"{topic} with {at_least} partitions or more")


def _compare(topic: str, found: Mapping[str, str], replicas: int, *, is_heartbeat: bool) -> None:
    expected = heartbeat_settings(replicas) if is_heartbeat else settings(replicas)
    for setting, value in expected.items():
        if is_heartbeat and setting not in _HEARTBEAT_MUST:
            continue
        has = found.get(setting, "not told")
        if setting in _AT_LEAST and has.isdigit() and int(has) >= int(value):
            continue
        if has != value:
            raise TopicMisconfigured(
                topic, setting, has, f"at least {value}" if setting in _AT_LEAST else value
            )


async def _described(admin: AIOKafkaAdminClient, topics: tuple[str, ...]) -> dict[str, Any]:
    """Return the metadata of those of these topics that exist and whose partitions all have a leader."""
    # The public method would make a missing topic.
    request = MetadataRequest(list(topics), allow_auto_topic_creation=False)
    answer = await admin._send_request(request)  # noqa: SLF001
    there: dict[str, Any] = {}
    for topic in answer.to_object()["topics"]:
        error = for_code(topic["error_code"])
        if "Authorization" in error.__name__:
            raise AccessDenied(topic["topic"], error.description)
        if topic["error_code"] == 0 and all(
            partition["error_code"] == 0 for partition in topic["partitions"]
        ):
            there[topic["topic"]] = topic
        elif (
            topic["error_code"] not in (0, UnknownTopicOrPartitionError.errno)
            and not error.retriable
        ):
            raise AppendRefused(topic["topic"], f"{error.__name__}: {error.description}")
    return there


async def _settings_of(
    admin: AIOKafkaAdminClient, topics: tuple[str, ...]
) -> dict[str, dict[str, str]]:
    answers = await admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    )
    found: dict[str, dict[str, str]] = {}
    for answer in answers:
        for code, message, _kind, topic, entries in answer.resources:
            if code:
                raise AccessDenied(
                    topic, f"its settings cannot be seen: {for_code(code).__name__}: {message}"
                )
            found[topic] = {entry[0]: entry[1] for entry in entries}
    return found


@asynccontextmanager
async def _admin(
    access: KafkaAccess, name: str, *, patient: bool = False
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Give a started admin client for as long as the deadline allows; its errors become ours.

    A ``patient`` one waits as long for a single request: topics are made when all brokers have them.
    """
    admin = AIOKafkaAdminClient(**(access.patient_options() if patient else access.options()))
    try:
        async with asyncio.timeout(access.timeout):
            await to_its_end(admin.start())
            yield admin
    except Exception as error:
        raise meaning(await explained(error, access), name) from error
    finally:
        await admin.close()

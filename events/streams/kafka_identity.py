"""The id of a topic: what tells it from one that was deleted and made again under the same name.

Kafka has given every topic such an id since 2.8, and tells it from version 10 of its metadata
request on. The client stops at version 5, so that one request is described here, with the client's
own building blocks. Who may read or write a topic may ask for it.
"""

from __future__ import annotations

import uuid
from io import BytesIO
from typing import Any

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from events.errors import StreamMissing, TopicMisconfigured

_NO_ID = uuid.UUID(int=0)
_TEXT = CompactString("utf-8")


class _Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]
    """Sixteen bytes; all of them zero where there is no id."""

    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


class _Response(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", _TEXT),
                ("port", Int32),
                ("rack", _TEXT),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", _TEXT),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _RequestV10(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _Response
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Uuid), ("name", _TEXT), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicRequest(Request[_RequestV10]):  # type: ignore[misc]
    """Asks for one topic; asking does not make it."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_RequestV10]) -> _RequestV10:
        return request_struct_class([(_NO_ID, self._topic, {})], False, False, False, {})


async def topic_id(client: AIOKafkaClient, place: TopicPartition) -> str:
    """Return the id of a topic, 32 hexadecimal digits.

    Args:
        client: Is started.
        place: A partition of the topic. Its leader is asked, as it serves what is read there.

    Raises:
        StreamMissing: There is no such topic.
        TopicMisconfigured: The broker gives topics no ids.
        KafkaError: The broker did not answer, or did not allow it.
    """
    await client._wait_on_metadata(place.topic)  # noqa: SLF001 - there is no public way to learn who leads
    leader = client.cluster.leader_for_partition(place)
    if leader is None or leader < 0:
        raise kafka_errors.LeaderNotAvailableError
    try:
        answer = await client.send(leader, _TopicRequest(place.topic))
    except NotImplementedError:
        raise TopicMisconfigured(
            place.topic, "topic id", "not told by the broker", "one, as of Kafka 2.8 or later"
        ) from None
    found: dict[str, Any] = answer.to_object()["topics"][0]
    error = kafka_errors.for_code(found["error_code"])
    if error is kafka_errors.UnknownTopicOrPartitionError:
        raise StreamMissing(place.topic)
    if found["error_code"]:
        raise error
    return str(found["topic_id"].hex)

"""Talking to Kafka: a writer and a reader that tell what happened in our own errors, each with a deadline on every call.

The client library retries for ever where it can, swallows errors of a broker that is away, and
keeps a producer poisoned after one batch was refused. So every send is awaited with a deadline,
every failure costs the producer, and a read that brings nothing asks the broker whether it is there
at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient

from events.cloudevents import Headers
from events.errors import (
    AccessDenied,
    AppendRefused,
    LogUnreachable,
    OutcomeUnknown,
    PositionLost,
    StreamError,
    StreamMissing,
)
from events.streams.kafka_access import (
    DENIED,
    GOODBYE_S,
    REFUSED,
    KafkaAccess,
    explained,
    look_away,
    meaning,
    said,
    to_its_end,
)
from events.streams.kafka_identity import topic_id

__all__ = ["Message", "PartitionEnd", "PartitionReader", "PartitionWriter"]

MAX_REQUEST_BYTES = 1_000_000
"""What brokers take by default is a little more."""
MAX_BATCH_BYTES = 640_000
"""More than the largest frame with its headers, less than a broker takes: small records are merged up to this size."""
FETCH_BYTES = 4_000_000
"""Most that one request brings, so that a slow line carries it within `REQUEST_S`."""
PROMPT_S = 0.05
"""How long a reader's connection may take to end. TLS ends one only when the broker has answered
what was asked last, and a fetch that finds nothing is answered after half a second."""

_BY_BROKER = 1
"""The client's word for a record that the broker has stamped."""

T = TypeVar("T")


class Message(NamedTuple):
    """What is written to a partition."""

    value: bytes | None
    headers: Headers = ()


class Written(NamedTuple):
    """Where a record stands.

    Attributes:
        offset: Its position.
        time: When it was written by the broker's clock, milliseconds; None: the topic is not
            stamped by it.
    """

    offset: int
    time: int | None


class PartitionWriter:
    """Writes to one partition, in order, each record once."""

    def __init__(self, access: KafkaAccess, topic: str, partition: int) -> None:
        self._access = access
        self.topic = topic
        self._partition = partition
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._farewells: set[asyncio.Task[None]] = set()

    async def write(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Write these and return their positions; see `EventLog.append` for what is raised."""
        return tuple(one.offset for one in await self.written(messages))

    async def written(self, messages: Sequence[Message]) -> tuple[Written, ...]:
        """Write these and return where they stand and when; otherwise as `write`."""
        producer = await self._started()
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(self._access.timeout):
                for (
                    message
                ) in messages:  # one by one, so that what was sent is known when a later one fails
                    sent.append(await self._send(producer, message))  # noqa: PERF401
                answers = [await asyncio.shield(one) for one in sent]
        except BaseException as error:
            self._discard(producer)
            for one in sent:
                one.add_done_callback(look_away)
            if not isinstance(error, Exception) and cancelled():
                raise
            raise self._failure(error, anything_sent=bool(sent)) from error
        if min((one.offset for one in answers), default=0) < 0:
            # The broker recognised a repetition but has forgotten where the first one stands.
            self._discard(producer)
            raise OutcomeUnknown(self.topic, "written, but the broker does not say where")
        return tuple(
            Written(one.offset, one.timestamp if one.timestamp_type == _BY_BROKER else None)
            for one in answers
        )

    async def _send(self, producer: AIOKafkaProducer, message: Message) -> asyncio.Future[Any]:
        key = str(self._partition).encode()
        future: asyncio.Future[Any] = await producer.send(
            self.topic,
            message.value,
            key=key,
            partition=self._partition,
            headers=list(message.headers),
        )
        return future

    def _failure(self, error: BaseException, *, anything_sent: bool) -> StreamError:
        if isinstance(error, REFUSED):
            return AppendRefused(self.topic, said(error))
        if isinstance(error, DENIED):
            return AccessDenied(self.topic, said(error))
        if not anything_sent:
            return meaning(error, self.topic)
        if isinstance(error, TimeoutError):
            return OutcomeUnknown(self.topic, f"no answer within {self._access.timeout} s")
        return OutcomeUnknown(self.topic, said(error))

    async def _started(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is not None:
                return self._producer
            producer = AIOKafkaProducer(
                **self._access.options(),
                acks="all",
                enable_idempotence=True,
                max_batch_size=MAX_BATCH_BYTES,
                max_request_size=MAX_REQUEST_BYTES,
                linger_ms=0,
            )
            try:
                async with asyncio.timeout(self._access.timeout):
                    await to_its_end(producer.start())
                    # Learn where the partition is now: waiting for that later would look like a
                    # write of unknown outcome.
                    known = await producer.partitions_for(self.topic)
            except BaseException as error:
                self._discard(producer)
                if isinstance(error, Exception):
                    raise meaning(await explained(error, self._access), self.topic) from error
                raise
            if self._partition not in known:
                self._discard(producer)
                raise StreamMissing(f"{self.topic}/{self._partition}")
            self._producer = producer
            return producer

    def _discard(self, producer: AIOKafkaProducer) -> None:
        """Throw a producer away without letting it finish: what it still holds should not be written later."""
        if self._producer is producer:
            self._producer = None
        task = asyncio.get_running_loop().create_task(_abandon(producer))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def close(self) -> None:
        """Let go of the connection; everything that was written has been awaited."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError, kafka_errors.KafkaError):
                async with asyncio.timeout(GOODBYE_S):
                    await producer.stop()
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=2 * GOODBYE_S)


class _Consuming:
    """A consumer of one partition that is started when it is first used, and anew after every failure."""

    def __init__(self, access: KafkaAccess, topic: str, partition: int) -> None:
        self._access = access
        self.topic = topic
        self._place = TopicPartition(topic, partition)
        self._consumer: AIOKafkaConsumer | None = None
        self._busy = asyncio.Lock()

    async def _started(self) -> AIOKafkaConsumer:
        if self._consumer is not None:
            return self._consumer
        consumer = AIOKafkaConsumer(
            **self._access.options(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES,
        )
        try:
            await to_its_end(consumer.start())
        except BaseException:
            await goodbye(consumer)
            raise
        self._consumer = consumer
        return consumer

    async def _guarded(self, call: Awaitable[T], deadline_s: float, position: int) -> T:
        """Await a call with a deadline; any failure costs the consumer, a cancellation does not."""
        try:
            async with asyncio.timeout(deadline_s):
                return await call
        except BaseException as error:
            if not isinstance(error, Exception) and cancelled():
                raise
            await self._forget()
            if isinstance(error, kafka_errors.OffsetOutOfRangeError):
                raise PositionLost(
                    position, f"topic {self.topic} does not hold it any more"
                ) from error
            raise meaning(await explained(error, self._access), self.topic) from error

    async def _forget(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await goodbye(consumer)

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._busy:
            await self._forget()


class PartitionEnd(_Consuming):
    """Knows where a partition ends; on a connection of its own, as its answer would wait behind a fetch that waits."""

    async def end(self) -> int:
        """Return the position that the next record will have."""
        async with self._busy:
            return await self._guarded(self._ask(), self._access.timeout, 0)

    async def _ask(self) -> int:
        consumer = await self._started()
        while True:
            try:
                return int((await consumer.end_offsets([self._place]))[self._place])
            except kafka_errors.KafkaTimeoutError:
                # The client gives up with the first request that a broker that stands still leaves
                # open. Another one may lead the partition by now; the deadline of the call ends it.
                await consumer._client.force_metadata_update()  # noqa: SLF001 - no public method

    async def identity(self) -> str:
        """Return the id of the topic, which one that is made again under its name does not have."""
        async with self._busy:
            return await self._guarded(self._ask_identity(), self._access.timeout, 0)

    async def _ask_identity(self) -> str:
        client: AIOKafkaClient = (await self._started())._client  # noqa: SLF001 - no public method tells it
        return await topic_id(client, self._place)


class PartitionReader(_Consuming):
    """Reads one partition from any position on."""

    def __init__(self, access: KafkaAccess, topic: str, partition: int) -> None:
        super().__init__(access, topic, partition)
        self._ends = PartitionEnd(access, topic, partition)
        self._position: int | None = None

    async def end(self) -> int:
        """Return the position that the next record will have."""
        return await self._ends.end()

    async def identity(self) -> str:
        """Return the id of the topic."""
        return await self._ends.identity()

    async def fetch(
        self, position: int, limit: int, wait_s: float
    ) -> list[ConsumerRecord[bytes, bytes]]:
        """Return records from a position on, none when there are none within this time, which the broker has then confirmed.

        Raises:
            PositionLost: The position is before the first record or behind the end.
        """
        async with self._busy:
            deadline = self._access.timeout
            records = await self._guarded(
                self._fetch(position, limit, wait_s), deadline + wait_s, position
            )
            if records:
                return records
            end = await self._ends.end()
            if position > end:
                raise PositionLost(position, f"topic {self.topic} ends at {end}")
            if position < end:
                # It came just now, or it was there and the first fetch is still under way.
                records = await self._guarded(
                    self._fetch(position, limit, deadline), deadline + 1, position
                )
            if position < end and not records:
                await self._forget()
                raise LogUnreachable(
                    self.topic, f"nothing came of {end - position} records within {deadline} s"
                )
            return records

    async def _fetch(
        self, position: int, limit: int, wait_s: float
    ) -> list[ConsumerRecord[bytes, bytes]]:
        consumer = await self._started()
        if self._place not in consumer.assignment():
            consumer.assign([self._place])
            self._position = None
        if self._position != position:
            consumer.seek(self._place, position)
        self._position = None
        found = await consumer.getmany(
            self._place, timeout_ms=round(wait_s * 1000), max_records=limit
        )
        records: list[ConsumerRecord[bytes, bytes]] = found.get(self._place, [])
        self._position = records[-1].offset + 1 if records else position
        return records

    async def close(self) -> None:
        """Let go of the connections."""
        try:
            await super().close()
        finally:
            await self._ends.close()


async def goodbye(consumer: AIOKafkaConsumer) -> None:
    """Stop a consumer, within `GOODBYE_S` in good order, else by cutting its connections."""
    connections = consumer._client._conns.values()  # noqa: SLF001 - there is no public way to stop without taking leave
    transports = [one._writer.transport for one in connections if one._writer is not None]  # noqa: SLF001
    # In a task of its own: a consumer that has lost its broker cancels what it awaits itself, and
    # that would reach us.
    stopping = asyncio.ensure_future(consumer.stop())
    stopping.add_done_callback(look_away)
    _, late = await asyncio.wait([stopping], timeout=PROMPT_S)
    if late:
        for transport in transports:
            if transport.is_closing():
                transport.abort()
        _, late = await asyncio.wait([stopping], timeout=GOODBYE_S)
    if late:
        stopping.cancel()
        await _cut(consumer._client)  # noqa: SLF001


def cancelled() -> bool:
    """Tell whether it is we who were cancelled: a client that has lost its broker cancels what it awaits itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _abandon(producer: AIOKafkaProducer) -> None:
    """Cut a producer's connections and end its task; its own `stop` would first write what it still holds."""
    producer._closed = True  # noqa: SLF001 - there is no public way to stop without flushing
    sending = producer._sender.sender_task  # noqa: SLF001
    if sending is not None:
        sending.cancel()
    await _cut(producer.client)
    if sending is not None:
        # A request that was about to go out may have opened a connection meanwhile.
        await asyncio.wait([sending], timeout=GOODBYE_S)
        await _cut(producer.client)


async def _cut(client: AIOKafkaClient) -> None:
    with suppress(TimeoutError, kafka_errors.KafkaError):
        async with asyncio.timeout(GOODBYE_S):
            await client.close()

"""Log and inbox on Kafka: the topics ``NAME-log``, ``NAME-inbox`` and ``NAME-heartbeat``.

Cluster partition N lives in partition N of all three. One frame is one record, which Kafka writes
whole or not at all; no transactions are used (the client's are not safe under network faults), the
chain does their work. Nothing depends on consumer groups or committed offsets: the position in the
inbox is in the log itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import msgspec

from events.cloudevents import (
    InboxRecord,
    frame_headers,
    proposal_headers,
    proposals,
    read_proposal,
    record_of_message,
)
from events.errors import AppendRefused, LogDamaged, PositionLost, StreamConfigurationError
from events.frame import UNREADABLE, decode_header
from events.streams.kafka_access import KafkaAccess, to_its_end
from events.streams.kafka_client import Message, PartitionEnd, PartitionReader, PartitionWriter
from events.streams.kafka_topics import check_topics, create_topics, must_exist, topic_names
from events.streams.protocols import BEFORE_FIRST, Heartbeat, Record, Streams
from events.streams.security import KafkaSecurity
from events.vocabulary import AnyInput, Proposal

BATCH = 4000
POLL_S = 1.0
"""How long a follower waits for records before it asks whether the broker is still there."""

__all__ = ["KafkaInbox", "KafkaLog", "open_kafka"]


def open_kafka(
    bootstrap: str, name: str, partition: int, security: KafkaSecurity, timeout: float
) -> Streams:
    """Return the streams of a cluster partition on Kafka; nothing is connected before it is used.

    Raises:
        StreamConfigurationError: Python runs without assertions, by which the client guards its own
            state.
    """
    if not __debug__:
        raise StreamConfigurationError(
            "python: runs with -O, expected without: the Kafka client guards its state by assertions"
        )
    access = KafkaAccess(bootstrap=bootstrap, security=security, timeout=timeout)
    return Streams(KafkaLog(access, name, partition), KafkaInbox(access, name, partition))


class KafkaLog:
    """An `EventLog` on Kafka."""

    def __init__(self, access: KafkaAccess, topics: str, partition: int = 0) -> None:
        self.name = f"{topics}/{partition}"
        self.partition = partition
        self._access = access
        self._topics = topics
        names = topic_names(topics)
        self._topic = names.log
        self._writer = PartitionWriter(access, names.log, partition)
        self._beats = PartitionWriter(access, names.heartbeat, partition)
        self._end = PartitionEnd(access, names.log, partition)
        self._beat_reader = PartitionReader(access, names.heartbeat, partition)
        self._last_beat: tuple[int, Heartbeat | None] = (0, None)
        self._checked = False
        self._stamps = False
        self._there: set[str] = set()

    async def create(self) -> None:
        """See `EventLog.create`; makes as many partitions as are needed for this one to be among them."""
        await create_topics(self._access, self._topics, partitions=self.partition + 1)
        await self.check()

    async def check(self) -> None:
        """See `EventLog.check`."""
        found = await check_topics(self._access, self._topics, at_least=self.partition + 1)
        self._stamps = found.stamped
        self._checked = True

    async def _once_checked(self) -> None:
        """Write nothing to topics whose settings were not verified."""
        if not self._checked:
            await self.check()

    async def _once_there(self, topic: str) -> None:
        """Read only what exists: reading a topic that does not would make the broker create it, with seven days of retention.

        A reader may have no right to see the settings of a topic, or the other topics at all.
        """
        if not self._checked and topic not in self._there:
            await must_exist(self._access, topic, at_least=self.partition + 1)
            self._there.add(topic)

    async def read(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`."""
        end = await self.end()
        if after >= end:
            raise PositionLost(after, f"topic {self._topic} ends at {end}")
        reader = PartitionReader(self._access, self._topic, self.partition)
        try:
            position = after + 1
            while position < end:
                records = await reader.fetch(position, BATCH, POLL_S)
                batch = [
                    Record(record.offset, record.value or b"")
                    for record in records
                    if record.offset < end
                ]
                if batch:
                    yield batch
                position = records[-1].offset + 1 if records else end
        finally:
            await reader.close()

    async def follow(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.follow`."""
        await self._once_there(self._topic)
        reader = PartitionReader(self._access, self._topic, self.partition)
        try:
            position = after + 1
            while True:
                records = await reader.fetch(position, BATCH, POLL_S)
                if records:
                    yield [Record(record.offset, record.value or b"") for record in records]
                    position = records[-1].offset + 1
        finally:
            await reader.close()

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        await self._once_checked()
        try:
            header = decode_header(data)
        except UNREADABLE as error:
            raise AppendRefused(self.name, f"no frame can be read: {error}") from error
        return (await self._writer.write([Message(data, frame_headers(header, self.partition))]))[0]

    async def end(self) -> int:
        """See `EventLog.end`."""
        await self._once_there(self._topic)
        return await self._end.end()

    async def heartbeat(self, beat: Heartbeat) -> int | None:
        """See `EventLog.heartbeat`."""
        await self._once_checked()
        return await self._stamped(msgspec.json.encode(beat))

    async def _stamped(self, beat: bytes | None) -> int | None:
        """Write a heartbeat and return when that was by the broker's clock."""
        headers = (("content-type", b"application/json"),)
        return (await self._beats.written([Message(beat, headers)]))[0].time

    async def last_heartbeat(self) -> Heartbeat | None:
        """See `EventLog.last_heartbeat`."""
        await self._once_there(self._beat_reader.topic)
        end = await self._beat_reader.end()
        known, beat = self._last_beat
        if end == known:
            return beat
        # The latest record of a compacted topic is always there; reading on from where we were
        # brings the few since then.
        position = known if beat is not None and end - known < BATCH else end - 1
        while position < end:
            records = await self._beat_reader.fetch(position, BATCH, POLL_S)
            if not records:
                break
            # One without a value only asked for the time, before there was any.
            value = records[-1].value
            beat = None if value is None else _beat(value, self.name)
            position = records[-1].offset + 1
        self._last_beat = (max(position, end), beat)
        return beat

    async def clock(self) -> int | None:
        """See `EventLog.clock`; a broker tells the time when something is written, so the last heartbeat is, once more.

        The heartbeat of a leader that has begun just now may be hidden by that until its next one.
        Whoever takes it for gone only opens a term too many.
        """
        await self._once_checked()
        if not self._stamps:
            return None
        beat = await self.last_heartbeat()
        return await self._stamped(None if beat is None else msgspec.json.encode(beat))

    async def close(self) -> None:
        """See `EventLog.close`."""
        parts = (self._writer, self._beats, self._end, self._beat_reader)
        await to_its_end(asyncio.gather(*(part.close() for part in parts)))


class KafkaInbox:
    """An `Inbox` on Kafka."""

    def __init__(self, access: KafkaAccess, topics: str, partition: int = 0) -> None:
        self.name = f"{topics}/{partition}"
        self.partition = partition
        self._access = access
        names = topic_names(topics)
        self._topic = names.inbox
        self._writer = PartitionWriter(access, names.inbox, partition)
        self._reader = PartitionReader(access, names.inbox, partition)
        self._exists = False

    async def propose(self, inputs: Sequence[AnyInput], source: str = "") -> tuple[int, ...]:
        """See `Inbox.propose`."""
        return await self.put(proposals(inputs, source))

    async def put(self, records: Sequence[InboxRecord]) -> tuple[int, ...]:
        """See `Inbox.put`."""
        if not records:
            return ()
        await self._once_there()
        return await self._writer.write(
            [Message(one.data, proposal_headers(one, self.partition)) for one in records]
        )

    async def read(
        self, position: int, limit: int = 1000, wait_s: float = 0.0
    ) -> tuple[Proposal, ...]:
        """See `Inbox.read`."""
        await self._once_there()
        records = await self._reader.fetch(position, limit, wait_s)
        return tuple(
            read_proposal(record_of_message(one.value, one.headers), one.offset) for one in records
        )

    async def end(self) -> int:
        """See `Inbox.end`."""
        await self._once_there()
        return await self._reader.end()

    async def identity(self) -> str:
        """See `Inbox.identity`; the id that Kafka gave the topic."""
        await self._once_there()
        return await self._reader.identity()

    async def _once_there(self) -> None:
        # A producer may have no right to see a topic's settings, so here it only has to exist.
        if not self._exists:
            await must_exist(self._access, self._topic, at_least=self.partition + 1)
            self._exists = True

    async def close(self) -> None:
        """See `Inbox.close`."""
        await to_its_end(asyncio.gather(*(part.close() for part in (self._writer, self._reader))))


def _beat(data: bytes, name: str) -> Heartbeat:
    try:
        return msgspec.json.decode(data, type=Heartbeat)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LogDamaged(-1, f"heartbeat of {name} cannot be read: {error}") from error

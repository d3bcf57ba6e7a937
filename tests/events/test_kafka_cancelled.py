"""A call that is cancelled, at whichever of its requests, leaves no connection open behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection

from events.chain import ChainReader
from events.streams import Leadership, open_streams
from events.streams.kafka_access import KafkaAccess, to_its_end
from events.streams.kafka_topics import check_topics, create_topics
from events.vocabulary import NodeRemoved
from evsched.service.kafka_group import Group
from tests.events.world import world, write

Use = Callable[[str, str], Awaitable[None]]


async def reads_the_end(bootstrap: str, name: str) -> None:
    """Ask a log where it ends."""
    opened = open_streams(f"kafka://{bootstrap}/{name}", 0)
    try:
        await opened.log.end()
    finally:
        await opened.close()


async def leads_and_writes(bootstrap: str, name: str) -> None:
    """Take the lead, write a step, let go."""
    opened = open_streams(f"kafka://{bootstrap}/{name}", 0)
    try:
        leader = await Leadership.acquire(opened.log, ChainReader(), lambda _: None, world())
        await write(leader, "n1")
    finally:
        await opened.close()


async def proposes_and_reads(bootstrap: str, name: str) -> None:
    """Put something into the inbox and read it back."""
    opened = open_streams(f"kafka://{bootstrap}/{name}", 0)
    try:
        await opened.inbox.propose([NodeRemoved(node="n1")])
        await opened.inbox.read(0)
    finally:
        await opened.close()


async def checks_the_topics(bootstrap: str, name: str) -> None:
    """Look at the topics with an admin client."""
    await check_topics(KafkaAccess(bootstrap=bootstrap), name)


async def belongs_to_the_group(bootstrap: str, name: str) -> None:
    """Join the consumer group of the leaders, and leave when a partition is ours."""
    assigned = asyncio.Event()
    group = Group(KafkaAccess(bootstrap=bootstrap), name)
    joining = asyncio.ensure_future(group.run(lambda own: assigned.set() if own else None))
    try:
        await assigned.wait()
    finally:
        joining.cancel()
        await to_its_end(asyncio.wait([joining]))


USES = (
    reads_the_end,
    leads_and_writes,
    proposes_and_reads,
    checks_the_topics,
    belongs_to_the_group,
)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
async def test_no_connection_is_left_open(
    use: Use, kafka_bootstrap: str, kafka_topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled at its first request, its second, and so on until it comes to its end uncancelled."""
    await create_topics(KafkaAccess(bootstrap=kafka_bootstrap), kafka_topic_name, partitions=1)
    connections: list[AIOKafkaConnection] = []
    sent = 0
    cancel_at = 0
    really_send = AIOKafkaConnection.send
    using: asyncio.Task[None]

    def send(self: AIOKafkaConnection, *args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == cancel_at:
            using.cancel()
        if self not in connections:
            connections.append(self)
        return really_send(self, *args, **kwargs)

    monkeypatch.setattr(AIOKafkaConnection, "send", send)
    cancelled = True
    while cancelled:
        cancel_at, sent = cancel_at + 1, 0
        using = asyncio.ensure_future(use(kafka_bootstrap, kafka_topic_name))
        await asyncio.wait([using])
        assert [one for one in connections if one.connected()] == [], (
            f"cancelled at request {cancel_at}"
        )
        cancelled = using.cancelled()
    await using
    assert cancel_at > 5

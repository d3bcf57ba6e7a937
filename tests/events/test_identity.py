"""The id of an inbox: it stays, and an inbox that is made again under the same name has another one."""

from collections.abc import Callable

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from events import errors
from events.streams import open_streams
from tests.events.places import Place


async def test_an_inbox_has_one_id(place: Place) -> None:
    """It is the same for everyone, after making the streams again, and after proposals."""
    streams = await place.open()
    found = await streams.inbox.identity()
    assert found
    await streams.log.create()
    assert await (await place.open()).inbox.identity() == found
    assert await streams.inbox.identity() == found


async def test_no_other_inbox_has_it(another_place: Callable[[], Place]) -> None:
    """Another name, another id."""
    first, second = await another_place().open(), await another_place().open()
    assert await first.inbox.identity() != await second.inbox.identity()


async def test_a_topic_that_is_made_again_has_another_id(
    kafka_bootstrap: str, kafka_topic_name: str
) -> None:
    """Also for a client that was connected all the time; while it is gone it is missed, and not made by asking."""
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.create()
        before = await streams.inbox.identity()
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        await admin.start()
        try:
            await admin.delete_topics([f"{kafka_topic_name}-inbox"])
        finally:
            await admin.close()
        with pytest.raises(errors.StreamError):
            await streams.inbox.identity()
        await streams.log.create()
        assert await streams.inbox.identity() not in ("", before)

"""Who else could lead, as far as it can be seen: on a file by the word each process left, on Kafka by the group."""

import asyncio
import os

import msgspec

from events.streams import open_streams
from events.streams.kafka_access import KafkaAccess
from events.streams.kafka_topics import create_topics
from events.streams.sqlite import leave_word
from evsched.core.rules import FIRST, NEWEST
from evsched.service.assignment import Everything
from evsched.service.companions import Companion
from evsched.service.kafka_group import Group
from evsched.service.process_identity import own_name

ALIVE = Companion(own_name(), NEWEST)
"""This process."""


def test_processes_of_a_file_are_seen_while_they_live(tmp_path):
    """Each leaves its word once; one that has ended counts no more, and heartbeats are left alone."""
    url = f"sqlite://{tmp_path}/log.db"

    async def story():
        async with open_streams(url) as streams:
            await streams.log.create()
            place, number, started = own_name().rsplit("/", 2)
            gone = Companion(f"{place}/{number}/{int(started) - 1}", FIRST)
            await leave_word(streams.log, 7, msgspec.json.encode(gone))
            every = Everything(url)
            task = asyncio.create_task(every.run(lambda _: None))
            while not (found := await every.companions()):  # noqa: ASYNC110 - the file has no event
                await asyncio.sleep(0)
            task.cancel()
            assert found == (ALIVE,)
            assert await streams.log.last_heartbeat() is None
            await leave_word(
                streams.log, os.getpid(), msgspec.json.encode(Companion(own_name(), FIRST))
            )
            assert await every.companions() == (Companion(own_name(), FIRST),)

    asyncio.run(story())


def test_a_log_that_is_no_file_has_no_words():
    """A log in memory belongs to one process."""
    assert asyncio.run(Everything("memory://x").companions()) == ()


def test_members_of_the_group_say_what_they_know(kafka_bootstrap, kafka_topic_name):
    """A process of this release names its rules in its client id; one of 0.1.0 has a plain one, and knows the first."""
    access = KafkaAccess(bootstrap=kafka_bootstrap)

    async def story():
        await create_topics(access, kafka_topic_name, partitions=2)
        joined = [asyncio.Event(), asyncio.Event()]
        own = Group(access, kafka_topic_name)
        former = Group(access, kafka_topic_name, client="evsched")
        tasks = [
            asyncio.create_task(group.run(lambda given, event=event: given and event.set()))
            for group, event in ((own, joined[0]), (former, joined[1]))
        ]
        await asyncio.gather(*(event.wait() for event in joined))
        found = await own.companions()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sorted(one.rules for one in found) == [FIRST, NEWEST]

    asyncio.run(story())

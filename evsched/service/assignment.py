"""Which process goes first in which cluster partition.

Assignment only says who may *try* first; the term in the log says who leads. So being wrong about
it, or two processes believing the same, does no harm. On Kafka a consumer group on the inbox topic
spreads the partitions over the processes, as it does for any consumer; nothing is read through it
and no offset is committed. The embedded log has no such thing: there every process may try.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from events.streams.opening import kafka_place, open_streams
from events.streams.security import KafkaSecurity
from events.streams.sqlite import leave_word, words_in
from evsched.core.rules import NEWEST
from evsched.service.companions import Companion
from evsched.service.process_identity import own_name, surely_gone


class Assignment(Protocol):
    """Says who goes first."""

    def has(self, partition: int) -> bool:
        """Tell whether this process goes first in a cluster partition."""

    async def run(self, taken: Callable[[frozenset[int]], object]) -> None:
        """Keep the assignment up to date, for ever.

        Args:
            taken: Called with the partitions that are ours whenever they were given out anew; the
                others belong to somebody else who is alive.
        """

    async def companions(self) -> Iterable[Companion]:
        """Return the processes that could lead, as far as they can be seen.

        Raises:
            StreamError: It cannot be found out now.
        """


class Everything:
    """Every process goes first everywhere: where the log cannot spread partitions."""

    def __init__(self, url: str = "") -> None:
        """Keep this process's word in the file at this address, if it is one."""
        self._url = url if url.startswith("sqlite:") else ""

    def has(self, partition: int) -> bool:  # noqa: ARG002 - every one
        """Return True."""
        return True

    async def run(self, taken: Callable[[frozenset[int]], object]) -> None:  # noqa: ARG002 - nothing is ever given out anew
        """Leave this process's word in the file, then wait for ever."""
        if self._url:
            async with open_streams(self._url) as streams:
                word = Companion(name=own_name(), rules=NEWEST)
                # Rows of the first cluster partition and later count from 0 on; below that stand
                # processes, by their number, so that a new one takes the place of a former one.
                await leave_word(streams.log, os.getpid(), msgspec.json.encode(word))
        await asyncio.Event().wait()

    async def companions(self) -> tuple[Companion, ...]:
        """Return those that left their word in the file and have not surely ended."""
        if not self._url:
            return ()
        async with open_streams(self._url) as streams:
            words = [
                msgspec.json.decode(data, type=Companion) for data in await words_in(streams.log)
            ]
        return tuple(one for one in words if one.name and not surely_gone(one.name))


def assignment_for(url: str, security: KafkaSecurity) -> Assignment:
    """Return how partitions of a log are spread over processes."""
    place = kafka_place(url)
    if place is None:
        return Everything(url)
    # The client is slow to load and the embedded log does not need it.
    from events.streams.kafka_access import KafkaAccess  # noqa: PLC0415
    from evsched.service.kafka_group import Group  # noqa: PLC0415

    return Group(KafkaAccess(bootstrap=place[0], security=security), place[1])


async def partitions_of(url: str, security: KafkaSecurity) -> int | None:
    """Return how many cluster partitions a log has; None when the log cannot tell.

    Raises:
        StreamError: The topics do not exist, are not set up rightly, or cannot be reached.
    """
    place = kafka_place(url)
    if place is None:
        return None
    from events.streams.kafka_access import KafkaAccess  # noqa: PLC0415
    from events.streams.kafka_topics import check_topics  # noqa: PLC0415

    access = KafkaAccess(bootstrap=place[0], security=security)
    return (await check_topics(access, place[1])).partitions

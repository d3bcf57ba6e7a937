"""Which process goes first in which cluster partition.

Assignment only says who may *try* first; the term in the log says who leads. So being wrong about
it, or two processes believing the same, does no harm. On Kafka a consumer group on the inbox topic
spreads the partitions over the processes, as it does for any consumer; nothing is read through it
and no offset is committed. The embedded log has no such thing: there every process may try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from events.streams.opening import kafka_place
from events.streams.security import KafkaSecurity


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


class Everything:
    """Every process goes first everywhere: where the log cannot spread partitions."""

    def has(self, partition: int) -> bool:  # noqa: ARG002 - every one
        """Return True."""
        return True

    async def run(self, taken: Callable[[frozenset[int]], object]) -> None:  # noqa: ARG002 - nothing is ever given out anew
        """Wait for ever."""
        await asyncio.Event().wait()


def assignment_for(url: str, security: KafkaSecurity) -> Assignment:
    """Return how partitions of a log are spread over processes."""
    place = kafka_place(url)
    if place is None:
        return Everything()
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

    return await check_topics(KafkaAccess(bootstrap=place[0], security=security), place[1])

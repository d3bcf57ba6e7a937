"""The consumer group that spreads cluster partitions over processes; see `evsched.service.assignment`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from events.errors import StreamError
from events.streams.kafka_access import KafkaAccess, meaning, to_its_end
from events.streams.kafka_client import cancelled, goodbye
from events.streams.kafka_topics import topic_names
from evsched.service.companions import Companion, own_client, rules_of_client

SESSION_MS = 6_000
"""After this long without a word the group gives a process's partitions to others; brokers take no less by default."""
POLL_MS = 1_000
AGAIN_S = 3.0

_log = structlog.get_logger(__name__)


class Group(ConsumerRebalanceListener):  # type: ignore[misc]
    """The consumer group ``NAME-leaders`` on the inbox topic."""

    def __init__(
        self, access: KafkaAccess, name: str, session_ms: int = SESSION_MS, client: str = ""
    ) -> None:
        """Prepare to join; `run` joins, as this client (by default as one that knows the rules of this release)."""
        self._client = client or own_client()
        self._access = access
        self._name = name
        self._session_ms = session_ms
        self._own: frozenset[int] = frozenset()
        self._taken: Callable[[frozenset[int]], object] = lambda _: None
        self._consumer: AIOKafkaConsumer | None = None

    def has(self, partition: int) -> bool:
        """Tell whether the group gave this partition to us."""
        return partition in self._own

    async def run(self, taken: Callable[[frozenset[int]], object]) -> None:
        """See `Assignment.run`; a broker that is away is asked again later, and until then nothing is ours."""
        self._taken = taken
        while True:
            try:
                await self._belong()
            except (kafka_errors.KafkaError, StreamError, OSError, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and cancelled():
                    raise
                _log.warning(
                    "group not reached",
                    group=self._group,
                    error=type(error).__name__,
                    again_in_s=AGAIN_S,
                )
            self._own = frozenset()
            await asyncio.sleep(AGAIN_S)

    @property
    def _group(self) -> str:
        return f"{self._name}-leaders"

    async def _belong(self) -> None:
        """Be a member of the group until something goes wrong."""
        self._consumer = consumer = AIOKafkaConsumer(
            # Joining is answered when every member has joined, so it waits for one that is gone.
            **(self._access.patient_options() | {"client_id": self._client}),
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=self._session_ms,
            heartbeat_interval_ms=self._session_ms // 6,
            partition_assignment_strategy=(StickyPartitionAssignor,),
        )
        try:
            consumer.subscribe([topic_names(self._name).inbox], listener=self)
            await to_its_end(consumer.start())
            while True:
                # Everything is paused, so this brings nothing; it is what keeps a member in its
                # group.
                await consumer.getmany(timeout_ms=POLL_MS)
                await asyncio.sleep(POLL_MS / 1000)
        finally:
            self._consumer = None
            await goodbye(consumer)

    async def companions(self) -> tuple[Companion, ...]:
        """Return the members of the group, this process included."""
        admin = AIOKafkaAdminClient(**self._access.options())
        try:
            await to_its_end(admin.start())
            (found,) = await admin.describe_consumer_groups([self._group])
        except (kafka_errors.KafkaError, OSError) as error:
            raise meaning(error, self._group) from error
        finally:
            await admin.close()
        (described,) = found.to_object()["groups"]
        return tuple(
            Companion(
                name=f"at {one['client_host'].lstrip('/')}", rules=rules_of_client(one["client_id"])
            )
            for one in described["members"]
        )

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        """Do nothing yet: most of them come back, and until they are given out anew nobody else goes first."""

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """Take note of what is ours now; see `ConsumerRebalanceListener`."""
        if self._consumer is not None and assigned:
            self._consumer.pause(*assigned)
        self._own = frozenset(place.partition for place in assigned)
        _log.info("assigned", group=self._group, partitions=sorted(self._own))
        self._taken(self._own)

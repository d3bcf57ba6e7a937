"""A real Apache Kafka for the tests, got in the first of three ways that works here; a test that needs one never skips.

1. `EVSCHED_TEST_KAFKA=host:port`: one that is there already. It belongs to somebody, so tests that
   kill a broker, or want one configured in their own way, do not take it and go on to the next way.
2. Docker Compose, when an engine answers.
3. A process of this machine, from jars that Maven collects.

`EVSCHED_KAFKA_VERSION` asks for another release than the default (for 2 and 3).
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from tests.kafka.container import KafkaContainer
from tests.kafka.jars import DEFAULT_VERSION
from tests.kafka.missing import BrokerUnavailable, nothing_works
from tests.kafka.process import KafkaProcess
from tests.kafka.properties import Door
from tests.kafka.wire import wait_until_ready

_GIVEN = "EVSCHED_TEST_KAFKA"
_GIVEN_SECONDS = 20


class KafkaBroker(Protocol):
    """A broker that belongs to the tests: it may be killed, and comes back with its data on the same port.

    Attributes:
        bootstrap: `host:port` for clients, from the beginning and for good.
        version: The release.
    """

    bootstrap: str
    version: str

    @property
    def running(self) -> bool:
        """Whether it runs."""

    def start(self) -> None:
        """Start it and wait until it is in service."""

    def kill(self) -> None:
        """End it with SIGKILL; the data stays."""

    def terminate(self) -> None:
        """End it in order, with SIGTERM; the data stays."""

    def restart(self) -> None:
        """Kill it if it runs, and start it again on its data."""

    def stop(self) -> None:
        """End it and remove its data."""


class GivenBroker:
    """The broker of `EVSCHED_TEST_KAFKA`: used, never started, killed or stopped."""

    version = "given"

    def __init__(self, bootstrap: str) -> None:
        """Check that somebody answers at `bootstrap` (host:port); raises BrokerUnavailable when nobody does."""
        self.bootstrap = bootstrap
        if not bootstrap.rpartition(":")[2].isdigit():
            raise BrokerUnavailable(f"{_GIVEN}={bootstrap}: expected host:port")
        if not wait_until_ready(bootstrap, _GIVEN_SECONDS):
            raise BrokerUnavailable(f"{_GIVEN}={bootstrap}: no Kafka broker answers there")

    def stop(self) -> None:
        """Leave it as it is."""


def own_broker(
    config: Mapping[str, str] | None = None,
    version: str | None = None,
    doors: Sequence[Door] = (),
) -> KafkaBroker:
    """Return a started broker of the caller's own, which the caller stops.

    Args:
        config: Lines of server.properties, in addition to or instead of the usual ones.
        version: The release; None means EVSCHED_KAFKA_VERSION, or else the default.
        doors: More listeners for clients.

    Raises:
        BrokerUnavailable: None can be had; the message lists what is missing.
    """
    wanted = version or os.environ.get("EVSCHED_KAFKA_VERSION") or DEFAULT_VERSION
    reasons: dict[str, str] = {}
    ways: tuple[tuple[str, type[KafkaContainer | KafkaProcess]], ...] = (
        ("Docker Compose", KafkaContainer),
        ("JDK and Maven", KafkaProcess),
    )
    for way, make in ways:
        try:
            broker = make(version=wanted, config=config, doors=doors)
            broker.start()
        except BrokerUnavailable as error:
            reasons[way] = str(error)
        else:
            return broker
    raise nothing_works(reasons)


def shared_broker() -> KafkaBroker | GivenBroker:
    """Return the broker that tests share, by the first way that works; raises BrokerUnavailable when none does."""
    given = os.environ.get(_GIVEN)
    return GivenBroker(given) if given else own_broker()

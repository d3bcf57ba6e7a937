"""Three Kafka brokers as one cluster: every record on three of them, and on two before it counts."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.kafka.jars import DEFAULT_VERSION
from tests.kafka.missing import BrokerUnavailable
from tests.kafka.process import KafkaProcess, new_place
from tests.kafka.wire import brokers_in_service

COUNT = 3
MAJORITY = 2
SMALL_JVM = ("-Xms48m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOGETHER_SECONDS = 60
RECOMMENDED = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "400",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "500",
}
"""What docs/production.md names for brokers that are to be replaced soon."""


class ThreeBrokers:
    """A cluster of three, each broker and controller.

    Attributes:
        brokers: By number, from 0 on; ``node.id`` is one more.
        bootstrap: All their addresses, with commas.
    """

    def __init__(self, version: str = DEFAULT_VERSION) -> None:
        """Prepare them; nothing runs before `start`."""
        first = new_place()
        places = [first, *(new_place(first.cluster) for _ in range(COUNT - 1))]
        voters = ",".join(
            f"{number}@127.0.0.1:{place.ports.controller}" for number, place in enumerate(places, 1)
        )
        config = {
            "controller.quorum.voters": voters,
            "offsets.topic.replication.factor": "3",
            **RECOMMENDED,
        }
        self.brokers = [
            KafkaProcess(version, {**config, "node.id": str(number)}, SMALL_JVM, place)
            for number, place in enumerate(places, 1)
        ]
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)

    def start(self, *numbers: int) -> float:
        """Start these at once (all when none is named), wait until they run, and return when a majority was in service.

        The time is in seconds since the epoch.
        """

        def started(number: int) -> float:
            self.brokers[number].start()
            self._wait_for(MAJORITY, self.brokers[number])
            return time.time()

        with ThreadPoolExecutor(COUNT) as pool:
            return min(pool.map(started, numbers or range(COUNT)))

    def wait_for_all(self) -> None:
        """Wait until every broker knows that all are in service."""
        self._wait_for(COUNT, *self.brokers)

    def _wait_for(self, count: int, *asked: KafkaProcess) -> None:
        """Wait until each of these knows that so many are in service."""
        deadline = time.monotonic() + _TOGETHER_SECONDS
        while not all(_known_by(broker) >= count for broker in asked):
            if time.monotonic() > deadline:
                raise BrokerUnavailable(f"brokers at {self.bootstrap}: not {count} in service")
            time.sleep(0.05)

    def stop(self) -> None:
        """End all of them and remove their data."""
        for broker in self.brokers:
            broker.stop()


def _known_by(broker: KafkaProcess) -> int:
    """Return how many brokers this one knows to be in service; 0 when it does not answer."""
    host, _, port = broker.bootstrap.rpartition(":")
    return brokers_in_service(host, int(port))

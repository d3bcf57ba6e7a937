"""The broker of the tests is a real one: it keeps what it is told, comes back from the dead, and its absence is never silent."""

import asyncio
import socket
from pathlib import Path

import aiokafka
import pytest

from tests.kafka import broker as choice
from tests.kafka import container
from tests.kafka.broker import GivenBroker, KafkaBroker
from tests.kafka.container import compose_document
from tests.kafka.guarded import MASTER, SECRET
from tests.kafka.missing import BrokerUnavailable
from tests.kafka.properties import Door
from tests.kafka.wire import brokers_in_service

SECONDS = 30


async def produce(bootstrap: str, topic: str, value: bytes, **login: str) -> None:
    """Append one record, acknowledged by the broker."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, **login
    )
    try:
        await producer.start()
        await asyncio.wait_for(producer.send_and_wait(topic, value), SECONDS)
    finally:
        await producer.stop()


async def consume(bootstrap: str, topic: str, **login: str) -> bytes:
    """Return the first record's value."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **login
    )
    try:
        await consumer.start()
        return (await asyncio.wait_for(consumer.getone(), SECONDS)).value
    finally:
        await consumer.stop()


async def test_a_record_comes_back(kafka_bootstrap: str, kafka_topic_name: str) -> None:
    """What is produced is consumed, over a topic that the broker makes by itself."""
    await produce(kafka_bootstrap, kafka_topic_name, b"bound")
    assert await consume(kafka_bootstrap, kafka_topic_name) == b"bound"


async def test_a_killed_broker_comes_back_with_its_data(
    mortal_kafka: KafkaBroker, kafka_topic_name: str
) -> None:
    """SIGKILL and a new start lose no acknowledged record and keep the port."""
    broker = mortal_kafka
    host, port = broker.bootstrap.split(":")
    await produce(broker.bootstrap, kafka_topic_name, b"kept")
    broker.kill()
    assert not broker.running
    assert brokers_in_service(host, int(port)) == 0
    broker.restart()
    assert await consume(broker.bootstrap, kafka_topic_name) == b"kept"


async def test_a_broker_can_demand_a_password(
    guarded_kafka: KafkaBroker, kafka_topic_name: str
) -> None:
    """With SASL, who knows the password is served and who does not is refused."""
    bootstrap = guarded_kafka.bootstrap
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": MASTER,
    }
    right, wrong = {"sasl_plain_password": SECRET}, {"sasl_plain_password": "another"}
    await produce(bootstrap, kafka_topic_name, b"let in", **login, **right)
    assert await consume(bootstrap, kafka_topic_name, **login, **right) == b"let in"
    with pytest.raises(aiokafka.errors.KafkaError):
        await produce(bootstrap, kafka_topic_name, b"kept out", **login, **wrong)


def test_without_any_way_the_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No engine, no JDK and no address: the error names all three, so that one can be supplied."""
    monkeypatch.delenv("EVSCHED_TEST_KAFKA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerUnavailable) as caught:
        choice.shared_broker()
    said = str(caught.value)
    assert "no `docker` on the PATH" in said
    assert "no `java` on the PATH" in said
    assert "EVSCHED_TEST_KAFKA" in said


def test_an_address_where_nobody_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong EVSCHED_TEST_KAFKA fails; no other way is tried behind its back."""
    monkeypatch.setattr(choice, "_GIVEN_SECONDS", 0.2)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        with pytest.raises(BrokerUnavailable, match="no Kafka broker answers there"):
            GivenBroker(f"127.0.0.1:{listening.getsockname()[1]}")
    with pytest.raises(BrokerUnavailable, match="expected host:port"):
        GivenBroker("kafka.example.org")


def test_a_given_broker_is_used_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, kafka_bootstrap: str
) -> None:
    """EVSCHED_TEST_KAFKA comes first, and stopping it stops nothing."""
    monkeypatch.setenv("EVSCHED_TEST_KAFKA", kafka_bootstrap)
    given = choice.shared_broker()
    assert isinstance(given, GivenBroker)
    given.stop()
    host, port = kafka_bootstrap.split(":")
    assert brokers_in_service(host, int(port)) == 1


def test_the_container_is_told_what_the_process_is_told() -> None:
    """The Compose document carries every line of server.properties as the image's variables, and the ports of clients."""
    document = compose_document(
        "4.1.1", 19999, 19998, {"num.partitions": "3"}, [Door("TLS", "SSL", 19997, {})]
    )
    service = document["services"]["kafka"]
    assert service["image"] == "apache/kafka:4.1.1"
    assert service["ports"] == [
        "127.0.0.1:19999:9092",
        "127.0.0.1:19998:19092",
        "127.0.0.1:19997:19997",
    ]
    assert service["environment"]["KAFKA_NUM_PARTITIONS"] == "3"
    assert service["environment"]["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert service["environment"]["KAFKA_ADVERTISED_LISTENERS"].startswith(
        "CLIENT://127.0.0.1:19999,"
    )
    assert service["environment"]["KAFKA_LISTENERS"].endswith(",TLS://0.0.0.0:19997")


def test_an_engine_that_answers_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With Docker there, the broker is a Compose project of its own: up, killed, up again, and down with its data.

    The engine is a stand-in that notes what it is told: this shows the order of the commands, not
    that the image works.
    """
    said = tmp_path / "said"
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >> {said}\ncase "$*" in *" ps "*) echo id ;; esac\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(container, "wait_until_ready", lambda address, seconds: True)
    broker = choice.own_broker(version="4.2.0")
    broker.restart()
    broker.stop()
    told = [line.split("compose.json ")[-1] for line in said.read_text().splitlines()]
    up = "up --detach --no-recreate"
    stop = "down --volumes --timeout 0"
    assert told == [
        "info",
        "compose version",
        up,
        "ps --quiet --status running",
        "kill --signal SIGKILL",
        up,
        stop,
    ]

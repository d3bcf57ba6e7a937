"""What a test broker is told, however it is run: KRaft, one node that is broker and controller.

It listens three times: CLIENT for whoever is tested (plain unless the test's own lines say
otherwise), INTERNAL for its own traffic and for asking it whether it is ready, so that only CLIENT
demands passwords, and CONTROLLER for KRaft.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tests.kafka.certificates import Authority, Identity

_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # As on a broker that nobody has hardened: what evsched does about it is tested.
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may come back only when the controller has given up its former self: after 9 s
    # by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "8388608",
}


class Ports(NamedTuple):
    """Where a broker listens."""

    client: int
    internal: int
    controller: int


def properties(
    host: str, ports: Ports, advertised: str, data: str, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the lines of server.properties.

    Args:
        host: The address to listen on.
        ports: The ports to listen on.
        advertised: The address (host:port) that clients are told to use.
        data: The folder of the log.
        own: Lines of the test, in addition or instead.
    """
    return {
        **_PROPERTIES,
        "listeners": f"CLIENT://{host}:{ports.client},INTERNAL://{host}:{ports.internal},CONTROLLER://{host}:{ports.controller}",
        "advertised.listeners": f"CLIENT://{advertised},INTERNAL://127.0.0.1:{ports.internal}",
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "log.dirs": data,
        **(own or {}),
    }


def sasl_plain(users: Mapping[str, str]) -> dict[str, str]:
    """Return the lines that make clients log in by SASL/PLAIN as one of `users` (name to password)."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
        ),
    }


def tls(
    broker: Identity, trusted: Authority, protocol: str = "SSL", client_auth: str = "none"
) -> dict[str, str]:
    """Return the lines that make clients talk TLS; they hold the certificates themselves, as a container sees no files of ours.

    Args:
        broker: Who the broker is.
        trusted: Who signs the certificates of clients.
        protocol: SSL, or SASL_SSL together with the lines of `sasl_plain`.
        client_auth: Whether clients need a certificate: none or required.
    """
    lines = {
        "keystore.type": "PEM",
        "keystore.certificate.chain": broker.certificate,
        "keystore.key": broker.key(),
        "truststore.type": "PEM",
        "truststore.certificates": trusted.certificate,
        "client.auth": client_auth,
    }
    return {
        "listener.security.protocol.map": f"CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        # A line end within a value is written so in this kind of file.
        **{
            f"listener.name.client.ssl.{name}": value.replace("\n", "\\n")
            for name, value in lines.items()
        },
    }

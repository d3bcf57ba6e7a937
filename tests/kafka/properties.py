"""What a test broker is told, however it is run: KRaft, one node that is broker and controller.

It listens three times: CLIENT for whoever is tested (plain unless the test's own lines say
otherwise), INTERNAL for its own traffic and for asking it whether it is ready, so that only CLIENT
demands passwords, and CONTROLLER for KRaft. It may have more doors for clients, each with its own
protocol: one broker then serves the tests of all of them.
"""

from collections.abc import Mapping, Sequence
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


class Door(NamedTuple):
    """One more listener for clients.

    Attributes:
        name: Of the listener, in capitals.
        protocol: SSL, SASL_SSL or SASL_PLAINTEXT.
        port: Where it listens, in a container and outside.
        lines: What the broker is told of it, as `sasl_plain` and `tls` give it.
    """

    name: str
    protocol: str
    port: int
    lines: Mapping[str, str]


def with_doors(lines: Mapping[str, str], host: str, doors: Sequence[Door]) -> dict[str, str]:
    """Return the lines of server.properties for a broker that listens at these doors, too."""
    more = {
        "listeners": [f"{door.name}://{host}:{door.port}" for door in doors],
        "advertised.listeners": [f"{door.name}://127.0.0.1:{door.port}" for door in doors],
        "listener.security.protocol.map": [f"{door.name}:{door.protocol}" for door in doors],
    }
    joined = {name: ",".join([lines[name], *added]) for name, added in more.items()}
    own = {name: value for door in doors for name, value in door.lines.items()}
    return {**lines, **joined, **own}


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


def sasl_plain(users: Mapping[str, str], listener: str = "client") -> dict[str, str]:
    """Return the lines with which a listener knows `users` (name to password), who log in by SASL/PLAIN."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {
        f"listener.name.{listener}.sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{listener}.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
        ),
    }


def tls(
    broker: Identity, trusted: Authority, listener: str, client_auth: str = "none"
) -> dict[str, str]:
    """Return the lines of a listener that talks TLS; they hold the certificates themselves, as a container sees no files of ours.

    Args:
        broker: Who the broker is.
        trusted: Who signs the certificates of clients.
        listener: Its name, in small letters.
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
    # A line end within a value is written so in this kind of file.
    return {
        f"listener.name.{listener}.ssl.{name}": value.replace("\n", "\\n")
        for name, value in lines.items()
    }

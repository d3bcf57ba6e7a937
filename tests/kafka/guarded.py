"""One broker that demands passwords or certificates and checks rights, for all tests that need one.

Each test grants rights on its own topics. Beside its first address, where a password is enough, it
has a door for each way of TLS.
"""

from functools import cache
from typing import NamedTuple

from events.streams.security import KafkaSecurity
from tests.kafka.broker import KafkaBroker, own_broker
from tests.kafka.certificates import Authority
from tests.kafka.properties import Door, sasl_plain, tls
from tests.kafka.wire import free_ports

MASTER, SECRET = "evsched", "right-secret"
"""Who may do everything, and with which password."""
CLIENT = "client"
"""The name in a certificate whose owner may do everything."""
_ROLES = ("leader", "scheduler", "producer", "client", "importer", "auditor", "evil")
_USERS = {MASTER: SECRET, **{role: f"{role}-password" for role in _ROLES}}
_LINES = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    **sasl_plain(_USERS),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The broker itself, by its own listener, is nobody in particular, and so is who shows no
    # certificate.
    "super.users": f"User:ANONYMOUS;User:{MASTER};User:CN={CLIENT}",
    # The rest of a certificate's name is the authority's affair.
    "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/CN=$1/,DEFAULT",
}


class GuardedBroker(NamedTuple):
    """The broker, and whom it trusts.

    Attributes:
        broker: Its first address wants a password, in the clear.
        tls: Address (host:port) for anybody who speaks TLS.
        misnamed: The same with a certificate for ``localhost``, though clients are sent to 127.0.0.1.
        password: Wants a password, over TLS.
        mutual: Wants a certificate of the client.
    """

    broker: KafkaBroker
    tls: str
    misnamed: str
    password: str
    mutual: str


@cache
def authority() -> Authority:
    """Return who signs for the broker, and for the clients that it is to trust."""
    return Authority("an authority")


def guarded_broker() -> GuardedBroker:
    """Return a started broker on which all but two names have no right until it is granted; the caller stops it."""
    here, elsewhere = (authority().sign("broker", host) for host in ("127.0.0.1", "localhost"))
    ports = free_ports(4)
    doors = (
        Door("TLS", "SSL", ports[0], tls(here, authority(), "tls")),
        Door("MISNAMED", "SSL", ports[1], tls(elsewhere, authority(), "misnamed")),
        Door(
            "PASSWORD",
            "SASL_SSL",
            ports[2],
            sasl_plain(_USERS, "password") | tls(here, authority(), "password"),
        ),
        Door("MUTUAL", "SSL", ports[3], tls(here, authority(), "mutual", "required")),
    )
    broker = own_broker(_LINES, doors=doors)
    return GuardedBroker(broker, *(f"127.0.0.1:{port}" for port in ports))


def password(user: str) -> str:
    """Return the right password of a user."""
    return _USERS[user]


def login(user: str = MASTER, secret: str | None = None) -> KafkaSecurity:
    """Return how a user logs in, with another than the right password where one is given."""
    return KafkaSecurity(
        protocol="SASL_PLAINTEXT",
        mechanism="PLAIN",
        username=user,
        password=_USERS[user] if secret is None else secret,
    )

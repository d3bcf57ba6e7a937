"""One broker that demands a password and checks rights, for all tests that need one: each grants rights on its own topics."""

from events.streams.security import KafkaSecurity
from tests.kafka.broker import KafkaBroker, own_broker
from tests.kafka.properties import sasl_plain

MASTER, SECRET = "evsched", "right-secret"
"""Who may do everything, and with which password."""
_ROLES = ("leader", "scheduler", "producer", "client", "importer", "auditor", "evil")
_USERS = {MASTER: SECRET, **{role: f"{role}-password" for role in _ROLES}}
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The broker itself, by its own listener, is nobody in particular.
    "super.users": f"User:ANONYMOUS;User:{MASTER}",
}


def guarded_broker() -> KafkaBroker:
    """Return a started broker on which all but one user have no right until it is granted; the caller stops it."""
    return own_broker(sasl_plain(_USERS) | _AUTHORIZER)


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

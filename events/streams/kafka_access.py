"""Getting at a Kafka broker: where it is, who we are, and what its client's errors mean."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from typing import Any

import msgspec
from aiokafka import errors as kafka_errors
from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.protocol.metadata import MetadataRequest

from events.errors import AccessDenied, LogDamaged, LogUnreachable, StreamError, StreamMissing
from events.streams.security import KafkaSecurity

DENIED = (
    kafka_errors.TopicAuthorizationFailedError,
    kafka_errors.ClusterAuthorizationFailedError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.SaslAuthenticationFailed,
    kafka_errors.AuthenticationFailedError,
    kafka_errors.AuthenticationMethodNotSupported,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)
"""Errors of who has no right, or no name."""
REFUSED = (
    kafka_errors.MessageSizeTooLargeError,
    kafka_errors.RecordListTooLargeError,
    kafka_errors.RecordTooLargeError,
    kafka_errors.InvalidTimestampError,
    kafka_errors.PolicyViolationError,
    kafka_errors.UnsupportedForMessageFormatError,
)
"""Errors that mean: definitely not written."""


STAMPED = ("message.timestamp.type", "LogAppendTime")
"""With this setting the broker stamps a topic's records by its own clock. Topics are made so, and
work without it: a leader has then no other clock to hold its own against, and a broker refuses what
is stamped more than an hour ahead of it."""
_STAMP_IT = f"let the broker stamp this topic ({'='.join(STAMPED)})"

REQUEST_S = 2.0
"""How long a broker may take to answer one request. One that stands still keeps its connections open
and answers nothing, so this is how soon the client asks another where the partition is led now. It
is well below the deadline of a call, which leaves time for the same record to be sent to the next
broker: then nothing is unknown, and a leader keeps its term. It is well above what a write takes
that waits for a slow replica, and a fetch of `FETCH_BYTES` over a line of 20 Mbit/s."""
GOODBYE_S = 2.0
"""How long one waits for a connection to end in good order."""


class KafkaAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Where the broker is and how to talk to it.

    Attributes:
        bootstrap: ``host:port``, several with commas.
        timeout: Deadline of each call, seconds; a call may take several requests.
    """

    bootstrap: str
    security: KafkaSecurity = KafkaSecurity()
    timeout: float = 10.0

    @property
    def request_s(self) -> float:
        """How long one request may take, seconds."""
        return min(self.timeout, REQUEST_S)

    def options(self) -> dict[str, Any]:
        """Return the arguments that every client takes."""
        return {
            "bootstrap_servers": self.bootstrap,
            "request_timeout_ms": round(self.request_s * 1000),
            "client_id": "evsched",
            **self.security.client_options(),
        }

    def patient_options(self) -> dict[str, Any]:
        """Return the same for requests that a broker answers late by design: each may take as long as a call."""
        return self.options() | {"request_timeout_ms": round(self.timeout * 1000)}


async def to_its_end(work: Awaitable[Any]) -> None:
    """Await the start or the end of a client, and when we are cancelled meanwhile, let it come to its own end first.

    A client that is cancelled while it waits for the first broker's answer forgets that connection
    without closing it, and one whose end is cancelled keeps some open. What takes longer than
    `GOODBYE_S` is cut off.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working], timeout=GOODBYE_S)
        raise
    finally:
        working.cancel()
        working.add_done_callback(look_away)


def look_away(future: asyncio.Future[Any]) -> None:
    """Take an answer that nobody wants any more, so that nobody is warned of it."""
    if not future.cancelled():
        future.exception()


async def explained(error: BaseException, access: KafkaAccess) -> BaseException:
    """Return why no broker could be reached: the client says only that there was none, so one more connection is tried.

    A broker that answers may send its clients on to an address where it cannot be reached, so these
    are tried as well.
    """
    sent_on: bool = isinstance(error, kafka_errors.NodeNotReadyError)
    if not (sent_on or isinstance(error, kafka_errors.KafkaConnectionError)):
        return error
    reason: BaseException | None = error
    places: list[tuple[str, int]] = []
    for host, port, _family in collect_hosts(access.bootstrap, randomize=False):
        places, reason = await _tried(host, port, access)
        if reason is None:
            break
    if reason is not None:
        return reason
    for host, port in places if sent_on else ():
        _, reason = await _tried(host, port, access)
        if reason is not None:
            return reason
    return error


async def _tried(
    host: str, port: int, access: KafkaAccess
) -> tuple[list[tuple[str, int]], BaseException | None]:
    """Return where the broker at this address says that brokers are, or else why it could not be asked."""
    options = access.options()
    del options["bootstrap_servers"]
    connection = AIOKafkaConnection(host, port, **options)
    try:
        async with asyncio.timeout(access.request_s):
            await connection.connect()
            answer = await connection.send(MetadataRequest([]))
    except (OSError, kafka_errors.KafkaError) as found:
        return [], _refusal(found, f"{host}:{port}", access.security)
    finally:
        ended = connection.close()
        if connection._protocol is not None:  # noqa: SLF001 - else there was none, and nobody would say that it has ended
            # The client does not wait for its own, and TLS ends one only when the broker agrees; by
            # then those are gone, too.
            await asyncio.wait([ended], timeout=GOODBYE_S)
    return [(broker[1], broker[2]) for broker in answer.brokers], None


def _refusal(found: BaseException, place: str, security: KafkaSecurity) -> BaseException:
    """Return why a connection came to nothing, in words that say what to mend where those of TLS do not."""
    cause = found.__cause__ or found
    meant: BaseException = found
    if isinstance(cause, ssl.SSLCertVerificationError):
        meant = kafka_errors.AuthenticationFailedError(
            f"the certificate of {place} is not trusted: {cause.verify_message}"
        )
    elif isinstance(cause, ssl.SSLError) and (
        "CERT" in str(cause.reason) or "UNKNOWN_CA" in str(cause.reason)
    ):
        wish = (
            "does not accept our certificate"
            if security.cert_file
            else "wants a certificate of ours (cert_file)"
        )
        meant = kafka_errors.AuthenticationFailedError(f"{place} {wish}: {cause.reason}")
    elif isinstance(cause, ssl.SSLError | ConnectionResetError | EOFError):
        meant = kafka_errors.KafkaConnectionError(
            f"{place} hung up at once, perhaps as it does not speak {security.protocol}"
        )
    return meant


def meaning(error: BaseException, name: str) -> StreamError:
    """Return what an error of the client means when nothing was written."""
    if isinstance(error, StreamError):
        return error
    if isinstance(error, DENIED):
        return AccessDenied(name, said(error))
    if isinstance(error, kafka_errors.UnknownTopicOrPartitionError):
        return StreamMissing(name)
    if isinstance(error, kafka_errors.CorruptRecordException):
        return LogDamaged(-1, f"topic {name}: {said(error)}")
    return LogUnreachable(
        name, "no answer in time" if isinstance(error, TimeoutError) else said(error)
    )


def said(error: BaseException) -> str:
    """Return an error of the client as text, its kind included."""
    if isinstance(error, kafka_errors.InvalidTimestampError):
        return f"{error}: the clock of this machine is too far from the broker's; set it right, or {_STAMP_IT}"
    # The client's own say it themselves.
    return (
        str(error)
        if isinstance(error, kafka_errors.KafkaError)
        else f"{type(error).__name__}: {error}"
    )


def _no_secrets(record: logging.LogRecord) -> bool:
    """Refuse what the client's connections log for its own developers: it would hold passwords as they are sent."""
    return record.levelno > logging.DEBUG


logging.getLogger("aiokafka.conn").addFilter(_no_secrets)

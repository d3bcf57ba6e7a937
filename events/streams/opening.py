"""From an address to streams.

``memory://NAME``, ``sqlite:///PATH``, ``kafka://HOST:PORT[,HOST:PORT…]/NAME``, and for what only
reads an exported log, ``PATH.jsonl`` or ``PATH.jsonl.zst``. The path of a SQLite file is absolute;
a slash more or less in front of it makes no difference.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from events.errors import UnknownScheme
from events.streams.export import SUFFIXES, ExportedLog
from events.streams.memory import open_memory
from events.streams.protocols import EventLog, Streams
from events.streams.security import KafkaSecurity
from events.streams.sqlite import open_sqlite

STREAMS = "kafka://HOST:PORT/NAME, sqlite:///PATH or memory://NAME"
LOGS = f"{STREAMS}, or a path that ends in {' or '.join(SUFFIXES)}"


def open_streams(
    url: str, partition: int = 0, security: KafkaSecurity | None = None, timeout: float = 10.0
) -> Streams:
    """Return the log and the inbox at an address. Nothing is connected or opened before it is used.

    Args:
        url: See the top of this module.
        partition: Number of the cluster partition.
        security: For Kafka; None: what the environment says (`KafkaSecurity.from_environment`).
        timeout: Deadline of each call, seconds.

    Raises:
        UnknownScheme: The address is not understood.
    """
    parts = _split(url, STREAMS)
    if parts.scheme == "memory":
        return open_memory(parts.netloc + parts.path, partition)
    if parts.scheme == "sqlite" and not parts.netloc and parts.path not in ("", "/"):
        return open_sqlite(
            Path("/" + unquote(parts.path).lstrip("/")), partition, round(timeout * 1000)
        )
    place = kafka_place(url)
    if place is not None:
        from events.streams.kafka import open_kafka  # noqa: PLC0415 - the client is slow to load and often not needed

        return open_kafka(*place, partition, security or KafkaSecurity.from_environment(), timeout)
    raise UnknownScheme(_without_secret(url), STREAMS)


def open_log(
    url: str, partition: int = 0, security: KafkaSecurity | None = None, timeout: float = 10.0
) -> EventLog:
    """Return the log at an address, which may also be an exported file; otherwise as `open_streams`."""
    if url.endswith(SUFFIXES):
        return ExportedLog(
            Path(unquote(_split(url, LOGS).path) if url.startswith("file://") else url)
        )
    try:
        return open_streams(url, partition, security, timeout).log
    except UnknownScheme as error:
        raise UnknownScheme(error.url, LOGS) from None


def kafka_place(url: str) -> tuple[str, str] | None:
    """Return bootstrap servers and name of a log on Kafka, None when it is elsewhere.

    Raises:
        UnknownScheme: The address is not understood.
    """
    parts = _split(url, STREAMS)
    if parts.scheme != "kafka":
        return None
    name = parts.path.strip("/")
    if not name or not _are_brokers(parts.netloc):
        raise UnknownScheme(_without_secret(url), STREAMS)
    return parts.netloc, name


def _split(url: str, expected: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        UnknownScheme: It is none: a bracket that is not closed, a letter that no host may have.
    """
    try:
        return urlsplit(url)
    except ValueError:
        raise UnknownScheme(_without_secret(url), expected) from None


def _are_brokers(places: str) -> bool:
    """Tell whether these are hosts, each with a port or without one, and no name and password before them."""
    for place in places.split(","):
        try:
            parts = urlsplit(f"//{place}")
            there = bool(parts.hostname) and parts.port != 0
        except ValueError:  # no number, or none that a port may have
            return False
        if not there or "@" in place:
            return False
    return True


def _without_secret(url: str) -> str:
    """Return the address without a name and password that somebody may have put in front of the host."""
    scheme, mark, rest = url.partition("://")
    return scheme + mark + rest.rpartition("@")[2] if mark else url.rpartition("@")[2]

"""Which log a command works on, and how its errors become exit codes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from cyclopts import Group, Parameter
from platformdirs import user_data_path

from events.chain import ChainReader, Head, RecordedStep
from events.errors import (
    AccessDenied,
    CallerError,
    InboxDetached,
    StateDiffers,
    StreamError,
    StreamMissing,
    UnknownScheme,
)
from events.streams import EventLog, Streams, open_log, open_streams, private_files
from events.streams.attachment import must_read
from events.streams.export import SUFFIXES
from events.streams.reading import read_steps
from events.streams.security import KafkaSecurity
from evsched.cli.answers import MISUSE, UNREACHABLE, CommandError

_KAFKA = Group(
    "Kafka",
    help="Passwords come from EVSCHED_KAFKA_PASSWORD and EVSCHED_KAFKA_KEY_PASSWORD, or files named by these with _FILE.",
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which log a command works on, all of its cluster partitions, and how to reach it.

    Attributes:
        log: kafka://HOST:PORT/NAME (several brokers: HOST:PORT,HOST:PORT), sqlite:///PATH or the
            path of such a file (.db), for what only reads an exported log (.jsonl, .jsonl.zst)
            too; a file in your data directory by default.
        protocol: How to talk to Kafka: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        mechanism: SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        username: For SASL.
        ca_file: Certificates to trust, instead of those of the system.
        cert_file: Our own certificate, for mutual TLS.
        key_file: Its key.
    """

    log: Annotated[str | None, Parameter(env_var="EVSCHED_LOG")] = None
    protocol: Annotated[
        str | None,
        Parameter(name="--kafka-protocol", env_var="EVSCHED_KAFKA_PROTOCOL", group=_KAFKA),
    ] = None
    mechanism: Annotated[
        str | None,
        Parameter(name="--kafka-mechanism", env_var="EVSCHED_KAFKA_MECHANISM", group=_KAFKA),
    ] = None
    username: Annotated[
        str | None,
        Parameter(name="--kafka-username", env_var="EVSCHED_KAFKA_USERNAME", group=_KAFKA),
    ] = None
    ca_file: Annotated[
        str | None, Parameter(name="--kafka-ca-file", env_var="EVSCHED_KAFKA_CA_FILE", group=_KAFKA)
    ] = None
    cert_file: Annotated[
        str | None,
        Parameter(name="--kafka-cert-file", env_var="EVSCHED_KAFKA_CERT_FILE", group=_KAFKA),
    ] = None
    key_file: Annotated[
        str | None,
        Parameter(name="--kafka-key-file", env_var="EVSCHED_KAFKA_KEY_FILE", group=_KAFKA),
    ] = None

    @property
    def url(self) -> str:
        """The address that was given, or that of the default log, whose folder is made when it is missing."""
        if self.log:
            return _address(self.log)
        folder = data_directory()
        private_files.make_folder(folder)
        return f"sqlite:///{folder / 'log.db'}"

    @property
    def security(self) -> KafkaSecurity:
        """How to prove to a broker who we are; secrets come from the environment."""
        try:
            return KafkaSecurity.from_environment(
                protocol=self.protocol,
                mechanism=self.mechanism,
                username=self.username,
                ca_file=self.ca_file,
                cert_file=self.cert_file,
                key_file=self.key_file,
            )
        except ValueError as error:
            raise CommandError(str(error)) from error


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where(Reach):
    """Which cluster partition of which log a command works on; the options of many commands.

    Attributes:
        partition: Number of the cluster partition.
    """

    partition: int = 0

    def __post_init__(self) -> None:
        """Refuse a number that no cluster partition has; it would look like an empty one."""
        if self.partition < 0:
            raise CommandError(f"--partition: found {self.partition}, expected 0 or more")


FILE_SUFFIXES = {".db", ".sqlite", ".sqlite3"}
"""Endings of a path that is taken for an embedded log."""

ADDRESSES = "kafka://HOST:PORT/NAME, sqlite:///PATH, a path that ends in .db, or for what only reads one in .jsonl or .jsonl.zst"
MAKERS = "`evsched run` makes an embedded log, `evsched topics create` one on Kafka, `evsched demo --keep FILE.db` one to try"

HERE = Where()
"""The default log."""


def _address(text: str) -> str:
    """Return what was given, or the address of a SQLite file where its mere path was; a relative path means from here."""
    if "://" in text or Path(text).suffix not in FILE_SUFFIXES:
        return text
    return f"sqlite://{quote(str(Path(text).absolute()))}"


def data_directory() -> Path:
    """Return where this platform keeps the data of a user's programs."""
    return user_data_path("evsched", appauthor=False)


@asynccontextmanager
async def streams_of(where: Where, *, create: bool = False) -> AsyncIterator[Streams]:
    """Open the streams of a cluster partition and close them afterwards.

    Args:
        where: As given on the command line.
        create: Whether to make them when they are missing (the embedded log; topics of a broker are
            made by `topics create`).

    Raises:
        CommandError: They cannot be reached or are damaged, now or while they are used.
    """
    try:
        async with open_streams(where.url, where.partition, where.security) as streams:
            if not where.url.startswith("sqlite:"):
                pass  # whoever proposes may have no right to see all of a broker's topics; the streams ask for what they need
            elif create:
                await streams.log.create()
            else:
                await streams.log.check()
            yield streams
    except StreamError as error:
        raise as_command_error(error) from error


@asynccontextmanager
async def log_of(where: Where) -> AsyncIterator[EventLog]:
    """Open a log for reading and close it afterwards; exported files too.

    Raises:
        CommandError: As `streams_of`.
    """
    try:
        found = open_log(where.url, where.partition, where.security)
        try:
            if not where.url.startswith("kafka:"):
                await (
                    found.check()
                )  # an auditor may have no right on a broker but to read this one topic
            yield found
        finally:
            await found.close()
    except StreamError as error:
        raise as_command_error(error) from error


async def inbox_fault(where: Where, inbox: str, inbox_next: int) -> str:
    """Return what is wrong with the inbox of a log, an empty text when nothing is, or when it cannot be seen.

    Args:
        where: Which log; an exported one has no inbox.
        inbox: Id of the inbox that the log reads; empty when it does not name it.
        inbox_next: Position of the next proposal to read.
    """
    if where.url.endswith(SUFFIXES):
        return ""
    try:
        async with open_streams(where.url, where.partition, where.security) as streams:
            # An auditor's word on the last answer would need the state; the leader asks for it.
            await must_read(streams.inbox, Head(inbox=inbox, inbox_next=inbox_next), lambda _: True)
    except (InboxDetached, StreamMissing) as error:
        return str(error)
    except AccessDenied:
        return ""
    return ""


async def steps_of(log: EventLog, reader: ChainReader | None = None) -> AsyncIterator[RecordedStep]:
    """Yield the steps of a log up to its end as it is now."""
    async with aclosing(read_steps(log, reader or ChainReader())) as batches:
        async for steps in batches:
            for step in steps:
                yield step


def as_command_error(error: StreamError) -> CommandError:
    """Return what the command says: misuse where the caller is at fault, unreachable or damaged otherwise."""
    if isinstance(error, UnknownScheme):
        return CommandError(f"--log {error.url}: not understood, expected {ADDRESSES}")
    hint = f" ({MAKERS})" if isinstance(error, StreamMissing) else ""
    if isinstance(error, StateDiffers):
        hint = " (where the reading began at a snapshot, that may be wrong: `evsched log check` reads without any)"
    return CommandError(f"{error}{hint}", MISUSE if isinstance(error, CallerError) else UNREACHABLE)

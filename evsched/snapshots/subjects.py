"""The index of subjects: in which stretches of a log an ask, an allocation or an application is spoken of.

A question about one of them need not read a log from its beginning. The log is divided into
stretches of some thousand events, and the index holds the head of the log before each, and for each
name the stretches that mention it. Names are kept as 32 bits of a checksum: two that share them cost
a stretch that is read in vain, no more, as whoever asks looks into the events themselves.

It is never the truth. Its end, and the head before each stretch, are compared by their hash with the
log before they are used (`events.streams.reading.resume`), so an index of another log, or of one
that lost its tail, is not believed; what another account could have written is not even opened.
What is missing, damaged or too short is gathered from the log (`Gathering`).

All of it lies in one SQLite file. A segment of some fifty stretches is written in one transaction,
its entries in buckets by name, so that a name is found by one look at each segment.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections import defaultdict
from contextlib import closing, contextmanager
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

import aiosql
import msgspec
import numpy as np

from events.chain import START, Head
from events.streams import private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from events.chain import RecordedStep

T = TypeVar("T")

FILE = "subjects-1.db"
"""The number is that of the format; a file of another one is not looked at."""
STRETCH_EVENTS = 1000
"""After so many events a stretch ends, with the step."""
SEGMENT_EVENTS = 50_000
"""So many events are written together, about as many as lie between two snapshots."""
BUCKETS = 64

_CHECK = 16
_ENTRY = np.dtype([("name", "<u4"), ("stretch", "<u4")])
_SPAN = Struct("<II")
"""What a bucket begins with: the first of its stretches, and the first behind them."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_queries = aiosql.from_path(Path(__file__).parent / "sql" / "subjects.sql", "sqlite3")


class Covered(msgspec.Struct, frozen=True, kw_only=True):
    """How far an index goes.

    Attributes:
        head: The head of the log behind its last stretch.
        stretches: How many there are, numbered from 0.
    """

    head: Head = START
    stretches: int = 0


NOTHING = Covered()


class IndexDamaged(Exception):
    """The file does not hold what was written to it; the message says what was found."""


class Gathering:
    """The index of a part of a log, as it is read.

    Attributes:
        covered: How far it goes; steps behind its last whole stretch are gathered, too.
    """

    def __init__(self, covered: Covered = NOTHING) -> None:
        """Begin behind what is covered."""
        self.begun = self.covered = covered
        self._heads: list[Head] = []
        self._entries: dict[int, list[int]] = defaultdict(list)
        self._names: set[str] = set()
        self._next = covered.head.next_seq + STRETCH_EVENTS
        self._before = covered.head

    @property
    def events(self) -> int:
        """How many events its whole stretches have."""
        return self.covered.head.next_seq - self.begun.head.next_seq

    def take(self, step: RecordedStep, names: set[str]) -> None:
        """Take the next step of the log, and the names in its events (`evsched.snapshots.names`)."""
        self._names |= names
        if step.head.next_seq >= self._next:
            self._end(step.head)

    def _end(self, head: Head) -> None:
        """End a stretch."""
        number = self.covered.stretches
        self._heads.append(self._before)
        for name in self._names:
            self._entries[_number(name)].append(number)
        self._names.clear()
        self._before = head
        self._next = head.next_seq + STRETCH_EVENTS
        self.covered = Covered(head=head, stretches=number + 1)

    def heads(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each whole stretch, and the head of the log before it as it is written."""
        for number, head in enumerate(self._heads, self.begun.stretches):
            yield number, _sealed(msgspec.json.encode((number, head)))

    def buckets(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number, first stretch and entries of each bucket, as they are written."""
        pairs = [(name, stretch) for name, found in self._entries.items() for stretch in found]
        entries = np.array(pairs, dtype=_ENTRY)
        number = entries["name"] % BUCKETS
        first = self.begun.stretches
        span = _SPAN.pack(first, self.covered.stretches)
        for bucket in range(BUCKETS):
            yield bucket, first, _sealed(span + entries[number == bucket].tobytes())


class SubjectIndex:
    """The index in the folder of a log's snapshots; any number of processes may read and lengthen it."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        """Use the file in ``folder`` (made when it is first written); ``warn`` hears why one is not believed."""
        self.path = folder / FILE
        self._warn = warn

    def covered(self, log_id: str) -> Covered:
        """Return how far the index of this log goes; `NOTHING` where there is none.

        Raises:
            IndexDamaged: It is of another log, or cannot be used.
        """
        if not self.path.exists():
            return NOTHING
        with self._reading() as connection:
            found = _covered(connection)
        if found.stretches and found.head.log_id != log_id:
            message = f"is of log {found.head.log_id}, expected {log_id}"
            raise IndexDamaged(message)
        return found

    def stretches(self, name: str, covered: Covered) -> list[int]:
        """Return the stretches in which a name is spoken of, in their order, up to what is ``covered``.

        Raises:
            IndexDamaged: The file is not as it was written.
        """
        wanted, found, reached = _number(name), [], 0
        with self._reading() as connection:
            rows = list(_queries.get_bucket(connection, number=wanted % BUCKETS))
        for _, blob in rows:
            data = _unsealed(blob)
            first, end = _SPAN.unpack_from(data)
            if first != reached:
                message = f"a bucket begins with stretch {first}, expected {reached}"
                raise IndexDamaged(message)
            reached = end
            entries = np.frombuffer(data, dtype=_ENTRY, offset=_SPAN.size)
            found += entries["stretch"][entries["name"] == wanted].tolist()
        if reached < covered.stretches:
            message = f"a bucket ends with stretch {reached}, expected {covered.stretches}"
            raise IndexDamaged(message)
        return sorted(one for one in found if one < covered.stretches)

    def before(self, stretch: int) -> Head:
        """Return the head of the log before a stretch.

        Raises:
            IndexDamaged: It is not there, or not as it was written.
        """
        with self._reading() as connection:
            row = _queries.get_stretch(connection, number=stretch)
        if row is None:
            message = f"stretch {stretch} is missing"
            raise IndexDamaged(message)
        number, head = _decoded(row[0], tuple[int, Head])
        if number != stretch:
            message = f"stretch {number} stands in the place of stretch {stretch}"
            raise IndexDamaged(message)
        return head

    def append(self, gathered: Gathering) -> bool:
        """Write the whole stretches that were gathered; return whether they were written.

        They are not when another process wrote in the meantime: the next attempt goes on from there.

        Raises:
            OSError, sqlite3.Error: The file cannot be written.
        """
        if not gathered.events:
            return False
        private_files.make_folder(self.path.parent)
        private_files.touch(self.path)
        with closing(self._open("rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _covered(connection, make=True) != gathered.begun:
                connection.execute("ROLLBACK")
                return False
            _queries.add_stretches(
                connection, [{"number": number, "head": head} for number, head in gathered.heads()]
            )
            _queries.add_buckets(
                connection,
                [
                    {"number": number, "first": first, "entries": entries}
                    for number, first, entries in gathered.buckets()
                ],
            )
            _queries.set_covered(connection, facts=_sealed(msgspec.json.encode(gathered.covered)))
            connection.execute("COMMIT")
        return True

    def distrust(self, reason: str) -> None:
        """Say why the index is not believed, and remove it, so that the next one begins anew."""
        self._warn(f"index of subjects: {reason}")
        self.path.unlink(missing_ok=True)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the file for reading; raise `IndexDamaged` for whatever is wrong with it."""
        try:
            with closing(self._open("ro")) as connection:
                yield connection
        except (OSError, sqlite3.Error) as error:
            message = f"cannot be read: {error}"
            raise IndexDamaged(message) from error

    def _open(self, mode: str) -> sqlite3.Connection:
        """Open the file, which must be this account's own; raise `IndexDamaged` when it is not."""
        found = self.path.stat(follow_symlinks=False)
        own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not own or found.st_mode & _WRITABLE_BY_OTHERS:
            message = "belongs to another account, or another can write to it"
            raise IndexDamaged(message)
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None
        )


def _covered(connection: sqlite3.Connection, *, make: bool = False) -> Covered:
    """Return how far a file goes; ``make``: with the tables in it, where there are none yet."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'covered'").fetchone():
        if make:
            for statement in str(_queries.create_schema.sql).split(";"):
                connection.execute(statement)
        return NOTHING
    row = _queries.get_covered(connection)
    return NOTHING if row is None else _decoded(row[0], Covered)


def _number(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"))


def _sealed(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECK).digest() + data


def _unsealed(blob: object) -> bytes:
    if isinstance(blob, bytes):
        data = blob[_CHECK:]
        if _sealed(data) == blob:
            return data
    message = "is not as it was written"
    raise IndexDamaged(message)


def _decoded(blob: object, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(_unsealed(blob), type=kind)
    except msgspec.MsgspecError as error:
        raise IndexDamaged(str(error)) from error

"""One SQLite file that holds streams: who writes, how writes are grouped, what its errors mean.

All writes of a process go through one connection and one task, which puts everything that waits
into one transaction: a single fsync for all. Readers have a connection of their own; in WAL mode
neither waits for the other.

SQLite before 3.51.3 can corrupt a WAL database when two connections checkpoint at the same time. So
at most one process does it: the one that holds a lock on the file ``….checkpoint`` beside the
database. The others never checkpoint, and when the holder dies the system gives the lock to the
next that asks.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import aiosql
import aiosqlite

from events.errors import (
    AccessDenied,
    AppendRefused,
    LogBusy,
    LogDamaged,
    LogFull,
    LogUnreachable,
    OutcomeUnknown,
    StreamError,
    StreamMissing,
    TopicMisconfigured,
)
from events.streams import private_files

SQL = Path(__file__).with_name("sql")
QUERIES = aiosql.from_path(SQL / "streams.sql", "aiosqlite", mandatory_parameters=False)
APPLICATION_ID = 0x65767363
FORMAT_VERSION = 1
CHECKPOINT_PAGES = 1000
GROUP_LIMIT = 2000
"""Most writes of one transaction, so that the first of them does not wait long for the last."""
ASK_FOR_CHECKPOINTING_EVERY = 64
SHORT_WRITE_S = 0.001
"""A producer that has the file no longer than this leaves it free between two writes anyway."""
LONGEST_COURTESY_S = 0.1
"""How long a producer of longer writes leaves the file to others in between at most; else as long
as its last one had it. SQLite keeps no queue: who finds the file taken looks again after 1 to 100
ms, so a leader would hardly ever find it free."""

StoredRows = list[tuple[Any, ...]]

FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What a file that cannot be used makes the library raise; the second where SQLite's own words quote
a damaged schema, which need not be text any more."""


def statement(name: str) -> str:
    """Return the text of a query of ``sql/streams.sql``."""
    return str(getattr(QUERIES, name).sql)


class Write:
    """StoredRows for one stream, to be written together.

    Attributes:
        table: ``log``, ``inbox`` or ``heartbeat``.
        rows: What follows partition and position (for a heartbeat: partition) in each.
        done: Gets the positions, or the error.
    """

    def __init__(self, table: str, partition: int, rows: StoredRows) -> None:
        self.table = table
        self.partition = partition
        self.rows = rows
        self.done: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()


class SqliteFile:
    """An open file, shared by all streams that one event loop has in it.

    Attributes:
        path: Where it lies.
        users: How many streams have it open; the last one to leave closes it.
    """

    def __init__(self, path: Path, busy_timeout_ms: int) -> None:
        self.path = path
        self.users = 0
        self._busy_timeout_ms = busy_timeout_ms
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._opening = asyncio.Lock()
        self._waiting: list[Write] = []
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock: int | None = None
        self._commits = 0
        self._others_until = 0.0
        self._closing = False

    # -------------------------------------------------------------------------------------- reading

    async def rows(self, query: str, *arguments: Any) -> StoredRows:
        """Return the rows of a query of ``streams.sql``."""
        try:
            reader = await self._open_reader()
            return [
                tuple(row) for row in await reader.execute_fetchall(statement(query), arguments)
            ]
        except FAULTS as error:
            raise meaning(error, str(self.path)) from error

    async def pragma(self, name: str) -> Any:
        """Return the value of a setting of the file."""
        try:
            reader = await self._open_reader()
            return next(iter(await reader.execute_fetchall(f"pragma {name}")))[0]
        except FAULTS as error:
            raise meaning(error, str(self.path)) from error

    async def changed(self, at_most_s: float) -> None:
        """Return when this process wrote something, or after this many seconds."""
        waiting = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await waiting.wait()

    async def _open_reader(self) -> aiosqlite.Connection:
        async with self._opening:
            self._stay()
            if self._reader is None:
                self._reader = await self._connect(self.path)
                await self._reader.execute("pragma query_only = on")
            return self._reader

    # -------------------------------------------------------------------------------------- writing

    async def create(self) -> None:
        """Make the file, readable by its owner alone, with the tables in it; it appears whole, however many make it at once."""
        try:
            if not await asyncio.to_thread(self.path.exists):
                with tempfile.TemporaryDirectory(
                    dir=_folder(self.path), prefix=".evsched-"
                ) as folder:
                    new = Path(folder) / "new.db"
                    await self._set_up(new)
                    await self._gather(new)
                    _link(new, self.path)
            # It was there, somebody else was quicker, or the disk knows no links.
            await self._set_up(self.path)
        except FAULTS as error:
            raise meaning(error, str(self.path)) from error

    async def _set_up(self, path: Path) -> None:
        """Make the tables if they are not there, and the file too."""
        await asyncio.to_thread(private_files.touch, path)
        # Not on the writer's connection: running a script would commit the half of a group that may
        # be under way there.
        connection = await self._connect(path)
        try:
            new = (
                next(iter(await connection.execute_fetchall("pragma user_version")))[0]
                != FORMAT_VERSION
            )
            if new:
                await _refuse_foreign(connection, path)
                await connection.execute_fetchall("pragma journal_mode = wal")
            await connection.executescript((SQL / "schema.sql").read_text())
            if new:
                await connection.execute(f"pragma application_id = {APPLICATION_ID}")
                await connection.execute(f"pragma user_version = {FORMAT_VERSION}")
        finally:
            await connection.close()

    async def _gather(self, path: Path) -> None:
        """Bring everything into a file that only we have open, or fail.

        Closing does it too, but says nothing when the disk is full; then the file would get its
        name without what is beside it.
        """
        connection = await self._connect(path)
        try:
            (busy, *_), *_ = await connection.execute_fetchall("pragma wal_checkpoint(truncate)")
            if busy:
                raise LogBusy(str(path), "not all of it could be written to the file")
        finally:
            await connection.close()

    async def write(self, write: Write) -> tuple[int, ...]:
        """Write these rows with whatever else is waiting and return their positions. Cancelling does not take them back."""
        try:
            await self._open_writer()
        except FAULTS as error:
            raise meaning(error, str(self.path)) from error
        self._waiting.append(write)
        self._wanted.set()
        return await asyncio.shield(write.done)

    async def _open_writer(self) -> aiosqlite.Connection:
        async with self._opening:
            self._stay()
            if self._writer is None:
                self._writer = await self._connect(self.path)
                await self._ask_for_checkpointing(self._writer)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(
                    self._write_groups(), name=f"writer of {self.path}"
                )
            return self._writer

    def _stay(self) -> None:
        """Raise `LogUnreachable` when another file is there than the one that was opened, or none.

        The one that was opened could be written on, although nobody else would ever see it.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            place = None
        else:
            place = found.st_dev, found.st_ino
        if self._opened is None:
            self._opened = place
        elif self._opened != place:
            raise LogUnreachable(
                str(self.path), "the file was replaced or removed since it was opened"
            )

    async def _connect(self, path: Path) -> aiosqlite.Connection:
        connection = aiosqlite.connect(
            f"file:{_quoted(path)}?mode=rw", uri=True, isolation_level=None
        )
        try:
            await connection
        except BaseException:
            # Its thread is about to end and still has something to tell this event loop, which must
            # be there then.
            await asyncio.to_thread(connection._thread.join)  # noqa: SLF001 - nothing public waits for it
            raise
        try:
            await connection.execute(f"pragma busy_timeout = {self._busy_timeout_ms}")
            await connection.execute("pragma synchronous = full")
            await connection.execute("pragma wal_autocheckpoint = 0")
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _ask_for_checkpointing(self, writer: aiosqlite.Connection) -> None:
        """Let this process checkpoint if no other does."""
        if self._lock is not None:
            return
        place = os.open(f"{self.path}.checkpoint", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(place)
            return
        self._lock = place
        await writer.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")

    async def _let_others(self) -> None:
        """Leave the file to others for a while when we are a producer; a leader's own write does not wait."""
        now = asyncio.get_running_loop().time
        while not self._closing and (rest := self._others_until - now()) > 0:
            if any(write.table != "inbox" for write in self._waiting[:GROUP_LIMIT]):
                return
            await asyncio.sleep(min(rest, SHORT_WRITE_S))

    async def _write_groups(self) -> None:
        while self._waiting or not self._closing:
            await self._wanted.wait()
            await self._let_others()
            group, self._waiting = self._waiting[:GROUP_LIMIT], self._waiting[GROUP_LIMIT:]
            if not self._waiting and not self._closing:
                self._wanted.clear()
            if not group:
                continue
            try:
                positions = await self._transaction(group)
            except StreamError as error:
                _fail(group, error)
            except BaseException as error:
                _fail(group, OutcomeUnknown(str(self.path), f"writing ended: {error!r}"))
                raise
            else:
                for write, given in zip(group, positions, strict=True):
                    if not write.done.done():
                        write.done.set_result(given)
                self._changed.set()
                self._changed = asyncio.Event()

    async def _transaction(self, group: Sequence[Write]) -> list[tuple[int, ...]]:
        """Write a group in one transaction and return the positions of each; all of it is written or nothing."""
        writer = await self._open_writer()
        try:
            await writer.execute("begin immediate")
            begun = asyncio.get_running_loop().time()
            positions = await self._insert(writer, group)
        except FAULTS as error:
            await self._roll_back(writer)
            raise meaning(error, str(self.path)) from error
        try:
            await writer.execute("commit")
        except FAULTS as error:
            # Busy and full are told before the commit record is written. After anything else it may
            # be on the disk: nobody knows.
            failure = meaning(error, str(self.path))
            await self._roll_back(writer)
            if isinstance(failure, LogBusy | LogFull):
                raise failure from error
            raise OutcomeUnknown(str(self.path), f"commit failed: {error}") from error
        ended = asyncio.get_running_loop().time()
        self._others_until = (
            ended + min(ended - begun, LONGEST_COURTESY_S) if ended - begun > SHORT_WRITE_S else 0.0
        )
        self._commits += 1
        if self._commits % ASK_FOR_CHECKPOINTING_EVERY == 0:
            await self._ask_for_checkpointing(writer)
        return positions

    async def _insert(
        self, writer: aiosqlite.Connection, group: Sequence[Write]
    ) -> list[tuple[int, ...]]:
        ends: dict[tuple[str, int], int] = {}
        rows: dict[str, StoredRows] = {}
        positions: list[tuple[int, ...]] = []
        for write in group:
            if write.table == "heartbeat":
                rows.setdefault("beat", []).extend((write.partition, *row) for row in write.rows)
                positions.append(())
                continue
            key = (write.table, write.partition)
            if key not in ends:
                found = [
                    tuple(row)
                    for row in await writer.execute_fetchall(
                        statement(f"{write.table}_end"), (write.partition,)
                    )
                ]
                ends[key] = found[0][0]
            begin = ends[key]
            rows.setdefault(f"append_{write.table}", []).extend(
                (write.partition, begin + index, *row) for index, row in enumerate(write.rows)
            )
            ends[key] += len(write.rows)
            positions.append(tuple(range(begin, ends[key])))
        for query, values in rows.items():
            await writer.executemany(statement(query), values)
        return positions

    async def _roll_back(self, writer: aiosqlite.Connection) -> None:
        """Leave no transaction open; a connection that cannot do even that is thrown away."""
        try:
            if writer.in_transaction:
                await writer.execute("rollback")
        except FAULTS:
            self._writer = None
            await writer.close()

    async def close(self) -> None:
        """Finish what is waiting and close the connections, also when cancelled: each has a thread, which would stay."""
        task, self._task = self._task, None
        try:
            if task is not None:
                self._closing = True
                self._wanted.set()
                await asyncio.gather(task, return_exceptions=True)
        finally:
            _fail(self._waiting, AppendRefused(str(self.path), "the file was closed"))
            async with AsyncExitStack() as last_first:
                if self._lock is not None:
                    last_first.callback(os.close, self._lock)
                # The reader first: whoever closes last checkpoints.
                for connection in (self._writer, self._reader):
                    if connection is not None:
                        last_first.push_async_callback(connection.close)
                self._reader = self._writer = None
                self._lock = None


def _fail(group: Sequence[Write], error: StreamError) -> None:
    for write in group:
        if not write.done.done():
            write.done.set_exception(error)
            write.done.exception()  # whoever was cancelled does not come back for it


def meaning(error: sqlite3.Error | UnicodeDecodeError, name: str) -> StreamError:
    """Return what an error of SQLite means for a stream; whatever is not known as unreachable or damaged was refused."""
    if isinstance(error, UnicodeDecodeError):
        return LogDamaged(-1, f"file {name}: its schema is no text")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    text = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogBusy(name, text)
    if code == sqlite3.SQLITE_FULL:
        return LogFull(name, text)
    if code == sqlite3.SQLITE_CANTOPEN and Path(name).exists():
        return AccessDenied(
            name, f"{text}; SQLite has to write to the file and its folder even to read it"
        )
    if code == sqlite3.SQLITE_CANTOPEN or (
        code == sqlite3.SQLITE_ERROR and "no such table" in str(error)
    ):
        return StreamMissing(name)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LogDamaged(-1, f"file {name}: {text}")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY):
        return LogUnreachable(name, text)
    return AppendRefused(name, text)


async def _refuse_foreign(connection: aiosqlite.Connection, path: Path) -> None:
    """Raise `TopicMisconfigured` when a file holds somebody else's tables, which ours must not get among."""
    tables = await connection.execute_fetchall(
        "select name from sqlite_master where type = 'table'"
    )
    foreign = sorted(
        {name for (name,) in tables}
        - {"log", "inbox", "inbox_identity", "heartbeat", "sqlite_sequence", "sqlite_stat1"}
    )
    if foreign:
        raise TopicMisconfigured(
            str(path), "table", foreign[0], "none, as in a new file, or those of a log"
        )


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _folder(path: Path) -> Path:
    private_files.make_folder(path.parent)
    return path.parent


def _link(new: Path, path: Path) -> None:
    """Give a finished file its name, unless there is one of that name or the disk knows no links."""
    with suppress(OSError):
        os.link(new, path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, SqliteFile]] = WeakKeyDictionary()


def use(path: Path, busy_timeout_ms: int) -> SqliteFile:
    """Return the file at a path as it is open in this event loop, opened now if it is not; `leave` it in the end."""
    files = _open.setdefault(asyncio.get_running_loop(), {})
    file = files.setdefault(path, SqliteFile(path, busy_timeout_ms))
    file.users += 1
    return file


async def leave(file: SqliteFile) -> None:
    """Give a file back; the last one closes it."""
    file.users -= 1
    if file.users == 0:
        files = _open.get(asyncio.get_running_loop(), {})
        if files.get(file.path) is file:
            del files[file.path]
        await file.close()

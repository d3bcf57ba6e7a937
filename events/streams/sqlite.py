"""Log and inbox in a SQLite file: the embedded default. Several cluster partitions may share a file, several processes too.

Atomicity and order come from the database; append-only is enforced by its triggers. A write is on
the disk when it returns (``synchronous=FULL``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from events.cloudevents import InboxRecord, proposals, read_proposal
from events.errors import LogDamaged, PositionLost, StreamMissing, TopicMisconfigured
from events.streams.protocols import BEFORE_FIRST, EventLog, Heartbeat, Record, Streams
from events.streams.sqlite_file import APPLICATION_ID, FORMAT_VERSION, SqliteFile, Write, leave, use
from events.vocabulary import AnyInput, Proposal

BATCH_BYTES = 8_000_000
FIRST_BATCH = 64
LARGEST_BATCH = 2000
POLL_S = 0.02
"""How often a follower looks for what another process wrote; what this process writes wakes it at once."""
GUARDS = (
    "inbox_grows",
    "inbox_keeps_deleted",
    "inbox_keeps_updated",
    "log_grows",
    "log_keeps_deleted",
    "log_keeps_updated",
)


def open_sqlite(path: Path, partition: int, busy_timeout_ms: int = 5000) -> Streams:
    """Return the streams of a cluster partition in the file at this path; nothing is opened before it is used."""
    return Streams(
        SqliteLog(path, partition, busy_timeout_ms), SqliteInbox(path, partition, busy_timeout_ms)
    )


class _Stream:
    """What log and inbox share: the file, opened when it is first used."""

    def __init__(self, path: Path, partition: int = 0, busy_timeout_ms: int = 5000) -> None:
        self.path = path.absolute()
        self.partition = partition
        self.name = f"{self.path.name}/{partition}"
        self._busy_timeout_ms = busy_timeout_ms
        self._used: SqliteFile | None = None

    @property
    def _file(self) -> SqliteFile:
        if self._used is None:
            self._used = use(self.path, self._busy_timeout_ms)
        return self._used

    async def close(self) -> None:
        """See `EventLog.close`."""
        used, self._used = self._used, None
        if used is not None:
            await leave(used)


class SqliteLog(_Stream):
    """An `EventLog` in a SQLite file."""

    async def create(self) -> None:
        """See `EventLog.create`."""
        await self._file.create()
        await self.check()

    async def check(self) -> None:
        """See `EventLog.check`."""
        if not await asyncio.to_thread(self.path.exists):
            raise StreamMissing(str(self.path))
        expected = {
            "application_id": APPLICATION_ID,
            "user_version": FORMAT_VERSION,
            "journal_mode": "wal",
        }
        for setting, value in expected.items():
            found = await self._file.pragma(setting)
            if setting == "user_version" and found == 0:
                raise StreamMissing(str(self.path))
            if found != value:
                hint = (
                    ", as in a log: this is another program's file, or a read model"
                    if setting == "application_id"
                    else ""
                )
                raise TopicMisconfigured(str(self.path), setting, str(found), f"{value}{hint}")
        guards = tuple(row[0] for row in await self._file.rows("guards"))
        for guard in GUARDS:
            if guard not in guards:
                raise TopicMisconfigured(
                    str(self.path), f"trigger {guard}", "missing", "what keeps the records"
                )

    async def read(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`."""
        end = await self.end()
        if after >= end:
            raise PositionLost(after, f"log {self.name} ends at {end}")
        limit = FIRST_BATCH
        while after + 1 < end:
            batch = [
                Record(*row)
                for row in await self._file.rows("read_log", self.partition, after, end, limit)
            ]
            if not batch or batch[0].position != after + 1:
                raise PositionLost(after + 1, f"log {self.name} does not hold it any more")
            yield batch
            after = batch[-1].position
            average = sum(len(record.data) for record in batch) // len(batch) + 1
            limit = min(max(BATCH_BYTES // average, 8), LARGEST_BATCH)

    async def follow(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.follow`."""
        while True:
            async for batch in self.read(after):
                yield batch
                after = batch[-1].position
            await self._file.changed(POLL_S)

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        return (await self._file.write(Write("log", self.partition, [(data,)])))[0]

    async def end(self) -> int:
        """See `EventLog.end`."""
        return int((await self._file.rows("log_end", self.partition))[0][0])

    async def heartbeat(self, beat: Heartbeat) -> None:
        """See `EventLog.heartbeat`."""
        await self._file.write(Write("heartbeat", self.partition, [(msgspec.json.encode(beat),)]))

    async def last_heartbeat(self) -> Heartbeat | None:
        """See `EventLog.last_heartbeat`."""
        rows = await self._file.rows("last_beat", self.partition)
        try:
            return msgspec.json.decode(rows[0][0], type=Heartbeat) if rows else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise LogDamaged(-1, f"heartbeat of {self.name} cannot be read: {error}") from error

    async def clock(self) -> None:
        """See `EventLog.clock`: there is none, as a log in WAL mode is kept by the machine that uses it."""


async def leave_word(log: EventLog, process: int, word: bytes) -> None:
    """Leave what a process says of itself in a log's file; what one of the same number said before is gone.

    The rows stand among the heartbeats, below the cluster partitions, so that a file needs no other
    table: 0.1.0 takes one that it does not know for another program's.
    """
    assert isinstance(log, SqliteLog)
    await log._file.write(Write("heartbeat", -process, [(word,)]))  # noqa: SLF001 - of this module


async def words_in(log: EventLog) -> tuple[bytes, ...]:
    """Return what processes said of themselves in a log's file."""
    assert isinstance(log, SqliteLog)
    return tuple(row[0] for row in await log._file.rows("words"))  # noqa: SLF001


class SqliteInbox(_Stream):
    """An `Inbox` in a SQLite file."""

    async def propose(self, inputs: Sequence[AnyInput], source: str = "") -> tuple[int, ...]:
        """See `Inbox.propose`."""
        return await self.put(proposals(inputs, source))

    async def put(self, records: Sequence[InboxRecord]) -> tuple[int, ...]:
        """See `Inbox.put`; all of them are written, or none."""
        if not records:
            return ()
        rows = [(record.id, record.source, record.data) for record in records]
        return await self._file.write(Write("inbox", self.partition, [tuple(row) for row in rows]))

    async def read(
        self, position: int, limit: int = 1000, wait_s: float = 0.0
    ) -> tuple[Proposal, ...]:
        """See `Inbox.read`."""
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            count = _carried(await self._file.rows("inbox_sizes", self.partition, position, limit))
            if count:
                break
            if position > await self.end():
                raise PositionLost(position, f"inbox {self.name} ends at {await self.end()}")
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return ()
            await self._file.changed(min(left, POLL_S))
        rows = await self._file.rows("read_inbox", self.partition, position, count)
        if not rows or rows[0][0] != position:
            raise PositionLost(position, f"inbox {self.name} does not hold it any more")
        return tuple(
            read_proposal(InboxRecord(data=data, id=id_, source=source), place)
            for place, id_, source, data in rows
        )

    async def end(self) -> int:
        """See `Inbox.end`."""
        return int((await self._file.rows("inbox_end", self.partition))[0][0])

    async def identity(self) -> str:
        """See `Inbox.identity`; the inboxes of a file share one id, as its logs are the only ones that read them."""
        if not await self._file.rows("identity_table"):
            return ""
        rows = await self._file.rows("identity")
        return str(rows[0][0]) if rows else ""


def _carried(sizes: Sequence[tuple[Any, ...]]) -> int:
    """Return how many records of these sizes are read at once: the first, and as many more as `BATCH_BYTES` hold."""
    left = BATCH_BYTES
    for count, (size,) in enumerate(sizes):
        left -= size
        if left < 0 and count:
            return count
    return len(sizes)

"""A log in a file, to be kept, sent and read anywhere: JSON lines, compressed with zstandard when the name ends in ``.zst``.

The first line tells what it is: ``{"format": "evsched-log", "version": 1, "log_id": …, "partition":
…}``. Each further line is one record: ``{"position": …, "hash": …, "data": …}``, where ``data`` is
the frame's JSON text as it stands in the log, byte for byte, and ``hash`` that of these bytes. Void
frames are kept too: an export proves what was in the log.

An import that dies leaves a beginning of the file in its target. So the target itself tells how far
it came: as long as it holds what the file does, record for record, importing goes on behind it;
whatever else it holds is refused before anything is written. An append of which nobody knows the
outcome ends the import, and the next one reads what became of it. Positions are no identity: a
broker may leave holes. What follows the whole file may be terms without a step and attachments of an
inbox: an import leaves one, so that the log can be led where it is now.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from events.errors import (
    AccessDenied,
    LogDamaged,
    LogUnreachable,
    PositionLost,
    ReadOnly,
    StreamMissing,
    TargetDiffers,
)
from events.frame import (
    UNREADABLE,
    attachment,
    decode_frame,
    decode_header,
    frame_hash,
    is_fence,
)
from events.streams import private_files
from events.streams.protocols import BEFORE_FIRST, EventLog, Heartbeat, Record

FORMAT = "evsched-log"
VERSION = 1
SUFFIXES = (".jsonl", ".jsonl.zst")
BATCH = 500
BATCH_BYTES = 8_000_000
"""A batch ends with whichever is reached first, so that reading takes little memory however large the frames are."""
LINE_LIMIT = 16_000_000
"""Most bytes of a line: several times what the largest frame can need."""


class ExportHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of an exported log."""

    format: str
    version: int
    log_id: str
    partition: int


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Any further line."""

    position: int
    hash: str
    data: str


async def export_log(log: EventLog, path: Path) -> int:
    """Write all records of a log to a file and return their number. The file appears under its name only when it is complete.

    Raises:
        StreamError: The log cannot be read.
        AccessDenied: The file cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    try:
        partial.unlink(missing_ok=True)
        with os.fdopen(private_files.create(partial), "wb") as raw:
            out = (
                zstandard.ZstdCompressor(level=6).stream_writer(raw, closefd=False)
                if path.suffix == ".zst"
                else raw
            )
            async for batch in log.read():
                if count == 0:
                    out.write(_header_line(log, batch[0]))
                out.write(b"".join(_line(record) for record in batch))
                count += len(batch)
            if count == 0:
                out.write(_header_line(log, None))
            if out is not raw:
                out.close()
            raw.flush()
            os.fsync(raw.fileno())
        partial.replace(path)
    except OSError as error:
        raise AccessDenied(str(path), str(error.strerror)) from error
    finally:
        partial.unlink(missing_ok=True)
    return count


class Imported(NamedTuple):
    """What an import found and did.

    Attributes:
        records: How many the log holds now: all of the file.
        there: How many of them it held before.
    """

    records: int
    there: int


async def import_log(path: Path, log: EventLog) -> Imported:
    """Append those records of an exported log that another log does not hold yet, byte for byte.

    Called again after a cancellation, the death of the process, or an error of the environment, it
    goes on where it was. Nobody else may write to the log meanwhile.

    Raises:
        TargetDiffers: The log does not hold a beginning of the file; nothing was written.
        LogDamaged: The file is, or somebody else wrote to the log too.
        OutcomeUnknown: A record may have been written, or may yet be.
    """
    async with aclosing(_records(ExportedLog(path))) as lines:
        there, last = await _compare(log, lines)
        count = there
        async for line in lines:
            position = await log.append(line.data)
            count += 1
            if position != last + 1:
                await _must_follow(log, last, position, count)
            last = position
    return Imported(count, there)


async def _compare(log: EventLog, lines: AsyncGenerator[Record, None]) -> tuple[int, int]:
    """Return how many records of the file the log holds, and the position of the last of them.

    So many lines were read, and are the same.
    """
    count, number, last = 0, 0, BEFORE_FIRST
    async with aclosing(_records(log)) as records:
        async for record in records:
            number += 1
            line = await anext(lines, None)
            if line is None and count and _is_note(record.data):
                continue
            if line is None or line.data != record.data:
                expected = "" if line is None else frame_hash(line.data)
                raise TargetDiffers(
                    log.name, number, record.position, frame_hash(record.data), expected
                )
            count, last = number, record.position
    return count, last


def _is_note(data: bytes) -> bool:
    """Tell whether a record begins a term or attaches an inbox, and does nothing else."""
    try:
        frame = decode_frame(data)
    except UNREADABLE:
        return False
    return is_fence(frame) or attachment(frame) is not None


async def _must_follow(log: EventLog, last: int, position: int, number: int) -> None:
    """Raise LogDamaged when between our last record and the one just written there is another one, and not only a hole.

    It may be somebody else's, or our own of an import before, of which the broker had not told that
    it came.
    """
    async with aclosing(_records(log, last)) as records:
        async for record in records:
            if record.position == position:
                return
            raise LogDamaged(
                position,
                f"record {number} of the file came to stand there, expected right behind position {last}: "
                f"meanwhile something else was written at position {record.position}; import into a new log",
            )
    raise PositionLost(
        position, f"record {number} of the file was written there just now and is not in the log"
    )


async def _records(log: EventLog, after: int = BEFORE_FIRST) -> AsyncGenerator[Record, None]:
    async with aclosing(log.read(after)) as batches:
        async for batch in batches:
            for record in batch:
                yield record


class ExportedLog:
    """An `EventLog` in an exported file; it can only be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.partition = 0

    async def create(self) -> None:
        """Refuse."""
        raise ReadOnly(self.name)

    async def check(self) -> None:
        """See `EventLog.check`; reads the first line only."""
        with _lines(self.path) as lines:
            self.partition = _read_header(next(lines, b"")).partition

    async def header(self) -> ExportHeader:
        """Return what the first line says."""
        with _lines(self.path) as lines:
            return _read_header(next(lines, b""))

    async def read(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`; the hash of each line is checked."""
        with _lines(self.path) as lines:
            self.partition = _read_header(next(lines, b"")).partition
            batch: list[Record] = []
            size, last = 0, BEFORE_FIRST
            for number, line in enumerate(lines, start=2):
                record = _read_line(line, number)
                last = record.position
                if record.position <= after:
                    continue
                batch.append(record)
                size += len(record.data)
                if len(batch) >= BATCH or size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
                    await asyncio.sleep(0)
            if after > last:
                raise PositionLost(after, f"log {self.name} ends with position {last}")
            if batch:
                yield batch

    async def follow(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.follow`; nothing comes after the end of a file, and it waits for ever."""
        async for batch in self.read(after):
            yield batch
        await asyncio.Event().wait()

    async def append(self, data: bytes) -> int:  # noqa: ARG002 - part of the protocol
        """Refuse."""
        raise ReadOnly(self.name)

    async def end(self) -> int:
        """See `EventLog.end`; reads the whole file."""
        last = BEFORE_FIRST
        async for batch in self.read():
            last = batch[-1].position
        return last + 1

    async def heartbeat(self, beat: Heartbeat) -> None:  # noqa: ARG002 - part of the protocol
        """Refuse."""
        raise ReadOnly(self.name)

    async def last_heartbeat(self) -> Heartbeat | None:
        """Return None: nobody leads a file."""
        return None

    async def clock(self) -> None:
        """See `EventLog.clock`: there is none."""

    async def close(self) -> None:
        """Do nothing: the file is open only while it is read."""


def _header_line(log: EventLog, first: Record | None) -> bytes:
    log_id = ""
    if first is not None:
        try:
            log_id = decode_header(first.data).log_id
        except UNREADABLE as error:
            raise LogDamaged(first.position, f"no frame can be read: {error}") from error
    return (
        msgspec.json.encode(
            ExportHeader(format=FORMAT, version=VERSION, log_id=log_id, partition=log.partition)
        )
        + b"\n"
    )


def _line(record: Record) -> bytes:
    try:
        text = record.data.decode()
    except UnicodeDecodeError as error:
        raise LogDamaged(record.position, f"no text can be read: {error}") from error
    return (
        msgspec.json.encode(
            ExportLine(position=record.position, hash=frame_hash(record.data), data=text)
        )
        + b"\n"
    )


def _read_header(line: bytes) -> ExportHeader:
    try:
        header = msgspec.json.decode(line, type=ExportHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LogDamaged(
            -1, f"line 1 of the file is not the beginning of an exported log: {error}"
        ) from error
    if (header.format, header.version) != (FORMAT, VERSION):
        raise LogDamaged(
            -1,
            f"the file is of format {header.format} {header.version}, expected {FORMAT} {VERSION}",
        )
    return header


def _read_line(line: bytes, number: int) -> Record:
    try:
        found = msgspec.json.decode(line, type=ExportLine)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LogDamaged(-1, f"line {number} of the file cannot be read: {error}") from error
    data = found.data.encode()
    if frame_hash(data) != found.hash:
        raise LogDamaged(
            found.position,
            f"line {number} of the file was altered: its hash is {frame_hash(data)}, expected {found.hash}",
        )
    return Record(found.position, data)


class _lines:  # noqa: N801 - reads as a function
    """The lines of a file, compressed or not; a context manager. What goes wrong below is told as a StreamError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw: BinaryIO | None = None

    def __enter__(self) -> Iterator[bytes]:
        try:
            self._raw = self._path.open("rb")
        except FileNotFoundError as error:
            raise StreamMissing(str(self._path)) from error
        except OSError as error:
            raise LogUnreachable(str(self._path), str(error.strerror)) from error
        stream: io.BufferedIOBase = self._raw
        if self._path.suffix == ".zst":
            stream = io.BufferedReader(
                zstandard.ZstdDecompressor().stream_reader(self._raw, read_across_frames=True)
            )
        return self._split(stream)

    def _split(self, stream: io.BufferedIOBase) -> Iterator[bytes]:
        while True:
            try:
                line = stream.readline(LINE_LIMIT)
            except (OSError, zstandard.ZstdError) as error:
                raise LogDamaged(
                    -1, f"file {self._path.name} cannot be read on: {error}"
                ) from error
            if not line:
                return
            if not line.endswith(b"\n"):
                raise LogDamaged(-1, f"file {self._path.name} ends in the middle of a line")
            yield line

    def __exit__(self, *_: object) -> None:
        if self._raw is not None:
            self._raw.close()


__all__ = [
    "SUFFIXES",
    "ExportHeader",
    "ExportLine",
    "ExportedLog",
    "Imported",
    "export_log",
    "import_log",
]

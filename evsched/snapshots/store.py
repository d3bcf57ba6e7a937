"""Snapshots: the state at a frame, so that nobody reads the log from its beginning twice.

A snapshot is never the truth: it is bound to its frame by that frame's hash, and whoever uses one re-reads
the frame from the log and compares (a log that lost its tail has other frames there). One that is
torn, flipped, of another log or of another version is passed over with a warning; an older one
serves, or the beginning of the log.

None of this proves a snapshot that was forged with care. So a file counts only where no other
account of the machine can have written it, and a reader whose state does not fit the log behind a
snapshot takes the snapshot for wrong before it takes the log for damaged (docs/security.md).

The file: one line of JSON (`Header`), the state as zstandard-compressed MessagePack, and 32
hexadecimal digits of blake2b over all that stands before them. It is written under another name,
synced, and renamed, so that a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING

import msgspec
import zstandard

from events.chain import Head
from events.streams import private_files
from evsched.core import snapshot
from evsched.snapshots.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evsched.core.state import State

FORMAT = 2
KEPT = 400
"""How many snapshots stay at most: at 50,000 events from one to the next, every one of 20 million events."""
KEPT_BYTES = 4 << 30
"""How many bytes they have at most together. Beyond either the older ones are thinned evenly over the log."""
NEWEST = 3
"""How many of them are the newest, whatever lies between them."""

_NAME = re.compile(r"[0-9]{1,20}-[0-9a-f]{32}\.snapshot")
LARGEST_STATE = 1 << 30
"""Most bytes of a state, a few million allocations; a file that claims more is no snapshot of ours."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CHECK_DIGITS = 32
_LONGEST_LINE = 100_000


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot belongs to.

    Attributes:
        head: The head of the log after the last event in the state.
        core: Version of the state's bytes (`evsched.core.snapshot.VERSION`).
    """

    format: int = FORMAT
    core: int = snapshot.VERSION
    head: Head

    @property
    def seq(self) -> int:
        """The ``seq`` of the last event in the state."""
        return self.head.next_seq - 1


class SnapshotDamaged(Exception):
    """A snapshot file cannot be used.

    Attributes:
        path: Of the file.
        reason: What is wrong with it.
    """

    def __init__(self, path: Path, reason: str) -> None:
        """Say which file and why."""
        super().__init__(f"snapshot {path.name}: {reason}")
        self.path = path
        self.reason = reason


def pack(header: Header, state: bytes) -> bytes:
    """Return the bytes of a snapshot file; ``state`` comes from `evsched.core.snapshot.encode`."""
    body = msgspec.json.encode(header) + b"\n" + zstandard.ZstdCompressor(level=1).compress(state)
    return body + _check(body)


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_DIGITS // 2).hexdigest().encode()


def unpack(path: Path) -> tuple[Header, bytes]:
    """Return header and state bytes of a snapshot file.

    Raises:
        SnapshotDamaged: Any of it is not as it was written, or another account can write to it.
    """
    try:
        data = _read(path)
    except OSError as error:
        raise SnapshotDamaged(path, f"cannot be read: {error.strerror}") from error
    body, check = data[:-_CHECK_DIGITS], data[-_CHECK_DIGITS:]
    if _check(body) != check:
        raise SnapshotDamaged(
            path, f"found check {check[:8]!r}…, expected {_check(body)[:8]!r}…: torn or altered"
        )
    line, _, packed = body.partition(b"\n")
    try:
        header = msgspec.json.decode(line, type=Header)
        state = unpacked(packed)
    except (msgspec.MsgspecError, zstandard.ZstdError, UnicodeDecodeError, MemoryError) as error:
        raise SnapshotDamaged(path, str(error) or type(error).__name__) from error
    if (header.format, header.core) != (FORMAT, snapshot.VERSION):
        found, expected = f"{header.format}/{header.core}", f"{FORMAT}/{snapshot.VERSION}"
        raise SnapshotDamaged(
            path, f"found format {found}, expected {expected}: written by another version"
        )
    return header, state


def _read(path: Path) -> bytes:
    """Return the bytes of a file that is this account's own; raise `SnapshotDamaged` when it is not."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - by its descriptor
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid():
            raise SnapshotDamaged(path, f"is owned by user {found.st_uid}, expected {os.geteuid()}")
        if found.st_mode & _WRITABLE_BY_OTHERS:
            mode = stat.filemode(found.st_mode)
            raise SnapshotDamaged(path, f"has rights {mode}, expected no right for others to write")
        if found.st_size > LARGEST_STATE:
            raise SnapshotDamaged(
                path, f"has {found.st_size} bytes, expected {LARGEST_STATE} at most"
            )
        return file.read()


def unpacked(packed: bytes) -> bytes:
    """Return the bytes of a packed state, which must say before it is unpacked how large it is.

    Raises:
        zstandard.ZstdError: It does not, or says more than `LARGEST_STATE`, or is damaged.
    """
    size = zstandard.frame_content_size(packed)
    if not 0 <= size <= LARGEST_STATE:
        claim = "an unknown number of" if size < 0 else size
        raise zstandard.ZstdError(f"claims {claim} bytes, expected {LARGEST_STATE} at most")
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=LARGEST_STATE)


def _restored(path: Path, header: Header, data: bytes) -> State:
    """Return the state in a snapshot; raise `SnapshotDamaged` when the bytes do not hold the one that the header names."""
    try:
        state = snapshot.decode(data, header.head.time, counted=False)
    except Exception as error:  # a forged record may make anything in the core raise
        reason = f"holds no state that can be restored: {type(error).__name__}: {error}"
        raise SnapshotDamaged(path, reason) from error
    if state.seq != header.seq:
        reason = f"holds the state after event {state.seq}, its header names {header.seq}"
        raise SnapshotDamaged(path, reason)
    return state


def _of_log(path: Path, header: Header, log_id: str) -> None:
    if header.head.log_id != log_id:
        raise SnapshotDamaged(path, f"is of log {header.head.log_id}, expected {log_id}")


def _header_of(path: Path) -> Header | None:
    """Return what a file's first line says, without looking at the rest; None when it says nothing.

    `unpack` finds out what is wrong with it, and says so.
    """
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.readline(_LONGEST_LINE), type=Header)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_late(path: Path, time: int) -> bool:
    header = _header_of(path)
    return header is not None and header.head.time > time


class SnapshotStore:
    """The snapshots of one log in a folder of their own."""

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None],
        disk: Disk | None = None,
        kept: int = KEPT,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """Keep snapshots in a folder.

        Args:
            folder: Made on the first write.
            warn: Hears of every snapshot that is passed over.
            disk: What is written to; None: the real one.
            kept: How many stay at most.
            kept_bytes: How many bytes they have at most together; the newest three stay anyway.
        """
        self.folder = folder
        self.kept = kept
        self.kept_bytes = kept_bytes
        self._warn = warn
        self._disk = disk or Disk()

    def paths(self) -> list[Path]:
        """Return the files that are named like snapshots, newest first."""
        if not self.folder.is_dir():
            return []
        found = [
            path
            for path in self.folder.iterdir()
            if _NAME.fullmatch(path.name) and not path.is_symlink()
        ]
        return sorted(found, key=lambda path: (_seq_of(path), path.name), reverse=True)

    def usable(
        self, log_id: str, before: int | None = None, before_time: int | None = None
    ) -> Iterator[tuple[Header, State]]:
        """Yield the snapshots of this log, newest first; the caller takes the first whose frame the log still has.

        The states come without tallies: go on in a block of `evsched.core.tallies.uncounted`.

        Args:
            log_id: Of the log at hand; snapshots of others are passed over.
            before: Only snapshots at or before this ``seq``; None: all.
            before_time: Only snapshots of frames at or before this time, milliseconds; None: all.
        """
        for path in self._between(before, before_time):
            try:
                header, data = unpack(path)
                _of_log(path, header, log_id)
                state = _restored(path, header, data)
            except SnapshotDamaged as error:
                self._warn(str(error))
                continue
            yield header, state

    def _between(self, before: int | None, before_time: int | None) -> Iterator[Path]:
        """Yield the files of snapshots not after these bounds, newest first; see `usable`."""
        for path in self.paths():
            if before is not None and _seq_of(path) > before:
                continue
            if before_time is not None and _is_late(path, before_time):
                continue
            yield path

    def headers(self) -> list[Header]:
        """Return what the snapshots belong to, oldest first, as their first lines say: nothing else is looked at."""
        found = [(path, _header_of(path)) for path in reversed(self.paths())]
        return [one for path, one in found if one is not None and self._path(one.head) == path]

    def state_at(self, head: Head) -> State:
        """Return the state in the snapshot of a frame, without tallies as from `usable`.

        Raises:
            SnapshotDamaged: There is none of this head, or it cannot be used.
        """
        path = self._path(head)
        header, data = unpack(path)
        if header.head != head:
            raise SnapshotDamaged(path, "is of another head than its first line said")
        return _restored(path, header, data)

    def _path(self, head: Head) -> Path:
        return self.folder / f"{head.next_seq - 1}-{head.hash}.snapshot"

    def newest(self, before: int | None = None, before_time: int | None = None) -> int | None:
        """Return the ``seq`` at which `usable` would begin, were that snapshot usable; None where there is none."""
        found = next(self._between(before, before_time), None)
        return None if found is None else _seq_of(found)

    def save(self, header: Header, state: bytes) -> Path:
        """Write a snapshot so that it is there whole or not at all, then remove the oldest ones."""
        private_files.make_folder(self.folder)
        final = self._path(header.head)
        draft = self.folder / f".{final.name}.draft"
        disk = self._disk
        disk.remove(draft)
        descriptor = disk.create(draft)
        try:
            disk.write(descriptor, pack(header, state))
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        disk.rename(draft, final)
        disk.sync_folder(self.folder)
        for old in _superfluous(self.paths(), self.kept, self.kept_bytes):
            disk.remove(old)
        return final


def _seq_of(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process that keeps snapshots of this log was quicker
        return 0


def _superfluous(paths: list[Path], kept: int, kept_bytes: int) -> list[Path]:
    """Return the snapshots to be removed so that ``kept`` of these (newest first), of so many bytes, stay.

    The newest three stay, and the oldest; of the others that one goes whose neighbours are closest
    together, the oldest such one.
    """
    left = [(_seq_of(path), path) for path in paths]
    sizes = {path: _size(path) for path in paths}
    size = sum(sizes.values())
    gone: list[Path] = []
    while len(left) > kept or (size > kept_bytes and len(left) > NEWEST + 1):
        inner = range(NEWEST, len(left) - 1)
        place = (
            min(inner, key=lambda at: (left[at - 1][0] - left[at + 1][0], -at))
            if kept > NEWEST
            else len(left) - 1
        )
        gone.append(left.pop(place)[1])
        size -= sizes[gone[-1]]
    return gone

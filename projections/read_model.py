"""The read model of one log: a SQLite file that answers questions about any moment.

ReadModelRows and position are committed together, so that whatever happens the file says exactly up to where
it has read. It keeps the folded state now and then (`kept_state`), so that a restart folds only the
events after it; rows of those are already there and are not written again. The file is never
migrated: another schema version, another log, or a frame that the log no longer has mean *rebuild*.
A rebuild writes another file beside it and gives that the name when it is complete, so that nobody
ever reads half of one; it need not survive anything on the way and is not journaled.
"""

from __future__ import annotations

import os
import re
import sqlite3
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import aiosql
import msgspec

from events.chain import START, Head
from events.streams.private_files import touch
from evsched.core import snapshot
from evsched.core.recorded import take_recorded
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import seal
from projections.rows import ReadModelRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from events.chain import RecordedStep
    from events.vocabulary import AnyEvent

SCHEMA_VERSION = 9
KEEP_STATE_EVERY = 200_000
"""After how many events the folded state is written along."""
FLUSH_EVERY = 50_000
"""After how many events a rebuild hands its rows to SQLite."""

_queries = aiosql.from_path(Path(__file__).parent / "sql" / "schema.sql", "sqlite3")
_views = aiosql.from_path(Path(__file__).parent / "sql" / "views.sql", "sqlite3")
_FOLLOWING = ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -65536")
_REBUILDING = (
    "journal_mode = OFF",
    "synchronous = OFF",
    "cache_size = -262144",
    "locking_mode = EXCLUSIVE",
)


class RebuildNeeded(Exception):
    """The file cannot be continued; the message says why. Rebuild it from the log."""


class Overtaken(Exception):
    """Another process wrote the file, or put another in its place; nothing was committed. Open it again and go on from there."""


class Fold(Protocol):
    """What else is made of a log while its read model follows it, and is kept with the state."""

    def begin(self, state: State, kept: bytes | None) -> bool:
        """Take up what was kept with this state; None: begin with the log. False: it cannot be read."""

    def kept(self) -> bytes:
        """Return what is to be kept with the state."""

    def before(self, event: AnyEvent, state: State) -> None:
        """Look at an event that the state is about to take."""

    def after(self, event: AnyEvent, state: State) -> None:
        """Look at an event that the state has taken."""

    def end(self, step: RecordedStep, state: State) -> None:
        """Look at the state after a whole step."""


class ReadModel:
    """A read model that is being written. One process at a time; any number may read the file meanwhile.

    Attributes:
        at: The place up to which rows are committed or waiting to be.
        resume_at: The place after which the log must be read: that of the kept state.
    """

    def __init__(
        self,
        path: Path | str,
        log_id: str,
        settings: tuple[str, ...] = _FOLLOWING,
        fold: Fold | None = None,
    ) -> None:
        """Open or create the file for a log.

        Args:
            path: Of the file.
            log_id: Of the log.
            settings: SQLite's; those of a follower.
            fold: Sees every step from the beginning of the log on; None: nothing else is made of it.

        Raises:
            RebuildNeeded: It was altered, or holds another log, another schema version, or a state
                that cannot be read.
        """
        _compare(Path(path))
        seal.tear(Path(path))
        touch(Path(path))
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._path = Path(path)
        self._place = Place(path)
        self._log_id = log_id
        self._whole = True
        self._fold = fold
        try:
            for setting in settings:
                self._connection.execute(f"PRAGMA {setting}")
            self._open()
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        connection = self._connection
        if not _has(connection, "position"):
            connection.execute("BEGIN")
            for script in (_queries.create_schema.sql, _views.create_views.sql):
                for statement in _statements(script):
                    connection.execute(statement)
            self._set_position(START)
            connection.execute("COMMIT")
        self._written = self.at = _position(connection, self._log_id)
        kept = _queries.get_kept_state(connection)
        if kept is None:
            self.resume_at, state = START, State()
        else:
            self.resume_at = decode_head(kept[0])
            try:
                state = snapshot.decode(kept[1], self.resume_at.time)
            except msgspec.MsgspecError as error:
                message = f"read model: its kept state cannot be read: {error}"
                raise RebuildNeeded(message) from error
            if self._fold is not None and not self._fold.begin(state, kept[2]):
                kept = None  # without it, or by another version: what is folded begins anew
                self.resume_at, state = START, State()
        if kept is None and self._fold is not None:
            self._fold.begin(state, None)
        self._rows = ReadModelRows(state)
        self._kept_seq = self.resume_at.next_seq
        self._loaded = self.resume_at.frame == self._written.frame
        if self._loaded:
            self._rows.load(connection)
        self._indexed = _has(connection, "usage_by_queue")

    @property
    def state(self) -> State:
        """The fold of the events taken so far."""
        return self._rows.state

    @property
    def committed(self) -> Head:
        """The place up to which the file is complete."""
        return self._written

    def take(self, step: RecordedStep) -> None:
        """Take a complete step; nothing is written before `commit`.

        Steps up to the committed place only bring the state up to date.

        Raises:
            RebuildNeeded: The log has another frame at the committed place than the one that was
                read.
            LogDamaged: It carries a digest that is not that of the state.
        """
        head = step.head
        if head.frame <= self._written.frame and not self._loaded:
            self._catch_up(step)
            return
        if not self._loaded:
            message = f"read model: frame {self._written.frame} is not in this log"
            raise RebuildNeeded(message)
        self.state.time = step.time
        take_recorded(
            self.state,
            step.events,
            head.position,
            self._watched(partial(self._rows.take, time=step.time)),
        )
        if self._fold is not None:
            self._fold.end(step, self.state)
        self._rows.step(head.frame, step.time, head.next_seq - 1)
        self.at = head

    def _catch_up(self, step: RecordedStep) -> None:
        """Take a step whose rows are there already."""
        state, head = self._rows.state, step.head
        state.time = step.time
        take_recorded(state, step.events, head.position, self._watched(partial(apply, state)))
        if self._fold is not None:
            self._fold.end(step, state)
        if head.frame == self._written.frame:
            if head.hash != self._written.hash:
                message = f"read model: frame {head.frame} has hash {head.hash}, expected {self._written.hash}: not the same log"
                raise RebuildNeeded(message)
            self._rows.load(self._connection)
            self._loaded = True

    def _watched(self, take: Callable[[AnyEvent], object]) -> Callable[[AnyEvent], object]:
        """Return what takes an event while the fold, where there is one, looks on."""
        fold = self._fold
        if fold is None:
            return take

        def watched(event: AnyEvent) -> None:
            fold.before(event, self.state)
            take(event)
            fold.after(event, self.state)

        return watched

    def commit(self) -> None:
        """Write rows and position together; the state too when it is time.

        Raises:
            Overtaken: Somebody else wrote.
        """
        connection = self._connection
        self._whole = False
        # One that another process left just now is not of what is written next.
        seal.tear(self._path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._place.check(own=_position(connection, self._log_id) == self._written)
            self._rows.flush(connection)
            self._set_position(self.at)
            if self.at.next_seq - self._kept_seq >= KEEP_STATE_EVERY:
                self._keep_state()
            if not self._indexed:
                self._index()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._written = self.at
        self._whole = True

    def _index(self) -> None:
        for statement in _statements(_queries.create_indices.sql):
            self._connection.execute(statement)
        self._indexed = True

    def _keep_state(self) -> None:
        _queries.set_kept_state(
            self._connection,
            head=encode_head(self.at),
            state=snapshot.encode(self.state),
            fold=b"" if self._fold is None else self._fold.kept(),
        )
        self._kept_seq = self.at.next_seq

    def _set_position(self, at: Head) -> None:
        _queries.set_position(
            self._connection, schema_version=SCHEMA_VERSION, log_id=self._log_id, seq=at.next_seq - 1, time=at.time,
            head=encode_head(at),
        )  # fmt: skip

    def close(self) -> None:
        """Close the file, and seal it when nobody else has it open; what was taken and not committed is forgotten."""
        self._connection.close()
        # SQLite removes its write-ahead log with the last connection.
        alone = not self._path.with_name(f"{self._path.name}-wal").exists()
        if alone and self._whole and self._place.same():
            self._whole = False
            seal.seal(self._path)


class Rebuild(ReadModel):
    """A read model that is made anew, beside the one that is there; `finish` exchanges the two."""

    def __init__(self, path: Path, log_id: str, fold: Fold | None = None) -> None:
        """Begin a new file for a log; what an earlier rebuild left is removed."""
        self._final = path
        self._draft = self.draft_of(path)
        self._flushed = 0
        remove(self._draft)
        super().__init__(self._draft, log_id, _REBUILDING, fold)

    @staticmethod
    def draft_of(path: Path) -> Path:
        """Return where the new file grows."""
        return path.with_name(f"{path.name}.rebuild")

    def take(self, step: RecordedStep) -> None:
        """Take a complete step; rows go to the file now and then."""
        super().take(step)
        if self.at.next_seq - self._flushed >= FLUSH_EVERY:
            self._flushed = self.at.next_seq
            self._connection.execute("BEGIN")
            self._rows.flush(self._connection, still_open=False)
            self._connection.execute("COMMIT")

    def finish(self) -> None:
        """Write what is left, and the indices; then the file takes the place of the old one."""
        self._kept_seq = self.at.next_seq - KEEP_STATE_EVERY
        self.commit()
        self.close()
        descriptor = os.open(self._draft, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        # SQLite would apply the write-ahead log of the old file to the new one.
        remove(self._final)
        self._draft.replace(self._final)
        seal.seal(self._final)

    def close(self) -> None:
        """Close the draft; only a finished one is sealed."""
        self._whole = False
        super().close()


class Place:
    """Which file lay at a path when it was opened; a file that was replaced can be written on, and nobody would ever read it."""

    def __init__(self, path: Path | str) -> None:
        """Note the file that is there now."""
        self._path = Path(path)
        self._found = self._look()

    def check(self, *, own: bool) -> None:
        """Raise `Overtaken` when another file is there, or none, or when what is written in it is not our ``own``."""
        if not self.same():
            message = f"{self._path}: was replaced or removed"
            raise Overtaken(message)
        if not own:
            message = f"{self._path}: was written by another process"
            raise Overtaken(message)

    def same(self) -> bool:
        """Tell whether it is still there."""
        return self._look() == self._found

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def place_of(path: Path) -> tuple[int, str, Head]:
    """Return schema version, log id and place of the read model in a file, without changing anything.

    Raises:
        RebuildNeeded: There is none, or nothing that we could read, or it was altered.
    """
    if not path.is_file():
        message = f"read model {path}: does not exist"
        raise RebuildNeeded(message)
    _compare(path)
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        version, log_id, head = _queries.get_position(connection)
        return version, log_id, decode_head(head)
    except (sqlite3.DatabaseError, TypeError, UnicodeDecodeError) as error:
        message = f"read model {path}: cannot be read: {error}"
        raise RebuildNeeded(message) from error
    finally:
        connection.close()


def _compare(path: Path) -> None:
    """Raise `RebuildNeeded` when a file is not as it was sealed."""
    try:
        seal.compare(path)
    except seal.SealBroken as error:
        message = f"read model {path}: {error}"
        raise RebuildNeeded(message) from error


def _position(connection: sqlite3.Connection, log_id: str) -> Head:
    """Return the place of a read model that is ours to continue."""
    try:
        version, found, head = _queries.get_position(connection)
    except sqlite3.OperationalError:
        version, found, head = None, "", ""
    if version != SCHEMA_VERSION:
        message = f"read model: found schema version {version}, expected {SCHEMA_VERSION}"
        raise RebuildNeeded(message)
    if found != log_id:
        message = f"read model: is of log {found}, expected {log_id}"
        raise RebuildNeeded(message)
    return decode_head(head)


def encode_head(head: Head) -> str:
    """Return a head of the log as JSON text."""
    return msgspec.json.encode(head).decode()


def decode_head(text: str) -> Head:
    """Return the head of the log in this text; raise `RebuildNeeded` when there is none."""
    try:
        return msgspec.json.decode(text, type=Head)
    except msgspec.MsgspecError as error:
        message = f"read model: its position cannot be read: {error}"
        raise RebuildNeeded(message) from error


def _has(connection: sqlite3.Connection, name: str) -> bool:
    return bool(
        connection.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (name,)).fetchone()[
            0
        ]
    )


def _statements(script: str) -> list[str]:
    """Return the statements of a script, so that they can be part of a transaction (``executescript`` commits)."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    parts = re.split(r";$", "\n".join(lines), flags=re.MULTILINE)  # comments hold semicolons, too
    return [statement.strip() for statement in parts if statement.strip()]


def remove(path: Path) -> None:
    """Remove the file of a read model with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal", ".seal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

"""The read model of one log: a SQLite file that answers questions about any moment.

Rows and position are committed together, so that whatever happens the file says exactly up to where it has read. It keeps the folded
state now and then (`kept_state`), so that a restart folds only the events after it; rows of those are already there and are not
written again. The file is never migrated: another schema version, another log, or a frame that the log no longer has mean *rebuild*.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import aiosql
from msgspec import MsgspecError

from events.chain import START, Head
from evsched.core import snapshot
from evsched.core.reducer import apply
from evsched.core.state import State
from projections.rows import Rows

if TYPE_CHECKING:
    from events.chain import Step

SCHEMA_VERSION = 1
KEEP_STATE_EVERY = 200_000
"""After how many events the folded state is written along."""

_queries = aiosql.from_path(Path(__file__).parent / "sql" / "schema.sql", "sqlite3")


class RebuildNeeded(Exception):
    """The file cannot be continued; the message says why. Remove it and read the log from its beginning."""


class ReadModel:
    """A read model that is being written. One process at a time; any number may read the file meanwhile.

    Attributes:
        at: The place up to which rows are committed or waiting to be.
        resume_at: The place after which the log must be read: that of the kept state.
    """

    def __init__(self, path: Path | str, log_id: str) -> None:
        """Open or create the file for a log.

        Raises:
            RebuildNeeded: It holds another log, another schema version, or a state that cannot be read.
        """
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._log_id = log_id
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA cache_size = -65536")
            self._open()
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        connection = self._connection
        exists = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'position'").fetchone()[0]
        if not exists:
            connection.execute("BEGIN")
            for statement in _statements(_queries.create_schema.sql):
                connection.execute(statement)
            self._set_position(START)
            connection.execute("COMMIT")
        version, log_id, *place = _queries.get_position(connection)
        if version != SCHEMA_VERSION:
            message = f"read model: found schema version {version}, expected {SCHEMA_VERSION}"
            raise RebuildNeeded(message)
        if log_id != self._log_id:
            message = f"read model: is of log {log_id}, expected {self._log_id}"
            raise RebuildNeeded(message)
        self._written = self.at = head_of(*place)
        kept = _queries.get_kept_state(connection)
        if kept is None:
            self.resume_at, state = START, State()
        else:
            self.resume_at = head_of(*kept[:-1])
            try:
                state = snapshot.decode(kept[-1], self.resume_at.time)
            except MsgspecError as error:
                message = f"read model: its kept state cannot be read: {error}"
                raise RebuildNeeded(message) from error
        self._rows = Rows(state)
        self._kept_seq = self.resume_at.next_seq
        self._loaded = self.resume_at.frame == self._written.frame
        if self._loaded:
            self._rows.load(connection)
        self._indexed = bool(
            connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'usage_by_queue'").fetchone()[0]
        )

    @property
    def state(self) -> State:
        """The fold of the events taken so far."""
        return self._rows.state

    @property
    def committed(self) -> Head:
        """The place up to which the file is complete."""
        return self._written

    def take(self, step: Step) -> None:
        """Take a complete step; nothing is written before `commit`.

        Steps up to the committed place only bring the state up to date. Raises `RebuildNeeded` when the log has another frame at the
        committed place than the one that was read.
        """
        head = step.head
        if head.frame <= self._written.frame and not self._loaded:
            state = self._rows.state
            state.time = step.time
            for event in step.events:
                apply(state, event)
            if head.frame == self._written.frame:
                if head.hash != self._written.hash:
                    message = f"read model: frame {head.frame} has hash {head.hash}, expected {self._written.hash}: not the same log"
                    raise RebuildNeeded(message)
                self._rows.load(self._connection)
                self._loaded = True
            return
        if not self._loaded:
            message = f"read model: frame {self._written.frame} is not in this log"
            raise RebuildNeeded(message)
        take = self._rows.take
        for event in step.events:
            take(event, step.time)
        self._rows.step(head.frame, step.time, head.next_seq - 1)
        self.at = head

    def commit(self, *, index: bool = True) -> None:
        """Write rows and position together; the state too when it is time. ``index``: False while a rebuild goes on."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._rows.flush(connection)
            self._set_position(self.at)
            if self.at.next_seq - self._kept_seq >= KEEP_STATE_EVERY:
                self._keep_state()
            if index and not self._indexed:
                for statement in _statements(_queries.create_indices.sql):
                    connection.execute(statement)
                self._indexed = True
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._written = self.at

    def _keep_state(self) -> None:
        at = self.at
        _queries.set_kept_state(
            self._connection, next_seq=at.next_seq, time=at.time, frame=at.frame, hash=at.hash, position=at.position,
            state=snapshot.encode(self.state),
        )  # fmt: skip
        self._kept_seq = at.next_seq

    def _set_position(self, at: Head) -> None:
        _queries.set_position(
            self._connection, schema_version=SCHEMA_VERSION, log_id=self._log_id, next_seq=at.next_seq, time=at.time,
            frame=at.frame, hash=at.hash, position=at.position,
        )  # fmt: skip

    def close(self) -> None:
        """Close the file; what was taken and not committed is forgotten."""
        self._connection.close()


def head_of(next_seq: int, time: int, frame: int, digest: str, position: int) -> Head:
    """Return the head of a log from the columns that keep it."""
    return Head(next_seq=next_seq, time=time, frame=frame, hash=digest, position=position)


def _statements(script: str) -> list[str]:
    """Return the statements of a script, so that they can be part of a transaction (``executescript`` commits)."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def remove(path: Path) -> None:
    """Remove the file of a read model with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

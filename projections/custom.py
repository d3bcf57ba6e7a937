"""A projection of one's own: a folder with `.sql` files.

The files hold named statements in aiosql's form. ``create_schema#`` makes the tables; a statement
named after an event type, ``on_PreemptionDecided!``, runs once for every event of that type with
the event's fields as parameters (``:seq``, ``:time``, ``:ask``, …). What is not a number, text or
absent arrives as JSON text, for SQLite's ``json_each`` and ``->>``. Rows and position are committed
together in the table ``position``, so that a restart goes on where the last commit ended.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
from aiosql.utils import SQLLoadException, SQLParseException

from events import vocabulary as v
from events.chain import START
from events.streams.private_files import touch
from projections.queue_rows import text
from projections.read_model import Place, RebuildNeeded, decode_head, encode_head

if TYPE_CHECKING:
    from events.chain import RecordedStep

EVENT_TYPES = {kind.__name__: kind for kind in v.AnyEvent.__args__}


class ProjectionInvalid(Exception):
    """The folder does not hold a projection; the message names the file and what is wrong."""


class CustomProjection:
    """A projection made of SQL alone.

    Attributes:
        at: The place up to which events were taken.
        resume_at: The place after which the log must be read.
    """

    def __init__(self, folder: Path, path: Path | str, log_id: str) -> None:
        """Load the statements of ``folder`` and open or create the file at ``path``.

        Raises:
            ProjectionInvalid: There is no `.sql` file, no ``create_schema#``, or a statement for an
                unknown event type.
            RebuildNeeded: The file holds another log.
        """
        statements = _statements(folder)
        self._by_type = {
            kind: statements[f"on_{name}"]
            for name, kind in EVENT_TYPES.items()
            if f"on_{name}" in statements
        }
        touch(Path(path))
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._place = Place(path)
        try:
            self._open(statements["create_schema"], log_id)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, schema: str, log_id: str) -> None:
        connection = self._connection
        connection.execute("PRAGMA journal_mode = WAL")
        if not connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'position'"
        ).fetchone()[0]:
            connection.executescript(
                f"BEGIN; CREATE TABLE position (log_id TEXT, seq INTEGER, time INTEGER, head TEXT); {schema};COMMIT"
            )
            connection.execute(
                "INSERT INTO position VALUES (?, 0, 0, ?)", (log_id, encode_head(START))
            )
        if [row[1] for row in connection.execute("PRAGMA table_info(position)")] != [
            "log_id",
            "seq",
            "time",
            "head",
        ]:
            message = "projection: the file holds something else, expected a projection of one's own or no file"
            raise RebuildNeeded(message)
        found, head = connection.execute("SELECT log_id, head FROM position").fetchone()
        if found != log_id:
            message = f"projection: is of log {found}, expected {log_id}"
            raise RebuildNeeded(message)
        self.at = self.resume_at = self._written = decode_head(head)
        connection.execute("BEGIN")

    def take(self, step: RecordedStep) -> None:
        """Run the statements for a complete step; steps that were taken before are passed over."""
        if step.head.frame <= self.at.frame:
            return
        for event in step.events:
            statement = self._by_type.get(type(event))
            if statement is not None:
                self._connection.execute(statement, _parameters(event, step.time))
        self.at = step.head

    def commit(self) -> None:
        """Write rows and position together; raise `Overtaken` when somebody else wrote."""
        at = self.at
        found = self._connection.execute("SELECT head FROM position").fetchone()
        if found is None:
            message = "projection: its own statements removed its position"
            raise RebuildNeeded(message)
        self._place.check(own=decode_head(found[0]) == self._written)
        self._connection.execute(
            "UPDATE position SET seq = ?, time = ?, head = ?",
            (at.next_seq - 1, at.time, encode_head(at)),
        )
        self._connection.execute("COMMIT")
        self._written = at
        self._connection.execute("BEGIN")

    def close(self) -> None:
        """Close the file; what was not committed is forgotten."""
        self._connection.close()


def _parameters(event: v.AnyEvent, time: int) -> dict[str, Any]:
    found: dict[str, Any] = {"time": time}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        plain = value is None or isinstance(value, int | str)
        found[name] = int(value) if isinstance(value, bool) else value if plain else text(value)
    return found


def _statements(folder: Path) -> dict[str, str]:
    files = sorted(folder.glob("*.sql")) if folder.is_dir() else []
    if not files:
        message = f"projection {folder}: holds no .sql file, expected at least one"
        raise ProjectionInvalid(message)
    found: dict[str, str] = {}
    for file in files:
        try:
            loaded = aiosql.from_path(file, "sqlite3", mandatory_parameters=False)
        except (SQLParseException, SQLLoadException, ValueError) as error:
            message = f"projection {file}: {error}"
            raise ProjectionInvalid(message) from error
        for name in loaded.available_queries:
            if not name.endswith("_cursor"):
                found[name] = getattr(loaded, name).sql
    if "create_schema" not in found:
        message = f"projection {folder}: has no statement create_schema#, expected one"
        raise ProjectionInvalid(message)
    for name in found:
        if name.startswith("on_") and name.removeprefix("on_") not in EVENT_TYPES:
            message = f"projection {folder}: {name} names no event type; known: {', '.join(sorted(EVENT_TYPES))}"
            raise ProjectionInvalid(message)
    return found

"""What an export holds: the events by day, and every table and view of the read model.

A value has one of four types, so that both formats say the same. What still holds ends with nothing, in
tables as in views. Rows come in batches that are bounded in number and in bytes: a long log needs no
more memory than a short one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from events.cloudevents import rfc3339
from events.frame import encode_event
from projections.catalogue import relations
from projections.temporal import OPEN

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from events.chain import RecordedStep
    from events.vocabulary import AnyEvent

ValueType = Literal["integer", "boolean", "text", "time"]
"""A time is milliseconds since 1970, UTC; a boolean is 0 or 1."""

BATCH_ROWS = 20_000
BATCH_BYTES = 8_000_000
"""A batch is complete with so many rows, or so many letters of text."""

_TYPES: dict[str, ValueType] = {
    "amount": "integer",
    "number": "integer",
    "seq": "integer",
    "duration": "integer",
    "bool": "boolean",
    "time": "time",
    "timestamp": "time",
}
"""The type of each kind of the catalogue that is not text."""
_LEFT_OUT = "kept_state"
"""The folded state is of use to evsched alone, and so is every column of the kind internal."""
_SUBJECTS = ("queue", "application", "ask", "allocation", "node")


class ExportedColumn(Struct, frozen=True):
    """A column of an exported table."""

    name: str
    type: ValueType


class TableWriter(Protocol):
    """What writes one file of an export."""

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows; a value is None, or of its column's type."""

    def close(self) -> None:
        """Write what is left."""


class TableFormat(Protocol):
    """How files of an export are written."""

    @property
    def name(self) -> str:
        """As the manifest says it."""

    @property
    def suffix(self) -> str:
        """Of the names of files, with its dot."""

    def open(self, path: Path, columns: Sequence[ExportedColumn]) -> TableWriter:
        """Make a file with these columns."""


EVENT_COLUMNS = (
    ExportedColumn("seq", "integer"),
    ExportedColumn("time", "time"),
    ExportedColumn("frame", "integer"),
    ExportedColumn("type", "text"),
    ExportedColumn("cause", "integer"),
    *(ExportedColumn(name, "text") for name in _SUBJECTS),
    ExportedColumn("event", "text"),
)
"""Of an event; cause and subjects where the event names them itself, and all of it as JSON."""


def exported_tables() -> dict[str, tuple[ExportedColumn, ...]]:
    """Return the columns of every table and view that is exported, by its name."""
    return {
        one.name: tuple(
            ExportedColumn(column.name, _TYPES.get(column.kind, "text"))
            for column in one.columns
            if column.kind != "internal"
        )
        for one in relations().values()
        if one.name != _LEFT_OUT
    }


def rows_of(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table or view, with the values of `exported_tables`."""
    columns = [one for one in relations()[table].columns if one.kind != "internal"]
    selected = ", ".join(_selected(one.name, one.kind) for one in columns)
    yield from connection.execute(f'SELECT {selected} FROM "{table}"')  # noqa: S608 - names of the catalogue


def _selected(name: str, kind: str) -> str:
    """Return the expression for a column; a timestamp of a view becomes milliseconds without a floating-point number."""
    if kind == "timestamp":
        return f'unixepoch("{name}") * 1000 + substr("{name}", -4, 3)'
    return f'nullif("{name}", {OPEN})' if kind in ("seq", "time") else f'"{name}"'


class BatchedFile:
    """A file that is written in batches that fit into memory (`BATCH_ROWS`, `BATCH_BYTES`).

    Attributes:
        rows: How many it has.
    """

    def __init__(self, file: TableWriter) -> None:
        """Take the file."""
        self._file = file
        self._batch: list[tuple[Any, ...]] = []
        self._size = 0
        self.rows = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Append a row."""
        self.rows += 1
        self._batch.append(row)
        for value in row:
            if type(value) is str:
                self._size += len(value)
        if len(self._batch) >= BATCH_ROWS or self._size >= BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        try:
            if self._batch:
                self._flush()
        finally:
            self._file.close()

    def _flush(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        self._file.write(batch)


def day_of(time: int) -> str:
    """Return the day (UTC) of a time in milliseconds; what lies outside of the years 1 to 9999 is drawn to their ends."""
    return rfc3339(time)[:10]


def event_row(step: RecordedStep, event: AnyEvent) -> tuple[Any, ...]:
    """Return the row of an event of a step, with the columns of `EVENT_COLUMNS`."""
    return (
        event.seq,
        step.time,
        step.head.frame,
        type(event).__name__,
        event.cause or None,
        *(getattr(event, name, None) for name in _SUBJECTS),
        encode_event(event).decode(),
    )

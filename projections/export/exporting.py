"""Exporting: the tables of a read model as they are at one place of the log, and the events up to there."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from projections.audit import connect
from projections.export.contents import (
    EVENT_COLUMNS,
    BatchedFile,
    day_of,
    event_row,
    exported_tables,
    rows_of,
)
from projections.export.folder import ExportManifest, draft_of, write_manifest
from projections.read_model import SCHEMA_VERSION, RebuildNeeded, decode_head, place_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from events.chain import Head, RecordedStep
    from projections.export.contents import TableFormat

EVENTS = "events"
"""The name under which the events are counted, and the folder that holds them by day."""


async def export(
    steps: AsyncIterator[RecordedStep],
    path: Path,
    folder: Path,
    form: TableFormat,
    told: Callable[[int], None],
) -> ExportManifest:
    """Write an export into a folder; return its manifest.

    Args:
        steps: The log from its beginning; it is read up to the place of the read model.
        path: The file of the read model; it may be written meanwhile.
        folder: Where the export is to lie; what is there is exchanged as a whole, or not at all.
        form: CSV or Parquet.
        told: Is called with the position of each step that was written.

    Raises:
        RebuildNeeded: There is no read model, it was altered, or it is of another log.
        ExportRefused: Something else lies in the folder.
        OSError: It cannot be written.
        sqlite3.Error: The read model cannot be read.
    """
    place_of(path)  # whether it is as it was sealed
    with draft_of(folder) as draft, closing(connect(path)) as connection:
        connection.execute("BEGIN")  # one place for all tables, whatever is written meanwhile
        manifest, head = _place(connection, form)
        counts = {
            table: _write_table(connection, table, draft, form) for table in exported_tables()
        }
        with closing(_Days(draft / EVENTS, form)) as days:
            await _write_events(steps, head, days, told)
        return write_manifest(draft, replace(manifest, tables=counts | {EVENTS: days.rows}))


def _place(connection: sqlite3.Connection, form: TableFormat) -> tuple[ExportManifest, Head]:
    """Return a manifest without tables, and the place up to which the events go."""
    version, log_id, text = connection.execute(
        "SELECT schema_version, log_id, head FROM position"
    ).fetchone()
    if version != SCHEMA_VERSION:
        message = f"read model: found schema version {version}, expected {SCHEMA_VERSION}"
        raise RebuildNeeded(message)
    head = decode_head(text)
    manifest = ExportManifest(
        format=form.name, log_id=log_id, seq=head.next_seq - 1, time=head.time,
        frame=head.frame, head=head.hash, schema_version=version,
    )  # fmt: skip
    return manifest, head


def _write_table(connection: sqlite3.Connection, table: str, draft: Path, form: TableFormat) -> int:
    """Write a table or view into its file; return how many rows it has."""
    file = form.open(draft / (table + form.suffix), exported_tables()[table])
    with closing(BatchedFile(file)) as batched:
        for row in rows_of(connection, table):
            batched.add(row)
    return batched.rows


async def _write_events(
    steps: AsyncIterator[RecordedStep], head: Head, days: _Days, told: Callable[[int], None]
) -> None:
    """Write the events of the steps up to a place; raise `RebuildNeeded` when the log has no such place."""
    async for step in steps:
        if step.head.frame > head.frame:
            break
        days.write(step)
        told(step.head.position)
        if step.head.hash == head.hash:
            return
    message = f"read model: frame {head.frame} with hash {head.hash} is not in this log"
    raise RebuildNeeded(message)


class _Days:
    """The files of the events, one a day. Time never goes back in a log, so one is open at a time."""

    def __init__(self, folder: Path, form: TableFormat) -> None:
        self._folder = folder
        self._form = form
        self._day = ""
        self._file: BatchedFile | None = None
        self.rows = 0

    def write(self, step: RecordedStep) -> None:
        """Write the events of a step, at once or with those that follow."""
        day = day_of(step.time)
        if self._file is None or day != self._day:
            self.close()
            folder = self._folder / f"day={day}"
            folder.mkdir(parents=True)
            self._day = day
            file = self._form.open(folder / f"events{self._form.suffix}", EVENT_COLUMNS)
            self._file = BatchedFile(file)
        for event in step.events:
            self._file.add(event_row(step, event))
        self.rows += len(step.events)

    def close(self) -> None:
        """Write what is left."""
        if self._file is not None:
            self._file.close()

"""Exported files hold exactly what the read model and the log hold, as DuckDB, pandas and any reader of CSV see it."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from events.frame import decode_event
from evsched.core.reducer import apply
from evsched.core.state import State
from projections.catalogue import relations
from projections.export import contents
from projections.export.contents import exported_tables
from projections.export.csv_files import CsvFormat
from projections.export.exporting import export
from projections.export.folder import MANIFEST, ExportRefused, read_manifest
from projections.export.parquet_files import ParquetFormat
from projections.read_model import ReadModel, RebuildNeeded
from projections.temporal import OPEN
from replays.history.sealing import Sealer
from tests.api.histories import kueue
from tests.core.histories import START
from tests.replays.logs import LOG_ID, read, sealed, story, taken

HOUR = 3_600_000
FORMATS = (CsvFormat(), ParquetFormat())
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NASTY = (
    'a "quoted" word, and another', "two\nlines\r\nor three", "=1+1", "\\N", "NULL", "", " ", "nan",
    "naïve 🚀 مرحبا", "0", "true", "\x00nothing\x7f", "2026-01-01T09:00:00.000Z", "'; DROP TABLE queues; --",
)  # fmt: skip
"""Texts that readers of CSV are known to misread."""
DUCK_TYPES = {
    "integer": "BIGINT",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "time": "TIMESTAMPTZ",
}


def days():
    """Return the steps of some days of a cluster with cards: every seven hours a job begins, and another one ends."""
    queues = tuple(QueueSpec(name=name) for name in ("vision", "speech"))
    spec = YunikornSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=queues))
    gpu = v.NodeRegistered(node="gpu-1", capacity={"vcore": 64_000, "nvidia.com/gpu": 8})
    history = [(0, [gpu], False)]
    for number in range(14):
        ask = v.AskSubmitted(
            ask=f"job-{number}",
            application=f"app-{number % 3}",
            queue=f"root.{('vision', 'speech')[number % 2]}",
            resources={"vcore": 2000, "nvidia.com/gpu": 1 + number % 3},
            user=f"user-{number % 3}",
        )
        ended = [v.AllocationReleased(allocation=f"job-{number - 2}")] if number > 2 else []
        history.append((7 * HOUR + number, [ask, *ended], number == 5))
    return read(sealed(taken(spec, history)))


@pytest.fixture(scope="module", params=["kueue", "hostile"])
def history(request, tmp_path_factory):
    """Return the steps of a log and the file of its read model; one has values at all bounds in every column."""
    steps = read(sealed(kueue(1, 30) if request.param == "kueue" else story()))
    path = tmp_path_factory.mktemp(request.param) / "model.db"
    write(steps, path)
    if request.param == "hostile":
        fill(path)
    return steps, path


def write(steps, path):
    """Write the read model of steps."""
    model = ReadModel(path, LOG_ID)
    for step in steps:
        model.take(step)
    model.commit()
    model.close()


def fill(path):
    """Write a row for each nasty text into each table, with numbers at their bounds and NULL where that may be."""
    path.with_name(f"{path.name}.seal").unlink()
    numbers = (0, 1, -1, 2**53, 2**53 + 1, 2**63 - 2, -(2**63))
    with closing(sqlite3.connect(path)) as connection:
        for name, table in relations().items():
            if table.view or name in ("position", "kept_state"):
                continue
            for row, text in enumerate(NASTY):
                values = {
                    column.name: value_of(column, text, row, numbers[row % len(numbers)])
                    for column in table.columns
                }
                sql = f"INSERT INTO {name} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
                connection.execute(sql, list(values.values()))
        connection.commit()


def value_of(column, text, row, number):
    """Return a value for a column: keys are distinct, amounts and labels are JSON, times are in years that have four digits."""
    if column.null and row % 3 == 0:
        return None
    if column.name in ("id", "frame", "bucket") or column.kind == "seq":
        return 10**9 + row if column.name != "to_seq" or row % 2 else OPEN
    if column.kind == "time":
        return START + row if column.name != "to_time" or row % 2 else OPEN
    if column.kind == "amounts":
        # No name may hold a NUL, and versions of SQLite differ in such keys.
        return json.dumps({text.replace("\x00", ""): 2**53 + row, "vcore": row})
    if column.kind == "json":
        return json.dumps([text])
    if column.kind == "bool":
        return row % 2
    if column.type == "TEXT":
        return text
    return 1000 + row if column.name in ("number", "fork") else number


def expected(path, table):
    """Return the rows of a table as Python has them, straight from the reference: no part of the exporting is used."""
    columns = [one for one in relations()[table].columns if one.kind != "internal"]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT {', '.join(one.name for one in columns)} FROM {table}")
        return [
            tuple(plain(value, one.kind) for value, one in zip(row, columns, strict=True))
            for row in rows
        ]


def plain(value, kind):
    """Return a value of SQLite as what it means."""
    if value is None or (kind in ("seq", "time") and value == OPEN):
        return None
    if kind == "time":
        return EPOCH + timedelta(milliseconds=value)
    if kind == "timestamp":
        return datetime.fromisoformat(value)
    return value != 0 if kind == "bool" else value


def exported(steps, path, folder, form):
    """Export a history and return the manifest."""

    async def all_steps():
        for step in steps:
            yield step

    return asyncio.run(export(all_steps(), path, folder, form, lambda position: None))


DUCKDB = duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False})


def in_duckdb(sql):
    """Return the rows of a query."""
    found = DUCKDB.sql(sql).to_arrow_table()  # DuckDB's own rows need pytz for times
    return [tuple(row.values()) for row in found.to_pylist()]


def frame_rows(frame):
    """Return the rows of a data frame of pandas, with None where nothing is."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_parquet_holds_every_table_and_view_exactly(history, tmp_path):
    """In DuckDB and in pandas: numbers beyond 2**53, NULL, times in UTC, any text."""
    steps, path = history
    manifest = exported(steps, path, tmp_path / "out", ParquetFormat())
    for table in exported_tables():
        rows = expected(path, table)
        file = tmp_path / "out" / f"{table}.parquet"
        assert in_duckdb(f"SELECT * FROM '{file}'") == rows, table
        frame = pd.read_parquet(file, dtype_backend="pyarrow")
        assert [tuple(row.values()) for row in frame_rows(frame)] == rows, table
        assert manifest.tables[table] == len(rows)


def test_csv_holds_every_table_and_view_exactly(history, tmp_path):
    """As DuckDB reads it with the types of the reference; any reader sees the same fields."""
    steps, path = history
    exported(steps, path, tmp_path / "out", CsvFormat())
    for table, columns in exported_tables().items():
        rows = expected(path, table)
        file = tmp_path / "out" / f"{table}.csv"
        types = {one.name: DUCK_TYPES[one.type] for one in columns}
        found = in_duckdb(
            f"SELECT * FROM read_csv('{file}', header = true, quote = '\"', escape = '\"', "
            f"allow_quoted_nulls = false, auto_detect = false, columns = {types})"
        )
        assert found == rows, table
        with file.open(encoding="utf-8", newline="") as lines:
            assert [len(row) for row in csv.reader(lines)] == [len(columns)] * (len(rows) + 1)


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
def test_events_lie_by_day_and_lead_back_to_the_log(form, tmp_path):
    """Each with its seq, time, type, cause and subjects; its JSON is the event."""
    steps = days()
    write(steps, tmp_path / "model.db")
    exported(steps, tmp_path / "model.db", tmp_path / "out", form)
    files = f"{tmp_path / 'out' / 'events'}/*/*{form.suffix}"
    reader = f"read_{form.name}('{files}', hive_partitioning = true)"
    found = in_duckdb(f"SELECT seq, time, day, type, cause, ask, event FROM {reader} ORDER BY seq")
    events = [(step, event) for step in steps for event in step.events]
    times = [EPOCH + timedelta(milliseconds=step.time) for step, _ in events]
    assert len({time.date() for time in times}) > 3
    for row, (_, event), time in zip(found, events, times, strict=True):
        seq, at, day, kind, cause, ask, text = row
        assert (seq, at, str(day), kind) == (
            event.seq,
            time,
            f"{time:%Y-%m-%d}",
            type(event).__name__,
        )
        assert cause == (event.cause or None)
        assert ask == getattr(event, "ask", None) or (ask, form.name) == (None, "csv")
        assert decode_event(text) == event


def test_the_manifest_names_the_place_in_the_log(history, tmp_path):
    """Its id, the last seq, and the hash that only this past has; every file is named."""
    steps, path = history
    head = steps[-1].head
    manifest = exported(steps, path, tmp_path / "out", ParquetFormat())
    assert read_manifest(tmp_path / "out") == manifest
    assert (manifest.log_id, manifest.seq, manifest.head) == (LOG_ID, head.next_seq - 1, head.hash)
    assert manifest.tables["events"] == head.next_seq - 1
    there = {
        str(found.relative_to(tmp_path / "out"))
        for found in (tmp_path / "out").rglob("*")
        if found.is_file()
    }
    assert there == {*manifest.files, MANIFEST}


def test_hours_of_use_from_parquet_are_those_of_a_fold_over_the_log(tmp_path):
    """GPU-hours and the like by queue, straight from the exported file."""
    steps = days()
    write(steps, tmp_path / "model.db")
    exported(steps, tmp_path / "model.db", tmp_path / "out", ParquetFormat())
    state, used, before = State(), {}, None
    for step in steps:
        for application in state.applications.values():
            for number, amount in enumerate(application.usage):
                key = (application.leaf.path, state.types.names[number])
                used[key] = used.get(key, 0) + amount * (step.time - before)
        state.time = before = step.time
        for event in step.events:
            apply(state, event)
    found = in_duckdb(
        "SELECT queue, resource, sum(amount::HUGEINT * (coalesce(to_ms, end_ms) - from_ms)) FROM ("
        "SELECT queue, resource, amount, epoch_ms(from_ms) AS from_ms, epoch_ms(to_ms) AS to_ms, "
        f"{before} AS end_ms FROM '{tmp_path / 'out' / 'v_allocation_resources.parquet'}') "
        "GROUP BY queue, resource"
    )
    assert {(queue, resource): total for queue, resource, total in found} == {
        key: total for key, total in used.items() if total
    }


def test_only_an_export_is_written_over(tmp_path):
    """A folder with anything else in it stays as it is, to the last byte; an export is exchanged as a whole."""
    steps = read(sealed(story()))
    write(steps, tmp_path / "model.db")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("irreplaceable")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MANIFEST).write_text('{"name": "somebody else\'s"}')
    for name in ("mine", "file", "other"):
        with pytest.raises(ExportRefused, match=name):
            exported(steps, tmp_path / "model.db", tmp_path / name, CsvFormat())
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "irreplaceable"
    (tmp_path / "out").mkdir()
    exported(steps, tmp_path / "model.db", tmp_path / "out", CsvFormat())
    exported(steps, tmp_path / "model.db", tmp_path / "out", ParquetFormat())
    assert not list((tmp_path / "out").rglob("*.csv"))
    (tmp_path / "out" / "notes.md").write_text("mine")
    with pytest.raises(ExportRefused, match=r"notes\.md"):
        exported(steps, tmp_path / "model.db", tmp_path / "out", CsvFormat())
    assert list((tmp_path / "out").rglob("*.parquet"))
    assert not list(tmp_path.glob(".*"))


def test_what_fails_leaves_the_older_export(tmp_path):
    """A log that is not the read model's, or that ends too early, is noticed by the hash; nothing half written stays."""
    steps = read(sealed(story()))
    write(steps, tmp_path / "model.db")
    exported(steps, tmp_path / "model.db", tmp_path / "out", CsvFormat())
    before = read_manifest(tmp_path / "out")
    sealer = Sealer("another-log")
    other = read(
        [
            record
            for time, events, position in story()
            for record in sealer.seal(time, events, inbox_next=position)
        ]
    )
    for wrong in (other, steps[:-1], []):
        with pytest.raises(RebuildNeeded, match="is not in this log"):
            exported(wrong, tmp_path / "model.db", tmp_path / "out", ParquetFormat())
    assert read_manifest(tmp_path / "out") == before
    assert not list(tmp_path.glob(".*"))


def test_an_export_goes_as_far_as_the_read_model_did_when_it_began(tmp_path):
    """Steps that are written meanwhile are in no table, and so in no event file either."""
    steps = read(sealed(story()))
    model = ReadModel(tmp_path / "model.db", LOG_ID)
    for step in steps[:5]:
        model.take(step)
    model.commit()
    rest = iter(steps[5:])

    async def growing():
        for step in steps:
            for later in rest:  # with the first step that is exported, all others are committed
                model.take(later)
                model.commit()
            yield step

    manifest = asyncio.run(
        export(growing(), tmp_path / "model.db", tmp_path / "out", CsvFormat(), lambda _: None)
    )
    model.close()
    assert manifest.head == steps[4].head.hash
    assert manifest.tables["frames"] == 5
    assert manifest.tables["events"] == manifest.seq == steps[4].head.next_seq - 1


def test_batches_are_bounded_in_rows_and_in_bytes(monkeypatch):
    """However long a table is, and however large one of its values."""
    written = []

    class Kept:
        def write(self, rows):
            written.append(len(rows))

        def close(self):
            written.append("closed")

    monkeypatch.setattr(contents, "BATCH_ROWS", 10)
    monkeypatch.setattr(contents, "BATCH_BYTES", 1000)
    file = contents.BatchedFile(Kept())
    for number in range(25):
        file.add((number, "short", None))
    for _ in range(3):
        file.add((1, "x" * 900, None))
    file.close()
    assert written == [10, 10, 7, 1, "closed"]
    assert file.rows == 28


def test_a_long_table_is_written_in_several_groups(tmp_path, monkeypatch):
    """A row group a batch: a reader need not hold the whole, either."""
    monkeypatch.setattr(contents, "BATCH_ROWS", 3)
    steps = read(sealed(story()))
    write(steps, tmp_path / "model.db")
    exported(steps, tmp_path / "model.db", tmp_path / "out", ParquetFormat())
    assert pq.ParquetFile(tmp_path / "out" / "frames.parquet").num_row_groups == -(-len(steps) // 3)


@pytest.fixture
def with_sqlite(tmp_path):
    """Return a DuckDB that reads SQLite files; its extension comes as a package, as `INSTALL sqlite` wants the network."""
    package = Path(find_spec("duckdb_extension_sqlite").origin).parent
    # The name of the file says what is in it.
    extension = tmp_path / "sqlite_scanner.duckdb_extension"
    extension.symlink_to(
        package / "extensions" / f"v{duckdb.__version__}" / "sqlite.duckdb_extension"
    )
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.execute(f"LOAD '{extension}'")
        yield connection


def test_duckdb_reads_the_file_itself(history, with_sqlite):
    """The same rows as SQLite, without any export: tables with their types, of views most columns as text."""
    _, path = history
    with_sqlite.execute(f"ATTACH '{path}' AS model (TYPE sqlite, READ_ONLY)")
    for name, one in relations().items():
        columns = [column for column in one.columns if column.kind != "internal"]
        sql = "SELECT " + ", ".join(f'"{column.name}"' for column in columns) + " FROM"
        found = with_sqlite.sql(f"{sql} model.{name}").fetchall()
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(f"{sql} {name}").fetchall()
        if one.view:
            found, rows = ([tuple(map(str, row)) for row in side] for side in (found, rows))
        assert sorted(map(repr, found)) == sorted(map(repr, rows)), name


def test_duckdb_takes_the_times_of_the_views_for_times(tmp_path, with_sqlite):
    """Text of a view is cast to a time in UTC, and stretches can be added up."""
    steps = days()
    write(steps, tmp_path / "model.db")
    with_sqlite.execute(f"ATTACH '{tmp_path / 'model.db'}' AS model (TYPE sqlite, READ_ONLY)")
    ((ran,),) = with_sqlite.sql(
        "SELECT sum(epoch_ms(to_time::TIMESTAMPTZ) - epoch_ms(from_time::TIMESTAMPTZ)) FROM model.v_allocations"
    ).fetchall()
    bound = {
        event.ask: step.time
        for step in steps
        for event in step.events
        if isinstance(event, v.AllocationBound)
    }
    assert ran == sum(
        step.time - bound[event.allocation]
        for step in steps
        for event in step.events
        if isinstance(event, v.AllocationReleased)
    )


def test_pandas_reads_the_views_of_the_file_itself(tmp_path):
    """Times become times and amounts stay integers, without any export."""
    path = tmp_path / "model.db"
    steps = days()
    write(steps, path)
    with closing(sqlite3.connect(path)) as connection:
        frame = pd.read_sql_query(
            "SELECT * FROM v_allocations", connection, parse_dates=["from_time", "to_time"],
            dtype_backend="pyarrow",
        )  # fmt: skip
        views = [name for name, one in relations().items() if one.view]
        for view in views:
            assert len(pd.read_sql_query(f"SELECT * FROM {view}", connection)) == len(
                expected(path, view)
            )
    bound = [
        event for step in steps for event in step.events if isinstance(event, v.AllocationBound)
    ]
    assert sorted(frame["allocation"]) == sorted(event.ask for event in bound)
    assert str(frame["from_time"].dt.tz) == "UTC"
    assert frame["from_time"].min() >= pd.Timestamp(START, unit="ms", tz="UTC")

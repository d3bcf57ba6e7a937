"""`evsched project`: the read models of a log, which answer `evsched audit` and any SQL."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from events.chain import ChainReader
from events.streams import EventLog
from events.streams.private_files import PLAIN_NAME, make_folder, plain_name
from events.streams.sqlite_file import APPLICATION_ID
from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, say, tell
from evsched.cli.interrupts import heeding
from evsched.cli.logs import HERE, Where, data_directory, log_of, steps_of
from evsched.cli.options import Json
from evsched.cli.past import end_of, meter
from projections.custom import CustomProjection, ProjectionInvalid
from projections.export import exporting
from projections.export.contents import TableFormat
from projections.export.csv_files import CsvFormat
from projections.export.folder import ExportRefused
from projections.following import Follower
from projections.read_model import (
    SCHEMA_VERSION,
    Overtaken,
    ReadModel,
    Rebuild,
    RebuildNeeded,
    place_of,
    remove,
)
from replays.history.moments import format_time
from replays.history.rebuild import History

app = App(
    name="project",
    help="Keep a read model of the log: tables for audits, or a projection of your own.",
)

ID_SHOWN = 120
"""Most letters of a log's id in an error; honest ones are shorter."""
_SQLITE_HEAD = 100
"""Bytes at the beginning of a SQLite file that say whose it is (https://sqlite.org/fileformat.html, "The Database Header")."""

Db = Annotated[
    Path | None,
    Parameter(
        name="--db",
        env_var="EVSCHED_READ_MODEL",
        help="The SQLite file; one for each log in your data directory by default.",
    ),
]
Sql = Annotated[
    Path | None,
    Parameter(name="--sql", help="Folder with the `.sql` files of a projection of your own."),
]


@app.command
async def run(*, where: Where = HERE, db: Db = None, sql: Sql = None) -> None:
    """Keep the read model up to date with the log until Ctrl-C.

    A file that is missing is made first. One of another log or of another version of evsched is
    left alone: rebuild it. When another process writes the file meanwhile, or a rebuild replaces
    it, this one goes on from what is there then.

    **Examples**

    `evsched project run --log kafka://localhost:9092/cluster`

    `evsched project run --sql projections/losses --db losses.db`

    Args:
        where: Which log.
        db: The file.
        sql: A projection of your own.
    """
    async with log_of(where) as log:
        log_id = await _log_id(log)
        path = db or default_path(log_id, sql)
        _spare(path)
        while True:
            try:
                return await _follow(log, log_id, path, sql)
            except Overtaken as error:
                say(f"{error}; going on with what is there now")


async def _follow(log: EventLog, log_id: str, path: Path, sql: Path | None) -> None:
    """Keep one file up to date until a signal says stop; raise `Overtaken` when it is not ours alone."""
    if sql is None and not path.exists():  # noqa: ASYNC240 - before anything runs beside it
        await _rebuild(log, log_id, path)
    projection = _opened(path, log_id, sql)
    try:
        follower = Follower(projection, log)
        reader = await follower.reader()
        await follower.catch_up(reader)
        await _until_told(
            follower, reader, f"{path}: follows {log.name} from event {projection.at.next_seq} on"
        )
        say(f"{path}: stopped after event {projection.at.next_seq - 1}")
    except (RebuildNeeded, sqlite3.Error) as error:
        raise _advice(path, error) from error
    finally:
        projection.close()


async def _until_told(follower: Follower, reader: ChainReader, ready: str) -> None:
    """Keep up until a signal says stop; say that we are ready once one would be heard."""
    following = asyncio.ensure_future(follower.keep_up(reader))
    with heeding(following.cancel), suppress(asyncio.CancelledError):
        say(ready)
        await following


@app.command
async def rebuild(*, where: Where = HERE, db: Db = None, sql: Sql = None) -> None:
    """Make the read model anew from the beginning of the log, and then put it in the place of the old one.

    **Example**

    `evsched project rebuild --log monday.jsonl.zst --db monday.db`

    Args:
        where: Which log.
        db: The file.
        sql: A projection of your own.
    """
    async with log_of(where) as log:
        log_id = await _log_id(log)
        path = db or default_path(log_id, sql)
        _spare(path)
        if sql is None:
            events = await _rebuild(log, log_id, path)
        else:
            events = await _rebuild_own(log, log_id, path, sql)
    say(f"{path}: {events} events")


def _spare(path: Path) -> None:
    """Refuse to write over a file that is no read model: a log above all, which nothing could make again."""
    try:
        with path.open("rb") as file:
            head = file.read(_SQLITE_HEAD)
    except FileNotFoundError:
        return
    if head and not head.startswith(b"SQLite format 3\0"):
        raise CommandError(f"{path}: is no database, expected the file of a read model or none")
    if int.from_bytes(head[68:72]) == APPLICATION_ID:
        raise CommandError(f"{path}: is a log, expected the file of a read model or none")


async def _rebuild(log: EventLog, log_id: str, path: Path) -> int:
    """Make the read model anew; return how many events it holds."""
    # What is made here stays until the end, so looking for garbage finds none.
    gc.disable()
    make_folder(path.parent)
    try:
        return await _rebuild_beside(log, Rebuild(path, log_id))
    except Overtaken as error:
        raise CommandError(f"{error}: is another rebuild under way?") from error
    except sqlite3.Error as error:
        remove(Rebuild.draft_of(path))
        raise CommandError(f"{path}: {error}") from error
    finally:
        gc.enable()


async def _rebuild_beside(log: EventLog, model: Rebuild) -> int:
    try:
        with meter("reading the log", await end_of(log)) as advance:
            async for step in steps_of(log):
                model.take(step)
                advance(step.head.position)
        model.finish()
    finally:
        model.close()
    return model.at.next_seq - 1


async def _rebuild_own(log: EventLog, log_id: str, path: Path, sql: Path) -> int:
    draft = path.with_name(f"{path.name}.rebuild")
    remove(draft)
    projection = _opened(draft, log_id, sql)
    try:
        with meter("reading the log", await end_of(log)) as advance:
            await Follower(projection, log, advance).catch_up(ChainReader())
    except (sqlite3.Error, RebuildNeeded) as error:
        remove(draft)
        raise CommandError(f"projection {sql}: {error}") from error
    except Overtaken as error:
        raise CommandError(f"{error}: is another rebuild under way?") from error
    finally:
        projection.close()
    remove(path)
    draft.replace(path)
    return projection.at.next_seq - 1


@app.command
async def status(*, where: Where = HERE, db: Db = None, json: Json = False) -> int:
    """Show how far the read model is behind the log; exits 1 when it is behind or has to be rebuilt.

    **Example**

    `evsched project status --json`

    Args:
        where: Which log.
        db: The file.
        json: One document.
    """
    async with log_of(where) as log:
        log_id = await _log_id(log)
        path = db or default_path(log_id)
        end = ChainReader()
        async for _ in steps_of(log, end):
            pass
    facts: dict[str, Any] = {
        "file": str(path),
        "log_id": log_id,
        "seq": end.head.next_seq - 1,
        "time": end.head.time,
    }
    try:
        version, found, place = place_of(path)
        facts |= {
            "projected_seq": place.next_seq - 1,
            "projected_time": place.time,
            "behind": end.head.next_seq - place.next_seq,
        }
        if (version, found) != (SCHEMA_VERSION, log_id):
            facts["problem"] = (
                f"schema version {version} of log {found}, expected {SCHEMA_VERSION} of {log_id}"
            )
    except RebuildNeeded as error:
        facts["problem"] = str(error)
    if json:
        emit(facts)
    else:
        for name, value in facts.items():
            tell(
                f"{name.replace('_', ' '):<16} {format_time(value) if name.endswith('time') else value}"
            )
    return NO if facts.get("behind") or "problem" in facts else DONE


@app.command
async def export(
    *,
    where: Where = HERE,
    db: Db = None,
    as_csv: Annotated[Path | None, Parameter(name="--csv")] = None,
    parquet: Path | None = None,
) -> None:
    """Write the events, and every table and view of the read model, as files for other programs.

    The read model must be there; events go as far as it does. What lies in the folder is exchanged when the
    new export is complete, and only where it is an export, too. Parquet needs the extra evsched[parquet].

    **Examples**

    `evsched project export --parquet exported`

    `evsched project export --csv exported --log monday.jsonl.zst --db monday.db`

    Args:
        where: Which log.
        db: The file of the read model.
        as_csv: Folder for comma-separated files.
        parquet: Folder for Parquet files.
    """
    folder = as_csv or parquet
    if folder is None or (as_csv and parquet):
        found = "both" if as_csv else "neither"
        raise CommandError(f"--csv and --parquet: found {found}, expected one of them")
    form = CsvFormat() if as_csv else _parquet()
    async with log_of(where) as log:
        path = db or default_path(await _log_id(log))
        with meter("exporting", await end_of(log)) as told:
            try:
                made = await exporting.export(steps_of(log), path, folder, form, told)
            except RebuildNeeded as error:
                raise _advice(path, error) from error
            except (ExportRefused, OSError, sqlite3.Error) as error:
                raise CommandError(f"{error}") from error
    rows = sum(made.tables.values()) - made.tables[exporting.EVENTS]
    say(f"{folder}: {made.tables[exporting.EVENTS]} events, {rows} rows of tables and views")


def _parquet() -> TableFormat:
    try:
        from projections.export.parquet_files import ParquetFormat  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CommandError(
            f"--parquet: {error.name} is not installed, expected the extra evsched[parquet]"
        ) from error
    return ParquetFormat()


def default_path(log_id: str, sql: Path | None = None) -> Path:
    """Return where the read model of a log is kept when no file is named; a projection of one's own beside it.

    Raises:
        CommandError: The log's id is no name of a file: a stranger chose it.
    """
    name = plain_name(log_id)
    if name is None:
        raise CommandError(
            f"log: found the id {log_id[:ID_SHOWN]!r}, expected {PLAIN_NAME}; name a file with --db"
        )
    suffix = f"-{sql.resolve().name}" if sql is not None else ""
    return data_directory() / "projections" / f"{name}{suffix}.db"


async def _log_id(log: EventLog) -> str:
    found = await History(log).log_id()
    if not found:
        raise CommandError(f"log {log.name}: is empty, expected at least one frame", MISUSE)
    return found


def _opened(path: Path, log_id: str, sql: Path | None) -> ReadModel | CustomProjection:
    make_folder(path.parent)
    try:
        return ReadModel(path, log_id) if sql is None else CustomProjection(sql, path, log_id)
    except (RebuildNeeded, sqlite3.Error) as error:
        raise _advice(path, error) from error
    except ProjectionInvalid as error:
        raise CommandError(str(error)) from error


def _advice(path: Path, error: RebuildNeeded | sqlite3.Error) -> CommandError:
    return CommandError(f"{path}: {error} (make it anew with `evsched project rebuild`)")

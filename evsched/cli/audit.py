"""`evsched audit`: ready questions about the past, answered by the read model."""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from evsched.cli.answers import NO, CommandError, emit, paper, printable, say, tell
from evsched.cli.cells import NOTHING, amounts, counted
from evsched.cli.logs import HERE, Where, log_of
from evsched.cli.options import Json
from evsched.cli.past import MomentText, moment_of
from evsched.cli.project import Db, default_path
from evsched.core.duration import format_duration
from projections import audit as answers
from projections.read_model import SCHEMA_VERSION, RebuildNeeded, place_of
from projections.temporal import OPEN
from replays.history.moments import format_time
from replays.history.rebuild import History

_AMOUNTS = frozenset({"usage", "pending", "resources", "guaranteed", "maximum", "target", "unmet"})
_TIMES = frozenset({"time", "from_time", "to_time", "due", "created", "until"})
_OPTIONS = {"queue": "--queue", "from_seq": "--from", "to_seq": "--to", "seq": "--at", "of": "--of"}


async def audit(  # noqa: PLR0913 - one parameter an option
    question: str | None = None,
    /,
    *,
    where: Where = HERE,
    queue: str | None = None,
    first: Annotated[MomentText, Parameter(name="--from")] = "start",
    end: Annotated[MomentText, Parameter(name="--to")] = "end",
    at: Annotated[MomentText, Parameter(name="--at")] = "end",
    of: Annotated[str, Parameter(name="--of")] = "",
    limit: int = answers.DEFAULT_LIMIT,
    json: Json = False,
    as_csv: Annotated[bool, Parameter(name="--csv", negative=())] = False,
    db: Db = None,
) -> None:
    """Answer a question about the past from the read model; without a question, list them all.

    The read model is made by `evsched project rebuild`, and kept up to date by `evsched project
    run`. Any SQL works on it too.

    **Examples**

    `evsched audit`

    `evsched audit who-preempted --queue root.web --from -1h`

    `evsched audit queues-at --at 2026-11-20T14:03:00Z --csv`

    Args:
        question: Its name.
        where: Which log.
        queue: Only this queue and those below it; exits 1 when there never was one of this name.
        first: From this moment on: a seq, a time, or time before the end of the read model (-15m).
        end: Up to this moment, which is not included.
        at: As of this moment.
        of: Id of an ask or allocation.
        limit: Most rows.
        json: One document a row, amounts in base units, times in milliseconds.
        as_csv: Comma-separated, the same values.
        db: The file of the read model.
    """
    if question is None:
        _list(json=json)
        return
    if question not in answers.questions():
        raise CommandError(
            f"question {question}: unknown, expected one of {', '.join(answers.questions())}"
        )
    _check_narrowing(
        question,
        {
            "queue": queue is not None,
            "from_seq": first != "start",
            "to_seq": end != "end",
            "seq": at != "end",
            "of": bool(of),
        },
    )
    if not 1 <= limit < answers.FOREVER:
        raise CommandError(f"--limit: found {limit}, expected 1 to {answers.FOREVER - 1}")
    if json and as_csv:
        raise CommandError("--json and --csv: found both, expected one of them")
    path = db or await _path_of(where)
    try:
        version, _, _ = place_of(path)
        if version != SCHEMA_VERSION:
            raise CommandError(
                f"read model {path}: has schema version {version}, expected {SCHEMA_VERSION}: rebuild it"
            )
        with closing(answers.connect(path)) as connection:
            scope = answers.Scope(
                queue=queue,
                first=_first(connection, first),
                end=answers.FOREVER if end == "end" else _first(connection, end),
                seq=_last(connection, at),
                of=of,
                limit=limit,
            )
            if scope.first > scope.end:
                raise CommandError(f"--from {first}: comes after --to {end}")
            if queue is not None and not answers.has_queue(connection, queue):
                raise CommandError(f"queue {queue}: never was in this log", NO)
            answer = answers.ask_connected(connection, question, scope)
    except RebuildNeeded as error:
        raise CommandError(f"{error} (make it with `evsched project rebuild`)") from error
    except sqlite3.Error as error:
        raise CommandError(f"read model {path}: {error}") from error
    _show(answer, json=json, as_csv=as_csv)


def _check_narrowing(question: str, given: dict[str, bool]) -> None:
    """Refuse what a question does not look at: whoever narrows by it would take the answer for narrowed."""
    takes = answers.questions()[question].takes
    if "of" in takes and not given["of"]:
        raise CommandError(
            f"question {question}: expected --of with the id of an ask or allocation"
        )
    for name, is_given in given.items():
        if is_given and name not in takes:
            expected = ", ".join(option for each, option in _OPTIONS.items() if each in takes)
            raise CommandError(
                f"question {question}: found {_OPTIONS[name]}, expected any of {expected}"
            )


async def _path_of(where: Where) -> Path:
    """Return the file of the read model of a log."""
    async with log_of(where) as log:
        return default_path(await History(log).log_id())


def _first(connection: sqlite3.Connection, text: str) -> int:
    """Return the first event at or after a moment."""
    moment = moment_of(text)
    if moment.seq is not None:
        return moment.seq
    if moment.is_end:
        return answers.FOREVER
    time = (
        moment.time
        if moment.time is not None
        else answers.end_time(connection) - (moment.before_end_ms or 0)
    )
    return answers.last_before(connection, time) + 1


def _last(connection: sqlite3.Connection, text: str) -> int | None:
    """Return the last event that happened by a moment; None: the end."""
    moment = moment_of(text)
    if moment.is_end or moment.seq is not None:
        return moment.seq
    time = (
        moment.time
        if moment.time is not None
        else answers.end_time(connection) - (moment.before_end_ms or 0)
    )
    return answers.last_before(connection, time + 1)


def _list(*, json: bool) -> None:
    for one in answers.questions().values():
        if json:
            emit(one)
            continue
        options = " ".join(option for name, option in _OPTIONS.items() if name in one.takes)
        for line in (f"{one.name}  {options}", f"  {one.sentence}", f"  {', '.join(one.columns)}"):
            tell(line)
        tell()


def _show(answer: answers.Answer, *, json: bool, as_csv: bool) -> None:
    columns = list(answer.question.columns)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_entry(value) for value in row] for row in answer.rows)
    elif json:
        for row in answer.rows:
            emit(
                {
                    name: _decoded(name, _raw(value))
                    for name, value in zip(columns, row, strict=True)
                }
            )
    elif answer.rows:
        from rich.text import Text  # noqa: PLC0415

        from evsched.cli.consoles import PlainTable  # noqa: PLC0415 - costs time that --json need not pay

        made = PlainTable(show_edge=False, pad_edge=False)
        for name in columns:
            numbers = (
                all(isinstance(row[columns.index(name)], int) for row in answer.rows)
                and name not in _TIMES
            )
            made.add_column(
                name.removesuffix("_ms").replace("_", " "),
                justify="right" if numbers else "left",
                overflow="fold",
            )
        for row in answer.rows:
            made.add_row(
                *(Text(_cell(name, value)) for name, value in zip(columns, row, strict=True))
            )
        paper().print(made)
    more = ", there are more: raise --limit" if answer.cut else ""
    say(f"{answer.question.sentence} {counted(len(answer.rows), 'rows')}{more}")


def _entry(value: Any) -> Any:
    """Return an entry of CSV, whose texts cannot speak to a terminal either; --json keeps every letter."""
    found = _raw(value)
    return printable(found) if isinstance(found, str) else found


def _raw(value: Any) -> Any:
    return None if value == OPEN else value


def _decoded(name: str, value: Any) -> Any:
    return msgspec.json.decode(value) if name in _AMOUNTS and value else value


def _cell(name: str, value: Any) -> str:
    """Return a value as a person reads it."""
    if value is None or value in {"", OPEN}:
        return NOTHING
    if name in _TIMES:
        return format_time(value)
    if name.endswith("_ms"):
        return format_duration(value)
    if name in _AMOUNTS:
        return amounts(msgspec.json.decode(value, type=dict[str, int]))
    return str(value)

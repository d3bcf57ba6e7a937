"""`evsched audit`: ready questions about the past, answered by the read model."""

from __future__ import annotations

import csv
import sqlite3
import sys
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
from projections.audit import questions
from projections.read_model import RebuildNeeded
from projections.temporal import OPEN
from replays.history.audit import LIMIT, AuditAnswer, AuditQuestion, AuditRefused, check
from replays.history.audit import audit as ask
from replays.history.moments import format_time
from replays.history.rebuild import History

_AMOUNTS = frozenset(
    {
        "usage",
        "pending",
        "resources",
        "guaranteed",
        "maximum",
        "target",
        "unmet",
        "nominal",
        "borrowing_limit",
        "lending_limit",
        "quota",
    }
)
_TIMES = frozenset(
    {"time", "from_time", "to_time", "due", "created", "until", "first_time", "last_time"}
)
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
    limit: int = LIMIT,
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
    if json and as_csv:
        raise CommandError("--json and --csv: found both, expected one of them")
    asked = AuditQuestion(
        name=question,
        queue=queue,
        first=moment_of(first),
        end=moment_of(end),
        moment=moment_of(at),
        of=of,
        limit=limit,
    )
    try:
        check(asked)
        path = db or await _path_of(where)
        answer = ask(path, asked)
    except AuditRefused as refused:
        raise _refusal(refused, asked, (first, end)) from refused
    except RebuildNeeded as error:
        raise CommandError(f"{error} (make it with `evsched project rebuild`)") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CommandError(f"read model {path}: {error}") from error
    _show(answer, json=json, as_csv=as_csv)


def _refusal(refused: AuditRefused, asked: AuditQuestion, window: tuple[str, str]) -> CommandError:
    """Return what is wrong with a question, in the words of the options."""
    options = ", ".join(_OPTIONS.get(name, name) for name in refused.expected)
    match refused.code:
        case "unknown":
            return CommandError(f"question {asked.name}: unknown, expected one of {options}")
        case "not-narrowed":
            message = "expected --of with the id of an ask or allocation"
            return CommandError(f"question {asked.name}: {message}")
        case "not-taken":
            found = _OPTIONS[refused.field]
            return CommandError(f"question {asked.name}: found {found}, expected any of {options}")
        case "limit":
            least, most = refused.expected
            return CommandError(f"--limit: found {asked.limit}, expected {least} to {most}")
        case "reversed":
            return CommandError(f"--from {window[0]}: comes after --to {window[1]}")
        case _:
            return CommandError(f"queue {asked.queue}: never was in this log", NO)


async def _path_of(where: Where) -> Path:
    """Return the file of the read model of a log."""
    async with log_of(where) as log:
        return default_path(await History(log).log_id())


def _list(*, json: bool) -> None:
    for one in questions().values():
        if json:
            emit(one)
            continue
        options = " ".join(option for name, option in _OPTIONS.items() if name in one.takes)
        for line in (f"{one.name}  {options}", f"  {one.sentence}", f"  {', '.join(one.columns)}"):
            tell(line)
        tell()


def _show(answer: AuditAnswer, *, json: bool, as_csv: bool) -> None:
    columns = list(answer.columns)
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
        from evsched.cli.tables import PlainTable  # noqa: PLC0415 - costs time that --json need not pay

        made = PlainTable()
        for name in columns:
            numbers = (
                all(isinstance(row[columns.index(name)], int) for row in answer.rows)
                and name not in _TIMES
            )
            made.add_column(
                name.removesuffix("_ms").replace("_", " "),
                justify="right" if numbers else "left",
            )
        for row in answer.rows:
            made.add_row(*(_cell(name, value) for name, value in zip(columns, row, strict=True)))
        paper().table(made)
    more = ", there are more: raise --limit" if answer.cut else ""
    say(f"{answer.sentence} {counted(len(answer.rows), 'rows')}{more}")


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

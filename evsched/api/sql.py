"""SQL of one's own over the read model: it can only read, and only so long and so much."""

from __future__ import annotations

import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from evsched.api.problems import ApiProblem, in_body
from projections import audit

SQL_S = 5.0
"""How long a statement may take."""

SQL_ROWS = 10_000
SQL_BYTES = 8_000_000
"""Most rows of an answer, and about how much they may hold."""

LARGEST_VALUE = 1_000_000
"""Bytes of one value: a statement may make one as large as it likes otherwise."""

_LOOK_EVERY = 10_000
_READS = frozenset({
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
})  # fmt: skip
_FORBIDDEN = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_HIDDEN = frozenset({"kept_state"})
"""Tables that are of no use to a reader."""


class SqlAnswer(Struct, frozen=True, kw_only=True):
    """What a statement came to.

    Attributes:
        columns: Names, in the order of the values.
        cut: Whether there may be more rows.
        seq: Of the last event in the read model.
    """

    columns: list[str]
    rows: list[list[Any]]
    cut: bool
    seq: int


def run_sql(path: Path, sql: str, limit: int) -> SqlAnswer:
    """Run one statement that reads; raise `ApiProblem` for any other, and for one that is wrong or takes too long."""
    end = time.monotonic() + SQL_S
    with closing(audit.connect(path)) as connection:
        connection.execute("BEGIN")  # position and rows are of one moment
        seq = int(connection.execute("SELECT seq FROM position").fetchone()[0])
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_may)
        connection.set_progress_handler(lambda: time.monotonic() > end, _LOOK_EVERY)
        try:
            found = connection.execute(sql)
            rows, cut = _taken(found, limit)
        except sqlite3.OperationalError as error:
            if time.monotonic() > end:
                detail = f"sql: took longer than {SQL_S:.0f} s"
                raise ApiProblem("timed-out", detail, in_body("sql")) from error
            raise _wrong(error) from error
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise _wrong(error) from error
        columns = [one[0] for one in found.description or ()]
    return SqlAnswer(columns=columns, rows=rows, cut=cut, seq=seq)


def _wrong(error: Exception) -> ApiProblem:
    return ApiProblem("body-invalid", f"sql: {error}", in_body("sql"))


def _taken(found: sqlite3.Cursor, limit: int) -> tuple[list[list[Any]], bool]:
    """Return the rows that are sent, and whether there are more."""
    rows: list[list[Any]] = []
    size = 0
    for row in found:
        if len(rows) == limit or size > SQL_BYTES:
            return rows, True
        rows.append([_plain(value) for value in row])
        size += sum(len(value) if isinstance(value, str) else 8 for value in rows[-1])
    return rows, False


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes as hexadecimal digits, and null for a number that JSON has not."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _may(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Let a statement read tables and call functions, and do nothing else."""
    if action not in _READS or (action == sqlite3.SQLITE_READ and first in _HIDDEN):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK

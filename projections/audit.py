"""Ready audit questions: named queries over the read model, each with its sentence and the meaning of its columns."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import aiosql
from msgspec import Struct

_FILE = Path(__file__).parent / "sql" / "audit.sql"
_queries = aiosql.from_path(_FILE, "sqlite3")
_HEAD = re.compile(r"-- name: (\w+)\(")
_COLUMN = re.compile(r"-- (\w+): (.+)")

DEFAULT_LIMIT = 1000


class Question(Struct, frozen=True, kw_only=True):
    """One audit question.

    Attributes:
        name: As it is typed, with hyphens.
        sentence: What it answers.
        columns: Column to meaning, in order.
    """

    name: str
    sentence: str
    columns: dict[str, str]


class Answer(Struct, frozen=True, kw_only=True):
    """Rows that answer a question. ``cut`` is True when there may be more than ``limit`` of them."""

    question: Question
    rows: list[tuple[Any, ...]]
    cut: bool


def questions() -> dict[str, Question]:
    """Return all questions by name, in the order of the file."""
    found: dict[str, Question] = {}
    name, sentence, columns = "", "", {}
    for line in [*_FILE.read_text(encoding="utf-8").splitlines(), "-- name: end("]:
        head = _HEAD.match(line)
        if head:
            if name:
                found[name] = Question(name=name, sentence=sentence, columns=columns)
            name, sentence, columns = head[1].replace("_", "-"), "", {}
        elif name and (column := _COLUMN.match(line)):
            columns[column[1]] = column[2]
        elif name and line.startswith("-- ") and not sentence:
            sentence = line[3:]
    return found


def ask(  # noqa: PLR0913 - what every question takes
    path: Path | str, name: str, *, queue: str | None = None, from_time: int = 0, to_time: int = 2**62, limit: int = DEFAULT_LIMIT
) -> Answer:
    """Answer a question from the file at ``path``, opened for reading only.

    Args:
        path: Of the read model.
        name: Of the question; raises KeyError when there is none of this name.
        queue: Only this queue and those below it; None: all.
        from_time: Milliseconds, included.
        to_time: Milliseconds, excluded.
        limit: Most rows.
    """
    question = questions()[name]
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    try:
        query = getattr(_queries, name.replace("-", "_"))
        rows = list(query(connection, queue=queue, from_time=from_time, to_time=to_time, limit=limit + 1))
    finally:
        connection.close()
    return Answer(question=question, rows=rows[:limit], cut=len(rows) > limit)

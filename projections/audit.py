"""Ready audit questions: named queries over the read model, each with its sentence and the meaning of its columns."""

from __future__ import annotations

import inspect
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import aiosql
from msgspec import Struct

from projections import rows

_FILE = Path(__file__).parent / "sql" / "audit.sql"
_LEAF = "_leaf"
_CURSOR = "_cursor"
"""The end of the names that aiosql adds."""
_NARROWS = ("queue", "from_seq", "to_seq", "seq", "of", "limit")
"""Parameters that whoever asks may set; the others are settings of the tables."""

DEFAULT_LIMIT = 1000
FOREVER = 2**62

MAPPED_BYTES = 2**32
"""How much of a file is mapped into memory by whoever reads it: each question is a connection of its own, with nothing cached."""


class Question(Struct, frozen=True, kw_only=True):
    """One audit question.

    Attributes:
        name: As it is typed, with hyphens.
        sentence: What it answers.
        columns: Column to meaning, in order.
        takes: What it can be narrowed by: ``queue``, a window (``from_seq``, ``to_seq``), a moment
            (``seq``), ``of``.
    """

    name: str
    sentence: str
    columns: dict[str, str]
    takes: tuple[str, ...]


class Answer(Struct, frozen=True, kw_only=True):
    """Rows that answer a question. ``cut`` is True when there may be more than ``limit`` of them."""

    question: Question
    rows: list[tuple[Any, ...]]
    cut: bool


class Scope(Struct, frozen=True, kw_only=True):
    """What a question is narrowed to; each question uses what it takes.

    Attributes:
        queue: Only this queue and those below it; None: all.
        first: The first event of the window.
        end: The first event behind it.
        seq: After this event; None: at the end.
        of: Id of an ask or allocation.
        limit: Most rows.
    """

    queue: str | None = None
    first: int = 0
    end: int = FOREVER
    seq: int | None = None
    of: str = ""
    limit: int = DEFAULT_LIMIT


EVERYTHING = Scope()


@cache
def _statements() -> dict[str, Any]:
    """Return every statement of the file by name, in the order of the file: as aiosql has it, with SQL, text and signature."""
    loaded = aiosql.from_path(_FILE, "sqlite3")
    return {
        name: statement
        for name, statement in vars(loaded).items()
        if name in loaded.available_queries and not name.endswith(_CURSOR)
    }


@cache
def questions() -> dict[str, Question]:
    """Return all questions by name, in the order of the file."""
    found: dict[str, Question] = {}
    for name, statement in _statements().items():
        if name.endswith(_LEAF):
            continue
        sentence, *meanings = (statement.__doc__ or "").splitlines()
        parameters = inspect.signature(statement).parameters
        typed = name.replace("_", "-")
        found[typed] = Question(
            name=typed,
            sentence=sentence,
            columns=dict(meaning.split(": ", 1) for meaning in meanings),
            takes=tuple(one for one in _NARROWS if one in parameters),
        )
    return found


def connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection that can only read the file at ``path``."""
    found = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    found.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    return found


def ask(path: Path | str, name: str, scope: Scope = EVERYTHING) -> Answer:
    """Answer a question from the file at ``path``; raises KeyError when there is no question of this name."""
    with closing(connect(path)) as connection:
        return ask_connected(connection, name, scope)


def ask_connected(connection: sqlite3.Connection, name: str, scope: Scope = EVERYTHING) -> Answer:
    """Do as `ask` does, over a connection that is there."""
    question = questions()[name]
    sql = _statements()[_variant(connection, name.replace("-", "_"), scope.queue)].sql
    parameters = {
        "queue": scope.queue,
        "from_seq": scope.first,
        "to_seq": scope.end,
        "seq": FOREVER if scope.seq is None else scope.seq,
        "of": scope.of,
        "bucket": rows.BUCKET,
        "wide": rows.WIDE,
        "earliest": rows.EARLIEST,
        "limit": scope.limit + 1,
    }
    found = connection.execute(sql, parameters).fetchall()
    return Answer(question=question, rows=found[: scope.limit], cut=len(found) > scope.limit)


def _variant(connection: sqlite3.Connection, name: str, queue: str | None) -> str:
    """Return the statement that answers a question: a quicker one about a single leaf where there is one."""
    if queue is None or name + _LEAF not in _statements():
        return name
    leaf = connection.execute("SELECT min(leaf) FROM queues WHERE queue = ?", (queue,)).fetchone()[
        0
    ]
    return name + _LEAF if leaf == 1 else name


def has_queue(connection: sqlite3.Connection, queue: str) -> bool:
    """Tell whether there ever was a queue of this name."""
    return (
        connection.execute("SELECT 1 FROM queues WHERE queue = ? LIMIT 1", (queue,)).fetchone()
        is not None
    )


def last_before(connection: sqlite3.Connection, time: int) -> int:
    """Return the ``seq`` of the last event before a time (milliseconds); 0 when there is none."""
    sql = "SELECT seq FROM frames WHERE time < ? ORDER BY time DESC, seq DESC LIMIT 1"
    found = connection.execute(sql, (time,)).fetchone()
    return int(found[0]) if found is not None else 0


def end_time(connection: sqlite3.Connection) -> int:
    """Return the time up to which the read model goes, milliseconds."""
    return int(connection.execute("SELECT time FROM position").fetchone()[0])

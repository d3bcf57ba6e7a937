"""Ready questions about the past, answered by a read model: the question of `evsched audit`.

`projections.audit` holds the questions and their SQL; this is where moments become places in the
read model, and where a question that makes no sense is refused.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from events.configuration import Configuration
from evsched.config.difference import describe
from projections import audit as ready
from projections.read_model import SCHEMA_VERSION, RebuildNeeded, place_of
from replays.history.moments import END, START, Moment

LIMIT = ready.DEFAULT_LIMIT

DIFFERENCE = "difference"
"""The column whose values come from the read model as two configurations, and leave as words."""


class AuditQuestion(Struct, frozen=True, kw_only=True):
    """One of the ready questions, and what it is narrowed to.

    Attributes:
        name: Of the question, a key of `projections.audit.questions`.
        queue: Only this queue and those below it; None: all.
        first: From this moment on; time before the end counts from the end of the read model.
        end: Up to this moment, which is not included.
        moment: As of this moment.
        of: Id of an ask or allocation.
        limit: Most rows.
    """

    name: str
    queue: str | None = None
    first: Moment = START
    end: Moment = END
    moment: Moment = END
    of: str = ""
    limit: int = LIMIT

    def given(self) -> dict[str, bool]:
        """Return what it is narrowed by, by the name that a ready question has for it."""
        return {
            "queue": self.queue is not None,
            "from_seq": self.first != START,
            "to_seq": self.end != END,
            "seq": self.moment != END,
            "of": bool(self.of),
        }


class AuditAnswer(Struct, frozen=True, kw_only=True):
    """Rows that answer a question.

    Attributes:
        sentence: What the question asks.
        columns: Column to meaning, in the order of the rows.
        rows: Values as SQLite has them; amounts are JSON, an open end is `projections.temporal.OPEN`.
        cut: Whether there may be more rows than the limit.
    """

    sentence: str
    columns: dict[str, str]
    rows: list[tuple[Any, ...]]
    cut: bool


class AuditRefused(Exception):
    """The question makes no sense.

    Attributes:
        code: ``unknown``, ``not-narrowed`` (it needs ``field``), ``not-taken`` (it does not look at
            ``field``), ``limit``, ``reversed`` (the window ends before it begins), ``no-queue``.
        field: Of the question; empty where none is at fault.
        expected: What would have been taken.
    """

    def __init__(self, code: str, field: str = "", expected: tuple[str, ...] = ()) -> None:
        self.code, self.field, self.expected = code, field, expected
        super().__init__(f"{code}: {field} (expected {', '.join(expected)})")


def check(question: AuditQuestion) -> None:
    """Refuse what a ready question does not look at: the answer would be taken for narrowed.

    Raises:
        AuditRefused: It is unknown, lacks something or has too much.
    """
    if question.name not in ready.questions():
        raise AuditRefused("unknown", "name", tuple(ready.questions()))
    takes = ready.questions()[question.name].takes
    given = question.given()
    if "of" in takes and not given["of"]:
        raise AuditRefused("not-narrowed", "of")
    for name, is_given in given.items():
        if is_given and name not in takes:
            raise AuditRefused("not-taken", name, tuple(one for one in given if one in takes))
    if not 1 <= question.limit < ready.FOREVER:
        raise AuditRefused("limit", "limit", ("1", str(ready.FOREVER - 1)))


def audit(path: Path, question: AuditQuestion) -> AuditAnswer:
    """Answer a question from the read model at ``path``, which is only read.

    Raises:
        AuditRefused: See there.
        RebuildNeeded: The file is no read model, or one of another version.
        sqlite3.Error: It cannot be read.
    """
    check(question)
    version, _, _ = place_of(path)
    if version != SCHEMA_VERSION:
        message = f"read model {path}: has schema version {version}, expected {SCHEMA_VERSION}: rebuild it"
        raise RebuildNeeded(message)
    with closing(ready.connect(path)) as connection:
        scope = ready.Scope(
            queue=question.queue,
            first=_first(connection, question.first),
            end=_first(connection, question.end),
            seq=_last(connection, question.moment),
            of=question.of,
            limit=question.limit,
        )
        if scope.first > scope.end:
            raise AuditRefused("reversed", "from_seq")
        if question.queue is not None and not ready.has_queue(connection, question.queue):
            raise AuditRefused("no-queue", "queue")
        found = ready.ask_connected(connection, question.name, scope)
    columns = found.question.columns
    return AuditAnswer(
        sentence=found.question.sentence,
        columns=columns,
        rows=_compared(found.rows, list(columns)),
        cut=found.cut,
    )


def _time(connection: sqlite3.Connection, moment: Moment) -> int:
    if moment.time is not None:
        return moment.time
    return ready.end_time(connection) - (moment.before_end_ms or 0)


def _first(connection: sqlite3.Connection, moment: Moment) -> int:
    """Return the first event at or after a moment."""
    if moment.seq is not None:
        return moment.seq
    if moment.is_end:
        return ready.FOREVER
    return ready.last_before(connection, _time(connection, moment)) + 1


def _last(connection: sqlite3.Connection, moment: Moment) -> int | None:
    """Return the last event that happened by a moment; None: the end."""
    if moment.is_end or moment.seq is not None:
        return moment.seq
    return ready.last_before(connection, _time(connection, moment) + 1)


def _compared(rows: list[tuple[Any, ...]], columns: list[str]) -> list[tuple[Any, ...]]:
    """Return rows in which a pair of configurations has become what the second one changed."""
    if DIFFERENCE not in columns:
        return rows
    place = columns.index(DIFFERENCE)
    return [(*row[:place], _difference(row[place]), *row[place + 1 :]) for row in rows]


def _difference(pair: str) -> str:
    """Return what one configuration changes of another, given as JSON texts; empty for the first."""
    before, after = msgspec.json.decode(pair, type=tuple[str | None, str])
    if before is None:
        return ""
    old, new = (msgspec.json.decode(one, type=Configuration) for one in (before, after))
    return "; ".join(describe(old, new).sentences())

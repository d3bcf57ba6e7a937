"""What became of applications: what the state at a moment no longer holds, from the read model.

A state knows what waits and runs. When an application began to do so, what it used so far, and which
ones ended lately, is in the tables. Every answer is one as of a ``seq``, like those of
`projections.asof`.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

_queries = aiosql.from_path(Path(__file__).parent / "sql" / "lives.sql", "sqlite3")

MOST = 10_000
"""How many ended applications are looked at, the latest ones."""

MINUTE = 60_000

Used = dict[str | None, dict[str, int]]
"""Node (None where admission is by quota alone) to resource to amount-milliseconds."""


class Life(Struct, frozen=True, kw_only=True):
    """One application's past; times in milliseconds.

    Attributes:
        queue, user, groups: Of one that ended, as far as they were kept.
        submitted: None: unknown.
        asked: When its first ask came; None: it never asked.
        started: When its first allocation began; None: it never ran.
        ended: When it ended; None: it has not.
        rejected: It was refused, for this ``reason``.
        used: By what runs and ran, up to the moment.
        preempted: The part of it by what was preempted.
    """

    application: str
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    submitted: int | None = None
    asked: int | None = None
    started: int | None = None
    ended: int | None = None
    rejected: bool = False
    reason: str = ""
    used: Used = {}
    preempted: Used = {}


class Lives:
    """The pasts of some applications, and what was said of their asks."""

    def __init__(self, lives: dict[str, Life], said: dict[str, list[tuple[str, int, int]]]) -> None:
        """Take what was found; said is (reason, time, seq) by ask."""
        self._lives = lives
        self._said = said

    def of(self, application: str) -> Life:
        """Return the past of an application; an empty one for one that has none."""
        return self._lives.get(application) or Life(application=application)

    def said(self, ask: str, since: int) -> list[tuple[str, int, int]]:
        """Return why an ask could not preempt, from ``seq`` since on: reason, last time, how often; by time and reason."""
        found: dict[str, list[int]] = {}
        for reason, time, seq in self._said.get(ask, ()):
            if seq >= since:
                times = found.setdefault(reason, [time, 0])
                times[0], times[1] = time, times[1] + 1
        return sorted(
            ((reason, last, count) for reason, (last, count) in found.items()),
            key=lambda one: (one[1], one[0]),
        )


def lives_of(
    connection: sqlite3.Connection,
    seq: int,
    applications: Iterable[tuple[str, int]],
    asks: Iterable[str] = (),
) -> Lives:
    """Return the pasts of applications that have not ended.

    Args:
        connection: To a read model that is complete up to ``seq``.
        seq: The last event to be counted in.
        applications: Each with the ``seq`` of the event that brought it in.
        asks: Those of which it is wanted why they could not preempt.
    """
    lives = {
        life.application: life
        for life in _lives(
            connection, seq, [(name, began, seq, {}) for name, began in applications]
        )
    }
    said: dict[str, list[tuple[str, int, int]]] = {}
    names = _text(list(asks))
    for ask, reason, time, at in _queries.said(connection, seq=seq, asks=names):
        said.setdefault(ask, []).append((reason, time, at))
    return Lives(lives, said)


def ended_since(
    connection: sqlite3.Connection, seq: int, since: int, application: str | None = None
) -> list[Life]:
    """Return the applications that completed after a time (milliseconds), the latest first, `MOST` at most.

    With an ``application`` those of this id alone.
    """
    wanted = [
        (name, began, last, {"queue": queue, "user": user, "submitted": created, "ended": ended})
        for name, queue, user, created, ended, last, began in _queries.ended(
            connection, seq=seq, since=since, most=MOST, application=application
        )
    ]
    return _lives(connection, seq, wanted)


def rejected_since(connection: sqlite3.Connection, seq: int, since: int) -> list[Life]:
    """Return the applications that were refused after a time (milliseconds), the latest first, `MOST` at most."""
    found = []
    for time, reason, text in _queries.rejected(connection, seq=seq, since=since, most=MOST):
        asked = msgspec.json.decode(text)
        found.append(
            Life(
                application=asked["application"],
                queue=asked.get("queue", ""),
                user=asked.get("user", "nobody"),
                groups=tuple(asked.get("groups", ())),
                submitted=time,
                ended=time,
                rejected=True,
                reason=reason,
            )
        )
    return found


def over_since(connection: sqlite3.Connection, seq: int, since: int) -> tuple[int, int]:
    """Return how many applications completed after a time (milliseconds), and how many were refused."""
    return (
        int(_queries.ended_number(connection, seq=seq, since=since)),
        int(_queries.rejected_number(connection, seq=seq, since=since)),
    )


class Subject(Struct, frozen=True):
    """What an event is about that names an ask or an allocation alone; ``resources`` is JSON."""

    application: str
    resources: dict[str, int]
    node: str = ""


def subjects(connection: sqlite3.Connection, seq: int, names: Iterable[str]) -> dict[str, Subject]:
    """Return the asks and allocations of these ids, of the latest with each id up to ``seq``."""
    found = _queries.subjects(
        connection, seq=seq, names=_text(sorted({name for name in names if name}))
    )
    return {
        name: Subject(application, msgspec.json.decode(resources, type=dict[str, int]), node)
        for name, application, resources, node in found
    }


def per_minute(
    connection: sqlite3.Connection, seq: int, since: int, until: int
) -> list[tuple[int, int, int]]:
    """Return how many applications and allocations there were at each full minute after ``since`` up to ``until``.

    Args:
        connection: To a read model that is complete up to ``seq``.
        seq: The last event to be counted in.
        since: Minutes up to it are left out; milliseconds.
        until: The last minute wanted ends by it; milliseconds.

    Returns:
        (milliseconds, applications, allocations) each, oldest first; none before the log began.
    """
    first = max(since, int(_queries.began(connection)) - 1) // MINUTE + 1
    last = until // MINUTE
    counts = []
    for table in ("applications", "allocations"):
        change = dict.fromkeys(range(first, last + 1), 0)
        for sign, what in ((1, "begun"), (-1, "over")):
            for minute, count in getattr(_queries, f"{table}_{what}")(
                connection, seq=seq, first=first
            ):
                if minute in change:
                    change[minute] += sign * count
        counts.append(list(accumulate(change.values())))
    return [
        (minute * MINUTE, applications, allocations)
        for minute, applications, allocations in zip(range(first, last + 1), *counts, strict=True)
    ]


def began(connection: sqlite3.Connection) -> int:
    """Return when the log began, milliseconds; 0 for an empty one."""
    return int(_queries.began(connection))


def first_configured(connection: sqlite3.Connection) -> int:
    """Return when the first configuration was applied, milliseconds; 0 when none was."""
    return int(_queries.first_configured(connection))


def _lives(
    connection: sqlite3.Connection, seq: int, wanted: list[tuple[str, int, int, dict[str, Any]]]
) -> list[Life]:
    """Return lives in the order in which they are ``wanted``: id, first and last ``seq``, and what is known already."""
    keys = _text([[name, first, last] for name, first, last, _ in wanted])
    time = int(_queries.time_of(connection, seq=seq))
    asked = {
        (name, first): when for name, first, when in _queries.asked(connection, applications=keys)
    }
    started: dict[tuple[str, int], int] = {}
    used: dict[tuple[str, int], Used] = {}
    preempted: dict[tuple[str, int], Used] = {}
    rows = _queries.used(connection, seq=seq, time=time, applications=keys)
    for name, since, node, text, for_ms, first, gone in rows:
        key = (name, since)
        started[key] = min(first, started.get(key, first))
        amounts = msgspec.json.decode(text, type=dict[str, int])
        for into in (used, preempted) if gone else (used,):
            sums = into.setdefault(key, {}).setdefault(node, {})
            for resource, amount in amounts.items():
                sums[resource] = sums.get(resource, 0) + amount * for_ms
    return [
        Life(
            application=name,
            asked=asked.get((name, first)),
            started=started.get((name, first)),
            used=used.get((name, first), {}),
            preempted=preempted.get((name, first), {}),
            **known,
        )
        for name, first, _, known in wanted
    ]


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()

"""Temporal tables: rows that hold from one ``seq`` to another.

What holds now is kept in memory by its key. A row that comes and goes between two flushes is
written once, complete; one that holds across a flush is written open and closed later by its id. So
the cost of a change is one row, whatever the size of the table. Ids are given when rows are
written, so that every row goes to the end of its table.

What holds at one moment is found without looking at what ended before it, or began later: a row of a
*forked* table lies at one place of a binary tree over all ``seq`` (the relational interval tree of
Kriegel, Pötke and Seidl, 2000), and only rows at some twenty places can hold at a moment (`places`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping

OPEN = 2**63 - 1
"""``to_seq`` and ``to_time`` of a row that still holds."""

KEY = 5
"""Where the values of a row begin, the key first."""


def fork(from_seq: int, to_seq: int) -> int:
    """Return where a row lies that holds from one ``seq`` up to another: among them the one that most powers of 2 divide.

    One that still holds (`OPEN`) lies at `OPEN`.
    """
    if to_seq == OPEN:
        return OPEN
    last = to_seq - 1
    level = ((from_seq - 1) ^ last).bit_length() - 1
    return (last >> level) << level


def places(seq: int, end: int) -> list[int]:
    """Return where rows can lie that hold after event ``seq``, in a read model that goes to event ``end``."""
    levels = range(end.bit_length())
    return [((seq >> level + 1) << level + 1) + (1 << level) for level in levels] + [OPEN]


class Temporal:
    """One temporal table whose first value column is its key.

    Attributes:
        open: Key to the row that holds now: [id, from_seq, from_time, to_seq, to_time, *values];
            the id is 0 before the row is written.
    """

    def __init__(self, table: str, columns: Iterable[str], *, forked: bool = False) -> None:
        """Take the name of the table and its value columns, the key first; ``forked``: rows say where they fork."""
        self.table = table
        self.columns = tuple(columns)
        self.open: dict[str, list[Any]] = {}
        self._fresh: dict[str, list[Any]] = {}
        self._closed: list[list[Any]] = []
        self._ends: list[tuple[Any, ...]] = []
        self._next_id = 1
        self._forked = forked
        names = ("id", "from_seq", "from_time", "to_seq", "to_time", *self.columns)
        if forked:
            names = (*names, "fork")
        marks = ", ".join("?" * len(names))
        self._insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of ours
        self._has_outcome = "outcome" in self.columns
        ends = ("to_seq", "to_time", *("outcome",) * self._has_outcome, *("fork",) * forked)
        self._end = f"UPDATE {table} SET {' = ?, '.join(ends)} = ? WHERE id = ?"  # noqa: S608

    def load(self, connection: sqlite3.Connection) -> None:
        """Take up what the table holds: its open rows, and the next free id."""
        found = connection.execute(f"SELECT coalesce(max(id), 0) FROM {self.table}").fetchone()  # noqa: S608
        self._next_id = found[0] + 1
        names = ", ".join(self.columns)
        rows = connection.execute(
            f"SELECT id, from_seq, from_time, to_seq, to_time, {names} FROM {self.table} WHERE to_seq = ?",  # noqa: S608
            (OPEN,),
        )
        self.open = {row[KEY]: list(row) for row in rows}
        self._fresh.clear()
        self._closed.clear()
        self._ends.clear()

    def put(self, seq: int, time: int, *values: Any) -> None:
        """Let a row with these values hold from here on; the one with the same key ends here."""
        key = values[0]
        if key in self.open:
            self.end(seq, time, key)
        self.open[key] = self._fresh[key] = [0, seq, time, OPEN, OPEN, *values]

    def end(self, seq: int, time: int, key: str, outcome: str = "") -> None:
        """End the row of a key; ``outcome`` fills the last column of tables that have one."""
        row = self.open.pop(key)
        if row[0]:
            self._ends.append((
                seq, time, *(outcome,) * self._has_outcome, *(fork(row[1], seq),) * self._forked, row[0],
            ))  # fmt: skip
            return
        del self._fresh[key]
        if row[1] == seq:
            return  # it held at no moment
        row[3], row[4] = seq, time
        if self._has_outcome:
            row[-1] = outcome
        if self._forked:
            last = seq - 1  # as `fork` has it; a call for each row would be felt
            level = ((row[1] - 1) ^ last).bit_length() - 1
            row.append((last >> level) << level)
        self._closed.append(row)

    def become(self, seq: int, time: int, rows: Mapping[str, tuple[Any, ...]]) -> None:
        """Let exactly these rows hold from here on, by key; one that holds with the same values goes on."""
        for key in [key for key in self.open if key not in rows]:
            self.end(seq, time, key)
        for key, values in rows.items():
            held = self.open.get(key)
            if held is None or tuple(held[KEY:]) != values:
                self.put(seq, time, *values)

    def flush(self, connection: sqlite3.Connection, *, still_open: bool = True) -> None:
        """Write what changed since the last flush; the caller commits.

        Args:
            connection: To the file.
            still_open: Whether rows that still hold are written too; False while a rebuild goes on,
                which writes them at its end.
        """
        if self._ends:
            connection.executemany(self._end, self._ends)
            self._ends.clear()
        self._write(connection, self._closed)
        self._closed.clear()
        if still_open:
            fresh = self._fresh.values()
            self._write(connection, [[*row, OPEN] for row in fresh] if self._forked else fresh)
            for number, row in enumerate(fresh, self._next_id - len(fresh)):
                row[0] = number
            self._fresh.clear()

    def _write(self, connection: sqlite3.Connection, rows: Collection[list[Any]]) -> None:
        """Give each row its id, and write it."""
        if not rows:
            return
        for number, row in enumerate(rows, self._next_id):
            row[0] = number
        self._next_id += len(rows)
        connection.executemany(self._insert, rows)

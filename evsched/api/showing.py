"""What one principal is shown of the past: its rows, its events, with foreign names masked.

All of it is used in the room of the log, whose states it looks at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from evsched.api.masking import Masker
from evsched.api.rights import Rights, queue_in
from evsched.api.told import EventsWanted, Line, ToldStep
from evsched.core.state import State
from projections import asof
from replays.history.about import About
from replays.history.diff import Change
from replays.history.rows import QueueRow, Row, TimerRow


class Showing:
    """The view of one principal on one moment."""

    def __init__(
        self, rights: Rights, then: State, now: State, connection: sqlite3.Connection | None
    ) -> None:
        """Judge by ``rights``; names that are in neither state are looked up in the read model (None: there is none)."""
        self.rights = rights
        self._then = then
        self._connection = connection
        self._masker = Masker(rights, (then, now), self._queue_ever, self._is_queue)

    def _queue_ever(self, name: str) -> str | None:
        found = self._connection
        return None if found is None else asof.queue_of_ever(found, name)

    def _is_queue(self, name: str) -> bool:
        return self._connection is not None and asof.is_queue_ever(self._connection, name)

    def knows(self, name: str) -> bool:
        """Tell whether an ask, allocation or application of this name is seen; one that never was is not."""
        queue = queue_in(self._then, name) or self._queue_ever(name)
        return queue is not None and not self._masker.foreign(name)

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Leave out rows of what is foreign; queues stay, as sums would not be right without them."""
        if self.rights.audit:
            return rows
        return [row for row in rows if self._shows(row)]

    def _shows(self, row: Row) -> bool:
        if isinstance(row, QueueRow):
            return True
        if isinstance(row, TimerRow):
            return not self._masker.foreign(row.subject)
        queue = getattr(row, "queue", None)
        return queue is None or self.rights.sees(queue)

    def changes(self, found: Sequence[Change]) -> list[Change]:
        """Leave out changes of what is foreign, and settings, which name every queue."""
        if self.rights.audit:
            return list(found)
        return [
            one
            for one in found
            if one.kind in ("queues", "nodes")
            or (one.kind != "config" and not self._masker.foreign(_subject(one)))
        ]

    def masked(self, answer: Any) -> Any:
        """Return an answer without foreign names."""
        return answer if self.rights.audit else self._masker.answer(msgspec.to_builtins(answer))

    def lines(self, steps: Sequence[ToldStep], wanted: EventsWanted, after: int) -> list[Line]:
        """Return the lines of events behind ``after`` that are wanted and about something that is seen."""
        if self.rights.audit:
            return [line for step in steps for line in step.wanted(wanted, after, None)]
        found = []
        for step in steps:
            assert step.abouts is not None
            abouts = dict(zip((line.seq for line in step.lines), step.abouts, strict=True))
            for line in step.wanted(wanted, after, None):
                if self._concerns(abouts[line.seq]):
                    told = msgspec.json.decode(line.data)
                    data = msgspec.json.encode(self._masker.answer(told))
                    found.append(Line(line.seq, line.kind, data))
        return found

    def _concerns(self, one: About) -> bool:
        return any(self.rights.sees(queue) for queue in one.queues)


def _subject(change: Change) -> str:
    """Return the name by which it is judged whose a change is: what a timer is about, or its key."""
    if change.kind == "timers":
        before, after = change.fields.get("subject", (None, None))
        return str(after or before or change.key.partition(":")[2])
    return change.key

"""What the scheduler knew at a moment: the question of `evsched at`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from projections import asof, audit
from projections.read_model import SCHEMA_VERSION, RebuildNeeded, place_of
from replays.history.expressions import THINGS
from replays.history.known import must_have_been
from replays.history.moments import END, Moment
from replays.history.rows import Rows
from replays.history.tabled import Narrowed, TabledMoment
from replays.history.views import VIEWS, View

if TYPE_CHECKING:
    import sqlite3

    from replays.history.rebuild import History


class AtQuestion(Struct, frozen=True, kw_only=True):
    """What is there at a moment?

    Attributes:
        moment: When.
        view: What.
        queue: Only what is in this queue or below it; None: all.
    """

    moment: Moment = END
    view: View = "queues"
    queue: str | None = None


class AtAnswer(Struct, frozen=True, kw_only=True):
    """The rows of a view.

    Attributes:
        seq: Of the last event before; lower than the one asked for where the log ends before it.
        time: Of its frame, milliseconds.
    """

    seq: int
    time: int
    view: View
    rows: Rows


async def at(history: History, question: AtQuestion) -> AtAnswer:
    """Rebuild the state at a moment and return what is there.

    Raises:
        NeverThere: The log never held a queue of this name.
    """
    state = (await history.at(question.moment)).state
    if question.queue is not None and question.queue not in THINGS["queue"](state):
        await must_have_been(history, [("queue", question.queue)])
    below = None if question.queue is None else f"{question.queue}."
    rows = [
        row
        for row in VIEWS[question.view](state)
        if below is None or f"{getattr(row, 'queue', '')}.".startswith(below)
    ]
    found: dict[str, Any] = {question.view: rows}
    return AtAnswer(seq=state.seq, time=state.time, view=question.view, rows=Rows(**found))


def at_tabled(path: Path, log_id: str, question: AtQuestion) -> AtAnswer | None:
    """Return the same from the read model at ``path``, which is only read.

    None: there is none of this log and version, it does not go that far, or it knows no such queue.
    The end of the log is behind any read model: ask the log.
    """
    try:
        version, found_id, place = place_of(path)
    except RebuildNeeded:
        return None
    if (version, found_id) != (SCHEMA_VERSION, log_id):
        return None
    with closing(audit.connect(path)) as connection:
        connection.execute("BEGIN")  # a follower may write meanwhile
        seq = _seq(connection, question.moment, place.next_seq - 1, place.time)
        if seq is None:
            return None
        moment = TabledMoment(connection, seq)
        queue = question.queue
        if queue is not None and not (
            moment.has_queue(queue) or asof.is_queue_ever(connection, queue)
        ):
            return None
        listed = moment.page(question.view, Narrowed(queue=queue))
    rows: dict[str, Any] = {question.view: listed.rows}
    return AtAnswer(seq=moment.seq, time=moment.time, view=question.view, rows=Rows(**rows))


def _seq(connection: sqlite3.Connection, moment: Moment, last: int, time: int) -> int | None:
    """Return the event that a moment comes after, as far as events up to ``last`` of ``time`` tell."""
    if moment.seq is not None:
        return moment.seq if moment.seq <= last else None
    # More may have come with the time at which the read model ends.
    if moment.time is None or moment.time >= time:
        return None
    return asof.seq_at_time(connection, moment.time)

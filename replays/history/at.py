"""What the scheduler knew at a moment: the question of `evsched at`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from replays.history.expressions import THINGS
from replays.history.known import must_have_been
from replays.history.moments import END, Moment
from replays.history.rows import Rows
from replays.history.views import VIEWS, View

if TYPE_CHECKING:
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

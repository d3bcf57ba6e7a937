"""What changed between two moments: the question of `evsched diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from replays.history.moments import END, Moment
from replays.history.rows import document
from replays.history.views import VIEWS, View

if TYPE_CHECKING:
    from evsched.core.state import State
    from replays.history.rebuild import History


class DiffQuestion(Struct, frozen=True, kw_only=True):
    """What is different between two moments?

    Attributes:
        before: The earlier moment.
        after: The later one.
        views: Only these; empty: all.
    """

    before: Moment
    after: Moment = END
    views: tuple[View, ...] = ()


class Change(Struct, frozen=True, kw_only=True):
    """What is different about one thing between two moments.

    Attributes:
        kind: The view in which it stands.
        key: Which one.
        fields: Entry to its values before and after, those that differ; all of them for what came
            or went.
    """

    kind: View
    key: str
    what: Literal["came", "went", "changed"]
    fields: dict[str, tuple[Any, Any]]


class DiffAnswer(Struct, frozen=True, kw_only=True):
    """The changes, view by view, with the two places of the log between which they lie."""

    from_seq: int
    from_time: int
    to_seq: int
    to_time: int
    changes: list[Change]


async def diff(history: History, question: DiffQuestion) -> DiffAnswer:
    """Rebuild both states and compare them."""
    old = (await history.at(question.before)).state
    new = (await history.at(question.after)).state
    return DiffAnswer(
        from_seq=old.seq,
        from_time=old.time,
        to_seq=new.seq,
        to_time=new.time,
        changes=changes(old, new, question.views or tuple(VIEWS)),
    )


def changes(before: State, after: State, views: tuple[View, ...] = tuple(VIEWS)) -> list[Change]:
    """Return what is different between two states, by view; in the order of the later state, then what went."""
    return [change for view in views for change in _changes(view, before, after)]


def _changes(view: View, before: State, after: State) -> list[Change]:
    old, new = (
        {_key(row): row for row in map(document, VIEWS[view](state))} for state in (before, after)
    )
    found = []
    for key, row in new.items():
        was = old.get(key)
        if was is None:
            came = {name: (None, value) for name, value in _rest(row).items()}
            found.append(Change(kind=view, key=key, what="came", fields=came))
        elif was != row:
            fields = {
                name: (was.get(name), row.get(name))
                for name in dict.fromkeys((*was, *row))
                if was.get(name) != row.get(name)
            }
            found.append(Change(kind=view, key=key, what="changed", fields=fields))
    for key, row in old.items():
        if key not in new:
            went = {name: (value, None) for name, value in _rest(row).items()}
            found.append(Change(kind=view, key=key, what="went", fields=went))
    return found


def _key(row: dict[str, Any]) -> str:
    return str(next(iter(row.values())))


def _rest(row: dict[str, Any]) -> dict[str, Any]:
    return dict(list(row.items())[1:])

"""The past as one principal sees it: what is foreign is left out of lists, and masked elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from events.vocabulary import AnyInput, ConfigurationApplied
from evsched.api.calls import Principal, Right
from evsched.api.identity import AccessSettings
from evsched.api.pages import StateRows, page, tabled_page
from evsched.api.past import LogPlaces, Past
from evsched.api.problems import ApiProblem
from evsched.api.rights import Rights, queue_in
from evsched.api.showing import Showing
from evsched.api.told import EventsWanted, Line, ToldStep
from evsched.core.state import State
from projections import asof, audit
from replays.history.diff import DiffQuestion, diff
from replays.history.rows import Row
from replays.history.tabled import Narrowed, TabledMoment
from replays.history.views import VIEWS, View


class SeenPast(Past):
    """The past of one log, shown to each as far as the access lists let it be seen."""

    def __init__(self, places: LogPlaces, access: AccessSettings | None = None) -> None:
        """Prepare; `open` begins to read. ``access`` says who may see what; None: anybody everything."""
        super().__init__(places)
        self._access = access

    async def rows(
        self, who: Principal, seq: int | None, view: View, wanted: Narrowed
    ) -> StateRows:
        """Return the rows that somebody sees of the state after an event; None: after the last one that was read.

        The read model answers whoever sees everything. Access lists are judged by states, so that the
        state is rebuilt for anybody else.
        """
        keeper = self.keeper
        if keeper.path is not None and self._all(who):
            last = keeper.state.seq if seq is None else seq
            keeper.write_down(last)
            with closing(audit.connect(keeper.path)) as connection:
                return tabled_page(TabledMoment(connection, last), view, wanted)
        if seq is None:
            state: State = self.keeper.state
            rows: Sequence[Row] = VIEWS[view](state)
        else:
            state, rows = await self.history.rows(seq, view)
        with self._showing(who, state) as showing:
            if view == "config" and not showing.rights.audit:
                raise ApiProblem("forbidden", "config: names every queue; it is for audits")
            found = page(state, view, showing.rows(rows), wanted, showing.rights)
            return replace(found, rows=showing.masked(found.rows))

    @contextmanager
    def _showing(self, who: Principal, then: State) -> Iterator[Showing]:
        """Yield what somebody sees of a state."""
        now = self.keeper.state
        rights = Rights(who, self._access, then, now)
        if rights.audit or self.keeper.path is None:
            yield Showing(rights, then, now, None)
            return
        self.keeper.write_down(self.keeper.at.next_seq - 1)
        with closing(audit.connect(self.keeper.path)) as connection:
            yield Showing(rights, then, now, connection)

    async def _state(self, seq: int) -> State:
        return (await self.history.pinned(seq)).engine.state

    async def require(self, who: Principal, right: Right) -> None:
        """Raise `ApiProblem` unless somebody may see, or propose, everything."""
        rights = Rights(who, self._access, self.keeper.state, self.keeper.state)
        if not (rights.admin if right == "admin" else rights.audit):
            raise ApiProblem("forbidden", f"{who.subject}: has no right to {right}")

    async def audits(self, who: Principal) -> bool:
        """Tell whether somebody may see everything."""
        return self._all(who)

    def _all(self, who: Principal) -> bool:
        """Tell whether somebody sees everything: that is not for a moment of the past to say, so none is rebuilt."""
        now = self.keeper.state
        return Rights(who, self._access, now, now).audit

    async def refusal(self, who: Principal, proposed: AnyInput) -> str:
        """Return why somebody may not propose something; empty: it may be proposed."""
        now = self.keeper.state
        return Rights(who, self._access, now, now).refusal(proposed, partial(queue_in, now))

    async def sees(self, who: Principal, seq: int, name: str) -> bool:
        """Tell whether somebody sees what has a name; where all is seen, any name."""
        if self._all(who):
            return True
        with self._showing(who, await self._state(seq)) as showing:
            return showing.knows(name)

    async def masked(self, who: Principal, seq: int, answer: Any) -> Any:
        """Return an answer about a moment without the names that somebody does not see."""
        if self._all(who):
            return answer
        with self._showing(who, await self._state(seq)) as showing:
            return showing.masked(answer)

    async def difference(self, who: Principal, question: DiffQuestion) -> Any:
        """Return what changed between two moments, as far as somebody sees it."""
        found = await diff(self.history, question)
        if self._all(who):
            return found
        with self._showing(who, await self._state(found.from_seq)) as showing:
            return showing.masked(replace(found, changes=showing.changes(found.changes)))

    async def lines(
        self, who: Principal, steps: list[ToldStep], wanted: EventsWanted, after: int
    ) -> list[Line]:
        """Return the lines of the events that are wanted and that somebody sees, by the lists in force at each and now."""
        found: list[Line] = []
        for part in _by_configuration(steps):
            with self._showing(who, await self._configured(part[-1].last)) as showing:
                found += showing.lines(part, wanted, after)
        return found

    async def _configured(self, seq: int) -> State:
        """Return a state with the configuration in force after an event: the present one where it still is."""
        path, now = self.keeper.path, self.keeper.state
        if path is None:
            return now
        self.keeper.write_down(now.seq)
        with closing(audit.connect(path)) as connection:
            then = asof.configured_at(connection, seq)
            latest = asof.configured_at(connection, now.seq)
        return now if then == latest else await self._state(then)


def _by_configuration(steps: Sequence[ToldStep]) -> list[list[ToldStep]]:
    """Return steps in parts in which one configuration is in force at the end of each step."""
    parts: list[list[ToldStep]] = []
    for step in steps:
        applied = any(isinstance(event, ConfigurationApplied) for event in step.events)
        if applied or not parts:
            parts.append([])
        parts[-1].append(step)
    return parts

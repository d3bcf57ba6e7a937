"""One run of a forecast: a copy of the engine steps on, with a clock of its own and drawn lives and arrivals.

The copy is an engine like any other, with its timers, preemption and pace. Around it stands what a
cluster does: what runs ends at the age that is drawn for it, what is evicted leaves after the time
that evictions take, asks arrive. Nodes and configuration stay as they are.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from events import vocabulary as v
from evsched.core.registry import admits_by_quota
from replays.forecasting.past import kind_of
from replays.forecasting.submitting import submitted_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evsched.core.engine import Engine
    from evsched.core.workloads import Allocation
    from replays.forecasting.arrivals import Coming
    from replays.forecasting.draws import Draws
    from replays.forecasting.past import Lessons

DRAWN = "~"
"""Begins the names of asks and applications that are drawn, and stands in no name before them."""


class Fate(NamedTuple):
    """What became of an ask in one run.

    Attributes:
        after_ms: Its start, from the begin of the run; None: it did not start within the horizon.
        preempted: It was evicted after its start, before its end and the horizon.
    """

    after_ms: int | None
    preempted: bool


class RunRefused(ValueError):
    """The engine refuses what was to be tried; the message is its reason."""


class RunAhead:
    """One run, from the state of an engine on."""

    def __init__(
        self, world: Engine, lessons: Lessons, draws: Draws, coming: Iterable[Coming]
    ) -> None:
        """Take a copy of an engine, which is the run's from here on."""
        self._world = world
        self._lessons = lessons
        self._draws = draws
        self._begin = world.state.time
        self._coming = iter(coming)
        self._next = next(self._coming, None)
        self._owed: list[tuple[int, int, str, bool]] = []
        self._evictions: dict[str, int] = {}
        self._number = self._arrived = 0
        # Digests serve readers of a log; nobody reads this one.
        world.state.checkpoint_every = 0

    def go(
        self,
        subjects: Sequence[str],
        horizon_ms: int,
        *,
        to_the_end: bool = True,
        tried: Sequence[v.AnyInput] = (),
    ) -> dict[str, Fate]:
        """Step on until what becomes of the subjects is known, or to the horizon.

        Args:
            subjects: Asks that wait.
            horizon_ms: How far.
            to_the_end: Also wait for the end of what started, which may be preempted before.
            tried: What is proposed in the first step.

        Raises:
            RunRefused: The engine refuses something of it.
        """
        state, horizon = self._world.state, self._begin + horizon_ms
        started: dict[str, int] = {}
        preempted: set[str] = set()
        open_subjects = dict.fromkeys(subjects)
        self._lives_of_what_runs(horizon)
        time = state.time
        proposals = [v.Proposal(input=one) for one in tried]
        due: int | None = time if tried else self._due()
        while open_subjects and due is not None and due <= horizon:
            time = max(due, state.time)
            events = self._world.step(time, [*proposals, *self._proposals(time)])
            if proposals:
                _must_be_taken(events)
                proposals = []
            for event in events:
                self._follow(event, time, horizon)
                match event:
                    case v.AllocationBound(ask=name) if name in open_subjects:
                        started[name] = time - self._begin
                        if not to_the_end:
                            del open_subjects[name]
                    case v.PreemptionDecided() | v.QuotaPreemptionDecided():
                        for victim in event.victims:
                            if victim.id in open_subjects and victim.id in started:
                                preempted.add(victim.id)
                                del open_subjects[victim.id]
                    case v.AllocationReleased(allocation=name):
                        open_subjects.pop(name, None)
                    case _:
                        pass
            due = self._due()
        return {name: Fate(started.get(name), name in preempted) for name in subjects}

    # ------------------------------------------------------------------------------ what is to come

    def _due(self) -> int | None:
        """Return when something is to happen next: a timer, an end, an arrival; None: never."""
        times = [self._world.next_due()]
        if self._owed:
            times.append(self._owed[0][0])
        if self._next is not None:
            times.append(self._begin + self._next.after_ms)
        known = [time for time in times if time is not None]
        return min(known) if known else None

    def _proposals(self, time: int) -> list[v.Proposal]:
        found: list[v.AnyInput] = []
        while self._owed and self._owed[0][0] <= time:
            due, _, name, evicted = heappop(self._owed)
            # An eviction that was withdrawn meanwhile does not come about.
            if not evicted or self._evictions.get(name) == due:
                found += self._end(name)
        while self._next is not None and self._begin + self._next.after_ms <= time:
            found += self._arrive(self._next)
            self._next = next(self._coming, None)
        return [v.Proposal(input=one) for one in found]

    def _end(self, name: str) -> list[v.AnyInput]:
        """Return the end of an allocation, and that of its application where it was the last of it."""
        one = self._world.state.allocations.get(name)
        if one is None:
            return []
        self._evictions.pop(name, None)
        reason = "preempted" if one.eviction_requested else "completed"
        released = v.AllocationReleased(allocation=name, reason=reason)
        again = self._again(one) if one.eviction_requested else None
        if again is not None:
            return [released, again]
        application = self._world.state.applications[one.application]
        last = application.running == 1 and not application.asks and not application.closing
        removed = self._lessons.removes_applications or application.id.startswith(DRAWN)
        if last and removed:
            return [released, v.ApplicationRemoved(application=application.id)]
        return [released]

    def _again(self, one: Allocation) -> v.AskSubmitted | None:
        """Return the ask with which an evicted allocation comes again; None: it does not, as others of the past did not."""
        lessons = self._lessons
        if self._draws.below(max(1, lessons.evicted), f"again/{one.id}") >= lessons.returned:
            return None
        self._arrived += 1
        return submitted_again(self._world.state, one, f"{DRAWN}{self._arrived}")

    def _arrive(self, coming: Coming) -> list[v.AnyInput]:
        """Return an arrival of the past as one of this run: with names of its own, created now."""
        self._arrived += 1
        ask, state = coming.arrival.ask, self._world.state
        name = f"{DRAWN}{self._arrived}"
        fresh = replace(
            ask, seq=0, cause=0, proposal="", ask=name, created=None, uid=None, source="", actor=""
        )
        if admits_by_quota(state.configuration):
            return [replace(fresh, application="")]
        application = state.applications.get(ask.application)
        if application is not None and application.leaf.path == coming.arrival.queue:
            return [fresh]
        drawn = f"{DRAWN}{coming.stretch}/{ask.application}"
        if drawn in state.applications:
            return [replace(fresh, application=drawn)]
        submission = coming.arrival.submission
        if submission is None:
            return [replace(fresh, application=drawn, queue=coming.arrival.queue)]
        submitted = replace(
            submission, seq=0, proposal="", application=drawn, created=None, source="", actor=""
        )
        return [submitted, replace(fresh, application=drawn)]

    # ------------------------------------------------------------------------------- what happened

    def _lives_of_what_runs(self, horizon: int) -> None:
        """Draw how long what runs now will still do so, given how long it has."""
        state = self._world.state
        for one in state.allocations.values():
            if one.eviction_requested:
                told = one.eviction_requested
                self._evict(one.id, max(self._begin, told + self._lessons.eviction_ms), horizon)
            age = max(0, self._begin - one.bound)
            self._live(one.id, (one.queue, one.ask_shape), one.bound, age, horizon)

    def _live(self, name: str, known: tuple[str, int], bound: int, age: int, horizon: int) -> None:
        kind = kind_of(self._world.state, known[1])
        end = self._lessons.lifetimes.draw(
            known[0], kind, lambda below: self._draws.below(below, f"life/{name}"), age
        )
        if end is not None:
            self._owe(max(bound + end, self._begin), name, horizon)

    def _evict(self, name: str, gone: int, horizon: int) -> None:
        self._evictions[name] = gone
        self._owe(gone, name, horizon, evicted=True)

    def _owe(self, time: int, name: str, horizon: int, *, evicted: bool = False) -> None:
        self._number += 1
        if time <= horizon:
            heappush(self._owed, (time, self._number, name, evicted))

    def _follow(self, event: v.AnyEvent, time: int, horizon: int) -> None:
        state = self._world.state
        match event:
            case v.AllocationBound(ask=name):
                one = state.allocations.get(name)
                if one is not None:
                    self._live(name, (one.queue, one.ask_shape), time, -1, horizon)
            case v.PreemptionDecided(victims=victims) | v.QuotaPreemptionDecided(victims=victims):
                for victim in victims:
                    if victim.id not in self._evictions:
                        self._evict(victim.id, time + self._lessons.eviction_ms, horizon)
            case v.PreemptionWithdrawn(victims=names):
                for name in names:
                    self._evictions.pop(name, None)
            case _:
                pass


def _must_be_taken(events: Sequence[v.AnyEvent]) -> None:
    for event in events:
        if isinstance(event, v.InputRejected):
            raise RunRefused(event.reason)

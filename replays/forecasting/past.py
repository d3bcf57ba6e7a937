"""What a forecast learns from a log: how long allocations lived, what arrived, how long evictions took.

One reading notes all of it with its times, so that what was known at any earlier moment can be told
too: a back-test may not learn from what it is asked to foretell.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from events import vocabulary as v
from replays.forecasting.lifetimes import AskedFor, Lifetimes, SeenLife

if TYPE_CHECKING:
    from events.chain import RecordedStep
    from evsched.core.state import State
    from evsched.core.workloads import Allocation

KEPT = 200_000
"""So many allocations, and so many asks, are remembered at most; the latest count."""

EVICTION_MS = 5_000
"""How long an eviction takes where the log holds none to learn from."""

RETURN_MS = 60_000
"""An ask of the same application and amounts that comes within this time after an eviction is what was evicted."""

_AGAINST_ITS_WILL = ("preempted", "node removed")
"""Reasons of a release that say nothing of how long an allocation would have lived."""


class PastArrival(NamedTuple):
    """An ask that was taken in.

    Attributes:
        time: Of the step, milliseconds.
        queue: The leaf where it waited.
        submission: How its application was submitted; None: it came with an ask.
    """

    time: int
    ask: v.AskSubmitted
    queue: str
    submission: v.ApplicationSubmitted | None


_Known = tuple[str, AskedFor, str]
"""Queue, amounts and application of an ask."""


class _Lived:
    """What is known of one allocation; times in milliseconds, ``end`` None while it runs."""

    __slots__ = ("application", "began", "end", "kind", "leaving", "own", "queue", "seen")

    def __init__(self, known: _Known, began: int, seen: int) -> None:
        self.queue, self.kind, self.application = known
        self.began, self.seen = began, seen
        self.end: int | None = None
        self.leaving: int | None = None
        self.own = False

    def until(self, time: int) -> SeenLife:
        """Return what was known of it at a time that is not before it was first seen."""
        ended = self.end is not None and self.end <= time
        last = self.end if ended and self.end is not None else time
        return SeenLife(self.seen - self.began, last - self.began, ended and self.own)


class Lessons(NamedTuple):
    """What is known at a moment.

    Attributes:
        lifetimes: Of allocations.
        arrivals: By time.
        begun, now: The stretch of the log that this was learnt from, milliseconds.
        eviction_ms: How long evictions take (the median of those that were seen).
        ends: How many allocations were seen to end by themselves.
        removes_applications: Whether applications were removed; then one with nothing left goes.
        evicted, returned: How many allocations were evicted, and how many of them came again.
    """

    lifetimes: Lifetimes
    arrivals: tuple[PastArrival, ...]
    begun: int
    now: int
    eviction_ms: int
    ends: int
    removes_applications: bool
    evicted: int
    returned: int


class Waited(NamedTuple):
    """What became of an ask that waited after the step that took it in.

    Attributes:
        submitted: Time of that step; ``seq`` is the last event of it.
        started: When it was bound; None: it was not, up to the end of what was read.
        withdrawn: Whether it was taken back before.
    """

    ask: str
    submitted: int
    seq: int
    started: int | None
    withdrawn: bool


class Learning:
    """Reads a log."""

    def __init__(self, state: State) -> None:
        """Begin at a state: what runs and waits there is known, and since when."""
        # Before the first step there is no time; the past begins with that step then.
        self._begun = None if state.seq == 0 else state.time
        self._time = state.time
        self._open: dict[str, _Lived] = {}
        self._lived: deque[_Lived] = deque(maxlen=KEPT)
        self._arrivals: deque[PastArrival] = deque(maxlen=KEPT)
        self._evictions: deque[tuple[int, int]] = deque(maxlen=KEPT)
        self._gone: dict[_Known, deque[int]] = {}
        self._returned: deque[int] = deque(maxlen=KEPT)
        self._submissions: dict[str, v.ApplicationSubmitted] = {}
        self._removed: int | None = None
        self._waiting: dict[str, _Known] = {}
        self._waits: dict[str, Waited] = {}
        self._waited: deque[Waited] = deque(maxlen=KEPT)
        for ask in state.asks.values():
            self._waiting[ask.id] = ask.queue, kind_of(state, ask.shape), ask.application
        for one in state.allocations.values():
            self._begin(one.id, _known(state, one), one.bound, state.time)
            if one.eviction_requested:
                self._open[one.id].leaving = one.eviction_requested

    def take(self, step: RecordedStep, state: State) -> None:
        """Take the next step; the state is that behind it."""
        self._time = step.time
        if self._begun is None:
            self._begun = step.time
        for event in step.events:
            if type(event) is v.AskSubmitted:
                self._submitted(event, step, state)
            elif type(event) is v.ApplicationSubmitted:
                self._submissions[event.application] = event
        for event in step.events:
            self._follow(event, step.time, state)

    def _submitted(self, event: v.AskSubmitted, step: RecordedStep, state: State) -> None:
        waits = state.asks.get(event.ask)
        runs = state.allocations.get(event.ask)
        if waits is not None:
            known = waits.queue, kind_of(state, waits.shape), waits.application
            seq = step.events[-1].seq
            self._waits[event.ask] = Waited(event.ask, step.time, seq, None, withdrawn=False)
        elif runs is not None:
            known = _known(state, runs)
        else:
            return  # gone within its step
        self._waiting[event.ask] = known
        if self._returns(known, step.time):
            return
        submission = self._submissions.get(event.application)
        self._arrivals.append(PastArrival(step.time, event, known[0], submission))

    def _returns(self, known: _Known, time: int) -> bool:
        """Tell whether an ask is one that was evicted a short while ago and comes again."""
        gone = self._gone.get(known)
        while gone:
            evicted = gone.popleft()
            if time - evicted <= RETURN_MS:
                self._returned.append(time)
                return True
        return False

    def _follow(self, event: v.AnyEvent, time: int, state: State) -> None:
        match event:
            case v.AllocationBound(ask=name) | v.BindingObserved(ask=name):
                known = self._waiting.pop(name, None)
                if known is not None:
                    self._begin(name, known, time, time)
                self._answered(name, started=time)
            case v.AllocationRestored(allocation=name):
                one = state.allocations.get(name)
                if one is not None:
                    self._begin(name, _known(state, one), one.bound, time)
            case v.AllocationReleased(allocation=name, reason=reason):
                self._ended(name, time, reason)
            case v.PreemptionDecided(victims=victims) | v.QuotaPreemptionDecided(victims=victims):
                for victim in victims:
                    self._leave(victim.id, time)
            case v.EvictionObserved(allocation=name):
                self._leave(name, time)
            case v.PreemptionWithdrawn(victims=names):
                for name in names:
                    self._leave(name, None)
            case v.AskWithdrawn(ask=name):
                self._waiting.pop(name, None)
                self._answered(name, started=None)
            case v.ApplicationRemoved(application=name):
                self._submissions.pop(name, None)
                self._removed = time if self._removed is None else self._removed
            case _:
                pass

    def _begin(self, name: str, known: _Known, began: int, seen: int) -> None:
        lived = self._open[name] = _Lived(known, min(began, seen), seen)
        self._lived.append(lived)

    def _leave(self, name: str, time: int | None) -> None:
        lived = self._open.get(name)
        if lived is not None:
            lived.leaving = time

    def _ended(self, name: str, time: int, reason: str) -> None:
        lived = self._open.pop(name, None)
        if lived is None:
            return
        lived.end = time
        lived.own = lived.leaving is None and reason not in _AGAINST_ITS_WILL
        if lived.leaving is not None:
            self._evictions.append((time, time - lived.leaving))
            key = lived.queue, lived.kind, lived.application
            self._gone.setdefault(key, deque(maxlen=KEPT)).append(time)

    def _answered(self, name: str, started: int | None) -> None:
        waited = self._waits.pop(name, None)
        if waited is not None:
            self._waited.append(waited._replace(started=started, withdrawn=started is None))

    def waited(self) -> list[Waited]:
        """Return the asks that waited behind their own step, by submission, those that still do included."""
        return sorted([*self._waited, *self._waits.values()], key=lambda one: (one.seq, one.ask))

    def until(self, time: int | None = None) -> Lessons:
        """Return what was known at a time; None: at the end of what was read."""
        time = self._time if time is None else time
        lives: defaultdict[tuple[str, AskedFor], list[SeenLife]] = defaultdict(list)
        for one in self._lived:
            if one.seen <= time:
                lives[one.queue, one.kind].append(one.until(time))
        took = sorted(took for at, took in self._evictions if at <= time)
        known = sum(arrival.time <= time for arrival in self._arrivals)
        return Lessons(
            lifetimes=Lifetimes(lives),
            arrivals=tuple(islice(self._arrivals, known)),
            begun=time if self._begun is None else self._begun,
            now=time,
            eviction_ms=took[(len(took) - 1) // 2] if took else EVICTION_MS,
            ends=sum(life.ended for found in lives.values() for life in found),
            removes_applications=self._removed is not None and self._removed <= time,
            evicted=len(took),
            returned=sum(at <= time for at in self._returned),
        )


def kind_of(state: State, shape: int) -> AskedFor:
    """Return what a shape asks for, in a form that does not depend on the state."""
    return tuple(sorted(state.types.shapes[shape].resources.items()))


def _known(state: State, one: Allocation) -> _Known:
    return one.queue, kind_of(state, one.ask_shape), one.application

"""What could be wrong in the service, each as a patch, and the story in which that must be found.

A checker that finds nothing while one of these is in force would find nothing when it is real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

from events import chain
from events.errors import OutcomeUnknown
from events.streams import leadership
from events.streams.leadership import Leadership
from events.vocabulary import LeaderStarted, RulesAdopted
from evsched.core import reducer, validation
from evsched.core.state import State
from evsched.core.timers import Timer
from evsched.service import rebuilding, watching
from evsched.service.environment import BoundedClock, RecordTime
from evsched.service.leading import LeaderTerm
from projections.read_model import ReadModel
from tests.simulation.damage import Edited, Restored, TailLost
from tests.simulation.story import Story

_write = leadership._append
_step = Leadership.append_step
_decided = LeaderTerm._step
_void = chain.ChainReader._void
_follows = chain.ChainReader._follows
_apply = rebuilding.Replica.apply


class Sabotage(NamedTuple):
    """``patch`` is entered while a story of the kind ``story`` is told."""

    patch: Callable[[], AbstractContextManager[Any]]
    story: type[Story] = Story


def _put(owner: object, name: str, value: object) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, value)


async def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


async def _append_later(log, sealed):
    """Say that a record is written, and write it."""
    asyncio.get_running_loop().create_task(_quietly(log.append(sealed.data)))
    return len(log.broker.log)


async def _quietly(work):
    try:
        await work
    except Exception:  # noqa: BLE001 - the leader that this stands for does not listen
        return


async def _append_believing(log, sealed):
    """Take a write whose outcome is unknown for one that arrived."""
    try:
        return await _write(log, sealed)
    except OutcomeUnknown:
        return len(log.broker.log)


async def _append_again(log, sealed):
    """Write again what may be written already."""
    try:
        return await _write(log, sealed)
    except OutcomeUnknown:
        return await _write(log, sealed)


async def _off_by_one(self, events, *, time, decided, inbox_next):
    """Count one proposal more than was read."""
    more = inbox_next + (inbox_next > self.head.inbox_next and inbox_next % 7 == 0)
    return await _step(self, events, time=time, decided=decided, inbox_next=more)


async def _read_again(self, events, *, time, decided, inbox_next):
    """Count one proposal less than was read."""
    less = inbox_next - (inbox_next > self.head.inbox_next + 1)
    return await _step(self, events, time=time, decided=decided, inbox_next=less)


async def _decide_always(self, now, proposals, inbox_next, *, decide):
    await _decided(self, now, proposals, inbox_next, decide=True)


def _term_ignored(self, frame):
    """Compare no terms."""
    found = _void(self, frame)
    return "" if "superseded" in found else found


def _race_ignored(self, frame):
    """Take a fence that lost its race for one that follows."""
    found = _void(self, frame)
    return "" if "it was built on" in found else found


def _hash_ignored(self, frame, position):
    """Compare no hashes."""
    if self.tip.frame:
        frame = replace(frame, prev=self.tip.hash)
    _follows(self, frame, position)


def _timers_reset(self, step):
    """Let every timer of a quota begin anew with a term."""
    _apply(self, step)
    if any(isinstance(event, LeaderStarted) for event in step.events):
        armed = self.engine.state.timers.armed
        for one in list(armed.values()):
            if one.kind == "quota":
                self.engine.state.timers.arm(replace(one, due=one.due + 4000))


def _rules_forgotten(self, step):
    """Rebuild without the rules that were adopted."""
    events = tuple(event for event in step.events if not isinstance(event, RulesAdopted))
    _apply(self, step._replace(events=events))


def _early(state, event):
    """Arm the timer of a quota a second too early."""
    timer = Timer(event.at - 1000, f"quota:{event.queue}", "quota", event.queue, event.seq)
    state.timers.arm(timer)


@contextmanager
def _without_fold(kind: str, then: Callable[[State, Any], None] = lambda state, event: None):
    """Fold events of a kind in another way, nothing at all by default."""
    found = next(one for one in reducer._FOLDS if one.__name__ == kind)
    with patch.dict(reducer._FOLDS, {found: (then, reducer._FOLDS[found][1])}):
        yield


@contextmanager
def _wall_clock():
    """Measure a lease by a clock that people set."""
    real = watching.Watch.look

    async def look(self, tip):
        clock = self._clock
        self._clock = _Wall(clock)
        try:
            return await real(self, tip)
        finally:
            self._clock = clock

    with patch.object(watching.Watch, "look", look):
        yield


class _Wall:
    def __init__(self, clock):
        self._clock = clock

    def elapsed(self):
        return self._clock._clock.now() / 1000


_take = chain.ChainReader.take


def _whole(self, frame, digest, position):
    return _take(self, replace(frame, last=True), digest, position)


@contextmanager
def _unbound_snapshots():
    """Begin with a snapshot whatever the log says."""

    async def resume(log, head):
        return chain.ChainReader(head)

    with patch.object(rebuilding, "resume", resume):
        yield


@contextmanager
def _both(*patches: AbstractContextManager[Any]):
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def _leads_itself(self, beat, tip):
    """Take an open term for one in which nobody leads."""
    return True


async def _no_beat(self, *, resigned=False):
    """Say that a heartbeat was given."""
    return 0


def _placeless(self, at):
    """Commit rows without the place up to which they go."""


def _stale(self, step):
    """Pass over what is in the file already, and leave the state as it was kept."""
    self._loaded = step.head.frame == self._written.frame


def _unheard(self, other):
    """Follow no other clock."""


def _anything_goes(state, proposed):
    """Refuse nothing."""


SABOTAGES: dict[str, Sabotage] = {
    "what came between two frames is not read": Sabotage(
        _put(Leadership, "_read_between", _nothing)
    ),
    "terms are not compared": Sabotage(_put(chain.ChainReader, "_void", _term_ignored)),
    "a lost race is not noticed": Sabotage(_put(chain.ChainReader, "_void", _race_ignored)),
    "a step is acknowledged before it is written": Sabotage(
        _put(leadership, "_append", _append_later)
    ),
    "an unknown outcome is taken for a success": Sabotage(
        _put(leadership, "_append", _append_believing)
    ),
    "an unknown outcome is written again": Sabotage(_put(leadership, "_append", _append_again)),
    "timers begin anew with a term": Sabotage(_put(rebuilding.Replica, "apply", _timers_reset)),
    "timers fire early": Sabotage(lambda: _without_fold("QuotaPreemptionScheduled", _early)),
    "poison is accepted": Sabotage(_put(validation, "check", _anything_goes)),
    "a lease is measured by the wall clock": Sabotage(_wall_clock),
    "the time of the log is the wall clock's": Sabotage(
        _put(RecordTime, "now", lambda self: self._clock.now())
    ),
    "a clock that jumps ahead is believed": Sabotage(
        _put(BoundedClock, "now", lambda self: self._clock.now())
    ),
    "a clock that is wrong at the start is believed": Sabotage(
        _put(BoundedClock, "heed", _unheard)
    ),
    "a read model does not keep its place": Sabotage(_put(ReadModel, "_set_position", _placeless)),
    "a read model goes on with an old state": Sabotage(_put(ReadModel, "_catch_up", _stale)),
    "a proposal is passed over": Sabotage(_put(Leadership, "append_step", _off_by_one)),
    "a proposal is read again": Sabotage(_put(Leadership, "append_step", _read_again)),
    "a proposal that comes again is not recognised": Sabotage(
        _put(State, "remembers", lambda self, proposal: False)
    ),
    "a new leader decides while it catches up": Sabotage(_put(LeaderTerm, "_step", _decide_always)),
    "a torn state is kept": Sabotage(
        lambda: patch.object(
            LeaderTerm, "torn", property(lambda self: False, lambda self, value: None), create=True
        )
    ),
    "every standby takes over": Sabotage(_put(watching.Watch, "_nobody_leads", _leads_itself)),
    "a leader gives no heartbeats": Sabotage(_put(LeaderTerm, "_give_beat", _no_beat)),
    "an idle leader does not look around": Sabotage(
        lambda: _both(
            patch.object(Leadership, "confirm", _nothing),
            patch.object(LeaderTerm, "_beat", _nothing),
        )
    ),
    "a rebuild forgets the rules": Sabotage(_put(rebuilding.Replica, "apply", _rules_forgotten)),
    "a fold forgets that an allocation ended": Sabotage(
        lambda: _without_fold("AllocationReleased")
    ),
    "a fold forgets that a node left": Sabotage(lambda: _without_fold("NodeRemoved")),
    "a fold forgets that a quota timer was called off": Sabotage(
        lambda: _without_fold("QuotaPreemptionCancelled")
    ),
    "hashes of frames are not compared": Sabotage(
        _put(chain.ChainReader, "_follows", _hash_ignored), Edited
    ),
    "a step counts before its last frame": Sabotage(_put(chain.ChainReader, "take", _whole)),
    "a snapshot is not held against the log": Sabotage(_unbound_snapshots, Restored),
    "a log that lost its tail is led": Sabotage(_put(leadership, "_compare", _nothing), TailLost),
}

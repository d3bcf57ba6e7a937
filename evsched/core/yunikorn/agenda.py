"""Which ask may preempt when, and so when the next preemption cycle is due.

An ask is eligible from its leaf's delay after its creation on (seed preemption_design: the delay
runs from its creation), at once with a required node. One that was tried in vain has another turn
when something changed, or when it has waited long enough for room that is being freed for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.lazy_heap import LazyHeap

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.workloads import Ask

Turn = tuple[int, str]
"""(time in milliseconds, id of an ask)."""


def preemption_eligible_at(state: State, ask: Ask) -> int:
    """Return when an ask is old enough to preempt, milliseconds."""
    if ask.required_node is not None:
        return ask.created
    return ask.created + state.queues[ask.queue].settings.preemption_delay_ms


def owes_turn(state: State, ask: Ask) -> bool:
    """Tell whether a preemption cycle is due that an ask has a turn in, whatever the pace says.

    An ask that failed before is owed one only when something changed since.
    """
    eligible = ask.may_preempt and not ask.preempted
    if not eligible or preemption_eligible_at(state, ask) > state.time:
        return False
    return state.retry_needed or ask.id not in state.unschedulable_since


class Agenda:
    """The moments at which asks get a turn; heaps that are built when they are first looked at.

    Entries are (moment, ask) and may be out of date: asks leave, and are tried. Two heaps, as an
    ask that was tried has no first turn any more, but may still wait for room that is being freed.
    """

    __slots__ = ("_eligible", "_patient", "_state")

    def __init__(self, state: State) -> None:
        """Start with nothing looked at.

        Where preemption is off, no heap is ever built, and no ask costs anything here.
        """
        self._state = state
        self._eligible: LazyHeap[Turn] | None = None
        self._patient: LazyHeap[Turn] | None = None

    def add(self, ask: Ask) -> None:
        """Note when an ask becomes old enough to preempt."""
        if self._eligible is not None and ask.may_preempt and not ask.preempted:
            state = self._state
            self._eligible.push((preemption_eligible_at(state, ask), ask.id), len(state.asks))

    def wait(self, ask: Ask) -> None:
        """Note until when an ask waits for room that is being freed for others, if it does."""
        if self._patient is not None and ask.patient_until:
            self._patient.push((ask.patient_until, ask.id), len(self._state.asks))

    def next_cycle(self, interval_ms: int) -> int | None:
        """Return when the next preemption cycle is due, None when no ask waits for one.

        An ask that has just become old enough is looked at when that happens, but no two cycles
        come within ``interval_ms``.
        """
        state = self._state
        eligible = self._eligible_heap().first()
        pace = state.last_cycle + interval_ms
        # Not earlier than the pace allows, even when an ask has been old enough for long.
        due = max(eligible[0], pace) if eligible is not None else None
        if state.unschedulable_since:
            retry = pace if state.retry_needed else self._patience_ends()
            if retry is not None and (due is None or retry < due):
                due = max(retry, pace)
        return due

    def _patience_ends(self) -> int | None:
        """Return when the next ask will have waited long enough, after the last cycle; None when none will."""
        first = self._patient_heap().first()
        return None if first is None else first[0]

    def _eligible_heap(self) -> LazyHeap[Turn]:
        """Return the asks by the time of their first turn, built from the state at the first look.

        `add` keeps it up to date from then on.
        """
        if self._eligible is None:
            state = self._state
            self._eligible = LazyHeap(
                self._has_turn,
                [
                    (preemption_eligible_at(state, ask), ask.id)
                    for ask in state.asks.values()
                    if ask.may_preempt and not ask.preempted
                ],
            )
        return self._eligible

    def _patient_heap(self) -> LazyHeap[Turn]:
        """Return the asks that wait for room, by the end of their patience, milliseconds.

        Built from the state at the first look; `wait` keeps it up to date from then on.
        """
        if self._patient is None:
            asks = self._state.asks.values()
            self._patient = LazyHeap(
                self._is_patient, [(ask.patient_until, ask.id) for ask in asks if ask.patient_until]
            )
        return self._patient

    def _has_turn(self, moment: Turn) -> bool:
        """Tell whether an ask has its first turn at a moment.

        An entry outlives its ask, whose id may come back with another policy.
        """
        state = self._state
        ask = state.asks.get(moment[1])
        return (
            ask is not None
            and ask.may_preempt
            and not ask.preempted
            and ask.id not in state.unschedulable_since
            and ask.application not in state.paused
            and moment[0] == preemption_eligible_at(state, ask)
        )

    def _is_patient(self, moment: Turn) -> bool:
        """Tell whether an ask goes on waiting until a moment, which no cycle has reached yet."""
        state = self._state
        ask = state.asks.get(moment[1])
        return (
            ask is not None
            and ask.patient_until == moment[0]
            and not ask.preempted
            and moment[0] > state.last_cycle
        )

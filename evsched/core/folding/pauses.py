"""What pauses do to the state: an application is not looked at until a timer fires.

The armed timer is the truth; `State.paused` is read from it. A pause ends with the last ask of its
application, as there is nothing left to hold back: the timer is taken off, and no event says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.timers import PAUSE, Timer

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State


def application_paused(state: State, event: v.ApplicationPaused) -> None:
    """An application is not looked at for a while (`application.unschedasks.backoff`).

    Too many of its asks fit on no node. They go on waiting and keep their age; the timer is the
    moment from which they are looked at again.
    """
    state.timers.arm(
        Timer(event.until, f"{PAUSE}:{event.application}", PAUSE, event.application, event.seq)
    )
    state.paused[event.application] = event.until
    if state.index is not None:
        state.index.paused(state.applications[event.application])


def application_resumed(state: State, event: v.ApplicationResumed) -> None:
    """An application is looked at again.

    Its asks have missed the preemption cycles that ran since. Where one of them was tried in vain
    before the pause, the next cycle tries it again, because what changed meanwhile was not told to
    it.
    """
    end_pause(state, event.application)
    application = state.applications[event.application]
    state.retry_needed = state.retry_needed or any(
        name in state.unschedulable_since for name in application.asks
    )
    if state.index is not None:
        state.index.paused(application)


def end_pause(state: State, application: str) -> None:
    """Forget a pause and its timer."""
    del state.paused[application]
    state.timers.cancel(f"{PAUSE}:{application}")

"""A state to go back to within a term, so that a step that raised costs neither the term nor a rebuild.

What raised may have done half of its work, so the state it left is of no use. Usually that never
happens, and the first time it costs the term (`evsched.service.containment`). A term that follows on a
failure keeps its state as bytes at its beginning, and the steps that it writes after them: the state
before each further failure is made of both. So any number of bad proposals costs one term, and each a
state that is decoded.
"""

from __future__ import annotations

from events.vocabulary import AnyEvent
from evsched.core import snapshot
from evsched.core.reducer import apply_all
from evsched.core.state import State

MOST_EVENTS = 20_000
"""Events that are applied again at most, about 0.3 s. Without a failure among them the trouble is over."""


class Savepoint:
    """The state at some step of a term, and the steps that were written since."""

    def __init__(self) -> None:
        """Keep nothing."""
        self._data: bytes | None = None
        self._time = 0
        self._steps: list[tuple[int, tuple[AnyEvent, ...]]] = []
        self._events = 0
        self._used = False

    @property
    def kept(self) -> bool:
        """Whether there is a state to go back to."""
        return self._data is not None

    def keep(self, state: State) -> None:
        """Keep a state that is at the end of a written step."""
        self._data, self._time = snapshot.encode(state), state.time
        self._steps, self._events, self._used = [], 0, False

    def written(self, events: tuple[AnyEvent, ...], time: int) -> None:
        """Take note of a step that is in the log, of a frame with this time."""
        if self._data is not None:
            self._steps.append((time, events))
            self._events += len(events)

    def renew(self, state: State) -> None:
        """Keep the state anew once many events were written since; none, when no step failed among them."""
        if self._events > MOST_EVENTS:
            if self._used:
                self.keep(state)
            else:
                self._data, self._steps, self._events = None, [], 0

    def restored(self) -> State:
        """Return the state after the last step that was written. Only where one is kept."""
        assert self._data is not None
        self._used = True
        state = snapshot.decode(self._data, self._time)
        for time, events in self._steps:
            state.time = time
            apply_all(state, events)
        return state

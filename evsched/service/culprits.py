"""Whose fault it is when all decisions of a kind fail: that of one queue, found by trying on copies of the state.

The engine knows the ask that it was deciding on, but a policy also looks at queues as such: their
order, their shares, their quotas. A fault there shows in no ask. So the decision is taken again on
copies of the state in which only the first so many of the queues still have asks. The queue with
which it begins to fail is at fault, and found by halving: ten trials for a thousand queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.faults import StepFailed

if TYPE_CHECKING:
    from evsched.core.state import State


MOST = 3
"""More queues at fault than these are not at fault: it is the decision as such that fails."""


def queue_at_fault(state: State, time: int) -> str:
    """Return a leaf whose asks make a step raise; empty where it raises with the asks of any leaf, or with none.

    At most `MOST` leaves may be at fault, and one more must have asks, or nothing tells their fault
    from that of the decision. It may take seconds for a large state: call it by a thread.

    Args:
        state: At the end of a written step; only read.
        time: At which a step without proposals raises, milliseconds.
    """
    trial = _Trial(state, time)
    left = sorted({ask.queue for ask in state.asks.values()})
    first = ""
    for _ in range(MOST + 1):
        if not trial.fails(left):
            return first
        if len(left) == 1 or trial.fails([]):
            return ""
        found = _first_at_fault(trial, left)
        first = first or found
        left.remove(found)
    return ""


def _first_at_fault(trial: _Trial, leaves: list[str]) -> str:
    """Return the leaf with which a step begins to raise; it does with all of them and not without any."""
    low, high = 0, len(leaves)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if trial.fails(leaves[:middle]) else (middle, high)
    return leaves[high - 1]


class _Trial:
    """A step that is taken again and again, each time on a new copy of the state."""

    def __init__(self, state: State, time: int) -> None:
        self._data, self._time, self._before = snapshot.encode(state), time, state.time
        self._leaves = sorted({ask.queue for ask in state.asks.values()})

    def fails(self, leaves: list[str]) -> bool:
        """Tell whether the step raises when only these leaves have asks."""
        engine, those = Engine(snapshot.decode(self._data, self._before)), set(leaves)
        try:
            for path in self._leaves:
                if path not in those:
                    engine.suspend(self._time, "queue", path, ("?", "a trial"))
            engine.step(self._time)
        except StepFailed:
            return True
        return False

"""What queues have that have others below them: a row when a step changed it.

The state keeps these sums as events are applied; adding up what the leaves had would read all of
their rows. A step that changes many leaves changes each queue above them once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.temporal import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from projections.temporal import Temporal


class QueueTotals:
    """Notes the rows of the queues above those that a step changed."""

    def __init__(
        self, state: State, table: Temporal, write: Callable[[tuple[int, ...]], str]
    ) -> None:
        """Begin with a state; ``write`` makes text of amounts."""
        self._state = state
        self._table = table
        self._write = write
        self._above: dict[str, None] = {}

    def changed(self, leaf: Queue) -> None:
        """Note that a leaf has something else now."""
        parent = leaf.parent
        while parent is not None and parent.path not in self._above:
            self._above[parent.path] = None
            parent = parent.parent

    def arranged(self, seq: int, time: int) -> None:
        """Note that queues came, went or were arranged anew: the rows of those that are none any more end."""
        queues = (*self._state.queues.values(), self._state.root)
        parents = dict.fromkeys(queue.path for queue in queues if not queue.leaf)
        for path in [path for path in self._table.open if path not in parents]:
            self._table.end(seq, time, path)
        self._above.update(parents)

    def step(self, seq: int, time: int) -> None:
        """Write down what the queues have at the end of a step."""
        root, queues, table = self._state.root, self._state.queues, self._table
        for path in self._above:
            queue = queues.get(path) or root
            if queue.path != path or not path or queue.leaf:
                continue  # it went later in the step, or is the nameless top of Kueue's cohorts
            values = [path, self._write(tuple(queue.usage)), self._write(tuple(queue.pending))]
            held = table.open.get(path)
            if held is None or held[KEY:] != values:
                table.put(seq, time, *values)
        self._above.clear()

"""What applications and nodes use, noted when they have changed a few times: a moment is counted up from the last mark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.state import State

MARK_EVERY = 16
"""After how many changes of an application or node there is a mark: what a moment costs at most for each that is shown."""


class Marks:
    """Counts changes and notes marks; the counts begin anew with the process, which moves marks and changes no answer."""

    def __init__(
        self,
        state: State,
        rows: list[tuple[Any, ...]],
        write: Callable[[tuple[int, ...]], str],
    ) -> None:
        """Look at a state, add marks to ``rows``; ``write`` turns amounts by type into text."""
        self._state = state
        self._rows = rows
        self._write = write
        self._changes: dict[tuple[str, str], int] = {}

    def application(self, name: str, seq: int) -> None:
        """Note that what an application has was changed by event ``seq``, which the state has taken."""
        if self._is_due("application", name):
            one = self._state.applications.get(name)
            if one is not None:
                usage = self._write(tuple(one.usage))
                row = ("application", name, seq, usage, len(one.asks), len(one.allocations))
                self._rows.append(row)

    def node(self, name: str, seq: int) -> None:
        """Note that what runs on a node was changed by event ``seq``, which the state has taken."""
        if self._is_due("node", name):
            one = self._state.nodes.get(name)
            if one is not None:
                used = self._write(tuple(one.used))
                self._rows.append(("node", name, seq, used, 0, len(one.allocations)))

    def _is_due(self, kind: str, name: str) -> bool:
        key = (kind, name)
        count = self._changes.get(key, 0) + 1
        self._changes[key] = 0 if count == MARK_EVERY else count
        return count == MARK_EVERY

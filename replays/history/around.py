"""What stood around an event: the queues on the path, the ask, the allocations and the nodes that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from replays.history import views
from replays.history.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.vocabulary import AnyEvent
    from evsched.core.state import State

_NAMED = ("ask", "allocation", "application", "queue", "node", "required_node", "id")
MOST = 20
"""Most rows of a kind; what a large preemption names is cut there."""


def around(state: State, events: Iterable[AnyEvent]) -> Rows:
    """Return the rows of a state that these events are about; queues with all those above them.

    Args:
        state: As it was before the events.
        events: What happened, or should have.
    """
    names: set[str] = set()
    for event in events:
        _collect(msgspec.to_builtins(event), names)
    for name in tuple(names):
        held = state.asks.get(name) or state.allocations.get(name)
        if held is not None:
            names |= {held.queue, held.application, getattr(held, "node", None) or ""}
    paths = {
        queue.path for name in names if name in state.queues for queue in state.queues[name].lineage
    }
    queues = [row for row in views.queues(state) if row.queue in paths]
    asks = [row for row in views.asks(state) if row.ask in names]
    allocations = [row for row in views.allocations(state) if row.allocation in names]
    nodes = [row for row in views.nodes(state) if row.node in names]
    return Rows(
        queues=queues[:MOST] or UNSET,
        asks=asks[:MOST] or UNSET,
        allocations=allocations[:MOST] or UNSET,
        nodes=nodes[:MOST] or UNSET,
    )


def _collect(value: Any, names: set[str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _NAMED and isinstance(item, str):
                names.add(item)
            elif key != "configuration":
                _collect(item, names)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, names)

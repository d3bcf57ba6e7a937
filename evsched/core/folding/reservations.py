"""What reservations do to the state: a node is kept for an ask, and free again.

An ask has one reservation at most; a node may be kept for several asks. What is reserved counts as
used for every other ask, and not for the one it is kept for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.folding.cluster import node_changed

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.state import State


def reserved(state: State, event: v.NodeReserved | v.ReservationRestored) -> None:
    """A node is kept for an ask."""
    reserve(state, event.ask, event.node)


def reservation_released(state: State, event: v.ReservationReleased) -> None:
    """A reservation ended without being used."""
    unreserve(state, event.ask)


def reserve(state: State, ask_id: str, node_name: str) -> None:
    """Keep a node for an ask, instead of the one that was kept for it before."""
    if ask_id in state.reservations:
        unreserve(state, ask_id)
    node = state.nodes[node_name]
    state.reservations[ask_id] = node_name
    node.reserved[ask_id] = state.types.shapes[state.asks[ask_id].shape]
    node_changed(state, node)


def unreserve(state: State, ask_id: str) -> None:
    """Free the node that is kept for an ask.

    The node may be gone by now. Either way room has come free for others, so that what was tried
    in vain is tried again.
    """
    node = state.nodes.get(state.reservations.pop(ask_id))
    if node is not None:
        node.reserved.pop(ask_id, None)
        node_changed(state, node)
    state.retry_needed = True

"""Nomination: an ask waits for room that is being freed already, and no allocation is evicted for it meanwhile.

What a victim leaves is often more than the ask that it makes room for takes. Under rules 1 the next
ask waits for the rest for a moment only (`Rules.patience_ms`), and victims may take their whole
grace to leave: so asks that fit into what one large victim leaves evict one of their own each.
Under rules that nominate, such an ask is promised its part of the room. From then on it counts as
an ask in flight: the node is reserved for it, and its queues count what it will use.

Where a maximum on its path is short even when the room is free, nothing can be promised. While what
leaves the node leaves the queue of that maximum as well, the ask waits, unpromised: what else ends
below the maximum until then need not be evicted.

A nomination rests on evictions that are within their grace. It ends when the latest of them is
over, when one of them is refused, and when the room is lost otherwise. Then the ask waits like any
other and may preempt elsewhere; it is not nominated again. So an ask with a lawful plan waits no
longer than the grace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import YunikornSpec
from evsched.core.node_access import may_run
from evsched.core.timers import nomination_of
from evsched.core.withdrawal import withdraw

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.timers import Timer
    from evsched.core.workloads import Ask, Node


def is_nominated(state: State, ask: str) -> bool:
    """Tell whether an ask waits for room that others' victims leave."""
    return nomination_of(ask) in state.timers.armed


def until(state: State, ask: Ask, name: str, short: Sequence[Queue] = ()) -> int | None:
    """Return until when an ask waits for room on a node, milliseconds; None when it does not.

    It does where it fits once the victims that are within their grace are gone.

    Args:
        state: Only read.
        ask: Waits.
        name: Of the node.
        short: Queues on its path whose maximum it would pass even then. It waits all the same while
            what leaves the node leaves each of them, too: more may leave them until then.
    """
    node = state.nodes[name]
    leaving = dict(_leaving(state, node))
    if not _will_fit(state, node, ask, leaving):
        return None
    leaves = [state.queues[node.allocations[victim].queue] for victim in leaving]
    if not all(any(queue.contains(leaf) for leaf in leaves) for queue in short):
        return None
    return max(leaving.values(), default=None)


def nominate(step: Step, ask: Ask, node: str, until: int) -> None:
    """Promise an ask its part of the room that is being freed on a node."""
    step.emit(v.AskNominated, cause=ask.seq, ask=ask.id, node=node, until=until)


def expire(step: Step, timer: Timer) -> None:
    """End a nomination whose victims had their grace and are still there."""
    node = step.state.reservations[timer.subject]
    reason = f"node {node}: room for it was not free within the grace of those that leave"
    _end(step, timer.subject, timer.cause, reason)


def review(step: Step) -> None:
    """End the nominations whose room is lost because an eviction was refused or withdrawn in this step."""
    state = step.state
    refused: dict[str, None] = {}
    withdrawn = False
    for event in step.events:
        if type(event) is v.EvictionRefused:
            refused[event.allocation] = None
        elif type(event) is v.PreemptionWithdrawn:
            withdrawn = True
    if not (refused or withdrawn):
        return
    cause = step.events[-1].seq
    for name in [name for name in state.preemptions if is_nominated(state, name)]:
        node = state.nodes[state.reservations[name]]
        leaving = [victim for victim, _ in _leaving(state, node) if victim not in refused]
        if not _will_fit(state, node, state.asks[name], leaving):
            reason = f"node {node.name}: an eviction that would make room for it will not happen"
            _end(step, name, cause, reason)


def _end(step: Step, ask: str, cause: int, reason: str) -> None:
    # As when its node is lost: it has preempted for nothing so far, and may do so now.
    withdraw(step, cause, ask, reason)


def _leaving(state: State, node: Node) -> Iterator[tuple[str, int]]:
    """Yield the allocations of a node that are within their grace, each with the end of it."""
    spec = state.configuration
    assert isinstance(spec, YunikornSpec)
    grace = spec.eviction_grace_ms
    for allocation in node.allocations.values():
        if allocation.eviction_requested and allocation.eviction_requested + grace > state.time:
            yield allocation.id, allocation.eviction_requested + grace


def _will_fit(state: State, node: Node, ask: Ask, leaving: Collection[str]) -> bool:
    """Tell whether a node has room for an ask once these are gone, beside all that is promised there."""
    room = node.room_after(state.types.shapes, ask.id, leaves=lambda one: one.id in leaving)
    return may_run(state, ask, node) and all(
        room[index] >= amount for index, amount in state.types.shapes[ask.shape].pairs
    )

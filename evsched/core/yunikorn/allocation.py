"""The allocation cycle: who waits gets what is free, in the order of the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.resources import Pairs
    from evsched.core.step import Step


def within_maximum(leaf: Queue, pairs: Pairs, *, own_claim: bool) -> Queue | None:
    """Return the lowest queue on the path whose maximum the amounts would pass, None when they fit everywhere.

    What asks in flight have been promised counts as used; ``own_claim``: the amounts are such a promise themselves.
    """
    for queue in leaf.lineage:
        maximum = queue.maximum
        if maximum:
            usage, claimed = queue.usage, queue.claimed
            for index, amount in pairs:
                limit = maximum.get(index)
                if limit is not None and usage[index] + claimed[index] + (0 if own_claim else amount) > limit:
                    return queue
    return None


def allocate(step: Step) -> None:
    """Bind what fits."""
    state = step.state
    for ask in sorted(state.asks.values(), key=lambda ask: (-ask.priority, ask.created, ask.seq)):
        pairs = state.types.shapes[ask.shape].pairs
        if within_maximum(state.queues[ask.queue], pairs, own_claim=ask.id in state.preemptions) is not None:
            continue
        reserved = state.reservations.get(ask.id) or ask.required_node
        nodes = [state.nodes[reserved]] if reserved is not None else list(state.nodes.values())
        for node in nodes:
            if node.schedulable and node.fits(pairs, ask.id):
                step.emit(v.AllocationBound, cause=ask.seq, ask=ask.id, node=node.name)
                break

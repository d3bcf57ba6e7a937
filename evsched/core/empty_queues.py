"""Queues that go with their last application: dynamic ones, and those that left the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step


def remove_empty(step: Step, leaf: Queue, cause: int) -> None:
    """Remove a dynamic or draining leaf that has no application any more, and such parents that it leaves empty."""
    queues = step.state.queues
    if leaf.applications or leaf.children:
        return
    for queue in leaf.lineage:
        if (
            not (queue.dynamic or queue.draining)
            or queue.children
            or queues.get(queue.path) is not queue
        ):
            return
        step.emit(v.QueueRemoved, cause=cause, queue=queue.path)


def leaves_that_may_go(state: State, event: v.AnyInput) -> list[Queue]:
    """Return the dynamic and draining leaves that could be empty once an input is applied, before it is."""
    if isinstance(event, v.AllocationReleased):
        tasks = [state.allocations[event.allocation].queue]
    elif isinstance(event, v.AskWithdrawn):
        # One that is set aside is withdrawn already.
        tasks = [state.asks[event.ask].queue] if event.ask in state.asks else []
    elif isinstance(event, v.ApplicationRemoved):
        tasks = [state.applications[event.application].leaf.path]
    elif isinstance(event, v.NodeRemoved):
        tasks = [one.queue for one in state.nodes[event.node].allocations.values()]
    else:
        return []
    leaves = [state.queues[path] for path in dict.fromkeys(tasks)]
    return [leaf for leaf in leaves if leaf.dynamic or leaf.draining]

"""Queues that go with their last application: dynamic ones, and those that left the configuration.

A placement rule makes queues, so something has to remove them, or names of users and tags would
pile up for ever. A queue that left the configuration while something ran in it drains, and goes as
well. Queues of the configuration stay however empty they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.step import Step


def remove_empty(step: Step, leaf: Queue, cause: int) -> None:
    """Remove a leaf that may go and has no application any more, and the parents it leaves empty.

    The walk goes up and stops at the first queue that stays: one of the configuration, one with
    another child, or one that was removed and made again under its name. Each removal is an event
    of its own, children before their parents.
    """
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
    """Return the dynamic and draining leaves that an input could empty, before it is applied.

    Afterwards what ended can no longer say where it was. Each leaf is named once, in the order of
    what ends. Whether it is empty then is for `remove_empty` to see.
    """
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

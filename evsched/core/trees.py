"""From one queue tree to the next.

A new configuration replaces the tree as a whole. Applications stay in the queue they are in: a
queue that the configuration no longer names goes on as *draining* (nothing new is taken in) until
it is empty, a dynamic queue lives on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import tallies
from evsched.core.registry import family_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.configuration import Configuration
    from evsched.core.state import State


def arrange(state: State, added: Iterable[str]) -> None:
    """Put queues that the configuration does not name behind the others, in this order, as a snapshot found them.

    `install` adds the dynamic ones first. Where a queue began to drain and a dynamic one came after
    it, the order of siblings, and with it who is preempted first, was another.
    """
    after = max((queue.order for queue in state.queues.values()), default=-1) + 1
    for order, path in enumerate(added, after):
        queue = state.queues.pop(path)
        state.queues[path] = queue
        queue.order = order
        if queue.parent is not None:
            queue.parent.children[queue.name] = queue.parent.children.pop(queue.name)


def install(state: State, configuration: Configuration) -> None:
    """Put a configuration into force: new tree, applications moved over, all sums counted anew."""
    family = family_of(configuration)
    tree = family.build(configuration, state.types)
    state.configuration = configuration
    state.root, state.queues, state.local_queues = tree
    state.index = None
    state.grow_vectors()
    for path, parent in tuple(state.dynamic.items()):
        if path in state.queues:
            del state.dynamic[path]
            state.templates.pop(path, None)
        else:
            family.add_queue(state, path, parent=parent, draining=False)
    for application in state.applications.values():
        leaf = state.queues.get(application.leaf.path)
        if leaf is None or not leaf.leaf:
            path = application.leaf.path
            leaf = family.add_queue(state, path, parent=False, draining=True)
        application.leaf = leaf
        leaf.applications[application.id] = application
    if state.counting:
        tallies.count_queues(state)

"""Tallies: what can be counted up from the truth, and is looked at by whoever decides or reads.

Usage, pending amounts and what is being evicted along the queue paths; what an application and a node
have and use. Together with the larger indices (`evsched.core.indices`) they are kept as each event
is applied, as the next decision needs them. A replay that nobody looks into on its way leaves them
alone and counts once at its end (`uncounted`): that is most of the work, and what a snapshot does,
too. The truth (`evsched.core.record`) never depends on a tally, so it comes out the same.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from events.errors import LogDamaged
from evsched.core import queues as q
from evsched.core.resources import add, subtract
from evsched.core.workloads import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask

# ------------------------------------------------------------------------------ one thing at a time


def waits(state: State, application: Application, ask: Ask) -> None:
    """Count an ask that begins to wait.

    Its amounts are pending along the path of its queue. How many asks of each priority an
    application has is counted too: its highest one is the application's priority (seed
    priority_scheduling).
    """
    priorities = application.priorities
    priorities[ask.priority] = priorities.get(ask.priority, 0) + 1
    q.wait(application.leaf, state.types.shapes[ask.shape].pairs)
    if state.index is not None:
        state.index.asked(ask)


def waits_no_longer(state: State, application: Application, ask: Ask) -> None:
    """Take off an ask that was taken back."""
    _leaves_line(state, application, ask)
    q.unwait(application.leaf, state.types.shapes[ask.shape].pairs)


def begins(state: State, application: Application, ask: Ask, allocation: Allocation) -> None:
    """Count an ask that was bound: it waits no longer, and runs.

    Where it runs with what it asked for, one walk along the path does both. With Kueue it uses the
    quota of its flavors, which is another shape.
    """
    _leaves_line(state, application, ask)
    shapes, leaf = state.types.shapes, application.leaf
    if leaf.quota is None and allocation.shape == ask.shape:
        q.begin(leaf, shapes[ask.shape].pairs)
    else:
        q.unwait(leaf, shapes[ask.shape].pairs)
        q.use(leaf, shapes[allocation.shape].pairs)
    _runs(state, application, allocation)


def found(state: State, application: Application, allocation: Allocation) -> None:
    """Count an allocation that was found running.

    One that is being evicted already counts as used until it is gone, and as leaving.
    """
    pairs = state.types.shapes[allocation.shape].pairs
    q.use(application.leaf, pairs)
    if allocation.eviction_requested:
        q.tell(application.leaf, pairs, 1)
    _runs(state, application, allocation)


def ends(state: State, application: Application, allocation: Allocation) -> None:
    """Take off an allocation that is gone.

    Its node may have been removed in the same step. A node that was removed and registered again
    under its name is another one, which never had the allocation; the one it ran on is kept in
    `State.lost` until its last allocation has ended.
    """
    del application.allocations[allocation.id]
    pairs = state.types.shapes[allocation.shape].pairs
    subtract(application.usage, pairs)
    q.release(application.leaf, pairs)
    if allocation.eviction_requested:
        q.tell(application.leaf, pairs, -1)
    node: Node | None = None
    if allocation.node is not None:
        node = state.nodes.get(allocation.node)
        if node is None or allocation.id not in node.allocations:
            node = state.lost[allocation.node]
        del node.allocations[allocation.id]
        subtract(node.used, pairs)
        if state.lost and not node.allocations:
            state.lost.pop(allocation.node, None)
    if state.index is not None:
        state.index.ended(application, allocation, node, pairs)


def claims(state: State, ask: Ask, sign: int) -> None:
    """Count (``sign`` 1) or uncount (-1) what an ask in flight will use.

    Laws 1 to 5 count it as used, so that two asks in flight cannot overdraw one maximum, and
    cannot share one guarantee (docs/adr/0007).
    """
    pairs = state.types.shapes[ask.shape].pairs
    q.claim(state.queues[ask.queue], pairs, sign)
    if state.index is not None:
        state.index.claimed(state.applications[ask.application], pairs, sign)


def _leaves_line(state: State, application: Application, ask: Ask) -> None:
    """Take off the priority of an ask that is no longer among those that wait."""
    priorities = application.priorities
    left = priorities[ask.priority] - 1
    if left:
        priorities[ask.priority] = left
    else:
        del priorities[ask.priority]
    if state.index is not None:
        state.index.unasked(ask)


def _runs(state: State, application: Application, allocation: Allocation) -> None:
    """Count an allocation with its application and on its node, and tell the index."""
    pairs = state.types.shapes[allocation.shape].pairs
    application.allocations[allocation.id] = allocation
    usage = application.usage
    for index, amount in pairs:
        usage[index] += amount
    node: Node | None = None
    if allocation.node is not None:
        node = state.nodes[allocation.node]
        node.allocations[allocation.id] = allocation
        used = node.used
        for index, amount in pairs:
            used[index] += amount
    if state.index is not None:
        state.index.started(application, allocation, node, pairs)


# -------------------------------------------------------------------------------- all of it at once


@contextmanager
def uncounted(state: State) -> Iterator[None]:
    """Apply events without keeping tallies; they are counted when the block is left, however it is left.

    Inside, read nothing of the state but its truth. An index that is there is forgotten.

    Raises:
        LogDamaged: What runs or waits is nowhere, which events that a scheduler wrote cannot lead
            to. An error from within the block goes first.
    """
    if state.counting:
        state.counting = False
        state.index = None
    try:
        yield
    except BaseException:
        with suppress(LookupError):  # a consequence of what went wrong, not to stand before it
            recount(state)
        raise
    try:
        recount(state)
    except LookupError as error:
        reason = f"what runs or waits after event {state.seq} belongs to nothing that is there ({type(error).__name__}: {error})"
        raise LogDamaged(-1, reason) from error


def recount(state: State) -> None:
    """Count everything anew, and keep counting from here on.

    It costs one pass over what runs and waits, whatever the log's length is. Sums along the queue
    paths are taken from the applications and from groups of equal tasks, as walking a path for
    each task is most of the work.
    """
    state.counting = True
    state.index = None  # what was built before there was anything to count
    for application in state.applications.values():
        application.usage = [0] * state.width
        application.allocations = {}
        application.priorities = {}
    for node in state.nodes.values():
        node.used = [0] * state.width
        node.allocations = {}
    state.lost.clear()
    for queue in (state.root, *state.queues.values()):
        queue.clear()
    count_work(state)
    count_queues(state)


def count_work(state: State) -> None:
    """Count what empty applications and nodes have.

    It comes before `count_queues`, which adds up what the applications use.
    """
    shapes = state.types.shapes
    nodes, applications = state.nodes, state.applications
    for name, allocation in state.allocations.items():
        application = applications[allocation.application]
        application.allocations[name] = allocation
        usage = application.usage
        if allocation.node is None:
            add(usage, shapes[allocation.shape].pairs)
            continue
        node = nodes.get(allocation.node)
        if node is None:  # in the middle of a step that removes it
            node = state.lost.setdefault(allocation.node, Node(allocation.node, state.width))
        node.allocations[name] = allocation
        used = node.used
        for index, amount in shapes[allocation.shape].pairs:
            usage[index] += amount
            used[index] += amount
    for (name, priority), count in Counter(map(_OF_PRIORITY, state.asks.values())).items():
        applications[name].priorities[priority] = count


def count_queues(state: State) -> None:
    """Count what is used, waits, is leaving and is claimed in an empty tree, after `count_work`.

    Used amounts come from the applications. The other three are few or alike, so they are grouped
    by queue and shape, and each group walks its path once.
    """
    shapes, queues = state.types.shapes, state.queues
    for application in state.applications.values():
        q.use(
            application.leaf,
            tuple((index, amount) for index, amount in enumerate(application.usage) if amount),
        )
    told = [
        allocation for allocation in state.allocations.values() if allocation.eviction_requested
    ]
    for (path, shape), count in Counter(map(_OF_QUEUE, told)).items():
        q.tell(queues[path], shapes[shape].pairs, count)
    for (path, shape), count in Counter(map(_OF_QUEUE, state.asks.values())).items():
        q.wait(queues[path], _times(shapes[shape].pairs, count), count)
    for ask in map(state.asks.__getitem__, state.preemptions):
        claims(state, ask, 1)


_OF_QUEUE = attrgetter("queue", "shape")
_OF_PRIORITY = attrgetter("application", "priority")


def _times(pairs: Pairs, count: int) -> Pairs:
    return tuple((index, count * amount) for index, amount in pairs)

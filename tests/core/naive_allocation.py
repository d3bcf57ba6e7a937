"""The order and the placement once more, deliberately naive: the oracle of the incremental ones.

Everything is counted from the asks and allocations, nothing from what the state keeps; ratios are
fractions; every pick sorts everything anew and scans every node.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from events import vocabulary as v
from events.configuration import YunikornSpec
from evsched.core.queues import Application, Queue
from evsched.core.state import State
from evsched.core.workloads import Allocation, Ask, Node
from evsched.core.yunikorn import limits
from tests.core.pods import takes


def amounts(state: State, task: Ask | Allocation) -> dict[str, int]:
    """Return what a task asks for or uses, by type name."""
    return {
        name: amount for name, amount in state.types.shapes[task.shape].resources.items() if amount
    }


def add_up(state: State, tasks: Iterator[Ask | Allocation]) -> dict[str, int]:
    """Return the sum over tasks, by type name."""
    total: dict[str, int] = {}
    for task in tasks:
        for name, amount in amounts(state, task).items():
            total[name] = total.get(name, 0) + amount
    return total


def below(queue: Queue, path: str) -> bool:
    """Tell whether a path is that of the queue or of one below it."""
    return path == queue.path or path.startswith(queue.path + ".")


def priority(state: State, queue: Queue) -> int | None:
    """Return the priority that a queue shows above it; None when nothing waits inside."""
    if queue.leaf:
        inside = [ask.priority for ask in state.asks.values() if ask.queue == queue.path]
    else:
        inside = [
            shown
            for child in queue.children.values()
            if (shown := priority(state, child)) is not None
        ]
    if not inside:
        return None
    if queue.settings.priority_fence:
        return queue.settings.priority_offset
    return min(2**31 - 1, max(-(2**31), max(inside) + queue.settings.priority_offset))


def ratio(state: State, usage: dict[str, int], queue: Queue) -> Fraction:
    """Return the largest ratio of usage to guarantee, or to the fair maximum where there is no guarantee."""
    names = state.types.names
    compared: dict[str, int] = {}
    for node in state.nodes.values():
        for name, amount in node.resources.items():
            compared[name] = compared.get(name, 0) + amount
    compared = {name: amount for name, amount in compared.items() if amount}
    path = []
    above: Queue | None = queue
    while above is not None:
        path.append(above)
        above = above.parent
    for above in reversed(path):
        compared |= {names[index]: amount for index, amount in above.maximum.items()}
    compared |= {names[index]: amount for index, amount in queue.guaranteed.items()}
    ratios = [Fraction(0)]
    for name, used in usage.items():
        if name in compared and used:
            ratios.append(Fraction(used, compared[name]) if compared[name] else Fraction(1))
    return max(ratios)


def children_in_order(state: State, parent: Queue) -> list[Queue]:
    """Return the children in which something waits, first to be considered first."""

    def key(child: Queue) -> tuple[object, ...]:
        shown = priority(state, child)
        assert shown is not None
        usage = add_up(
            state, (one for one in state.allocations.values() if below(child, one.queue))
        )
        pending = add_up(state, (one for one in state.asks.values() if below(child, one.queue)))
        fair = ratio(state, usage, child)
        hunger = [-pending.get(name, 0) for name in state.types.names]
        first = (-shown, fair) if parent.settings.sort_priority else (fair, -shown)
        return (*first, hunger, child.path)

    return sorted(
        (child for child in parent.children.values() if priority(state, child) is not None), key=key
    )


def applications_in_order(state: State, leaf: Queue) -> list[Application]:
    """Return the applications of a leaf that have asks and may be considered, first to be considered first."""

    def key(application: Application) -> tuple[object, ...]:
        highest = max(ask.priority for ask in application.asks.values())
        usage = add_up(state, iter(application.allocations.values()))
        policy = (
            ratio(state, usage, leaf)
            if leaf.settings.sort_policy == "fair"
            else application.created
        )
        first = (-highest, policy) if leaf.settings.sort_priority else (policy, -highest)
        return (*first, application.created, application.seq, application.id)

    waiting = sorted(
        (one for one in leaf.applications.values() if one.asks and not is_paused(state, one)),
        key=key,
    )
    if leaf.settings.sort_policy != "stateaware":
        return waiting
    new = [application for application in waiting if not application.allocations]
    return [
        application for application in waiting if application.allocations or application is new[0]
    ]


def is_paused(state: State, application: Application) -> bool:
    """Tell whether an application is paused: the timer that ends it is armed."""
    return any(
        timer.kind == "pause" and timer.subject == application.id
        for timer in state.timers.armed.values()
    )


def to_be_paused(state: State) -> list[v.ApplicationPaused]:
    """Return the pauses that begin when nothing more can be bound, in the order of the log; the partition must not preempt."""
    found = []
    for application in sorted(state.applications.values(), key=lambda one: one.seq):
        settings = application.leaf.settings
        waiting = [ask for ask in application.asks.values() if ask.id not in state.preemptions]
        asks = sum(place(state, ask) is None for ask in waiting)
        if (
            settings.backoff_asks
            and asks >= settings.backoff_asks
            and not is_paused(state, application)
        ):
            last = max(ask.seq for ask in application.asks.values())
            until = state.time + settings.backoff_delay_ms
            found.append(
                v.ApplicationPaused(cause=last, application=application.id, until=until, asks=asks)
            )
    return found


def asks_in_order(state: State, queue: Queue) -> Iterator[Ask]:
    """Yield all asks in the order in which they are considered."""
    if not queue.leaf:
        for child in children_in_order(state, queue):
            yield from asks_in_order(state, child)
        return
    for application in applications_in_order(state, queue):
        yield from sorted(
            application.asks.values(), key=lambda ask: (-ask.priority, ask.created, ask.seq, ask.id)
        )


def free(state: State, node: Node, ask: str | None) -> dict[str, int]:
    """Return what an ask may use of a node: its own reservation counts as free, that of others does not. None: of anybody."""
    rest = dict(node.resources)
    taken = [amounts(state, one) for one in state.allocations.values() if one.node == node.name]
    taken += [
        amounts(state, state.asks[one])
        for one, name in state.reservations.items()
        if name == node.name and one != ask
    ]
    for taking in taken:
        for name, amount in taking.items():
            rest[name] = rest.get(name, 0) - amount
    return rest


def fits(state: State, node: Node, task: Ask, ask: str | None) -> bool:
    """Tell whether a task fits on a node."""
    rest = free(state, node, ask)
    return takes(state, task, node) and all(
        rest.get(name, 0) >= amount for name, amount in amounts(state, task).items()
    )


def node_order(state: State, node: Node) -> tuple[int, str]:
    """Return the sort key of a node: least used first (fair) or most used first (binpacking), then the name."""
    spec = state.configuration
    assert isinstance(spec, YunikornSpec)
    used = add_up(state, (one for one in state.allocations.values() if one.node == node.name))
    total = weighed = 0
    for name, capacity in node.resources.items():
        if capacity:
            weight = spec.node_sort_weights.get(name, 1000)
            total += weight
            weighed += weight * (used.get(name, 0) * 10**9 // capacity)
    use = weighed // total if total else 0
    return (-use if spec.node_sort_policy == "binpacking" else use, node.name)


def place(state: State, ask: Ask) -> str | None:
    """Return the node for an ask that has none reserved."""
    nodes = [state.nodes[ask.required_node]] if ask.required_node in state.nodes else []
    if ask.required_node is None:
        nodes = sorted(state.nodes.values(), key=lambda node: node_order(state, node))
    for node in nodes:
        if fits(state, node, ask, None):
            return node.name
    return None


def has_headroom(state: State, ask: Ask) -> bool:
    """Tell whether an ask fits the maxima on its path; what asks in flight were promised counts for all others."""
    names = state.types.names
    queue: Queue | None = state.queues[ask.queue]
    wanted = amounts(state, ask)
    while queue is not None:
        users: list[Ask | Allocation] = [
            one for one in state.allocations.values() if below(queue, one.queue)
        ]
        if ask.id not in state.preemptions:
            users += [
                state.asks[name]
                for name in state.preemptions
                if below(queue, state.asks[name].queue)
            ]
        usage = add_up(state, iter(users))
        for index, limit in queue.maximum.items():
            if names[index] in wanted and usage.get(names[index], 0) + wanted[names[index]] > limit:
                return False
        queue = queue.parent
    return True


def limited(state: State, ask: Ask) -> bool:
    """Tell whether a limit of its user, group or application holds an ask back.

    Only which limits an application counts against is asked of the rules; what counts against them
    is added up here, that of asks in flight included.
    """
    own = state.applications[ask.application]
    wanted = amounts(state, ask)
    for queue in own.leaf.lineage:
        for held in limits.held_in(queue, own):
            peers = {
                one.id
                for one in state.applications.values()
                if below(queue, one.leaf.path)
                and any(other.key == held.key for other in limits.held_in(queue, one))
            }
            running = [one for one in state.allocations.values() if one.application in peers]
            flying = [
                state.asks[name]
                for name in state.preemptions
                if state.asks[name].application in peers
            ]
            usage = add_up(state, iter([*running, *flying]))
            if any(
                name in wanted and usage.get(name, 0) + wanted[name] > most
                for name, most in held.resources.items()
            ):
                return True
            count = {one.application for one in [*running, *flying]}
            most = held.applications
            if most and not own.allocations and len(count - {own.id}) >= most:
                return True
    return False


def reserved(state: State) -> list[tuple[str, str]]:
    """Return the asks with a reservation that can be bound now, each with its node, oldest first."""
    bound: list[tuple[str, str]] = []
    for ask in sorted((state.asks[name] for name in state.reservations), key=lambda ask: ask.seq):
        if not has_headroom(state, ask) or (
            ask.id not in state.preemptions and limited(state, ask)
        ):
            continue
        node = state.nodes[state.reservations[ask.id]]
        if ask.required_node in (None, node.name) and fits(state, node, ask, ask.id):
            bound.append((ask.id, node.name))
        elif ask.id in state.preemptions and not state.preemptions[ask.id].waiting_for:
            used = add_up(
                state, (one for one in state.allocations.values() if one.node == node.name)
            )
            rest = {name: held - used.get(name, 0) for name, held in node.resources.items()}
            here = takes(state, ask, node) and ask.required_node in (None, node.name)
            here = here and all(
                rest.get(name, 0) >= amount for name, amount in amounts(state, ask).items()
            )
            name = node.name if here else place(state, ask)
            if name is not None:
                bound.append((ask.id, name))
    return bound


def pick(state: State) -> tuple[str, str] | None:
    """Return the ask that is bound next and its node; None when there is none. Asks with reservations first."""
    found = reserved(state)
    if found:
        return found[0]
    for ask in asks_in_order(state, state.root):
        if ask.id not in state.preemptions and has_headroom(state, ask) and not limited(state, ask):
            name = place(state, ask)
            if name is not None:
                return ask.id, name
    return None


def bound_event(state: State, ask: str, node: str) -> v.AllocationBound:
    """Return the event with which the oracle binds an ask."""
    return v.AllocationBound(seq=state.seq + 1, cause=state.asks[ask].seq, ask=ask, node=node)

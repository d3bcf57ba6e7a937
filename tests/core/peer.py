"""The real YuniKorn once more, as far as the priority files need it: the naive allocator and two things that only it does.

**Reservations.** An ask that fits the maxima on its path and what the whole cluster has free, but
fits no node, reserves one: of the nodes that nobody has reserved and that are large enough when
empty, the one that lacks the smallest part of the ask (summed over the types); of equals the first
in the order of nodes. That is all that happens in this turn; the next begins at the top. A reserved
node takes nobody else, so a large ask keeps it to itself although smaller asks behind would fit
there. An ask that is larger than all that is free reserves nothing; nine of the files show that.
They cannot tell the best node from the first in the order of nodes (which has the most room), and
none has an ask too large for every empty node.

Left out, as nothing in the files shows it: the ask must be older than 2 s, and its reservation ends
when the node has room. Here every ask is older, and nothing ever leaves, so a reservation is for
good.

**Maxima left behind.** To sort the children of a queue the real one makes two lists in the order of
a map: the children, and their fair maxima. It sorts the first by what stands at one place in both,
and never moves the second. As soon as two children have changed places, each is compared with the
maximum of another one; types with a guarantee are spared. Read in its release 1.8.0, functions
``sortQueues`` and ``sortQueuesByPriorityAndFairness``. A small Go map is walked in the order of
insertion, begun anywhere: the order of three children as they were inserted, copied once as there,
comes out in about 6 of 10 walks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from events import vocabulary as v
from evsched.core.engine import Engine
from evsched.core.queues import Queue
from evsched.core.state import State
from evsched.core.workloads import Ask, Node
from evsched.core.yunikorn.ordering import fair_maximum
from replays.scenarios.scenario import Scenario
from replays.scenarios.staging import Staging
from tests.core import naive_allocation as naive

Order = Callable[[State, Queue], list[Queue]]
"""Returns the children of a queue in which something waits, first to be considered first."""


class Turn(NamedTuple):
    """What one turn led to: an ask got this node, or it reserved it."""

    ask: str
    node: str
    bound: bool


def bindings(
    scenario: Scenario, *, reserves: bool, order: Order = naive.children_in_order
) -> set[tuple[str, str]]:
    """Return which asks of a scenario are bound at second 0, each with its node.

    Args:
        scenario: Its steps are not taken.
        reserves: Whether asks reserve nodes.
        order: How the children of a queue are sorted.
    """
    engine = Engine()
    engine.step(
        scenario.start_ms,
        [v.Proposal(input=one) for one in Staging(scenario).beginning()],
        decide=False,
    )
    reserved: dict[str, str] = {}
    found = set()
    while (turn := next_turn(engine.state, reserved, order, reserves=reserves)) is not None:
        if turn.bound:
            engine.apply(naive.bound_event(engine.state, turn.ask, turn.node), scenario.start_ms)
            found.add((turn.ask, turn.node))
        else:
            reserved[turn.ask] = turn.node
    return found


def next_turn(
    state: State, reserved: dict[str, str], order: Order, *, reserves: bool
) -> Turn | None:
    """Return the first ask that gets or reserves a node; None: nobody does. ``reserved``: nodes by the ask that has them."""
    nodes = sorted(state.nodes.values(), key=lambda node: naive.node_order(state, node))
    nodes = [node for node in nodes if node.schedulable and node.name not in reserved.values()]
    for ask in asks_in_order(state, state.root, order):
        if (
            ask.id in reserved
            or not naive.has_headroom(state, ask)
            or naive.limited(state, ask)
            or not fits_cluster(state, ask)
        ):
            continue
        for node in nodes:
            if naive.fits(state, node, ask, None):
                return Turn(ask.id, node.name, bound=True)
        large = [node for node in nodes if is_large_enough(state, node, ask)]
        if reserves and large:
            return Turn(
                ask.id, min(large, key=lambda node: lacks(state, node, ask)).name, bound=False
            )
    return None


def asks_in_order(state: State, queue: Queue, order: Order) -> Iterator[Ask]:
    """Yield all asks below a queue in the order in which they are considered."""
    if queue.leaf:
        yield from naive.asks_in_order(state, queue)
        return
    for child in order(state, queue):
        yield from asks_in_order(state, child, order)


# ------------------------------------------------------------------------------------- reservations


def fits_cluster(state: State, ask: Ask) -> bool:
    """Tell whether an ask fits what all nodes together have free: the headroom of root."""
    used = naive.add_up(state, iter(state.allocations.values()))
    capacity = dict(zip(state.types.names, state.total, strict=False))
    return all(
        used.get(name, 0) + amount <= capacity.get(name, 0)
        for name, amount in naive.amounts(state, ask).items()
    )


def is_large_enough(state: State, node: Node, ask: Ask) -> bool:
    """Tell whether an ask would fit on a node that is empty."""
    return all(
        node.resources.get(name, 0) >= amount for name, amount in naive.amounts(state, ask).items()
    )


def lacks(state: State, node: Node, ask: Ask) -> Fraction:
    """Return which part of an ask a node has no room for, summed over the types; 0: it fits."""
    rest = naive.free(state, node, None)
    wanted = naive.amounts(state, ask)
    return sum(
        (
            Fraction(max(0, amount - max(0, rest.get(name, 0))), amount)
            for name, amount in wanted.items()
        ),
        Fraction(0),
    )


# -------------------------------------------------------------------------- maxima that stay behind


def with_maxima_left_behind(turned: int = 0) -> Order:
    """Return the order in which fair maxima keep the places that their queues had before they were sorted.

    Args:
        turned: How many children the map put to the end before the walk over it began.
    """

    def order(state: State, parent: Queue) -> list[Queue]:
        children = list(parent.children.values())
        walked = [
            child
            for child in children[turned:] + children[:turned]
            if naive.priority(state, child) is not None
        ]
        queues = list(walked)

        def before(place: int) -> bool:
            """Tell whether the child at a place comes before the one to its left; each place keeps its fair maximum."""
            one, other = (
                sort_key(state, queues[here], walked[here]) for here in (place, place - 1)
            )
            return one < other

        for last in range(1, len(queues)):
            place = last
            while place and before(place):
                queues[place - 1], queues[place] = queues[place], queues[place - 1]
                place -= 1
        return queues

    return order


def sort_key(state: State, queue: Queue, lender: Queue) -> tuple[object, ...]:
    """Return the sort key of a queue whose usage is compared with the fair maximum of another one."""
    shown = naive.priority(state, queue)
    assert queue.parent is not None
    assert shown is not None
    names = state.types.names
    usage = naive.add_up(
        state, (one for one in state.allocations.values() if naive.below(queue, one.queue))
    )
    pending = naive.add_up(
        state, (one for one in state.asks.values() if naive.below(queue, one.queue))
    )
    compared = fair_maximum(lender, state.total) | queue.guaranteed
    fair = max(Fraction(usage.get(names[index], 0), amount) for index, amount in compared.items())
    first = (-shown, fair) if queue.parent.settings.sort_priority else (fair, -shown)
    return (*first, [-pending.get(name, 0) for name in names], queue.path)

"""Explain where queues have maxima and asks need nodes: what holds an ask, and what would change that.

All causes of an ask have to go: each was found by itself, whatever else holds the ask. Which rules
hold it was heard while a copy of the engine looked at it; the numbers are those of the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from evsched.core.node_access import may_run
from evsched.core.timers import nomination_of
from replays.explaining import node_conditions
from replays.explaining.tracer import Note, cause, remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask, Node

NODES_SHOWN = 5
"""How many nodes that almost fit are named."""


class Level(Struct, frozen=True, kw_only=True):
    """One queue on the path, for one resource.

    Attributes:
        claimed: What asks in flight were promised.
        limit: Maximum; None: not limited.
        guaranteed: None: none.
        binding: The request does not fit here.
    """

    queue: str
    resource: str
    requested: int
    used: int
    claimed: int = 0
    limit: int | None = None
    guaranteed: int | None = None
    binding: bool = False


class NearNode(Struct, frozen=True, kw_only=True):
    """A node that does not have enough, and by how much; an empty ``lacking`` says that it has."""

    node: str
    lacking: dict[str, int]
    reserved_for: tuple[str, ...] = ()
    schedulable: bool = True


class NodeLook(Struct, frozen=True, kw_only=True):
    """What there is to say of an ask that waits.

    Attributes:
        causes: What holds it; all of them have to go.
        unblock: What would lift each.
    """

    causes: tuple[Note, ...]
    unblock: tuple[Note, ...]
    levels: tuple[Level, ...]
    nodes: tuple[NearNode, ...]


def look(state: State, ask: Ask, heard: Sequence[Note]) -> NodeLook:
    """Return what holds an ask, what would change that, and what is nearest.

    Args:
        state: Of the moment; only read.
        ask: Waits in it.
        heard: What the tracer heard of the waiting asks at this moment.
    """
    path, nodes = levels(state, ask), near_nodes(state, ask)
    promised = ask.id in state.preemptions
    causes = (
        _promised(state, ask, path, nodes) if promised else _held(state, ask, path, nodes, heard)
    )
    return NodeLook(
        causes=tuple(causes),
        unblock=tuple(one for found in causes for one in _lifts(ask, found)),
        levels=tuple(path),
        nodes=tuple(nodes),
    )


def levels(state: State, ask: Ask) -> list[Level]:
    """Return what is requested, used and allowed at every level of an ask's path, leaf first."""
    names = state.types.names
    own = ask.id in state.preemptions
    found = []
    for queue in state.queues[ask.queue].lineage:
        for index, amount in state.types.shapes[ask.shape].pairs:
            limit = queue.maximum.get(index)
            over = (
                limit is not None
                and queue.usage[index] + queue.claimed[index] + (0 if own else amount) > limit
            )
            found.append(
                Level(
                    queue=queue.path,
                    resource=names[index],
                    requested=amount,
                    used=queue.usage[index],
                    claimed=queue.claimed[index],
                    limit=limit,
                    guaranteed=queue.guaranteed.get(index),
                    binding=over,
                )
            )
    return found


def _named(state: State, ask: Ask) -> list[Node]:
    """Return the node that an ask requires, where it is there; all nodes when it requires none."""
    if ask.required_node is None:
        return list(state.nodes.values())
    return [state.nodes[ask.required_node]] if ask.required_node in state.nodes else []


def _allowed(state: State, ask: Ask) -> list[Node]:
    """Return the nodes on which an ask may run, those included that take nobody at present."""
    return node_conditions.split(state, ask, _named(state, ask))[0]


def near_nodes(state: State, ask: Ask) -> list[NearNode]:
    """Return the nodes that fit or come nearest, the nearest first: fewest types short, then the least share missing."""
    pairs = state.types.shapes[ask.shape].pairs
    ranked = []
    for node in _allowed(state, ask):
        lacking = {
            index: amount - node.available(index, ask.id)
            for index, amount in pairs
            if node.available(index, ask.id) < amount
        }
        short = sum(
            (missing << 32) // amount
            for index, amount in pairs
            if (missing := lacking.get(index, 0))
        )
        others = tuple(other for other in node.reserved if other != ask.id)
        near = NearNode(
            node=node.name,
            lacking=state.types.named(lacking.items()),
            reserved_for=others,
            schedulable=node.schedulable,
        )
        ranked.append((not node.schedulable, len(lacking), short, node.name, near))
    ranked.sort(key=lambda one: one[:4])
    return [one[4] for one in ranked[:NODES_SHOWN]]


def _held(
    state: State, ask: Ask, path: list[Level], nodes: list[NearNode], heard: Sequence[Note]
) -> list[Note]:
    """Return what the allocation cycle passes an ask over for, with the numbers of the state.

    All of it has to go. The tracer heard what was left when the asks before it had been served, so
    that what it heard may not hold of the state itself: the ask is overtaken then.
    """
    own = [note for note in heard if note.subject == ask.id]
    codes = {note.code for note in own}
    found = [*_pause(state, ask, heard)]
    if "max" in codes:
        found += [
            _maximum(level, used=level.used, promised=level.claimed)
            for level in path
            if level.binding
        ]
    for note in own:
        if note.code in ("limit", "behind"):
            found.append(cause(note.facts["queue"], note.code, **note.facts))
    fits = bool(nodes) and nodes[0].schedulable and not nodes[0].lacking
    if codes & {"no-node", "required-node"} and not fits:
        found.append(_no_node(state, ask, nodes))
    if codes and not found:
        found.append(cause(ask.id, "overtaken"))
    return found


def _pause(state: State, ask: Ask, heard: Sequence[Note]) -> Iterable[Note]:
    """Yield the pause of the application of an ask, with how many of its asks fit on no node."""
    until = state.paused.get(ask.application)
    if until is None or until <= state.time:  # over with the next step
        return
    without = {
        note.subject
        for note in heard
        if note.code in ("no-node", "required-node") and note.subject not in state.preemptions
    }
    yield cause(ask.id, "paused", application=ask.application, asks=len(without), until=until)


def _maximum(level: Level, *, used: int, promised: int) -> Note:
    return cause(
        level.queue, "queue-maximum", queue=level.queue, resource=level.resource,
        requested=level.requested, used=used, promised=promised, limit=level.limit,
    )  # fmt: skip


def _no_node(state: State, ask: Ask, nodes: list[NearNode]) -> Note:
    """Return why no node takes an ask: there is none, none is large enough, or the nearest lacks something."""
    named = _named(state, ask)
    if not named:
        code = "no-nodes" if ask.required_node is None else "node-unknown"
        return cause(ask.id, code, node=ask.required_node)
    pairs = state.types.shapes[ask.shape].pairs
    allowed, refused = node_conditions.split(state, ask, named)
    if not nodes:
        return cause(ask.id, "node-conditions", nodes=len(named), refused=refused)
    if not any(all(node.capacity[index] >= amount for index, amount in pairs) for node in allowed):
        near = state.nodes[nodes[0].node]
        capacity = {state.types.names[index]: near.capacity[index] for index, _ in pairs}
        requested = state.types.shapes[ask.shape].resources
        return cause(
            ask.id, "too-large", node=near.name, required=ask.required_node is not None,
            requested=requested, capacity=capacity,
        )  # fmt: skip
    near_one = nodes[0]
    return cause(
        near_one.node, "no-node", node=near_one.node, lacking=near_one.lacking,
        reserved_for=near_one.reserved_for, nodes=len(named), refused=refused,
    )  # fmt: skip


def _lifts(ask: Ask, found: Note) -> Iterable[Note]:
    """Yield what would lift one cause."""
    facts = found.facts
    match found.code:
        case "in-flight":
            for name in facts["waiting_for"]:
                yield remedy(name, "victims-end", allocation=name)
        case "overtaken":
            yield remedy(ask.id, "overtaken")
        case "paused":
            yield remedy(ask.id, "pause-ends", **facts)
        case "queue-maximum":
            missing = facts["used"] + facts["promised"] + facts["requested"] - facts["limit"]
            yield remedy(found.subject, "queue-maximum", missing=missing, **facts)
        case "limit" | "behind" | "too-large":
            yield remedy(found.subject, found.code, **facts)
        case "no-node":
            yield remedy(found.subject, "node-room", **facts)
        case "no-nodes" | "node-unknown" | "node-conditions":
            yield remedy(found.subject, found.code, **facts)


# --------------------------------------------------------------------------------- asks in flight


def in_flight_cause(state: State, ask: Ask) -> Note | None:
    """Return what an ask in flight waits for; None for any other."""
    in_flight = state.preemptions.get(ask.id)
    if in_flight is None:
        return None
    nomination = state.timers.armed.get(nomination_of(ask.id))
    if nomination is not None:
        return cause(ask.id, "nomination", node=in_flight.node, until=nomination.due)
    return cause(ask.id, "in-flight", node=in_flight.node, waiting_for=tuple(in_flight.waiting_for))


def _promised(state: State, ask: Ask, path: list[Level], nodes: list[NearNode]) -> list[Note]:
    """Return what an ask in flight waits for: its victims, and what holds it even without them.

    Its own promise counts as used no longer when it is bound, and no other promise is asked for.
    """
    first = in_flight_cause(state, ask)
    assert first is not None
    if first.code == "nomination":
        return [first]
    in_flight = state.preemptions[ask.id]
    victims = [state.allocations[name] for name in in_flight.waiting_for]
    found = []
    for level in path:
        index = state.types.index[level.resource]
        queue = state.queues.get(level.queue, state.root)
        used = level.used - _freed(state, victims, index, queue)
        if level.limit is not None and used + level.requested > level.limit:
            found.append(_maximum(level, used=used, promised=0))
    if not _has_place(state, ask, victims):
        found.append(_no_node(state, ask, nodes))
    # Where its node has room already, it does not wait for its victims but for the rest.
    node = state.nodes.get(state.reservations.get(ask.id, ""))
    pairs = state.types.shapes[ask.shape].pairs
    ready = node is not None and may_run(state, ask, node) and node.fits(pairs, ask.id)
    return [first, *found] if (victims and not ready) or not found else found


def _freed(state: State, victims: Sequence[Allocation], index: int, queue: Queue) -> int:
    """Return how much of a type victims in a queue and below it hold."""
    shapes = state.types.shapes
    return sum(
        amount
        for one in victims
        if queue.contains(state.queues[one.queue])
        for kind, amount in shapes[one.shape].pairs
        if kind == index
    )


def _has_place(state: State, ask: Ask, victims: Sequence[Allocation]) -> bool:
    """Tell whether a node takes an ask in flight once its victims are gone: its own, or any other."""
    pairs = state.types.shapes[ask.shape].pairs
    reserved = state.reservations.get(ask.id)
    for node in _allowed(state, ask):
        here = [one for one in victims if one.node == node.name]
        freed = {index: _freed(state, here, index, state.root) for index, _ in pairs}
        if node.schedulable and all(
            (node.free(index) if node.name == reserved else node.available(index, ask.id))
            + freed[index]
            >= amount
            for index, amount in pairs
        ):
            return True
    return False

"""Explain: why an ask waits, why an allocation was told to go or spared, and what would change it.

Nothing was written down for this when it happened. The state of the moment is rebuilt, copied, and
decided upon once more with a tracer that listens to every consideration; so it works for any moment
of any log and costs nothing in production.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.quantity import format_amount
from evsched.core.reducer import apply
from evsched.core.step import Step as CoreStep
from evsched.core.yunikorn.columns import NodeColumns
from evsched.core.yunikorn.settings import BACKOFF
from replays.explaining.kueue import FairShare, FlavorLook, QuotaLevel, look
from replays.explaining.notebook import Note, Notebook
from replays.explaining.wording import YES
from replays.history.mentions import Mention
from replays.history.moments import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.state import State
    from evsched.core.workloads import Ask

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


class Explanation(Struct, frozen=True, kw_only=True):
    """Everything that can be said of one ask or allocation at one moment.

    Attributes:
        status: ``waits``, ``in flight``, ``runs``, ``leaving``, ``gone`` or ``unknown``.
        summary: The answer in a sentence or two.
        missed: (YuniKorn) How many preemption cycles went by since the first that tried it in vain,
            that one included.
        levels: The queue path, leaf first; quotas: the same for Kueue, by flavor.
        nodes: Nodes that fit, or almost.
        flavors: (Kueue) Those that were considered.
        shares: (Kueue, fair sharing) Of the queues concerned, now and with it running.
        passed_over: Who or what was considered and why not.
        unblock: What would change it.
    """

    subject: str
    status: str
    seq: int
    time: int
    summary: str
    missed: int = 0
    history: tuple[Mention, ...] = ()
    levels: tuple[Level, ...] = ()
    quotas: tuple[QuotaLevel, ...] = ()
    nodes: tuple[NearNode, ...] = ()
    flavors: tuple[FlavorLook, ...] = ()
    shares: tuple[FairShare, ...] = ()
    passed_over: tuple[Note, ...] = ()
    unblock: tuple[str, ...] = ()


def copy(engine: Engine) -> Engine:
    """Return an engine with a state of its own, equal to that of the other."""
    return Engine(snapshot.decode(snapshot.encode(engine.state), engine.state.time))


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


def near_nodes(state: State, ask: Ask) -> list[NearNode]:
    """Return the nodes that fit or come nearest, the nearest first: fewest types short, then the least share missing."""
    pairs = state.types.shapes[ask.shape].pairs
    ranked = []
    for node in state.nodes.values():
        if ask.required_node is not None and node.name != ask.required_node:
            continue
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


def explain_ask(engine: Engine, ask_id: str, history: Iterable[Mention] = ()) -> Explanation:
    """Explain an ask that waits in the state of this engine, which is only read."""
    state = engine.state
    ask = state.asks[ask_id]
    notebook = Notebook()
    world = copy(engine)
    in_flight = state.preemptions.get(ask_id)
    found = Explanation(
        subject=ask_id,
        status="in flight" if in_flight is not None else "waits",
        seq=state.seq,
        time=state.time,
        summary="",
        history=tuple(history),
    )
    if isinstance(state.configuration, KueueSpec):
        seen = look(world.state, world.state.asks[ask_id], notebook)
        summary, unblock = _victims_leave(state, ask) or seen.summary, seen.unblock
        if in_flight is not None:
            unblock = tuple(f"the end of {name}" for name in in_flight.waiting_for)
        found = replace(found, quotas=seen.quotas, flavors=seen.flavors, shares=seen.shares)
    else:
        events = _decide_again(world, ask_id, notebook)
        path, nodes = levels(state, ask), near_nodes(state, ask)
        summary = (
            _victims_leave(state, ask) or _paused(state, ask) or _why_waiting(ask, path, nodes)
        )
        unblock = tuple(_unblock(state, ask, path, nodes, events))
        missed = 0 if in_flight is not None else state.missed(ask_id)
        found = replace(found, levels=tuple(path), nodes=tuple(nodes), missed=missed)
    passed_over = tuple(
        note for note in notebook.about(ask_id) if note.code not in YES and note.subject != ask_id
    )
    return replace(found, summary=summary, unblock=unblock, passed_over=passed_over)


def _decide_again(world: Engine, ask_id: str, notebook: Notebook) -> tuple[v.AnyEvent, ...]:
    """Decide once more on a copy, with the tracer listening; return what would happen now."""
    from evsched.core.yunikorn import passed_over  # noqa: PLC0415 - only here

    family = world.family
    if family is None:
        return ()
    step = CoreStep(world.state, world.state.time, apply, notebook)
    family.allocate(step)
    waiting = world.state.asks.get(ask_id)
    if waiting is not None:
        passed_over.note(world.state, waiting, notebook)
        family.cycle(step)
    return tuple(step.events)


def _victims_leave(state: State, ask: Ask) -> str:
    """Return what an ask in flight waits for; empty for any other."""
    in_flight = state.preemptions.get(ask.id)
    if in_flight is None:
        return ""
    where = f" on {in_flight.node}" if in_flight.node else ""
    left = ", ".join(in_flight.waiting_for)
    return (
        f"It preempts{where} and waits for {left} to leave."
        if left
        else f"Its victims have left{where}; it is bound next."
    )


def _paused(state: State, ask: Ask) -> str:
    """Return until when the application of an ask is paused, and how many asks of it fit on no node now; empty: it is not."""
    until = state.paused.get(ask.application)
    if until is None:
        return ""
    columns, shapes = NodeColumns(state), state.types.shapes
    waiting = [
        one
        for one in state.applications[ask.application].asks.values()
        if one.id not in state.preemptions
    ]
    count = sum(
        columns.place(shapes[one.shape]) is None
        if one.required_node is None
        else columns.place_on(one.required_node, shapes[one.shape].pairs) is None
        for one in waiting
    )
    why = (
        f"{count} of its asks {'fits' if count == 1 else 'fit'} on no node"
        if count
        else "its asks had no room, now they have"
    )
    return f"Application {ask.application} is paused until {format_time(until)}: {why} ({BACKOFF})."


def _why_waiting(ask: Ask, path: list[Level], nodes: list[NearNode]) -> str:
    binding = [level for level in path if level.binding]
    if binding:
        return " ".join(_over(level) for level in binding)
    if nodes and all(node.lacking or not node.schedulable for node in nodes):
        near = nodes[0]
        lacking = ", ".join(
            f"{format_amount(name, amount)} {name}" for name, amount in near.lacking.items()
        )
        reserved = (
            f", which is reserved for {', '.join(near.reserved_for)}" if near.reserved_for else ""
        )
        return f"No node has room; the nearest, {near.node}{reserved}, lacks {lacking or 'nothing, but takes nobody'}."
    if not nodes:
        return (
            f"Node {ask.required_node} is not registered."
            if ask.required_node
            else "There are no nodes."
        )
    return ask.failed or "Nothing holds it: the next cycle looks at it."


def _over(level: Level) -> str:
    shown = [
        format_amount(level.resource, amount)
        for amount in (level.requested, level.used + level.claimed, level.limit or 0)
    ]
    return f"Queue {level.queue}: {shown[0]} {level.resource} requested, {shown[1]} used, {shown[2]} allowed."


def _unblock(
    state: State, ask: Ask, path: list[Level], nodes: list[NearNode], events: tuple[v.AnyEvent, ...]
) -> list[str]:
    """Return what would let the ask run."""
    found = []
    for event in events:
        if isinstance(event, v.AllocationBound) and event.ask == ask.id:
            found.append(
                "nothing has to change: it would be bound now"
                + (f" on {event.node}" if event.node else "")
            )
        elif isinstance(event, v.PreemptionDecided) and event.ask == ask.id:
            found.append(f"it would preempt {', '.join(one.id for one in event.victims)} now")
    in_flight = state.preemptions.get(ask.id)
    if in_flight is not None:
        return [*found, *(f"the end of {name}" for name in in_flight.waiting_for)]
    if ask.application in state.paused:
        found.append(
            f"the end of the pause of {ask.application} at {format_time(state.paused[ask.application])}"
        )
    for level in path:
        if level.binding and level.limit is not None:
            more = level.used + level.claimed + level.requested - level.limit
            found.append(
                f"{format_amount(level.resource, more)} {level.resource} less use in {level.queue}, or as much more maximum"
            )
    if nodes and nodes[0].lacking and not any(level.binding for level in path):
        lacking = ", ".join(
            f"{format_amount(name, amount)} {name}" for name, amount in nodes[0].lacking.items()
        )
        found.append(f"{lacking} more on {nodes[0].node}")
    if ask.may_preempt and ask.required_node is None:
        ripe = ask.created + state.queues[ask.queue].settings.preemption_delay_ms
        if ripe > max(state.time, state.paused.get(ask.application, 0)):
            found.append(f"preemption is tried from {format_time(ripe)} on (preemption.delay)")
    if not ask.may_preempt:
        found.append("it may not preempt others (preemption policy Never)")
    return found


def explain_allocation(
    engine: Engine, name: str, history: Iterable[Mention] = (), spared: Iterable[Note] = ()
) -> Explanation:
    """Explain an allocation that runs in the state of this engine."""
    state, history = engine.state, tuple(history)
    allocation = state.allocations[name]
    where = allocation.node or "its quota"
    if allocation.told:
        whom = (
            f"for ask {allocation.victim_of}"
            if allocation.victim_of
            else f"for the quota of {allocation.quota_of}"
        )
        stopped = [one.text for one in history if one.text.startswith("told to go: ")]
        whom = f"({stopped[-1].removeprefix('told to go: ')})" if stopped else whom
        summary = f"It runs on {where} and was told to go at {format_time(allocation.told)} {whom}."
    else:
        summary = f"It runs on {where} since {format_time(allocation.bound)} and nobody has told it to go."
    return Explanation(
        subject=name,
        status="leaving" if allocation.told else "runs",
        seq=state.seq,
        time=state.time,
        summary=summary,
        history=history,
        passed_over=tuple(spared),
    )

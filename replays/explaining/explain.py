"""Explain: why an ask waits, why an allocation has to go or was spared, and what would change it.

Nothing was written down for this when it happened. The state of the moment is rebuilt, and copies
of it take their next steps with a tracer that listens (`replays.explaining.ahead`); so it works for
any moment of any log, costs nothing in production, and says what the engine does. What is shown
beside that (the queue path, the nearest nodes) is read off the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from evsched.core.registry import admits_by_quota, family_of
from evsched.core.timers import nomination_of
from replays.explaining import kueue
from replays.explaining.ahead import Happens, look_again, look_ahead
from replays.explaining.kueue import FairShare, FlavorLook, QuotaLevel
from replays.explaining.mentions import EVICTED, Mention
from replays.explaining.tracer import Note, RecordingTracer, cause, remedy
from replays.history.steps import copies
from replays.wording import YES, leaving, running

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.engine import Engine
    from evsched.core.state import State
    from evsched.core.workloads import Ask, Node

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
        summary: The answer in a sentence or two: those of the causes, where it waits.
        causes: What holds an ask, each with its numbers; all of them have to go before it can run.
        next: What the next step does about an ask; None: it does not wait.
        later: The first thing that happens to it if no input comes; None: nothing does, in the next
            steps.
        missed: (YuniKorn) How many preemption cycles went by since the first that tried it in vain,
            that one included.
        levels: The queue path, leaf first; quotas: the same for Kueue, by flavor.
        nodes: Nodes that fit, or almost.
        flavors: (Kueue) Those that were considered.
        shares: (Kueue, fair sharing) Of the queues concerned, now and with it running.
        passed_over: Who or what was considered and why not.
        unblock: What would let an ask run.
    """

    subject: str
    status: str
    seq: int
    time: int
    summary: str
    causes: tuple[Note, ...] = ()
    next: Happens | None = None
    later: Happens | None = None
    missed: int = 0
    history: tuple[Mention, ...] = ()
    levels: tuple[Level, ...] = ()
    quotas: tuple[QuotaLevel, ...] = ()
    nodes: tuple[NearNode, ...] = ()
    flavors: tuple[FlavorLook, ...] = ()
    shares: tuple[FairShare, ...] = ()
    passed_over: tuple[Note, ...] = ()
    unblock: tuple[Note, ...] = ()


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


def _allowed(state: State, ask: Ask) -> list[Node]:
    """Return the nodes on which an ask may run."""
    if ask.required_node is None:
        return list(state.nodes.values())
    return [state.nodes[ask.required_node]] if ask.required_node in state.nodes else []


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


def explain_ask(engine: Engine, ask_id: str, history: Iterable[Mention] = ()) -> Explanation:
    """Explain an ask that waits in the state of this engine, which is only read."""
    state = engine.state
    ask = state.asks[ask_id]
    first, later = copies(engine, 2)
    happens, then = look_ahead(first, ask_id)
    # Whether an application is paused for its asks is a matter of all of them.
    paused = state.applications[ask.application].asks if ask.application in state.paused else {}
    tracer = RecordingTracer(frozenset((ask_id, *paused)))
    heard = look_again(later, ask_id, tracer)
    found = Explanation(
        subject=ask_id,
        status="in flight" if ask_id in state.preemptions else "waits",
        seq=state.seq,
        time=state.time,
        summary="",
        next=happens,
        later=then,
        missed=0 if ask_id in state.preemptions else state.missed(ask_id),
        history=tuple(history),
        passed_over=tuple(
            note for note in tracer.about(ask_id) if note.code not in YES and note.subject != ask_id
        ),
    )
    if admits_by_quota(state.configuration):
        found = _by_quota(found, state, ask, tracer)
    else:
        found = _by_nodes(found, state, ask, tracer.notes[:heard])
    causes = found.causes or (_nothing(found, ask),)
    return replace(found, causes=causes, summary=" ".join(one.sentence for one in causes))


def _nothing(found: Explanation, ask: Ask) -> Note:
    """Return what is said of an ask that nothing holds: the next step has it, or it failed before."""
    if found.next is not None and found.next.code in ("bound", "preempts", "nominated"):
        return cause(ask.id, "nothing")
    return cause(ask.id, "failed", reason=ask.failed) if ask.failed else cause(ask.id, "nothing")


def _in_flight(state: State, ask: Ask) -> Note | None:
    """Return what an ask in flight waits for; None for any other."""
    in_flight = state.preemptions.get(ask.id)
    if in_flight is None:
        return None
    nomination = state.timers.armed.get(nomination_of(ask.id))
    if nomination is not None:
        return cause(ask.id, "nomination", node=in_flight.node, until=nomination.due)
    return cause(ask.id, "in-flight", node=in_flight.node, waiting_for=tuple(in_flight.waiting_for))


def _will(found: Explanation) -> list[Note]:
    """Return what the engine will do of itself about an ask, as what lets it run."""
    if found.later is None or found.later.code == "tried":
        return []
    return [remedy(found.subject, "next", **found.later.facts())]


# ------------------------------------------------------------------------------------------ YuniKorn


def _by_nodes(found: Explanation, state: State, ask: Ask, heard: list[Note]) -> Explanation:
    """Complete an explanation where queues have maxima and asks need nodes.

    Args:
        found: With what the engine will do.
        state: Of the moment.
        ask: Waits in it.
        heard: What the tracer heard of the waiting asks at this moment.
    """
    path, nodes = levels(state, ask), near_nodes(state, ask)
    in_flight = _in_flight(state, ask)
    causes = [in_flight] if in_flight is not None else list(_held(state, ask, path, nodes, heard))
    unblock = [*_will(found), *_changes(state, found, causes)]
    return replace(
        found, causes=tuple(causes), levels=tuple(path), nodes=tuple(nodes), unblock=tuple(unblock)
    )


def _held(
    state: State, ask: Ask, path: list[Level], nodes: list[NearNode], heard: list[Note]
) -> Iterable[Note]:
    """Yield what the allocation cycle passes an ask over for, as the tracer heard it, with the numbers of the state."""
    codes = {note.code: note.facts for note in heard if note.subject == ask.id}
    if "paused" in codes:
        without = [
            note.subject
            for note in heard
            if note.code in ("no-node", "required-node") and note.subject not in state.preemptions
        ]
        yield cause(
            ask.id, "paused", application=ask.application, asks=len(set(without)), **codes["paused"]
        )
    binding = [level for level in path if level.binding]
    fits = bool(nodes) and nodes[0].schedulable and not nodes[0].lacking
    without_node = "no-node" in codes or "required-node" in codes
    # The tracer heard what was left when those before it had been served.
    if ("max" in codes and not binding) or (without_node and fits):
        yield cause(ask.id, "overtaken")
    if "max" in codes:
        for level in binding:
            assert level.limit is not None
            yield cause(
                level.queue, "queue-maximum", queue=level.queue, resource=level.resource,
                requested=level.requested, used=level.used, promised=level.claimed, limit=level.limit,
            )  # fmt: skip
    for code in ("limit", "behind"):
        if code in codes:
            yield cause(codes[code]["queue"], code, **codes[code])
    if without_node and not fits:
        yield _no_node(state, ask, nodes)


def _no_node(state: State, ask: Ask, nodes: list[NearNode]) -> Note:
    if not nodes:
        code = "no-nodes" if ask.required_node is None else "node-unknown"
        return cause(ask.id, code, node=ask.required_node)
    for index, amount in state.types.shapes[ask.shape].pairs:
        largest = max(node.capacity[index] for node in _allowed(state, ask))
        if largest < amount:
            name = state.types.names[index]
            return cause(ask.id, "too-large", resource=name, requested=amount, largest=largest)
    near = nodes[0]
    return cause(
        near.node, "no-node", node=near.node, lacking=near.lacking, reserved_for=near.reserved_for
    )


def _changes(state: State, found: Explanation, causes: list[Note]) -> Iterable[Note]:
    """Yield what would let an ask run: for each cause what lifts it, and what is to be expected of preemption."""
    ask = state.asks[found.subject]
    for one in causes:
        facts = one.facts
        match one.code:
            case "in-flight":
                for name in facts["waiting_for"]:
                    yield remedy(name, "victims-end", allocation=name)
            case "overtaken":
                yield remedy(ask.id, "overtaken")
            case "paused":
                yield remedy(ask.id, "pause-ends", **facts)
            case "queue-maximum":
                missing = facts["used"] + facts["promised"] + facts["requested"] - facts["limit"]
                yield remedy(one.subject, "queue-maximum", missing=missing, **facts)
            case "limit" | "behind" | "too-large":
                yield remedy(one.subject, one.code, **facts)
            case "no-node" if facts["lacking"]:
                yield remedy(one.subject, "node-room", **facts)
    if not causes or causes[0].code == "in-flight":
        return
    if found.later is not None and found.later.code == "tried":
        yield remedy(ask.id, "tried", **found.later.facts())
    if not ask.may_preempt:
        yield remedy(ask.id, "preemption-never")
    elif state.configuration is not None and not family_of(state.configuration).preempts(
        state.configuration
    ):
        yield remedy(ask.id, "preemption-disabled")


# -------------------------------------------------------------------------------------------- Kueue


def _by_quota(found: Explanation, state: State, ask: Ask, tracer: RecordingTracer) -> Explanation:
    """Complete an explanation where quota alone admits."""
    in_flight = _in_flight(state, ask)
    look = kueue.look(state, ask, tracer)
    if in_flight is not None:
        waiting_for = in_flight.facts["waiting_for"]
        causes: tuple[Note, ...] = (in_flight,)
        ends = [remedy(name, "victims-end", allocation=name) for name in waiting_for]
        unblock = [*_will(found), *ends]
    else:
        decided = found.next is not None and found.next.code in ("bound", "preempts", "nominated")
        causes = () if decided else look.causes
        unblock = [*_will(found), *(() if decided else look.unblock)]
        if not ask.may_preempt:
            unblock.append(remedy(ask.id, "preemption-never"))
    return replace(
        found, causes=causes, unblock=tuple(unblock), quotas=look.quotas, flavors=look.flavors,
        shares=look.shares,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- allocations


def explain_allocation(
    engine: Engine, name: str, history: Iterable[Mention] = (), spared: Iterable[Note] = ()
) -> Explanation:
    """Explain an allocation that runs in the state of this engine."""
    state, history = engine.state, tuple(history)
    allocation = state.allocations[name]
    if allocation.eviction_requested:
        stopped = [one for one in history if one.code == EVICTED and not one.facts["ask"]]
        summary = leaving(allocation, stopped[-1].facts if stopped else None)
    else:
        summary = running(allocation)
    return Explanation(
        subject=name,
        status="leaving" if allocation.eviction_requested else "runs",
        seq=state.seq,
        time=state.time,
        summary=summary,
        history=history,
        passed_over=tuple(spared),
    )

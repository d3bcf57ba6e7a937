"""Explain an application, queue, node or user: what it has, what limits it, and what holds the asks that wait there.

Asks are explained one by one (`replays.explaining.explain`), the first few of those that wait, and
put together where the same holds them.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from evsched.core.yunikorn.limits import LimitIndex, held_in
from replays.explaining.explain import explain_ask
from replays.explaining.tracer import Note
from replays.history.rows import ApplicationRow, NodeRow, QueueRow
from replays.history.views import application_row, node_row, queue_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evsched.core.engine import Engine
    from evsched.core.queues import Application, Queue
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask

ThingKind = Literal["queue", "application", "node", "user"]
"""What an overview may be of."""

ASKS_EXPLAINED = 10
"""Of the asks that wait so many are explained: each costs a step of a copy of the engine."""


class LimitUse(Struct, frozen=True, kw_only=True):
    """A limit on users, groups or applications, and what counts against it.

    Attributes:
        queue: Path of the queue that has it.
        whom: ``user ann`` or ``group dev``; empty: the queue itself.
        resource: Empty: the number of applications.
        used: What runs, in base units.
        limit: The most that may.
    """

    queue: str
    whom: str
    resource: str
    used: int
    limit: int


class HeldAsks(Struct, frozen=True, kw_only=True):
    """Asks that the same holds.

    Attributes:
        asks: By id, in the order in which they were looked at.
        summary: What holds them, in a sentence or more.
        causes: The codes of that.
        unblock: What would let the first of them run.
    """

    asks: tuple[str, ...]
    summary: str
    causes: tuple[str, ...]
    unblock: tuple[Note, ...]


class Overview(Struct, frozen=True, kw_only=True):
    """What there is to say of an application, queue, node or user at a moment.

    Attributes:
        queues: The queue and those above it, as far up as the root; none of a node or user.
        applications: The application; of a user all of theirs.
        limits: Those that count what it runs.
        waiting, running, leaving: Asks, allocations, and allocations that are being evicted.
        explained: So many of the asks that wait were explained, the most urgent ones.
        held: What holds them.
    """

    kind: ThingKind
    name: str
    queues: tuple[QueueRow, ...] = ()
    applications: tuple[ApplicationRow, ...] = ()
    node: NodeRow | None = None
    limits: tuple[LimitUse, ...] = ()
    waiting: int
    running: int
    leaving: int
    explained: int
    held: tuple[HeldAsks, ...] = ()


def overview(engine: Engine, name: str, kind: ThingKind | None = None) -> Overview | None:
    """Return what there is to say of a thing that is no ask and no allocation.

    Args:
        engine: Before the next step; only read.
        name: Of the thing.
        kind: Which of those with this name is meant; None: the first of queue, application, node and
            user that there is.

    Returns:
        None where nothing of that kind has the name.
    """
    state = engine.state
    if kind in (None, "queue") and state.configuration is not None:
        queue = state.root if name == state.root.path else state.queues.get(name)
        if queue is not None and name:
            return _of_queue(engine, queue)
    if kind in (None, "application") and name in state.applications:
        return _of_application(engine, state.applications[name])
    if kind in (None, "node") and name in state.nodes:
        return _of_node(engine, name)
    if kind in (None, "user"):
        return _of_user(engine, name)
    return None


def _of_queue(engine: Engine, queue: Queue) -> Overview:
    applications = [one for leaf in queue.walk() for one in leaf.applications.values()]
    return _counted(
        engine, "queue", queue.path, applications, limits=_limits(engine.state, applications, queue),
        queues=tuple(queue_row(engine.state, one) for one in queue.lineage if one.path),
    )  # fmt: skip


def _of_application(engine: Engine, application: Application) -> Overview:
    state = engine.state
    return _counted(
        engine, "application", application.id, [application], limits=_limits(state, [application]),
        queues=tuple(queue_row(state, one) for one in application.leaf.lineage if one.path),
        rows=(application_row(state, application),),
    )  # fmt: skip


def _of_user(engine: Engine, name: str) -> Overview | None:
    state = engine.state
    # A user is nothing that is registered: whoever has an application is one.
    theirs = [one for _, one in sorted(state.applications.items()) if name and one.user == name]
    if not theirs:
        return None
    return _counted(
        engine, "user", name, theirs, limits=_limits(state, theirs),
        rows=tuple(application_row(state, one) for one in theirs),
    )  # fmt: skip


def _of_node(engine: Engine, name: str) -> Overview:
    state = engine.state
    node = state.nodes[name]
    # What waits for this node alone; anything else may run elsewhere.
    asks = [
        ask for ask in state.asks.values() if ask.required_node == name or ask.id in node.reserved
    ]
    held, explained = _held(engine, asks)
    return Overview(
        kind="node", name=name, node=node_row(state, node), waiting=len(asks), running=len(node.allocations),
        leaving=_leaving(node.allocations.values()), explained=explained, held=held,
    )  # fmt: skip


def _counted(  # noqa: PLR0913 - the parts of an overview
    engine: Engine, kind: ThingKind, name: str, applications: list[Application], *,
    limits: tuple[LimitUse, ...], queues: tuple[QueueRow, ...] = (), rows: tuple[ApplicationRow, ...] = (),
) -> Overview:  # fmt: skip
    """Return an overview with what its applications have."""
    asks = [ask for one in applications for ask in one.asks.values()]
    held, explained = _held(engine, asks)
    return Overview(
        kind=kind, name=name, queues=queues, applications=rows, limits=limits, waiting=len(asks),
        running=sum(len(one.allocations) for one in applications),
        leaving=sum(_leaving(one.allocations.values()) for one in applications),
        explained=explained, held=held,
    )  # fmt: skip


def _leaving(allocations: Iterable[Allocation]) -> int:
    return sum(1 for one in allocations if one.eviction_requested)


def _held(engine: Engine, asks: list[Ask]) -> tuple[tuple[HeldAsks, ...], int]:
    """Return what holds the most urgent asks, and how many were explained: by priority, the oldest first, then by id."""
    first = nsmallest(ASKS_EXPLAINED, asks, key=lambda ask: (-ask.priority, ask.created, ask.id))
    found: dict[str, HeldAsks] = {}
    for ask in first:
        told = explain_ask(engine, ask.id)
        before = found.get(told.summary)
        found[told.summary] = HeldAsks(
            asks=(*(before.asks if before is not None else ()), ask.id),
            summary=told.summary,
            causes=tuple(one.code for one in told.causes),
            unblock=told.unblock if before is None else before.unblock,
        )
    return tuple(found.values()), len(first)


def _limits(
    state: State, applications: Iterable[Application], only: Queue | None = None
) -> tuple[LimitUse, ...]:
    """Return the limits that count what applications run, each once, by queue and whom.

    Args:
        state: Only read.
        applications: Whose.
        only: Limits of this queue alone; None: of all queues on their paths.
    """
    matches = {
        held.key: (queue, held)
        for application in applications
        for queue in (application.leaf.lineage if only is None else (only,))
        for held in held_in(queue, application)
    }
    if not matches:
        return ()
    # A count of its own: the one of the state belongs to the decisions.
    index = LimitIndex(state)

    def uses() -> Iterator[LimitUse]:
        for key, (queue, held) in sorted(matches.items()):
            counted = index.counted(key)
            for resource, limit in held.resources.items():
                used = (
                    counted.used.get(state.types.index[resource], 0)
                    if resource in state.types.index
                    else 0
                )
                yield LimitUse(queue=queue.path, whom=held.whom, resource=resource, used=used, limit=limit)  # fmt: skip
            if held.applications:
                yield LimitUse(
                    queue=queue.path, whom=held.whom, resource="", used=counted.running, limit=held.applications,
                )  # fmt: skip

    return tuple(uses())

"""The state as one record: for digests and snapshots.

The record holds the truth alone, in the order in which it came about, which is a function of the
log; indices are rebuilt from it. Two readers of the same log get the same bytes, whatever their
machine or hash seed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from events.configuration import Configuration, TemplateSpec
from evsched.core import tallies, trees
from evsched.core.queues import Application, Queue
from evsched.core.state import State
from evsched.core.timers import PAUSE, Timer, Timers
from evsched.core.workloads import Allocation, Ask, Node, Preemption

if TYPE_CHECKING:
    from collections.abc import Mapping


VERSION = 1
"""Changes with the shape of the record; a snapshot of another version is not read but made anew."""


class NodeRecord(msgspec.Struct, frozen=True, array_like=True):
    """What a snapshot keeps of a node."""

    name: str
    resources: dict[str, int]
    labels: dict[str, str]
    schedulable: bool


class ApplicationRecord(msgspec.Struct, frozen=True, array_like=True):
    """What a snapshot keeps of an application."""

    id: str
    queue: str
    user: str
    groups: tuple[str, ...]
    tags: dict[str, str]
    created: int
    seq: int
    closing: bool


class StateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The truth of a state."""

    version: int = VERSION
    seq: int
    term: int
    leader: str
    checkpoint_every: int
    last_checkpoint: int
    configuration: Configuration | None
    types: list[str]
    shapes: list[dict[str, int]]
    nodes: list[NodeRecord]
    dynamic: dict[str, bool]
    templates: dict[str, TemplateSpec]
    applications: list[ApplicationRecord]
    asks: list[Ask]
    allocations: list[Allocation]
    preemptions: list[Preemption]
    quota_runs: dict[str, list[str]]
    leaving: list[tuple[int, list[str]]]
    reservations: dict[str, str]
    timers: list[Timer]
    last_cycle: int
    changed: bool
    cycles: int
    tried: dict[str, int]
    stirred: list[str] = []
    recent: tuple[str, ...]


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(StateRecord)


def record(state: State) -> StateRecord:
    """Return the truth of a state. It shares objects with the state: encode it before the next event is applied."""
    return StateRecord(
        seq=state.seq,
        term=state.term,
        leader=state.leader,
        checkpoint_every=state.checkpoint_every,
        last_checkpoint=state.last_checkpoint,
        configuration=state.configuration,
        types=state.types.names,
        shapes=[shape.resources for shape in state.types.shapes],
        nodes=[
            NodeRecord(n.name, n.resources, n.labels, n.schedulable) for n in state.nodes.values()
        ],
        dynamic=state.dynamic,
        templates=state.templates,
        applications=[
            ApplicationRecord(
                a.id, a.leaf.path, a.user, a.groups, a.tags, a.created, a.seq, a.closing
            )
            for a in state.applications.values()
        ],
        asks=list(state.asks.values()),
        allocations=list(state.allocations.values()),
        preemptions=list(state.preemptions.values()),
        quota_runs={queue: list(run) for queue, run in state.quota_runs.items()},
        leaving=[(seq, list(victims)) for seq, victims in state.leaving.items()],
        reservations=state.reservations,
        timers=sorted(state.timers.armed.values(), key=lambda timer: (timer.due, timer.id)),
        last_cycle=state.last_cycle,
        changed=state.changed,
        cycles=state.cycles,
        tried=state.tried,
        stirred=list(state.stirred),
        recent=state.recent_proposals,
    )


def encode(state: State) -> bytes:
    """Return the state as bytes (MessagePack); `decode` gives an equal state."""
    return _encoder.encode(record(state))


def digest(state: State) -> str:
    """Return SHA-256 over the state, in hexadecimal."""
    return hashlib.sha256(encode(state)).hexdigest()


def decode(data: bytes, time: int, *, counted: bool = True) -> State:
    """Return the state in these bytes, whose last frame has this time.

    It comes without tallies when they are not to be ``counted``, because events follow that need
    none: go on in a block of `evsched.core.tallies.uncounted`.

    Raises `msgspec.DecodeError` or `msgspec.ValidationError` when the bytes are not a snapshot of
    this version.
    """
    found = _decoder.decode(data)
    if found.version != VERSION:
        message = f"snapshot: found version {found.version}, expected {VERSION}"
        raise msgspec.ValidationError(message)
    state = State()
    state.counting = counted
    state.time = time
    state.seq, state.term, state.leader = found.seq, found.term, found.leader
    state.checkpoint_every, state.last_checkpoint = found.checkpoint_every, found.last_checkpoint
    for name in found.types:
        state.types.type_index(name)
    for resources in found.shapes:
        state.types.shape(resources)
    state.widen()
    _restore_nodes(state, found.nodes)
    _restore_work(state, found)
    state.last_cycle, state.changed = found.last_cycle, found.changed
    state.timers = Timers(found.timers)
    state.paused = {timer.subject: timer.due for timer in found.timers if timer.kind == PAUSE}
    for proposal in found.recent:
        state.remember(proposal)
    state.ripen_all()
    return state


def _restore_nodes(state: State, nodes: list[NodeRecord]) -> None:
    for kept in nodes:
        node = Node(kept.name, state.width)
        node.resources, node.labels, node.schedulable = (
            kept.resources,
            kept.labels,
            kept.schedulable,
        )
        _count(node.capacity, kept.resources, state.types.index)
        _count(state.total, kept.resources, state.types.index)
        state.nodes[node.name] = node


def _count(vector: list[int], resources: Mapping[str, int], index: Mapping[str, int]) -> None:
    for name, amount in resources.items():
        if amount:
            vector[index[name]] += amount


def _restore_work(state: State, found: StateRecord) -> None:
    shapes = state.types.shapes
    for kept in found.applications:
        # The real leaf is looked up by `install`, which moves every application to the queue of its
        # path.
        application = Application(
            id=kept.id,
            leaf=Queue(kept.queue, kept.queue, None, leaf=True),
            user=kept.user,
            groups=kept.groups,
            created=kept.created,
            seq=kept.seq,
            width=state.width,
        )
        application.tags, application.closing = kept.tags, kept.closing
        state.applications[kept.id] = application
    for ask in found.asks:
        state.asks[ask.id] = state.applications[ask.application].asks[ask.id] = ask
    for allocation in found.allocations:
        state.allocations[allocation.id] = allocation
        state.applications[allocation.application].running += 1
    if state.counting:
        tallies.count_work(state)
    state.preemptions = {preemption.ask: preemption for preemption in found.preemptions}
    state.quota_runs = {queue: dict.fromkeys(run) for queue, run in found.quota_runs.items()}
    state.leaving = {seq: dict.fromkeys(victims) for seq, victims in found.leaving}
    state.cycles, state.tried = found.cycles, found.tried
    state.stirred = dict.fromkeys(found.stirred)
    for ask_id, node_name in found.reservations.items():
        state.reservations[ask_id] = node_name
        if node_name in state.nodes:
            state.nodes[node_name].reserved[ask_id] = shapes[state.asks[ask_id].shape]
    state.dynamic = dict(found.dynamic)
    state.templates = dict(found.templates)
    if found.configuration is not None:
        trees.install(state, found.configuration)

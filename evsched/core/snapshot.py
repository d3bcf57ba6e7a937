"""Snapshots: the truth of a state as bytes, and a state made of them that decides as the first one would.

Beside the record (`evsched.core.record`) a snapshot keeps every order that a decision can see: that
of the keys of its mappings (reservations, asks in flight, dynamic queues), as they came about in the
log, and that of the queues that no configuration names. Indices and tallies are built anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evsched.core import tallies, trees
from evsched.core.queues import Application, Queue
from evsched.core.record import NodeRecord, StateRecord, pieces, record
from evsched.core.rules import FIRST
from evsched.core.state import State
from evsched.core.timers import PAUSE, Timers
from evsched.core.workloads import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
"""Of the bytes; a snapshot of another version is not read but made anew from the log."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot holds.

    Attributes:
        added: Paths of the queues that the configuration does not name (dynamic and draining
            ones), in the order in which they came.
    """

    version: int = VERSION
    state: StateRecord
    added: list[str]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Kept)
_amounts_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_shape_decoder = msgspec.msgpack.Decoder(dict[str, int])


def encode(state: State) -> bytes:
    """Return the state as bytes (MessagePack); `decode` gives an equal state.

    The order of every mapping is kept, other than in digests, where keys are sorted: a decision
    may look at what was reserved first, and a restored engine has to see the same.
    """
    added = [path for path, queue in state.queues.items() if queue.dynamic or queue.draining]
    return b"".join(pieces(Kept(state=record(state), added=added), _encoder))


def decode(data: bytes, time: int, *, counted: bool = True) -> State:
    """Return the state in these bytes, which decides as the one that was encoded.

    Args:
        data: Of a snapshot whose checksum was compared before.
        time: Of the last frame that it holds, milliseconds.
        counted: Whether tallies are to be made. They are not when events follow that need none:
            go on in a block of `evsched.core.tallies.uncounted`.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError: The bytes are not a snapshot of this version.
    """
    kept = _decoder.decode(data)
    if kept.version != VERSION:
        message = f"snapshot: found version {kept.version}, expected {VERSION}"
        raise msgspec.ValidationError(message)
    found = kept.state
    state = State()
    state.counting = counted
    state.time = time
    state.rules_version = FIRST if found.rules is msgspec.UNSET else found.rules
    state.seq, state.term, state.leader = found.seq, found.term, found.leader
    state.observed = found.observed is True
    state.checkpoint_every, state.last_checkpoint = found.checkpoint_every, found.last_checkpoint
    for name in found.types:
        state.types.type_index(name)
    for amounts in _amounts_decoder.decode(found.shapes):
        state.types.number(_shape_decoder.decode(amounts))
    state.grow_vectors()
    _restore_nodes(state, found.nodes)
    for name, standing in (found.standing or {}).items():
        state.nodes[name].taints, state.nodes[name].ready = standing.taints, standing.ready
    _restore_work(state, found)
    trees.arrange(state, kept.added)
    state.last_cycle, state.retry_needed = found.last_cycle, found.changed
    state.timers = Timers(found.timers)
    state.paused = {timer.subject: timer.due for timer in found.timers if timer.kind == PAUSE}
    for proposal in found.recent:
        state.remember(proposal)
    for one in found.suspended or ():
        state.suspended[one.kind, one.subject] = one
    return state


def _restore_nodes(state: State, nodes: list[NodeRecord]) -> None:
    """Make the nodes, empty, and the cluster's total; what runs on them is counted later."""
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
    """Add amounts to a vector by type index; the types are known by then."""
    for name, amount in resources.items():
        if amount:
            vector[index[name]] += amount


def _restore_work(state: State, found: StateRecord) -> None:
    """Make applications, asks, allocations and everything that is kept about them.

    Each application gets a leaf of its own for the moment. The queue tree is arranged afterwards,
    from the configuration and the added queues, and takes the applications in by their paths.
    """
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
    state.cycles, state.unschedulable_since = found.cycles, found.tried
    state.dirty_cohorts = dict.fromkeys(found.stirred)
    state.unfinished = {} if found.unfinished is msgspec.UNSET else found.unfinished
    for ask_id, node_name in found.reservations.items():
        state.reservations[ask_id] = node_name
        if node_name in state.nodes:
            state.nodes[node_name].reserved[ask_id] = shapes[state.asks[ask_id].shape]
    state.dynamic = dict(found.dynamic)
    state.templates = dict(found.templates)
    if found.configuration is not None:
        trees.install(state, found.configuration)

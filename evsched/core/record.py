"""The truth of a state as one record, and its digest, by which two readers of a log know that they hold the same.

The record holds what no index or tally could be without, and nothing else. Digests of it stand in the
log, so its form has versions, and the rules in force name the one that they cover
(`evsched.core.rules.Rules.record`).

- **Version 1** says which things are there and what they are, not in which order a mapping came to
  hold them: its keys are sorted.
- **Version 2** covers every order that a decision can see as well.

A field that the record or one of its rows gains later has the default ``UNSET``, with which it is
left out: it changes no digest, of whatever version, before it is used. What would change a digest
of a log that is already written needs another version, and rules that name it.

A snapshot is encoded on its own (`evsched.core.snapshot`), so that the one can change without the
other.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Protocol

import msgspec

from events.configuration import Configuration, TemplateSpec
from events.pods import Taint
from evsched.core.rules import FIRST
from evsched.core.timers import Timer
from evsched.core.workloads import Allocation, Ask, Preemption, Suspension

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evsched.core.queues import Application
    from evsched.core.resources import ResourceTypes
    from evsched.core.timers import Timers
    from evsched.core.workloads import Node

RECORDS = frozenset({1, 2})
"""Versions of the record that this release can make, for digests."""


class Truth(Protocol):
    """What is recorded of a `State` (`evsched.core.state`, which says what each of them means).

    Only these fields may have a part in a digest. Everything else of a state can be made from
    them: trees, tallies and indices.
    """

    seq: int
    term: int
    leader: str
    observed: bool
    rules_version: int
    checkpoint_every: int
    last_checkpoint: int
    configuration: Configuration | None
    types: ResourceTypes
    nodes: dict[str, Node]
    dynamic: dict[str, bool]
    templates: dict[str, TemplateSpec]
    applications: dict[str, Application]
    asks: dict[str, Ask]
    allocations: dict[str, Allocation]
    preemptions: dict[str, Preemption]
    quota_runs: dict[str, dict[str, None]]
    leaving: dict[int, dict[str, None]]
    reservations: dict[str, str]
    timers: Timers
    last_cycle: int
    retry_needed: bool
    cycles: int
    unschedulable_since: dict[str, int]
    dirty_cohorts: dict[str, None]
    unfinished: dict[str, int]
    suspended: dict[tuple[str, str], Suspension]

    @property
    def recent_proposals(self) -> tuple[str, ...]:
        """The remembered proposal ids, oldest first."""


class NodeRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a snapshot keeps of a node."""

    name: str
    resources: dict[str, int]
    labels: dict[str, str]
    schedulable: bool


class NodeStanding(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What Kubernetes says of a node beside that, where it is not the rule."""

    taints: tuple[Taint, ...] = ()
    ready: bool = True


class ApplicationRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
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
    """The truth of a state.

    A digest covers the bytes of this, so a field keeps its name, its type and its place for ever.
    A new one has a default and is left out while it has that, by which digests of older logs stay
    as they are.

    Attributes:
        rules: Version of the rules in force; left out for the first.
        types: Resource types, in the order in which they appeared.
        shapes: A list of all amounts that ever appeared, each a mapping by resource name.
        tried: `State.unschedulable_since`.
        changed: `State.retry_needed`.
        stirred: `State.dirty_cohorts`, in order.
        recent: Ids of the proposals that are remembered, oldest first.
        standing: By name of the node; only of those that have a taint or are not ready.
        observed: The leader decides nothing; left out where it does.
    """

    version: int = 1
    rules: int | msgspec.UnsetType = msgspec.UNSET
    seq: int
    term: int
    leader: str
    checkpoint_every: int
    last_checkpoint: int
    configuration: Configuration | None
    types: list[str]
    shapes: msgspec.Raw
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
    unfinished: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    recent: tuple[str, ...]
    suspended: list[Suspension] | msgspec.UnsetType = msgspec.UNSET
    standing: dict[str, NodeStanding] | msgspec.UnsetType = msgspec.UNSET
    observed: bool | msgspec.UnsetType = msgspec.UNSET


_encoder = msgspec.msgpack.Encoder(order="deterministic")


def record(state: Truth) -> StateRecord:
    """Return the truth of a state.

    It shares objects with the state: encode it before the next event is applied. Lists keep the
    order of the log; timers are sorted, as a heap has no order of its own.
    """
    return StateRecord(
        # The first rules are left out: the record was made before there were others.
        rules=msgspec.UNSET if state.rules_version == FIRST else state.rules_version,
        seq=state.seq,
        term=state.term,
        leader=state.leader,
        checkpoint_every=state.checkpoint_every,
        last_checkpoint=state.last_checkpoint,
        configuration=state.configuration,
        types=state.types.names,
        shapes=state.types.numbers.encoded(),
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
        changed=state.retry_needed,
        cycles=state.cycles,
        tried=state.unschedulable_since,
        stirred=list(state.dirty_cohorts),
        unfinished=state.unfinished or msgspec.UNSET,
        recent=state.recent_proposals,
        # Left out while nothing is, and so it was before anything could be.
        suspended=list(state.suspended.values()) or msgspec.UNSET,
        standing={
            n.name: NodeStanding(n.taints, n.ready)
            for n in state.nodes.values()
            if n.taints or not n.ready
        }
        or msgspec.UNSET,
        observed=state.observed or msgspec.UNSET,
    )


class OrderedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What record version 2 covers.

    Attributes:
        orders: The keys of the mappings whose order a decision can see, as they came about, by name.
    """

    version: int = 2
    state: StateRecord
    orders: dict[str, list[str]]


def orders(state: Truth) -> dict[str, list[str]]:
    """Return the keys, in their order, of each mapping of the record that decisions iterate over.

    Record version 2 covers them: two states that differ in such an order can decide differently.
    """
    return {
        "dynamic": list(state.dynamic),
        "quota_runs": list(state.quota_runs),
        "reservations": list(state.reservations),
        "templates": list(state.templates),
        "tried": list(state.unschedulable_since),
    }


PIECE = 1_000
"""Items of a list that are encoded at a time: within a millisecond, after which other threads may work."""


def pieces(found: msgspec.Struct, encoder: msgspec.msgpack.Encoder) -> Iterator[bytes]:
    """Yield the bytes of a record piece by piece; together they are those that the encoder makes of it.

    The encoder would hold the interpreter for all of a large state, up to a tenth of a second. The
    event loop, with the heartbeats and the other cluster partitions, would stand still meanwhile.

    Args:
        found: A `StateRecord`, or a struct that holds one. Long lists in it are cut.
        encoder: Of MessagePack.
    """
    names = zip(found.__struct_fields__, found.__struct_encode_fields__, strict=True)
    fields = [(name, getattr(found, field)) for field, name in names]
    fields = [(name, value) for name, value in fields if value is not msgspec.UNSET]
    yield _begin(len(fields), 0x80, b"\xde")
    for name, value in fields:
        yield encoder.encode(name)
        if isinstance(value, StateRecord):
            yield from pieces(value, encoder)
        elif isinstance(value, list) and len(value) > PIECE:
            yield _begin(len(value), 0x90, b"\xdc")
            for at in range(0, len(value), PIECE):
                part = value[at : at + PIECE]
                yield encoder.encode(part)[len(_begin(len(part), 0x90, b"\xdc")) :]
        else:
            yield encoder.encode(value)


def _begin(count: int, short: int, long: bytes) -> bytes:
    """Return how MessagePack begins a mapping or a list of so many items.

    Args:
        count: Items.
        short: The byte for up to 15 of them, which are added to it.
        long: The byte for a count of two bytes; the next one is for four.
    """
    if count < 1 << 4:
        return bytes((short + count,))
    if count < 1 << 16:
        return long + struct.pack(">H", count)
    return bytes((long[0] + 1,)) + struct.pack(">I", count)


def digest(state: Truth, version: int) -> str:
    """Return SHA-256 over the record of a state, in hexadecimal.

    Two engines with the same digest have the same truth, and with record version 2 the same order
    of it. It costs one pass over everything that runs and waits.

    Args:
        state: Only read.
        version: Of the record, one of `RECORDS`.
    """
    assert version in RECORDS
    found = record(state)
    covered = found if version == 1 else OrderedRecord(state=found, orders=orders(state))
    sha = hashlib.sha256()
    for piece in pieces(covered, _encoder):
        sha.update(piece)
    return sha.hexdigest()

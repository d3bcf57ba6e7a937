"""How fast a log in memory becomes a state, how much memory that takes, and how long a restart from a snapshot takes.

Limit of the replay: decoding the same frames alone. The log is a mix of asks, bindings and releases
in equal parts over 5,000 nodes and 50 leaves, 1,000 events a frame, as a leader that takes batches
would have written it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from benchmarks.clusters import APPLICATIONS, START, cluster
from benchmarks.rows import Benchmark, Row, measured
from events.frame import Frame, decode_frame, encode_frame
from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AnyEvent,
    ApplicationPlaced,
    ApplicationSubmitted,
    AskSubmitted,
)
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.state import State
from evsched.core.yunikorn import victims
from evsched.core.yunikorn.allocation import order_of
from evsched.core.yunikorn.columns import columns_of
from evsched.core.yunikorn.cost import named

NODES = 5000
FRAME = 1000
RUNNING = 50_000
"""How many allocations run at a time."""


def history(asks: int, running: int, nodes: int = NODES) -> Iterator[AnyEvent]:
    """Yield the events of a log: a cluster, then tasks that are asked for, bound and, when enough run, released."""
    seq = 0
    for proposed in cluster(nodes):
        seq += 1
        yield replace(proposed, seq=seq)
        if isinstance(proposed, ApplicationSubmitted):
            seq += 1
            yield ApplicationPlaced(
                seq=seq, cause=seq - 1, application=proposed.application, queue=proposed.queue
            )
    for number in range(asks):
        name = f"task-{number}"
        seq += 1
        resources = {"vcore": 1000 + 500 * (number % 4), "memory": 2**30}
        yield AskSubmitted(
            seq=seq,
            ask=name,
            application=f"app-{number % APPLICATIONS}",
            resources=resources,
            priority=number % 3,
            created=START,
        )
        seq += 1
        yield AllocationBound(seq=seq, cause=seq - 1, ask=name, node=f"node-{number % nodes:05}")
        if number >= running:
            seq += 1
            yield AllocationReleased(seq=seq, allocation=f"task-{number - running}")


def frames(events: Iterable[AnyEvent]) -> list[bytes]:
    """Return the events as written frames."""
    written, batch = [], []
    for event in events:
        batch.append(event)
        if len(batch) == FRAME:
            written.append(_frame(batch, len(written) + 1))
            batch = []
    written.append(_frame(batch, len(written) + 1))
    return written


def _frame(events: list[AnyEvent], number: int) -> bytes:
    return encode_frame(
        Frame(
            log_id="bench",
            term=1,
            leader="bench",
            frame=number,
            prev="0" * 32,
            time=START,
            inbox_next=0,
            events=tuple(events),
        )
    )


def replay() -> Iterable[Row]:
    """From frames in memory to a state."""
    written = frames(history(250_000, RUNNING))
    with measured() as decoding:
        count = sum(len(decode_frame(data).events) for data in written)
    engine = Engine()
    with measured() as replaying:
        engine.apply_frames(decode_frame(data) for data in written)
    assert engine.state.seq == count
    yield Row(
        name=f"replay of {count} events, {NODES} nodes",
        value=count / replaying.seconds,
        unit="events/s",
        target=300_000,
        limit=count / decoding.seconds,
        limit_name="decoding alone",
    )
    yield Row(
        name="that replay as a part of decoding alone",
        value=decoding.seconds / replaying.seconds,
        unit="",
        target=0.2,
    )


def memory() -> Iterable[Row]:
    """What 100,000 allocations take, with everything that is kept to decide quickly."""
    written = frames(history(100_000, 100_000))
    engine = Engine()
    tracemalloc.start()
    engine.apply_frames(decode_frame(data) for data in written)
    state = engine.state
    truth = tracemalloc.get_traced_memory()[0]
    build_indices(state)
    everything = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    yield Row(
        name=f"memory, {len(state.allocations)} allocations on {NODES} nodes, all indices",
        value=everything / 2**20,
        unit="MiB",
        target=100e6 / 2**20,
        better="less",
        limit=truth / 2**20,
        limit_name="without the indices of decisions",
    )


def build_indices(state: State) -> None:
    """Build what decisions build on first use."""
    order_of(state)
    columns_of(state)
    victims.of(state, named("default", state.rules))


def restart() -> Iterable[Row]:
    """From a snapshot to an engine that can decide; with it the part of the log that is younger than the snapshot."""
    written = frames(history(340_000, 100_000))
    engine = Engine()
    engine.apply_frames(decode_frame(data) for data in written[:-10])
    kept = snapshot.encode(engine.state)
    with measured() as encoding:
        snapshot.encode(engine.state)
    before = engine.state.time
    with measured() as restarting:
        again = Engine(snapshot.decode(kept, before))
        again.apply_frames(decode_frame(data) for data in written[-10:])
    with measured() as decoding:
        snapshot._decoder.decode(kept)  # noqa: SLF001 - the limit is the decoder alone
    engine.apply_frames(decode_frame(data) for data in written[-10:])
    assert again.state.digest() == engine.state.digest()
    running = len(again.state.allocations)
    yield Row(
        name=f"restart from a snapshot at {again.state.seq} events, {running} allocations ({len(kept) / 2**20:.1f} MiB)",
        value=restarting.seconds * 1000,
        unit="ms",
        target=1500,
        better="less",
        limit=decoding.seconds * 1000,
        limit_name="decoding the record alone",
    )
    yield Row(
        name=f"making that snapshot, {running} allocations",
        value=encoding.seconds * 1000,
        unit="ms",
        better="less",
    )


BENCHMARKS: dict[str, Benchmark] = {"replay": replay, "memory": memory, "restart": restart}

"""A warm state: from a snapshot or from the beginning it is the same, and it can be interrupted anywhere."""

import asyncio
from contextlib import suppress

import pytest

from events.chain import ChainReader
from events.errors import LogDamaged
from events.streams.leadership import Leadership
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from evsched.service.environment import SystemClock, environment
from evsched.service.leading import Pace
from evsched.service.member import Member
from evsched.service.rebuilding import Replica, Snapshots
from tests.service.inputs import ask, cluster, queues

ASKS = 60


async def written(checkpoint_every=10):
    """Return streams with a log of some sixty steps."""
    store = MemoryStore()
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    warm = Replica()
    world = environment(SystemClock(), checkpoint_every)
    leadership = await Leadership.acquire(streams.log, ChainReader(), warm.apply, world)
    await streams.inbox.propose(
        [*cluster(), *(ask(f"t{n}") for n in range(ASKS)), queues(4)], "test"
    )
    for proposal in await streams.inbox.read(0):
        time = leadership.stamp(1000 + proposal.position)
        events = warm.engine.step(time, [proposal])
        await leadership.append_step(
            events, time=time, decided=True, inbox_next=proposal.position + 1
        )
    return streams, warm.engine.state.digest()


async def save(streams, folder, every=20):
    """Leave snapshots on the way through the log, and return how many files there are."""
    snapshots = Snapshots(folder, every)
    warm = await snapshots.begin(streams.log)
    for position, data in [record async for batch in streams.log.read() for record in batch]:
        step = warm.reader.accept(data, position)
        if step is not None:
            warm.apply(step)
        if snapshots.overdue(warm.engine):
            await snapshots.save(warm)
            await snapshots.close()
    return sorted(folder.rglob("*.snapshot"), key=lambda path: int(path.name.partition("-")[0]))


async def begun(streams, folder):
    """Begin from what lies in a folder; return where, and the digest in the end."""
    warm = await Snapshots(folder, 20).begin(streams.log)
    frame = warm.reader.head.frame
    await warm.catch_up(streams.log)
    return frame, warm.engine.state.digest()


async def test_a_snapshot_and_the_rest_give_the_same_state(tmp_path):
    """The newest one is taken; a few stay."""
    streams, digest = await written()
    files = await save(streams, tmp_path)
    assert 1 < len(files) < 6
    frame, found = await begun(streams, tmp_path)
    assert frame > ASKS / 2
    assert found == digest


@pytest.mark.parametrize(
    "how", ["torn", "flipped", "empty", "of another log", "newer than the log"]
)
async def test_a_snapshot_that_does_not_fit_is_passed_over(how, tmp_path):
    """An older one serves, or the beginning of the log; the state is the same."""
    streams, digest = await written()
    files = await save(streams, tmp_path)
    newest, data = files[-1], files[-1].read_bytes()
    if how == "torn":
        newest.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        newest.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif how == "empty":
        newest.write_bytes(b"")
    elif how == "newer than the log":
        streams.log.store.log[60:] = []
        warm = Replica()
        await warm.catch_up(streams.log)
        digest = warm.engine.state.digest()
    else:
        other, _ = await written()
        (await save(other, tmp_path / "elsewhere"))[-1].rename(newest)
    frame, found = await begun(streams, tmp_path)
    assert 0 < frame < 60
    assert found == digest


async def test_a_state_with_another_digest_stops():
    """A checkpoint in the log that does not agree with what was rebuilt is damage, with its place."""
    streams, _ = await written()
    warm = Replica()
    warm.engine.state.dynamic["root.nonsense"] = False
    with pytest.raises(LogDamaged) as raised:
        await warm.catch_up(streams.log)
    assert "digest" in raised.value.reason
    assert raised.value.position > 0


async def test_it_can_be_interrupted_anywhere(monkeypatch):
    """Cancelled again and again in the middle of a batch, it goes on where it was; nothing is applied twice or left out."""
    streams, digest = await written()
    monkeypatch.setattr("evsched.service.rebuilding.SLICE_S", 0.0)
    warm, interruptions = Replica(), 0
    while warm.reader.tip.position + 1 < await streams.log.end():
        task = asyncio.create_task(warm.keep_up(streams.log))
        for _ in range(7):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        interruptions += 1
    assert interruptions > 5
    assert warm.engine.state.digest() == digest


async def test_a_leader_leaves_snapshots_when_it_has_time(tmp_path):
    """When one is due and nothing waits, and in any case when it stops in order; the next one begins there."""
    store = MemoryStore()
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    for _ in range(2):
        member = Member(
            streams, SystemClock(), pace=Pace(idle=0.01), snapshots=Snapshots(tmp_path, 20)
        )
        task = asyncio.create_task(member.run())
        await streams.inbox.propose([*cluster(), *(ask(f"t{n}") for n in range(ASKS))], "test")
        async with asyncio.timeout(10):
            while member._warm is None or member._warm.reader.head.inbox_next < len(store.inbox):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        member.stop()
        await task
    begin = await Snapshots(tmp_path, 20).begin(streams.log)
    assert begin.reader.head.position == len(store.log) - 1


def test_checkpoints_are_written():
    """The log of these tests carries digests, or they would test nothing."""
    streams, _ = asyncio.run(written())
    assert any(b"CheckpointRecorded" in data for data in streams.log.store.log)

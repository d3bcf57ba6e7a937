"""What takes long with a large state is done by a thread: the event loop goes on, and the state stands still."""

import asyncio
import threading

import pytest

from events.errors import LogDamaged
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from evsched.core import snapshot
from evsched.core.state import State
from evsched.service import rebuilding, threads
from evsched.service.environment import SystemClock
from evsched.service.leading import Pace
from evsched.service.member import Member
from evsched.service.rebuilding import Replica, Snapshots
from evsched.service.threads import by_thread
from tests.service.inputs import ask, cluster
from tests.service.test_rebuilding import written
from tests.service.virtual import until


@pytest.fixture
def large(monkeypatch):
    """Every state counts as large."""
    monkeypatch.setattr(threads, "LARGE", -1)


class Held:
    """Work that is not over before it is told to be.

    Attributes:
        begun: Set when a thread is at it.
        enough: Set it to let the thread end.
        places: In which threads it was done.
    """

    def __init__(self, real):
        self.begun, self.enough = threading.Event(), threading.Event()
        self.places = []
        self._real = real

    def __call__(self, *arguments):
        """Do it when told."""
        self.places.append(threading.current_thread())
        self.begun.set()
        assert self.enough.wait(60)
        return self._real(*arguments)


async def test_a_cancelled_task_outlives_its_thread():
    """Cancelled twice, it ends only when the thread has; what went wrong there is heard of all the same."""
    work = Held(lambda: 1 // 0)
    task = asyncio.create_task(by_thread(work))
    await asyncio.to_thread(work.begun.wait, 60)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not task.done()
    work.enough.set()
    with pytest.raises(ZeroDivisionError):
        await task


async def test_a_cancelled_task_is_cancelled_when_its_thread_ends():
    """The cancellation is not lost."""
    work = Held(int)
    task = asyncio.create_task(by_thread(work))
    await asyncio.to_thread(work.begun.wait, 60)
    task.cancel()
    work.enough.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_applied_while_a_snapshot_is_encoded(large, monkeypatch, tmp_path):
    """A follower waits, the loop does not; the snapshot holds the state at the head that it names."""
    streams, digest = await written()
    held = Held(snapshot.encode)
    monkeypatch.setattr(rebuilding.snapshot, "encode", held)
    snapshots, warm = Snapshots(tmp_path, 1), Replica()
    ((record, *_), *_) = [batch async for batch in streams.log.read()]
    warm.apply(warm.reader.accept(record.data, record.position))
    seq = warm.engine.state.seq
    saving = asyncio.create_task(warm.encoded())
    await asyncio.to_thread(held.begun.wait, 60)
    following = asyncio.create_task(warm.catch_up(streams.log))
    for _ in range(10):
        await asyncio.sleep(0)
    assert warm.engine.state.seq == seq
    held.enough.set()
    head, data = await saving
    assert snapshot.decode(data, head.time).seq == head.next_seq - 1 == seq
    await following
    assert warm.engine.state.digest() == digest
    assert threading.main_thread() not in held.places
    await snapshots.close()


@pytest.fixture
def makers(monkeypatch):
    """Return a list of the threads that have made digests; every state counts as large."""
    found, real = [], State.digest

    def noted(state, version=None):
        found.append(threading.current_thread())
        return real(state, version)

    monkeypatch.setattr(State, "digest", noted)
    return found


async def test_a_follower_compares_digests_of_a_large_state_by_threads(large, makers, monkeypatch):
    """A state that differs is found as ever."""
    streams, digest = await written()
    makers.clear()
    warm = Replica()
    await warm.catch_up(streams.log)
    assert len(makers) > 1
    assert threading.main_thread() not in makers
    assert warm.engine.state.digest() == digest
    monkeypatch.setattr(State, "digest", lambda *_: "another")
    with pytest.raises(LogDamaged):
        await Replica().catch_up(streams.log)


async def test_a_leader_makes_digests_of_a_large_state_by_threads(large, makers):
    """However short the step is that reaches the checkpoint."""
    store = MemoryStore()
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    member = Member(streams, SystemClock(), pace=Pace(checkpoint_every=20))
    task = asyncio.create_task(member.run())
    await streams.inbox.propose([*cluster(), *(ask(f"t{number}") for number in range(20))], "test")
    await until(lambda: member.engine is not None and member.engine.state.last_checkpoint > 0)
    member.stop()
    await task
    assert makers
    assert threading.main_thread() not in makers

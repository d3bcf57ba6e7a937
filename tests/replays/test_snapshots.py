"""Snapshots: whole or not there, and nothing wrong is ever taken for right."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest

from events import vocabulary as v
from events.chain import Head
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.snapshots.disk import Disk
from evsched.snapshots.store import Header, SnapshotDamaged, SnapshotStore, unpack

LOG = "log-1"


def saved(store: SnapshotStore, seq: int, log_id: str = LOG):
    """Save a snapshot of a small state as if it stood at ``seq``; return its path."""
    engine = Engine()
    engine.step(
        1000 + seq, [v.Proposal(input=v.NodeRegistered(node=f"n{seq}", capacity={"vcore": 8000}))]
    )
    engine.state.seq = seq
    data = snapshot.encode(engine.state)
    header = Header(
        head=Head(
            log_id=log_id,
            frame=seq,
            hash=f"{seq:032x}",
            position=seq,
            term=1,
            leader="l",
            time=1000 + seq,
            next_seq=seq + 1,
        ),
    )
    return store.save(header, data)


class Killed(Exception):
    """The process died here."""


class MortalDisk(Disk):
    """A disk whose process dies before its n-th act, half way through a write."""

    def __init__(self, lives: int) -> None:
        """Die before act number ``lives``."""
        self.lives = lives
        self.acts = 0

    def __getattribute__(self, name):
        """Count every act and die when the time has come."""
        if name in {"create", "write", "sync", "close", "rename", "sync_folder", "remove"}:
            self.acts += 1
            if self.acts > self.lives:
                if name == "write" and self.acts == self.lives + 1:
                    return lambda descriptor, data: (
                        Disk.write(self, descriptor, data[: len(data) // 2]),
                        _die(),
                    )
                _die()
        return super().__getattribute__(name)


def _die():
    raise Killed


def test_the_newest_snapshot_is_found_and_only_some_are_kept(tmp_path):
    """Three stay; the newest comes first; an upper bound is respected."""
    warnings: list[str] = []
    store = SnapshotStore(tmp_path, warnings.append, kept=3)
    for seq in (10, 20, 30, 40):
        saved(store, seq)
    assert [header.seq for header, _ in store.usable(LOG)] == [40, 30, 20]
    assert [header.seq for header, _ in store.usable(LOG, before=35)] == [30, 20]
    assert [header.seq for header, _ in store.usable(LOG, before_time=1029)] == [20]
    assert next(state for _, state in store.usable(LOG)).nodes.keys() == {"n40"}
    assert warnings == []


def test_older_snapshots_are_spread_evenly_over_the_log(tmp_path):
    """The newest three and the oldest stay, and between them no gap is more than about twice as large as another."""
    store = SnapshotStore(tmp_path, lambda _: None, kept=8)
    for seq in range(10, 1010, 10):
        saved(store, seq)
    found = [header.seq for header, _ in store.usable(LOG)]
    assert found[:3] == [1000, 990, 980]
    assert found[-1] == 10
    gaps = [newer - older for newer, older in pairwise(found[2:])]
    assert len(found) == 8
    assert max(gaps) <= 400


def test_a_kill_at_every_step_of_writing_leaves_a_usable_snapshot(tmp_path):
    """Whatever act is the last, the store yields an undamaged state, and the next save works."""
    acts = MortalDisk(10**6)
    warnings: list[str] = []
    store = SnapshotStore(tmp_path / "count", warnings.append, acts, kept=3)
    for seq in (10, 20, 30, 40):
        saved(store, seq)
    per_save = acts.acts // 4
    assert per_save >= 6  # create, write, sync, close, rename, sync_folder at least
    for lives in range(per_save + 2):
        folder = tmp_path / str(lives)
        for seq in (10, 20, 30):
            saved(SnapshotStore(folder, warnings.append, kept=3), seq)
        mortal = SnapshotStore(folder, warnings.append, MortalDisk(lives), kept=3)
        with suppress(Killed):
            saved(mortal, 40)
        found = [header.seq for header, _ in SnapshotStore(folder, warnings.append).usable(LOG)]
        assert found[0] in {30, 40}
        saved(SnapshotStore(folder, warnings.append), 50)
        assert next(SnapshotStore(folder, warnings.append).usable(LOG))[0].seq == 50
    assert warnings == []


def test_every_flipped_byte_is_noticed(tmp_path):
    """A snapshot with any one byte altered is refused, and an older one serves."""
    warnings: list[str] = []
    store = SnapshotStore(tmp_path, warnings.append)
    saved(store, 10)
    path = saved(store, 20)
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(SnapshotDamaged):
            unpack(path)
    assert [header.seq for header, _ in store.usable(LOG)] == [10]
    assert "torn or altered" in warnings[0]


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 33, 100])
def test_a_torn_snapshot_is_passed_over(tmp_path, cut):
    """A file of which only the beginning is there is refused."""
    warnings: list[str] = []
    store = SnapshotStore(tmp_path, warnings.append)
    path = saved(store, 10)
    path.write_bytes(path.read_bytes()[:cut])
    assert list(store.usable(LOG)) == []
    assert len(warnings) == 1


def test_a_snapshot_of_another_log_is_passed_over(tmp_path):
    """The log's id must be the same."""
    warnings: list[str] = []
    store = SnapshotStore(tmp_path, warnings.append)
    saved(store, 10, log_id="other")
    assert list(store.usable(LOG)) == []
    assert warnings == [
        "snapshot 10-0000000000000000000000000000000a.snapshot: is of log other, expected log-1"
    ]

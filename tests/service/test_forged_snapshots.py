"""Snapshots that somebody forged: checks and digests are right, and what they say is not true."""

import asyncio
import hashlib
import json

import msgspec
import pytest
import zstandard
from msgspec.structs import replace

from events.chain import ChainReader
from events.errors import PositionLost
from events.streams.reading import resume
from evsched.service.environment import SystemClock
from evsched.service.leading import Pace
from evsched.service.member import Member
from evsched.service.rebuilding import Replica, Snapshots
from evsched.snapshots import store as snapshots_store
from evsched.snapshots.store import LARGEST_STATE, SnapshotDamaged, pack, unpack
from tests.service.test_rebuilding import begun, save, written


def forged(path, alter, **changes):
    """Write a snapshot's file again with another state, which ``alter`` changes, and a header that agrees with it."""
    header, state = unpack(path)
    found = msgspec.msgpack.decode(state)
    alter(found["state"])
    data = msgspec.msgpack.encode(found)
    head = replace(header.head, **changes)
    path.write_bytes(pack(replace(header, head=head), data))


def enlarge(found):
    """Give the first node a million cores."""
    found["nodes"][0][1]["vcore"] = 10**9


async def followed(streams, folder):
    """Let a member begin from a folder, read the log to its end and stop.

    Return it, with the digest that it had at the end and where it had begun.
    """
    pace = Pace(beat=30.0, lease=60.0, idle=0.01)  # it is not to lead within the test
    member = Member(streams, SystemClock(), pace=pace, snapshots=Snapshots(folder, 10**6))
    task = asyncio.create_task(member.run())

    def at_the_end():
        # While it starts, it may have read the last frame and be about to find its state wrong.
        warm = member._warm if member.role == "standby" else None
        return warm is not None and warm.reader.head.position == len(streams.log.store.log) - 1

    async with asyncio.timeout(20):
        while member.failure is None and not at_the_end():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    warm = member._warm  # as it is now; a member that goes on may lead, and begin anew
    seen = None if warm is None else (warm.engine.state.digest(), warm.began)
    member.stop()
    await task
    return member, seen


async def test_a_forged_state_is_given_up_for_the_log_at_the_next_digest(tmp_path):
    """A member that began at it reads the log from its beginning, goes on with the true state, and calls no log damaged."""
    streams, _ = await written()
    newest = (await save(streams, tmp_path))[-1]
    forged(newest, enlarge)
    honest = (await _warm(streams)).engine.state.digest()
    member, seen = await followed(streams, tmp_path)
    assert member.failure is None
    assert seen == (honest, 0)


async def test_a_damaged_log_is_damaged_with_a_snapshot_too(tmp_path):
    """Where the log itself carries a wrong digest, the second reading says so, and the member ends."""
    streams, _ = await written()
    await save(streams, tmp_path)
    begin = await Snapshots(tmp_path, 20).begin(streams.log)
    log, reader = streams.log.store.log, ChainReader()
    for position in range(len(log)):
        if position > begin.reader.head.position and b"CheckpointRecorded" in log[position]:
            frame = json.loads(log[position])
            frame["events"][-1]["digest"] = "0" * 64
            log[position] = json.dumps(frame).encode()
            break
        reader.accept(log[position], position)
    member, _ = await followed(streams, tmp_path)
    assert member.role == "failed"
    assert "digest" in member.failure.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"inbox_next": 1_000},
        {"inbox_next": 0},
        {"time": 1},
        {"term": 7},
        {"leader": "me"},
        {"frame": 3},
        {"next_seq": 5},
    ],
    ids=str,
)
async def test_a_head_says_what_its_frame_says(tmp_path, changes):
    """A snapshot whose head names another place in the inbox, time, term or event than its frame is passed over."""
    streams, digest = await written()
    files = await save(streams, tmp_path)
    reader = await resume(streams.log, unpack(files[-1])[0].head)
    with pytest.raises(PositionLost, match=next(iter(changes))):
        await resume(streams.log, replace(reader.head, **changes))
    forged(
        files[-1],
        lambda found: found.update(seq=changes.get("next_seq", found["seq"] + 1) - 1),
        **changes,
    )
    assert (await begun(streams, tmp_path))[1] == digest


@pytest.mark.parametrize(
    "alter",
    [
        lambda found: found["asks"].append(["nobody's"]),
        lambda found: found["allocations"][0].__setitem__(1, "no application"),
        lambda found: found["types"].clear(),
        lambda found: found.update(shapes=[]),
        lambda found: found.update(configuration={}),
        lambda found: found["nodes"][0][1].__setitem__("vcore", 2**63),
        lambda found: found.update(reservations={"no ask": "n1"}),
        lambda found: found.update(seq=found["seq"] + 1),
    ],
)
async def test_a_state_that_cannot_be_is_passed_over(tmp_path, alter):
    """Whatever the core raises at it, then or later, an older snapshot serves, or the beginning of the log."""
    streams, _ = await written()
    forged((await save(streams, tmp_path))[-1], alter)
    honest = (await _warm(streams)).engine.state.digest()
    member, seen = await followed(streams, tmp_path)
    assert member.failure is None
    assert seen is not None
    assert seen[0] == honest


@pytest.mark.parametrize("size", ["unknown", "far too large"])
async def test_a_state_that_would_unpack_without_end_is_passed_over(tmp_path, size):
    """A file says how large its state is, within bounds, before any of it is unpacked."""
    streams, digest = await written()
    newest = (await save(streams, tmp_path))[-1]
    header, state = unpack(newest)
    if size == "unknown":
        packed = zstandard.ZstdCompressor(write_content_size=False).compress(state)
    else:
        # A frame header of its own: magic number, a single segment with a size of eight bytes.
        packed = bytes.fromhex("28b52ffd") + b"\xe0" + (LARGEST_STATE + 1).to_bytes(8, "little")
    body = msgspec.json.encode(header) + b"\n" + packed
    newest.write_bytes(body + hashlib.blake2b(body, digest_size=16).hexdigest().encode())
    with pytest.raises(SnapshotDamaged, match="claims"):
        unpack(newest)
    assert (await begun(streams, tmp_path))[1] == digest


async def test_a_header_in_no_language_is_passed_over(tmp_path):
    """Bytes that are no text in the first line are no exception."""
    streams, digest = await written()
    newest = (await save(streams, tmp_path))[-1]
    body = b'{"format":"\xff"}\n' + zstandard.compress(b"")
    newest.write_bytes(body + hashlib.blake2b(body, digest_size=16).hexdigest().encode())
    assert (await begun(streams, tmp_path))[1] == digest


@pytest.mark.parametrize("how", ["of another account", "group", "everybody", "a link", "too large"])
async def test_what_another_account_could_have_written_is_passed_over(tmp_path, how, monkeypatch):
    """Only files of this account, to which no other can write, and of a size that a state can have, are read."""
    streams, _ = await written()
    files = await save(streams, tmp_path)
    newest = files[-1]
    if how == "of another account":
        monkeypatch.setattr(snapshots_store.os, "geteuid", lambda: 12_345)
    elif how == "a link":
        newest.rename(tmp_path / "elsewhere")
        newest.symlink_to(tmp_path / "elsewhere")
    elif how == "too large":
        monkeypatch.setattr(snapshots_store, "LARGEST_STATE", newest.stat().st_size - 1)
    else:
        newest.chmod(0o620 if how == "group" else 0o602)
    with pytest.raises(SnapshotDamaged):
        unpack(newest)


async def test_an_honest_snapshot_is_still_taken(tmp_path):
    """The checks refuse nothing that a leader wrote: no reading starts at the beginning."""
    streams, digest = await written()
    await save(streams, tmp_path)
    frame, found = await begun(streams, tmp_path)
    assert (frame > 1, found) == (True, digest)
    assert (await _warm(streams)).engine.state.digest() == digest


async def _warm(streams):
    warm = Replica()
    await warm.catch_up(streams.log)
    return warm

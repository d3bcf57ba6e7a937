"""A follower keeps a projection as new as its log, wherever it is stopped."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from random import Random

import pytest
from msgspec.structs import replace

from events.errors import LogDamaged
from events.streams.memory import open_memory
from events.vocabulary import CheckpointRecorded
from projections import asof
from projections.following import Follower
from projections.read_model import Overtaken, ReadModel, Rebuild, RebuildNeeded
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.replays.logs import LOG_ID, read, sealed, story


@pytest.fixture
def draw():
    """Return a source of chance that is the same every time."""
    return Random(1)


async def agree(path, log, draw):
    """Compare tables and rebuilt state at 200 random moments, by seq and by time."""
    history = History(log)
    with sqlite3.connect(path) as connection:
        last = connection.execute("SELECT seq FROM position").fetchone()[0]
        times = [time for (time,) in connection.execute("SELECT time FROM frames")]
        states = {}
        for _ in range(200):
            if draw.random() < 0.5:
                seq = draw.randint(0, last)
            else:
                time = draw.choice(times) + draw.randint(-1, 1)
                seq = asof.seq_at_time(connection, time)
                assert (await history.at(Moment(time=time))).state.seq == seq
            if seq not in states:
                states[seq] = asof.from_state((await history.at(Moment(seq=seq))).state)
            assert asof.without_empty_usage(asof.from_tables(connection, seq)) == states[seq], seq
    connection.close()


async def test_a_follower_that_is_stopped_anywhere_goes_on(tmp_path, draw):
    """After every few records it is cancelled, the file closed and opened again; in the end every moment is right."""
    path = tmp_path / "model.db"
    log = open_memory("", 0).log
    await log.create()
    waiting = list(sealed(story()))
    while waiting:
        for record in waiting[:3]:
            await log.append(record.data)
        del waiting[:3]
        model = ReadModel(path, LOG_ID)
        follower = Follower(model, log)
        task = asyncio.create_task(follower.keep_up(await follower.reader()))
        while model.at.position + 1 < await log.end():  # noqa: ASYNC110 - the follower is the one that works
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert model.committed == model.at
        model.close()
    await agree(path, log, draw)


async def test_what_was_taken_is_committed_a_moment_later(tmp_path):
    """Without being stopped and without more coming."""
    log = open_memory("", 0).log
    await log.create()
    model = ReadModel(tmp_path / "model.db", LOG_ID)
    follower = Follower(model, log)
    task = asyncio.create_task(follower.keep_up(await follower.reader()))
    for record in sealed(story()):
        await log.append(record.data)
    async with asyncio.timeout(10):
        while model.committed.next_seq != 36:  # noqa: ASYNC110 - a file does not tell
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    model.close()


async def begun(count):
    """Return a log with the first records of the story, and all of them."""
    log = open_memory("", 0).log
    await log.create()
    records = list(sealed(story()))
    await written(log, records[:count])
    return log, records


async def written(log, records):
    """Write records of the story to a log."""
    for record in records:
        await log.append(record.data)


async def following(path, log):
    """Return a read model, and a follower of it that is up to date and waits for more."""
    model = ReadModel(path, LOG_ID)
    follower = Follower(model, log)
    reader = await follower.reader()
    await follower.catch_up(reader)
    return model, asyncio.create_task(follower.keep_up(reader))


async def agree_in_the_end(path, log, draw):
    """Open the file again, take what is missing and compare."""
    model = ReadModel(path, LOG_ID)
    follower = Follower(model, log)
    await follower.catch_up(await follower.reader())
    model.close()
    await agree(path, log, draw)


async def test_a_commit_that_fails_ends_the_following(tmp_path, draw):
    """Half of what was taken is forgotten by then, so going on would leave rows out for ever; the file itself is right."""
    path = tmp_path / "model.db"
    log, records = await begun(2)
    model, task = await following(path, log)
    model._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await written(log, records[2:])
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await asyncio.wait_for(task, 5)
    other.close()
    model.close()
    await agree_in_the_end(path, log, draw)


async def test_a_follower_whose_file_was_replaced_ends(tmp_path, draw):
    """Nobody reads the file that it would go on writing."""
    path = tmp_path / "model.db"
    log, records = await begun(2)
    model, task = await following(path, log)
    rebuild = Rebuild(path, LOG_ID)
    for step in read(records[:2]):
        rebuild.take(step)
    rebuild.finish()
    await written(log, records[2:])
    with pytest.raises(Overtaken, match="replaced"):
        await asyncio.wait_for(task, 5)
    model.close()
    await agree_in_the_end(path, log, draw)


async def test_of_two_followers_of_one_file_one_ends(tmp_path, draw):
    """Whatever both have taken is written once."""
    path = tmp_path / "model.db"
    log, records = await begun(0)
    models, tasks = zip(*[await following(path, log) for _ in range(2)], strict=True)
    await written(log, records)
    done, rest = await asyncio.wait(tasks, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    assert [type(task.exception()) for task in done] == [Overtaken]
    for task in rest:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for model in models:
        model.close()
    await agree_in_the_end(path, log, draw)


def test_a_digest_that_is_not_that_of_the_state_stops_the_read_model(tmp_path):
    """The error says where; what was committed before stays."""
    forged = [
        (
            time,
            tuple(
                replace(e, digest="0" * 64) if isinstance(e, CheckpointRecorded) else e
                for e in events
            ),
            at,
        )
        for time, events, at in story()
    ]
    model = ReadModel(tmp_path / "model.db", LOG_ID)
    steps = read(sealed(forged))
    for step in steps[:2]:
        model.take(step)
    model.commit()
    with pytest.raises(LogDamaged, match="event 12 carries digest 000000000000"):
        model.take(steps[2])
    assert model.committed.frame == 2
    model.close()


async def test_a_follower_that_fails_within_a_step_commits_nothing_of_it(tmp_path, draw):
    """The steps before it are taken again by the next one."""
    good = sealed(story())
    forged = [
        (time, tuple(replace(e, digest="0" * 64) if e.seq == 29 else e for e in events), at)
        for time, events, at in story()
    ]
    logs = []
    for records in (good[:2] + sealed(forged)[2:], good):
        log = open_memory("", 0).log
        await log.create()
        for record in records:
            await log.append(record.data)
        logs.append(log)
    for log in logs:
        model = ReadModel(tmp_path / "model.db", LOG_ID)
        follower = Follower(model, log)
        task = asyncio.create_task(follower.keep_up(await follower.reader()))
        while model.committed.next_seq != 36 and not task.done():  # noqa: ASYNC110 - a file does not tell
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError, LogDamaged):
            await task
        model.close()
    await agree(tmp_path / "model.db", logs[1], draw)


async def test_a_log_that_lost_its_tail_asks_for_a_rebuild(tmp_path):
    """The frame that was read last is not there any more."""
    records = sealed(story())
    model = ReadModel(tmp_path / "model.db", LOG_ID)
    for step in read(records):
        model.take(step)
    model._kept_seq = -(10**9)
    model.commit()
    model.close()
    log = open_memory("", 0).log
    await log.create()
    for record in records[:5]:
        await log.append(record.data)
    model = ReadModel(tmp_path / "model.db", LOG_ID)
    with pytest.raises(RebuildNeeded, match="is not in this log"):
        await Follower(model, log).reader()
    model.close()

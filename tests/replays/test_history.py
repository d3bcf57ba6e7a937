"""The past of a log: from snapshots or from the beginning, the same state."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from msgspec.structs import replace

from events import vocabulary as v
from events.errors import LogDamaged
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.snapshots.store import Header, SnapshotStore
from replays.checking.verify import VerifyQuestion, verify_log
from replays.history.moments import Moment, parse_moment
from replays.history.rebuild import History, apply_step
from tests.core.histories import START, configurations, histories
from tests.examples import examples
from tests.replays.logs import LOG_ID, read, sealed, story, taken, written


def keep(store, steps, every):
    """Leave a snapshot after every so many steps."""
    engine = Engine()
    for number, step in enumerate(steps, 1):
        apply_step(engine, step)
        if number % every == 0:
            store.save(Header(head=step.head), snapshot.encode(engine.state))


@given(configurations(), histories)
@examples(25)
def test_every_moment_is_the_same_with_and_without_snapshots(
    tmp_path_factory, configuration, history
):
    """By seq and by time; the digest says it all but the time, which is that of the step with the last event."""
    records = sealed(taken(configuration, history))
    steps = read(records)
    store = SnapshotStore(tmp_path_factory.mktemp("store"), pytest.fail)
    keep(store, steps, 2)

    async def compare():
        log = await written(records)
        plain, quick = History(log), History(log, store)
        times = {0: 0} | {event.seq: step.time for step in steps for event in step.events}
        moments = [Moment(seq=seq) for seq in times]
        moments += [Moment(time=step.time + delta) for step in steps for delta in (-1, 0)]
        for moment in moments:
            one, other = (await plain.at(moment)).state, (await quick.at(moment)).state
            assert (one.seq, one.time, one.digest()) == (other.seq, other.time, other.digest()), (
                moment
            )
            assert moment.seq is None or one.time == times[moment.seq]

    asyncio.run(compare())


async def test_a_moment_means_what_it_says():
    """A seq is exact, a time is after all that happened by then, and time before the end counts from the last frame."""
    history = History(await written(sealed(story())))
    for text, seq in [
        ("start", 0),
        ("9", 9),
        ("end", 35),
        ("99", 35),
        ("-1s", 34),
        ("-24500ms", 12),
        ("-1h", 0),
    ]:
        assert (await history.at(parse_moment(text))).state.seq == seq, text
    assert (await history.at(Moment(time=START + 999))).state.seq == 12


async def test_a_snapshot_whose_frame_the_log_lost_is_passed_over(tmp_path):
    """With a warning; an older one serves, and verify goes on from it."""
    records = sealed(story())
    steps = read(records)
    store = SnapshotStore(tmp_path, pytest.fail)
    keep(store, steps, 4)
    warnings = []
    other = sealed([*story()[:9], (START + 10_000, (v.AskWithdrawn(seq=27, ask="x"),), 13)])
    history = History(await written(other), store, warnings.append)
    engine, reader = await history.start()
    assert (reader.head.frame, engine.state.seq) == (8, steps[7].head.next_seq - 1)
    assert len(warnings) == 1
    assert "frame 12" in warnings[0]


async def test_verify_starts_from_a_snapshot(tmp_path):
    """What comes before it is not even read."""
    records = sealed(story())
    store = SnapshotStore(tmp_path, pytest.fail)
    keep(store, read(records), 5)
    outcome = await verify_log(
        History(await written(records), store), VerifyQuestion(start=Moment(seq=22))
    )
    assert outcome.difference is None
    assert outcome.first == 23


async def test_a_digest_that_is_not_that_of_the_state_stops_the_reader():
    """The error says where and which."""
    forged = [
        (
            time,
            tuple(
                replace(e, digest="0" * 64) if isinstance(e, v.CheckpointRecorded) else e
                for e in events
            ),
            at,
        )
        for time, events, at in story()
    ]
    history = History(await written(sealed(forged)))
    assert (await history.at(Moment(seq=11))).state.seq == 11
    with pytest.raises(LogDamaged, match="event 12 carries digest 000000000000"):
        await history.at(Moment(seq=13))


async def test_the_id_of_a_log_comes_from_its_first_frame():
    """An empty log has none."""
    assert await History(await written(sealed(story()))).log_id() == LOG_ID
    assert await History(await written([])).log_id() == ""

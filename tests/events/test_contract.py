"""What every adapter promises, tried on all of them: memory, SQLite, a real Kafka."""

import asyncio
from contextlib import aclosing

import pytest

from events import errors
from events.chain import ChainReader, RecordedStep
from events.cloudevents import InboxRecord
from events.frame import decode_frame
from events.streams import Leadership
from events.streams.reading import follow_steps
from events.vocabulary import NodeRemoved
from tests.events.places import Place
from tests.events.world import (
    Gated,
    Unreliable,
    filled,
    lead,
    names_in,
    records_of,
    steps_of,
    world,
    write,
)


async def test_what_is_appended_is_read_back_in_order_by_others(place: Place) -> None:
    """Bytes, order and positions are the same for another connection."""
    leader = await filled(place, "a", "b", "c")
    mine, theirs = await records_of(leader.log), await records_of((await place.open()).log)
    assert mine == theirs
    assert [record.position for record in theirs] == [0, 1, 2, 3]
    assert [decode_frame(record.data).frame for record in theirs] == [1, 2, 3, 4]
    assert await leader.log.end() == 4


async def test_reading_begins_after_a_position(place: Place) -> None:
    """`after` is exclusive, up to the end itself."""
    log = (await filled(place, "a", "b")).log
    assert [record.position for record in await records_of(log, 0)] == [1, 2]
    assert await records_of(log, 2) == []


async def test_a_position_behind_the_end_is_lost(place: Place) -> None:
    """A reader that knew more than the log holds is told."""
    log = (await filled(place, "a")).log
    with pytest.raises(errors.PositionLost):
        await records_of(log, 7)


async def test_an_empty_log_has_no_records(place: Place) -> None:
    """Reading it ends at once."""
    log = (await place.open()).log
    assert await records_of(log) == []
    assert await log.end() == 0


async def test_following_goes_on_with_what_comes_later(place: Place) -> None:
    """A follower on another connection sees old and new steps."""
    leader = await filled(place, "a")
    other = await place.open()
    seen: list[RecordedStep] = []
    async with asyncio.timeout(20), aclosing(follow_steps(other.log, ChainReader())) as batches:
        async for steps in batches:
            seen.extend(steps)
            if len(seen) == 2:
                await write(leader, "b")
            if len(seen) == 3:
                break
    assert names_in(seen) == ["a", "b"]


async def test_creating_twice_changes_nothing(place: Place) -> None:
    """What is there stays."""
    leader = await filled(place, "a")
    again = await place.open(create=True)
    await again.log.check()
    assert names_in(await steps_of(again.log)) == names_in(await steps_of(leader.log)) == ["a"]


async def test_streams_that_do_not_exist_are_reported_and_not_made(place: Place) -> None:
    """Neither checking nor reading nor proposing creates anything."""
    if place.kind == "memory":
        return
    for _ in range(2):
        streams = await place.open(create=False)
        with pytest.raises(errors.StreamMissing):
            await streams.log.check()
        with pytest.raises(errors.StreamMissing):
            await records_of(streams.log)
        with pytest.raises(errors.StreamMissing):
            await streams.inbox.propose([NodeRemoved(node="n")])
        with pytest.raises(errors.StreamMissing):
            await streams.inbox.read(0)


async def test_cluster_partitions_do_not_mix(place: Place) -> None:
    """Each has a log, an inbox and heartbeats of its own."""
    one, zero = await place.open(1), await place.open(0)
    first, second = await lead(zero.log), await lead(one.log)
    await write(first, "zero")
    await write(second, "one")
    await zero.inbox.propose([NodeRemoved(node="in zero")])
    await first.heartbeat(5)
    assert names_in(await steps_of(zero.log)) == ["zero"]
    assert names_in(await steps_of(one.log)) == ["one"]
    assert await one.inbox.read(0) == ()
    assert await one.log.last_heartbeat() is None


async def test_many_writers_at_once_get_positions_of_their_own(place: Place) -> None:
    """Concurrent writes all succeed, each with its own position, and none is lost."""
    streams = await place.open()
    puts = [streams.inbox.put([InboxRecord(data=f"{number}".encode())]) for number in range(100)]
    positions = [position for got in await asyncio.gather(*puts) for position in got]
    assert sorted(positions) == list(range(100))
    assert {proposal.raw for proposal in await streams.inbox.read(0, limit=200)} == {
        str(number) for number in range(100)
    }


# ------------------------------------------------------------------------------------------ leading


async def test_the_first_leader_begins_the_log(place: Place) -> None:
    """The genesis frame draws the log_id and holds LeaderStarted with seq 1."""
    seen: list[RecordedStep] = []
    leader = await lead((await place.open()).log, seen)
    (step,) = seen
    assert (step.head.term, step.head.frame, step.events[0].seq) == (1, 1, 1)
    assert step.head.log_id
    assert leader.head == step.head


async def test_a_stale_leader_changes_nobodys_state(place: Place) -> None:
    """What it writes after another's fence counts for no reader, and it is told."""
    old = await filled(place, "a")
    new = await lead((await place.open()).log)
    with pytest.raises(errors.LeadershipLost) as caught:
        await write(old, "stale")
    assert (caught.value.by_term, caught.value.by_leader) == (2, new.leader)
    assert not old.alive
    await write(new, "b")
    reader = ChainReader()
    assert names_in(await steps_of(new.log, reader)) == ["a", "b"]
    assert reader.ignored == 1
    assert len(await records_of(new.log)) == 5


async def test_a_leader_that_lost_its_term_stays_out(place: Place) -> None:
    """It writes nothing more, whoever asks."""
    old = await filled(place, "a")
    new = await lead((await place.open()).log)
    for _ in range(2):
        with pytest.raises(errors.LeadershipLost):
            await write(old, "stale")
    with pytest.raises(errors.LeadershipLost):
        await old.heartbeat(9)
    assert await new.log.end() == 4


async def test_two_at_the_beginning_of_a_log_agree(place: Place) -> None:
    """Two genesis frames: the first counts, the other one's log_id is void, its author leads with the next term."""
    streams = [await place.open(), await place.open()]
    gates = [Gated(stream.log) for stream in streams]
    tasks = [asyncio.create_task(lead(gate)) for gate in gates]
    await asyncio.gather(*(gate.waiting.wait() for gate in gates))
    for gate in gates:
        gate.gate.set()
    leaders = sorted(await asyncio.gather(*tasks), key=lambda leader: leader.term)
    assert [leader.term for leader in leaders] == [1, 2]
    await write(leaders[1], "a")
    reader = ChainReader()
    assert names_in(await steps_of(streams[0].log, reader)) == ["a"]
    assert reader.ignored == 1
    assert reader.head.log_id == leaders[0].head.log_id == leaders[1].head.log_id


async def test_a_fence_that_met_a_newer_frame_is_tried_again(place: Place) -> None:
    """The old leader wrote between reading and fencing: that fence is void, the next one holds, nothing is damaged."""
    old = await filled(place, "a")
    gate = Gated((await place.open()).log)
    task = asyncio.create_task(lead(gate))
    await gate.waiting.wait()
    await write(old, "b")
    gate.gate.set()
    new = await task
    await write(new, "c")
    reader = ChainReader()
    assert names_in(await steps_of(new.log, reader)) == ["a", "b", "c"]
    assert reader.ignored == 1
    assert new.term == 2


async def test_losing_every_race_ends_in_an_error(place: Place) -> None:
    """Whoever is always too late is told who leads."""
    old = await filled(place, "a")
    log = (await place.open()).log

    class Meddled(Gated):
        async def append(self, data: bytes) -> int:
            await write(old, "again")
            return await self.log.append(data)

    with pytest.raises(errors.LeadershipLost) as caught:
        await Leadership.acquire(Meddled(log), ChainReader(), print, world(attempts=3))
    assert caught.value.by_leader == old.leader
    assert names_in(await steps_of(log)) == ["a", "again", "again", "again"]


@pytest.mark.parametrize("fate", ["reply", "write"])
async def test_an_unknown_outcome_is_resolved_by_reading(place: Place, fate: str) -> None:
    """After a lost reply or a lost write the term is over; the next leader finds the step, or not, and goes on."""
    log = (await place.open()).log
    leader = await lead(Unreliable(log, "ok", "ok", fate))
    await write(leader, "a")
    with pytest.raises(errors.OutcomeUnknown):
        await write(leader, "b")
    assert not leader.alive
    seen: list[RecordedStep] = []
    leader = await lead(log, seen)
    assert names_in(seen) == (["a", "b"] if fate == "reply" else ["a"])
    await write(leader, "c")
    assert names_in(await steps_of(log)) == [*names_in(seen), "c"]


@pytest.mark.parametrize("fate", ["reply", "write"])
async def test_a_fence_of_unknown_outcome_is_asked_for_again(place: Place, fate: str) -> None:
    """Acquiring again with the same reader goes on where it was and gives each step once."""
    log = Unreliable((await filled(place, "a")).log, fate)
    reader, seen = ChainReader(), list[RecordedStep]()
    with pytest.raises(errors.OutcomeUnknown):
        await Leadership.acquire(log, reader, seen.append, world())
    leader = await Leadership.acquire(log, reader, seen.append, world())
    assert leader.term == (3 if fate == "reply" else 2)
    assert [step.head.frame for step in seen] == list(range(1, leader.head.frame + 1))


async def test_cancelling_an_append_ends_the_term_and_the_log_tells(place: Place) -> None:
    """The write goes on though nobody waits for it; the step is there whole when the next one leads."""
    gate = Gated((await filled(place, "a")).log)
    gate.gate.set()
    leader = await lead(gate)
    gate.gate.clear()
    gate.waiting.clear()
    task = asyncio.create_task(write(leader, "b"))
    await gate.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not leader.alive
    before = await gate.end()
    gate.gate.set()
    async with asyncio.timeout(20):
        while await gate.end() == before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    seen: list[RecordedStep] = []
    await lead(gate, seen)
    assert names_in(seen) == ["a", "b"]


async def test_time_never_goes_back(place: Place) -> None:
    """A leader whose clock is behind writes the time of the step before; a step before that is refused unwritten."""
    leader = await filled(place, "a")
    behind = await Leadership.acquire(
        (await place.open()).log, ChainReader(), print, world(now=lambda: 5)
    )
    assert behind.head.time == leader.head.time == 2_000
    assert behind.stamp(7) == 2_000
    with pytest.raises(ValueError, match="time 1999 is before 2000"):
        await behind.append_step((), time=1_999, decided=True, inbox_next=0)
    assert await behind.log.end() == 3


async def test_a_step_that_does_not_follow_is_refused_unwritten(place: Place) -> None:
    """A wrong seq or a position in the inbox that goes back would damage the log for ever."""
    for events, inbox_next in (((NodeRemoved(seq=9, node="n"),), 5), ((), 3)):
        leader = await lead((await place.open()).log)
        await write(leader, "a", inbox_next=5)
        with pytest.raises(ValueError, match="step: "):
            await leader.append_step(events, time=2_000, decided=True, inbox_next=inbox_next)
        await steps_of(leader.log)
        await write(await lead(leader.log), "b", inbox_next=5)


async def test_heartbeats_are_seen_back(place: Place) -> None:
    """The latest one counts, whoever reads it, and it carries the head of the log."""
    leader = await filled(place, "a")
    other = await place.open()
    assert await other.log.last_heartbeat() is None
    for number in (1, 2, 3):
        beat, _ = await leader.heartbeat(100 + number, "here:1")
        assert await leader.log.last_heartbeat() == beat
        assert await other.log.last_heartbeat() == beat
    assert (beat.number, beat.head, beat.address, beat.term) == (3, leader.head, "here:1", 1)

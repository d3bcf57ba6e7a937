"""What every adapter promises about large steps, about damaged, cut and exported logs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from events import errors
from events.bounds import MAX_FRAME_BYTES
from events.chain import ChainReader, RecordedStep
from events.streams import Leadership, open_log
from events.streams.export import ExportedLog, Imported, export_log, import_log
from events.streams.reading import resume
from events.vocabulary import NodeRegistered, NodeRemoved
from tests.events.places import Place
from tests.events.world import Unreliable, filled, lead, names_in, records_of, steps_of, write


def large(leader: Leadership, count: int, size: int) -> tuple[NodeRegistered, ...]:
    """Return events of about this many bytes each."""
    first = leader.head.next_seq
    return tuple(
        NodeRegistered(seq=first + number, node=f"n{number}", capacity={}, labels={"l": "x" * size})
        for number in range(count)
    )


async def test_a_step_over_the_size_of_a_frame_is_one_step(place: Place) -> None:
    """It travels in several frames and arrives as it was."""
    leader = await filled(place)
    events = large(leader, 12, 100_000)
    step = await leader.append_step(events, time=2_000, decided=True, inbox_next=0)
    found = await steps_of((await place.open()).log)
    assert found[1:] == [step]
    assert found[1].events == events
    records = await records_of(leader.log)
    assert len(records) == 4
    assert max(len(record.data) for record in records) <= MAX_FRAME_BYTES


async def test_an_event_over_the_size_of_a_frame_travels_in_pieces(place: Place) -> None:
    """So there is no decision that is too large to be written."""
    leader = await filled(place)
    events = (
        *large(leader, 2, 100),
        large(leader, 3, 1_500_000)[2],
        NodeRemoved(seq=leader.head.next_seq + 3, node="ä" * 200),
    )
    await leader.append_step(events, time=2_000, decided=True, inbox_next=0)
    assert (await steps_of((await place.open()).log))[1].events == events
    assert max(len(record.data) for record in await records_of(leader.log)) <= MAX_FRAME_BYTES


@pytest.mark.parametrize("fate", ["reply", "write"])
async def test_half_a_step_never_happened(place: Place, fate: str) -> None:
    """The leader died between the frames of a step: readers wait, then the next term's fence drops the beginning."""
    log = (await place.open()).log
    leader = await lead(Unreliable(log, "ok", "ok", "ok", fate))
    await write(leader, "a")
    with pytest.raises(errors.OutcomeUnknown):
        await leader.append_step(large(leader, 12, 100_000), time=2_000, decided=True, inbox_next=7)
    reader = ChainReader()
    assert names_in(await steps_of(log, reader)) == ["a"]
    assert reader.unfinished
    seen: list[RecordedStep] = []
    leader = await lead(log, seen)
    await write(leader, "b")
    assert names_in(await steps_of(log)) == ["a", "b"]
    assert [event.seq for step in await steps_of(log) for event in step.events] == [1, 2, 3, 4]
    assert leader.head.inbox_next == 0
    assert names_in(await steps_of(log, reader)) == ["b"]


# ------------------------------------------------------------------------------------- damaged logs


async def copied(place: Place, records: list[bytes]) -> Place:
    """Write these bytes into a log as they are."""
    log = (await place.open()).log
    for data in records:
        await log.append(data)
    return place


DAMAGES = {
    "a changed event": (lambda old: [*old[:2], old[2].replace(b'"b"', b'"B"'), *old[3:]], 3),
    "a missing frame": (lambda old: [*old[:2], *old[3:]], 2),
    "two frames swapped": (lambda old: [old[0], old[2], old[1], *old[3:]], 1),
    "a missing beginning": (lambda old: old[1:], 0),
    "a frame that came twice": (lambda old: [*old[:2], old[1], *old[2:]], 2),
    "another log_id": (
        lambda old: [*old[:3], old[3].replace(b'"log_id":"id', b'"log_id":"other'), *old[4:]],
        3,
    ),
    "a changed time": (
        lambda old: [*old[:3], old[3].replace(b'"time":2000', b'"time":1999'), *old[4:]],
        3,
    ),
    "a changed hash": (lambda old: [*old[:-1], old[-1].replace(b'"prev":"', b'"prev":"0')], 3),
    "a missing fence": (lambda old: [*old[:4], *old[5:]], 4),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_found_with_its_place(
    another_place: Callable[[], Place], damage: str
) -> None:
    """Whatever was done to a log, reading stops at the first record that cannot stand there."""
    leader = await filled(another_place(), "a", "b", "c")
    if damage == "a missing fence":
        leader = await lead(leader.log)
        await write(leader, "d")
    spoil, position = DAMAGES[damage]
    records = [record.data for record in await records_of(leader.log)]
    place = await copied(another_place(), spoil(records))
    log = (await place.open()).log
    with pytest.raises(errors.LogDamaged) as caught:
        await steps_of(log)
    assert caught.value.position == position
    assert f"at position {position}" in str(caught.value)
    with pytest.raises(errors.LogDamaged):
        await lead(log)
    assert await log.end() == len(spoil(records)), "nobody writes to a damaged log"


async def test_a_lost_tail_is_found_by_who_knew_it(another_place: Callable[[], Place]) -> None:
    """A snapshot's head and the last leader's heartbeat each remember more than the log holds."""
    leader = await filled(another_place(), "a", "b")
    beat, _ = await leader.heartbeat(1)
    records = [record.data for record in await records_of(leader.log)]
    log = (await (await copied(another_place(), records[:-1])).open()).log
    with pytest.raises(errors.PositionLost):
        await resume(log, leader.head)
    await log.heartbeat(beat)
    with pytest.raises(errors.PositionLost):
        await lead(log)


async def test_a_lost_tail_is_found_by_a_leader_that_writes_nothing(
    another_place: Callable[[], Place],
) -> None:
    """It looks, now and then, whether its term is in force; it need not wait for its next step."""
    leader = await filled(another_place(), "a", "b")
    await leader.confirm()
    records = [record.data for record in await records_of(leader.log)]
    leader.log = (await (await copied(another_place(), records[:-1])).open()).log
    with pytest.raises(errors.PositionLost):
        await leader.confirm()


async def test_a_replaced_log_is_found_by_who_knew_the_old_one(
    another_place: Callable[[], Place],
) -> None:
    """A log made anew, or with another tail, has other frames at the same positions."""
    leader = await filled(another_place(), "a", "b")
    beat, _ = await leader.heartbeat(1)
    new = await filled(another_place(), "a", "b", "c")
    with pytest.raises(errors.PositionLost):
        await resume(new.log, leader.head)
    await new.log.heartbeat(beat)
    with pytest.raises(errors.LogDamaged):
        await lead(new.log)


async def test_a_reader_goes_on_from_a_head_that_was_kept(place: Place) -> None:
    """Snapshot plus tail gives the steps of the whole log."""
    leader = await filled(place, "a", "b", "c")
    whole = await steps_of(leader.log)
    for index, step in enumerate(whole):
        reader = await resume(leader.log, step.head)
        assert await steps_of(leader.log, reader) == whole[index + 1 :]


# ------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
async def test_an_export_is_the_log_byte_for_byte(
    another_place: Callable[[], Place], tmp_path: Path, suffix: str
) -> None:
    """Void frames included; it reads like a log, and imported it is one that can be led."""
    old = await filled(another_place(), "a")
    new = await lead(old.log)
    with pytest.raises(errors.LeadershipLost):
        await write(old, "stale")
    await write(new, "b")
    path = tmp_path / f"log{suffix}"
    assert await export_log(new.log, path) == 5
    file = open_log(str(path))
    assert isinstance(file, ExportedLog)
    assert await records_of(file) == await records_of(new.log)
    assert await steps_of(file) == await steps_of(new.log)
    assert (await file.header()).log_id == new.head.log_id
    target = (await another_place().open()).log
    assert await import_log(path, target) == Imported(5, 0)
    assert await records_of(target) == await records_of(new.log)
    await write(await lead(target), "c")

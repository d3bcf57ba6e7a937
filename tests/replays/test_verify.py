"""Verify finds every change of a log, and nothing in a log that nobody touched."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from events import vocabulary as v
from events.errors import LogDamaged
from events.frame import decode_frame, encode_event, encode_frame
from events.streams.protocols import Heartbeat, Record
from evsched.core import snapshot
from evsched.core.engine import Engine
from replays.checking.verify import VerifyQuestion, verify, verify_log
from replays.history.moments import Moment
from replays.history.rebuild import History
from replays.history.steps import is_proposed
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.replays.logs import read, sealed, story, taken, written


@pytest.fixture(scope="module")
def steps():
    """Return the steps of the story: (time, events, inbox_next)."""
    return story()


# ----------------------------------------------------------------------------------- untouched logs


@given(configurations(), histories)
@examples(40)
def test_an_untouched_log_has_no_difference_from_any_frame_on(configuration, history):
    """Deciding again from the beginning, and from a snapshot of every frame, gives what is recorded."""
    steps = read(sealed(taken(configuration, history)))
    assert verify(Engine(), steps) is None
    engine = Engine()
    for number, step in enumerate(steps):
        for event in step.events:
            engine.apply(event, step.time)
        again = Engine(snapshot.decode(snapshot.encode(engine.state), step.time))
        assert verify(again, steps[number + 1 :]) is None, f"from frame {step.head.frame} on"


HASHES = """
from tests.replays.logs import read, sealed, story
from replays.checking.verify import verify
from evsched.core.engine import Engine
records = sealed(story())
assert verify(Engine(), read(records)) is None
print(records[-1].data.hex())
"""


def test_another_hash_seed_writes_the_same_log_and_finds_nothing(steps):
    """Neither deciding nor comparing depends on the order of a set or on the hash of a text."""
    expected = sealed(steps)[-1].data.hex()
    for seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        said = subprocess.run(
            [sys.executable, "-c", HASHES],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        assert said.stdout.strip() == expected


# --------------------------------------------------------------------- changes that were covered up


def is_fact(event):
    """Tell whether an event came from outside (an input, its refusal, who leads) rather than having been decided."""
    return is_proposed(event) or isinstance(event, v.LeaderStarted)


def renumbered(steps):
    """Return the steps with their events numbered anew, causes following the events that they named."""
    new = {}
    for _, events, _ in steps:
        for event in events:
            new.setdefault(event.seq, len(new) + 1)
    number = 0
    found = []
    for time, events, inbox_next in steps:
        fresh = []
        for event in events:
            number += 1
            fresh.append(replace(event, seq=number, cause=new.get(event.cause, event.cause)))
        found.append((time, tuple(fresh), inbox_next))
    return found


def removals(steps):
    """Yield (name, changed event, changed steps): each event left out, the step that held it being there still."""
    for index, (time, events, inbox_next) in enumerate(steps):
        for place, event in enumerate(events):
            rest = (time, events[:place] + events[place + 1 :], inbox_next)
            yield (
                f"removed {event.seq}",
                event,
                renumbered([*steps[:index], rest, *steps[index + 1 :]]),
            )


def additions(steps):
    """Yield each event told twice."""
    for index, (time, events, inbox_next) in enumerate(steps):
        for place, event in enumerate(events):
            twice = (
                time,
                (*events[: place + 1], replace(event, seq=10**6), *events[place + 1 :]),
                inbox_next,
            )
            yield (
                f"added after {event.seq}",
                event,
                renumbered([*steps[:index], twice, *steps[index + 1 :]]),
            )


def swaps(steps):
    """Yield each event exchanged with the next one, also over the border of two steps."""
    flat = [(index, event) for index, (_, events, _) in enumerate(steps) for event in events]
    for place in range(len(flat) - 1):
        (here, one), (there, other) = flat[place], flat[place + 1]
        order = [*flat[:place], (here, other), (there, one), *flat[place + 2 :]]
        new = [
            (time, tuple(event for owner, event in order if owner == index), inbox_next)
            for index, (time, _, inbox_next) in enumerate(steps)
        ]
        changed = one if is_fact(one) else other
        yield f"swapped {one.seq} with {other.seq}", changed, renumbered(new)


def other_values(value):
    """Return values of the same type as this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 0] if value else [1]
    if isinstance(value, str):
        return [value + "x", ""] if value else ["x"]
    if isinstance(value, tuple) and value:
        return [(), value[:-1], (*value, value[0])]
    if isinstance(value, dict) and value:
        return [{}, {**value, "more": 1}]
    return []


def alterations(steps):
    """Yield each event with one field changed, its seq aside."""
    for index, (time, events, inbox_next) in enumerate(steps):
        for place, event in enumerate(events):
            for field in event.__struct_fields__:
                for value in other_values(getattr(event, field)):
                    if field == "seq" or value == getattr(event, field):
                        continue
                    forged = replace(event, **{field: value})
                    new = (time, (*events[:place], forged, *events[place + 1 :]), inbox_next)
                    yield (
                        f"altered {field} of {event.seq}",
                        event,
                        [*steps[:index], new, *steps[index + 1 :]],
                    )


def written_again(event):
    """Tell whether what is recorded can be written and read again at all."""
    try:
        msgspec.json.decode(encode_event(event), type=v.AnyEvent)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("forgeries", [removals, additions, swaps, alterations])
def test_every_change_is_found_at_its_place_though_all_hashes_were_made_anew(steps, forgeries):
    """A decision that does not follow is found where it stands; an input that was exchanged, where it has a consequence.

    An input whose exchange leads to the very same decisions makes another valid log: taking its
    steps gives exactly its events. Nothing but the chain can tell it from the real one (see the
    next test).
    """
    tried = found = 0
    untouched = sealed(steps)
    for name, event, forged in forgeries(steps):
        if not all(written_again(one) for _, events, _ in forged for one in events):
            continue
        try:
            records = sealed(forged)
            if records == untouched:
                continue
            tried += 1
            difference = verify(Engine(), read(records))
        except LogDamaged:
            found += 1
            continue
        if difference is None:
            assert is_fact(event), f"{name}: {type(event).__name__}"
            continue
        found += 1
        frame = next(number for number, (_, events, _) in enumerate(steps, 1) if event in events)
        if is_fact(event):
            assert difference.frame >= frame - 1, name
        else:
            assert difference.seq in {event.seq - 1, event.seq, event.seq + 1}, (
                f"{name}: found at {difference.seq}"
            )
    assert tried > 30
    assert found > tried // 2


def test_a_step_that_was_left_out_whole_is_found_where_it_has_a_consequence(steps):
    """As if its leader had not been there: what was due then comes later in what is decided, or the next digest differs."""
    found = []
    for index, (_, events, _) in enumerate(steps[:-1]):
        try:
            difference = verify(
                Engine(), read(sealed(renumbered(steps[:index] + steps[index + 1 :])))
            )
        except LogDamaged:
            continue
        if difference is not None:
            found.append(index)
            assert difference.seq >= events[0].seq
        else:
            assert all(is_proposed(event) for event in events)
    assert len(found) >= len(steps) // 2


# ----------------------------------------------------------------- changes that were not covered up


async def test_every_edit_without_new_hashes_is_damage_with_its_place(steps):
    """Each event of each frame altered, each frame removed, swapped or told twice: the chain stops there."""
    records = sealed(steps)
    beat = Heartbeat(leader="leader-2", term=2, time=1, number=1, head=read(records)[-1].head)
    forged = []
    for place, record in enumerate(records):
        frame = decode_frame(record.data)
        for index, event in enumerate(frame.events):
            altered = replace(event, cause=event.cause + 1)
            events = (*frame.events[:index], altered, *frame.events[index + 1 :])
            edited = Record(place, encode_frame(replace(frame, events=events)))
            forged.append((place, [*records[:place], edited, *records[place + 1 :]]))
        forged.append((place, records[:place] + records[place + 1 :]))
        forged.append((place, [*records[:place], record, *records[place:]]))
        if place + 1 < len(records):
            forged.append(
                (place, [*records[:place], records[place + 1], record, *records[place + 2 :]])
            )
    for place, changed in forged:
        log = await written(changed)
        await log.heartbeat(beat)
        outcome = await verify_log(History(log))
        assert outcome.damage is not None, f"record {place}"
        assert place <= outcome.damage.position <= place + 1


async def test_the_first_difference_is_shown_with_the_state_around_it(steps):
    """A victim exchanged: both versions, the queues on the paths, the ask, the victims and the node."""
    forged = []
    for time, events, inbox_next in steps:
        changed = tuple(
            replace(event, victims=tuple(replace(victim, id="test-2") for victim in event.victims))
            if isinstance(event, v.PreemptionDecided)
            else event
            for event in events
        )
        forged.append((time, changed, inbox_next))
    outcome = await verify_log(History(await written(sealed(forged))))
    difference = outcome.difference
    assert outcome.damage is None
    assert isinstance(difference.recorded, v.PreemptionDecided)
    assert [victim.id for victim in difference.recorded.victims] == ["test-2"]
    assert [victim.id for victim in difference.decided.victims] == ["test-4"]
    assert [row.queue for row in outcome.around.queues] == ["root", "root.prod", "root.test"]
    assert [row.ask for row in outcome.around.asks] == ["prod-1"]
    assert [row.allocation for row in outcome.around.allocations] == ["test-2", "test-4"]
    assert [row.node for row in outcome.around.nodes] == ["n1"]


async def test_verifying_from_a_moment_takes_what_was_before_as_it_is(steps):
    """What differs before the moment is not looked for, what differs behind it is found."""
    forged = [
        (time, tuple(replace(e, node="n9") if e.seq == 17 else e for e in events), at)
        for time, events, at in steps
    ]
    log = await written(sealed(forged))
    assert (await verify_log(History(log))).difference.seq == 17
    behind = await verify_log(History(log), VerifyQuestion(start=Moment(seq=12)))
    assert (behind.first, behind.difference.seq) == (13, 17)


async def test_an_input_that_was_exchanged_with_all_that_follows_is_told_by_a_hash_that_was_kept(
    steps,
):
    """Another valid log; it does not contain the end that somebody wrote down."""
    kept = read(sealed(steps[:6]))[-1].head.hash
    forged = [
        (time, tuple(replace(e, user="x") if e.seq == 9 else e for e in events), at)
        for time, events, at in steps
    ]
    log = await written(sealed(forged))
    assert (await verify_log(History(log))).difference is None
    outcome = await verify_log(History(log), VerifyQuestion(known=(kept,)))
    assert "not the log that it was kept of" in outcome.damage.reason
    assert (
        await verify_log(History(await written(sealed(steps))), VerifyQuestion(known=(kept,)))
    ).damage is None


async def test_a_log_whose_tail_is_gone_is_not_the_one_its_leader_wrote(steps):
    """The heartbeat names a frame that is not there any more, or another one."""
    records = sealed(steps)
    log = await written(records[:-1])
    await log.heartbeat(
        Heartbeat(leader="leader-2", term=2, time=1, number=1, head=read(records)[-1].head)
    )
    outcome = await verify_log(History(log))
    assert "the tail is gone" in outcome.damage.reason
    assert outcome.difference is None

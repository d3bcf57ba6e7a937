"""All cores find in the parts of a log what one process finds in the whole of it, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from events import vocabulary as v
from events.chain import Head
from events.errors import LogDamaged
from events.streams import open_log, open_streams
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.snapshots.store import Header, SnapshotStore
from replays.checking.chain_check import check_log
from replays.checking.verify import VerifyQuestion, verify_log
from replays.history import parts
from replays.history.parts import (
    NONE,
    AllCores,
    LogSource,
    PartOutcome,
    Unfit,
    hold_together,
    parts_of,
)
from replays.history.rebuild import History, apply_step
from tests.replays.logs import LOG_ID, read, sealed, story


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let parts be as small as the logs of tests, on two cores."""
    monkeypatch.setattr(parts, "LEAST_EVENTS", 8)
    monkeypatch.setattr(parts, "core_count", lambda: 2)


@pytest.fixture
def threads(monkeypatch):
    """Let threads read the parts: all is as with processes, which take seconds to begin."""

    def pool(workers, mp_context, initializer, initargs):
        return ThreadPoolExecutor(workers, initializer=initializer, initargs=initargs)

    monkeypatch.setattr(parts, "ProcessPoolExecutor", pool)


async def placed(folder, records, spoil=lambda state: state):
    """Write a log with a snapshot after every step, spoiled ones in the middle; return where it lies."""
    url = f"sqlite://{folder / 'log.db'}"
    async with open_streams(url) as streams:
        await streams.log.create()
        for record in records:
            await streams.log.append(record.data)
    store, engine = SnapshotStore(folder / "snapshots", pytest.fail), Engine()
    for number, step in enumerate(read(records)):
        try:
            apply_step(engine, step)
        except LogDamaged:
            break  # a forged log has no state from here on
        data = snapshot.encode(engine.state)
        if number % 3 == 1:
            other = snapshot.decode(data, step.time)
            spoil(other)
            data = snapshot.encode(other)
        store.save(Header(head=step.head), data)
    return LogSource(url, 0, None, folder / "snapshots")


async def both(source, known=()):
    """Verify and check a log in parts, and in one piece; return all four answers, and what was warned of."""
    said = []
    log = open_log(source.url)
    try:
        history, question = History(log), VerifyQuestion(known=known)
        cores = AllCores(source, said.append)
        apart = await verify_log(history, question, None, cores)
        whole = await verify_log(history, question)
        try:
            reports = [await check_log(log, None, known, one) for one in (cores, None)]
        except Exception as error:  # noqa: BLE001 - the same for both, or the test sees it
            reports = [type(error), type(error)]
    finally:
        await log.close()
    return apart, whole, *reports, said


async def test_parts_say_what_the_whole_says(tmp_path):
    """An untouched log: the same figures, hashes and digest, and the known hashes are found wherever they lie."""
    records = sealed(story())
    source = await placed(tmp_path, records)
    assert len(parts_of(AllCores(source, pytest.fail), LOG_ID, 4)) > 2
    hashes = [step.head.hash for step in read(records)]
    *answers, said = await both(source, (hashes[1], hashes[-2]))
    assert answers[0] == answers[1]
    assert answers[0].damage is None
    assert answers[2] == answers[3]
    assert said == []


async def test_the_first_difference_is_found_wherever_it_lies(tmp_path, threads):
    """A victim was exchanged and all hashes made anew: the same event, and the same state around it."""

    def forge(event):
        if isinstance(event, v.PreemptionDecided):
            return replace(event, victims=(replace(event.victims[0], id="test-2"),))
        return event

    steps = [(time, tuple(map(forge, events)), at) for time, events, at in story()]
    apart, whole, *_, said = await both(await placed(tmp_path, sealed(steps)))
    assert apart.difference.seq == 21
    assert apart == whole
    # The digests that the forged log carries are found wrong by `log check` alone.
    assert [text[:17] for text in said] == ["one process reads"]


async def test_a_snapshot_that_holds_another_state_is_not_believed(tmp_path, threads):
    """A digest behind it, or that of the state which the log gives there, is another: one process reads all of it."""

    def spoil(state):
        for node in state.nodes.values():
            node.labels["forged"] = "yes"

    apart, whole, one, other, said = await both(await placed(tmp_path, sealed(story()), spoil))
    assert (apart, one) == (whole, other)
    assert apart.difference is None
    assert [text[:11] for text in said] == ["one process", "one process"]
    outcomes = [PartOutcome(None, "", "a", Head(frame=5)), PartOutcome(None, "b", "", Head())]
    with pytest.raises(Unfit, match="frame 5 does not hold the state that the log gives"):
        hold_together(outcomes, NONE)
    # Behind what was found nothing is looked at.
    hold_together(outcomes, 0)


async def test_damage_is_told_in_the_words_of_one_process(tmp_path, threads):
    """A hash that no step has: which frame is missing can only be said of the whole log."""
    apart, whole, one, other, said = await both(
        await placed(tmp_path, sealed(story())), ("0" * 32,)
    )
    assert apart == whole
    assert "no step ends with a frame of hash 000" in apart.damage.reason
    assert one == other
    assert len(said) == 2


async def test_a_log_without_snapshots_is_one_part(tmp_path):
    """One process reads it."""
    source = LogSource("sqlite:///none.db", 0, None, tmp_path / "none")
    assert parts_of(AllCores(source, pytest.fail), LOG_ID) == [(0, None, None)]

"""Questions that read only what they need say what the whole log says: with snapshots and index, and without."""

from __future__ import annotations

import asyncio
import sqlite3
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.snapshots import names, subjects
from evsched.snapshots.names import names_of
from evsched.snapshots.store import Header, SnapshotStore
from evsched.snapshots.subjects import NOTHING, SubjectIndex
from replays.explaining.mentions import mention
from replays.explaining.question import ExplainQuestion, explain
from replays.history import finding
from replays.history.finding import Finder, find, last_configuration
from replays.history.moments import END, Moment
from replays.history.rebuild import History, apply_step
from tests.core.histories import START, TASKS, configurations, histories
from tests.core.kueue.cohorts import configuration as kueue_configuration
from tests.core.kueue.test_history import step_of
from tests.examples import examples
from tests.replays import whole
from tests.replays.logs import LOG_ID, read, sealed, story, taken, written


def kueue(seed, steps=25):
    """Return the steps of a random Kueue history: (time, events, inbox_next)."""
    dice, engine, now, position = Random(seed), Engine(), START, 0
    found = [(now, engine.lead(now, 1, "leader-1", 7), 0)]
    spec = kueue_configuration(dice, fair=dice.random() < 0.5)
    inputs = [v.ConfigurationApplied(configuration=spec)]
    for number in range(steps):
        position += len(inputs)
        found.append((now, engine.step(now, [v.Proposal(input=one) for one in inputs]), position))
        inputs = step_of(dice, engine, number)
        now += dice.choice([0, 1, 1000, 40_000])
    return [one for one in found if one[1]]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let stretches and segments be as small as the logs of tests."""
    monkeypatch.setattr(subjects, "STRETCH_EVENTS", 5)
    monkeypatch.setattr(finding, "SEGMENT_EVENTS", 12)


def keep(folder, steps, every):
    """Leave a snapshot after every so many steps; return the store."""
    store, engine = SnapshotStore(folder, pytest.fail), Engine()
    for number, step in enumerate(steps, 1):
        apply_step(engine, step)
        if number % every == 0:
            store.save(Header(head=step.head), snapshot.encode(engine.state))
    return store


async def compare(folder, records, dice, known):
    """Explain some of these names at random moments in every way, and compare with reading all of it."""
    steps = read(records)
    end = steps[-1].head.next_seq - 1
    index = SubjectIndex(folder, pytest.fail)
    store = keep(folder, steps, dice.randint(2, 6))
    # The index ends somewhere in the log.
    await last_configuration(
        History(await written(records[: dice.randint(1, len(records))]), None, None, index)
    )
    log = await written(records)
    ways = [History(log), History(log, None, None, index), History(log, store, None, index)]
    moments = [END, Moment(seq=dice.randint(0, end)), Moment(time=dice.choice(steps).time)]
    for subject in dice.sample(known, min(4, len(known))):
        for moment in moments:
            expected = msgspec.json.encode(whole.explain(steps, subject, moment))
            question = ExplainQuestion(subject=subject, moment=moment)
            for history in dice.sample(ways, 2):
                assert msgspec.json.encode(await explain(history, question)) == expected
    for history in ways:
        assert await last_configuration(history) == whole.last_configuration(steps)


@given(configurations(), histories, st.randoms(use_true_random=False))
@examples(15)
def test_explain_says_the_same_however_little_it_reads(
    tmp_path_factory, configuration, history, dice
):
    """YuniKorn: any subject at any moment, byte for byte."""
    records = sealed(taken(configuration, history))
    asyncio.run(compare(tmp_path_factory.mktemp("kept"), records, dice, [*TASKS, "no-such-task"]))


@given(st.integers(0, 2**32))
@examples(8)
def test_explain_says_the_same_in_kueue(tmp_path_factory, seed):
    """Kueue: any subject at any moment, byte for byte."""
    steps = kueue(seed)
    known = sorted({name for _, events, _ in steps for one in events for name in names_of(one)})
    asyncio.run(compare(tmp_path_factory.mktemp("kept"), sealed(steps), Random(seed), known))


@given(configurations(), histories)
@examples(40)
def test_an_event_is_found_by_every_name_of_which_it_says_something(configuration, history):
    """`mention` says nothing of a subject, or of its application, that `names_of` leaves out."""
    for time, events, _ in taken(configuration, history):
        for event in events:
            for name in (*TASKS, "x", "y"):
                said = mention(name, event, time) or mention("", event, time, name)
                assert said is None or name in names_of(event)


def test_every_event_type_with_a_subject_has_a_name():
    """A type that gets a field for an ask or allocation is found by it; one without needs no name."""
    for kind in v.AnyEvent.__args__:
        fields = {"ask", "allocation", "victims"} & set(kind.__struct_fields__)
        assert not fields or kind in names._NAMERS, kind


async def indexed(folder, records, warn=pytest.fail):
    """Return a history of these records with a whole index."""
    history = History(await written(records), None, warn, SubjectIndex(folder, warn))
    await last_configuration(history)
    return history


async def covered(history):
    """Return how far the index goes that a search uses."""

    async def search(finder: Finder):
        return finder.covered

    return await find(history, search)


async def test_a_search_reads_only_the_stretches_that_speak_of_the_subject(tmp_path):
    """Behind the index nothing is read, and within it as little as is needed."""
    history = await indexed(tmp_path, sealed(story()))
    found = await covered(history)
    assert found.stretches > 3
    finder = Finder(history, found)
    assert finder.stretches("test-4") != list(range(found.stretches))
    seqs = [
        event.seq
        for stretch in range(found.stretches)
        async for step in finder.steps(stretch)
        for event in step.events
    ]
    assert seqs == list(range(1, found.head.next_seq))


async def test_an_index_of_another_log_is_dropped_and_made_anew(tmp_path):
    """The log's id is not its own; nor is it believed when the log lost its tail."""
    warnings = []
    await indexed(tmp_path, sealed(story()))
    other = await indexed(tmp_path, sealed(story(), "another-log"), warnings.append)
    assert "is of log log-of-a-test, expected another-log" in warnings[0]
    assert (await covered(other)).head.log_id == "another-log"
    shorter = sealed(story()[:4], "another-log")
    await indexed(tmp_path, shorter, warnings.append)
    assert "ends at 4" in warnings[1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE bucket SET entries = zeroblob(40)",
        "DELETE FROM bucket WHERE first > 0",
        "DELETE FROM stretch WHERE number > 1",
        "UPDATE stretch SET head = (SELECT head FROM stretch WHERE number = 2) WHERE number = 1",
        "UPDATE covered SET facts = x'00'",
        "DROP TABLE bucket",
    ],
)
async def test_a_damaged_index_is_dropped_and_the_log_is_read(tmp_path, statement):
    """Whatever was altered in it, the answer is that of the log."""
    records, warnings = sealed(story()), []
    history = await indexed(tmp_path, records, warnings.append)
    with sqlite3.connect(history.subjects.path) as connection:
        connection.execute(statement)
    connection.close()
    for subject in ("test-4", "prod-1"):
        found = await explain(history, ExplainQuestion(subject=subject))
        assert found == whole.explain(read(records), subject, END)
    for _ in range(2):
        await last_configuration(history)
    assert (await covered(history)).stretches > 3


async def test_an_index_that_others_can_write_to_is_not_opened(tmp_path):
    """It may have been forged: it is dropped."""
    warnings = []
    history = await indexed(tmp_path, sealed(story()), warnings.append)
    assert history.subjects.path.stat().st_mode & 0o777 == 0o600
    history.subjects.path.chmod(0o666)
    assert await covered(history) == NOTHING
    assert "another can write to it" in warnings[0]


async def test_a_folder_that_cannot_be_written_costs_no_answer(tmp_path):
    """The log is read, and nothing is kept."""
    path = tmp_path / "file"
    path.touch()
    history = History(await written(sealed(story())), None, None, SubjectIndex(path, pytest.fail))
    found = await explain(history, ExplainQuestion(subject="test-4"))
    assert found.explanation.history
    assert history.subjects.covered(LOG_ID) == NOTHING

"""The read model answers as the rebuilt state does, at any moment of any history."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.configuration import QueueSpec, YunikornSpec
from events.streams import open_log
from evsched.core.engine import Engine
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import asof, read_model
from projections.read_model import ReadModel, Rebuild, RebuildNeeded
from projections.temporal import OPEN, fork, places
from replays.history import tabled
from replays.history.rebuild import History
from replays.history.tabled import Narrowed, NoSuchRow, TabledMoment
from replays.history.views import VIEWS
from replays.recordings import recordings, versions
from tests.core.histories import START, configurations, first_step, histories, settle
from tests.examples import examples


def steps_of(configuration, history):
    """Run a history; return its steps."""
    engine = Engine()
    taken = []
    time = START
    for index, (later, inputs, _) in enumerate([(0, [], False), *history]):
        time += later
        taken.extend(settle(engine, time - 1))
        proposals = (
            first_step(configuration)
            if index == 0
            else [v.Proposal(input=proposed) for proposed in inputs]
        )
        taken.append((time, engine.step(time, proposals)))
    taken = [(at, events) for at, events in taken if events]
    return [
        RecordedStep(
            Head(
                next_seq=events[-1].seq + 1,
                time=at,
                frame=number,
                hash=f"h{number}",
                position=number,
            ),
            at,
            True,
            events,
        )
        for number, (at, events) in enumerate(taken, 1)
    ]


def check_every_moment(path, steps):
    """Compare tables and state after every single event."""
    reader = sqlite3.connect(path)
    state = State()
    for step in steps:
        state.time = step.time
        for event in step.events:
            apply(state, event)
            expected = asof.from_state(state)
            found = asof.without_empty_usage(asof.from_tables(reader, event.seq))
            assert found == expected, f"at seq {event.seq}"
            moment = TabledMoment(reader, event.seq)
            assert (moment.seq, moment.time) == (state.seq, state.time)
            for view, rows in VIEWS.items():
                listed = moment.page(view, Narrowed())
                assert listed.rows == rows(state), f"{view} at seq {event.seq}"
                assert (listed.total, listed.more) == (len(listed.rows), False), view
        assert asof.seq_at_time(reader, step.time) >= step.head.next_seq - 1
    reader.close()


@given(configurations(), histories)
@examples(60)
def test_tables_and_state_agree_at_every_moment(tmp_path_factory, configuration, history):
    """After every event, with commits and restarts in between, and after a rebuild."""
    check_every_way(tmp_path_factory.mktemp("model") / "model.db", steps_of(configuration, history))


def check_every_way(path, steps):
    """Compare tables and state at every moment, the file written with commits and restarts in between, and by a rebuild."""
    model = ReadModel(path, "log")
    for number, step in enumerate(steps):
        model.take(step)
        if number % 3 == 0:
            model.commit()
        if number % 5 == 4:
            model.close()
            model = ReadModel(path, "log")
            for past in steps[: number + 1]:
                if past.head.frame > model.resume_at.frame:
                    model.take(past)
    model.commit()
    model.close()
    check_every_moment(path, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_model, "FLUSH_EVERY", 3)
        rebuilt = Rebuild(path, "log")
        for step in steps:
            rebuilt.take(step)
        rebuilt.finish()
    check_every_moment(path, steps)
    again = ReadModel(path, "log")
    assert again.resume_at == again.committed == steps[-1].head
    again.close()


def small_steps():
    """Return a few steps of a cluster that works."""
    configuration = YunikornSpec(
        root=QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    )
    asks = [
        (
            1000,
            [
                v.AskSubmitted(
                    ask=f"t{n}", queue="root.a", application="x", resources={"vcore": 3000}
                )
            ],
            False,
        )
        for n in range(8)
    ]
    return steps_of(configuration, asks)


def test_another_log_or_schema_or_frame_asks_for_a_rebuild(tmp_path, monkeypatch):
    """Nothing is continued that does not belong together."""
    path = tmp_path / "model.db"
    steps = small_steps()
    model = ReadModel(path, "log")
    for step in steps:
        model.take(step)
    model.commit()
    model.close()
    with pytest.raises(RebuildNeeded, match="is of log log, expected other"):
        ReadModel(path, "other")
    model = ReadModel(path, "log")
    for step in steps[:-1]:
        model.take(step)
    with pytest.raises(RebuildNeeded, match="not the same log"):
        model.take(steps[-1]._replace(head=replace(steps[-1].head, hash="x")))
    model.close()
    found = read_model.SCHEMA_VERSION
    monkeypatch.setattr(read_model, "SCHEMA_VERSION", found + 1)
    with pytest.raises(RebuildNeeded, match=f"found schema version {found}, expected {found + 1}"):
        ReadModel(path, "log")


class Killed(Exception):
    """The process died here."""


class MortalConnection:
    """A SQLite connection whose process dies before its n-th statement."""

    def __init__(self, real, lives):
        """Die before statement number ``lives``."""
        self._real, self._lives = real, lives
        self.acts = 0

    def _act(self):
        self.acts += 1
        if self.acts > self._lives:
            raise Killed

    def execute(self, *arguments):
        """Run a statement."""
        self._act()
        return self._real.execute(*arguments)

    def executemany(self, *arguments):
        """Run a statement many times."""
        self._act()
        return self._real.executemany(*arguments)

    def cursor(self):
        """Return a cursor of the real connection, counted."""
        self._act()
        return self._real.cursor()

    @property
    def in_transaction(self):
        """A dead process rolls nothing back by itself; SQLite does when the file is opened again."""
        return False

    def close(self):
        """Close the file as the end of a process does."""
        self._real.close()


def test_a_kill_at_every_statement_of_a_commit_leaves_the_file_usable(tmp_path, monkeypatch):
    """Rows and position are there together or not at all, and the next run goes on from there."""
    monkeypatch.setattr(read_model, "KEEP_STATE_EVERY", 4)
    steps = small_steps()
    half = len(steps) // 2
    lives = 0
    while True:
        path = tmp_path / f"{lives}.db"
        model = ReadModel(path, "log")
        for step in steps[:half]:
            model.take(step)
        model.commit()
        for step in steps[half:]:
            model.take(step)
        real = model._connection
        model._connection = mortal = MortalConnection(real, lives)
        try:
            model.commit()
            died = False
        except Killed:
            died = True
        real.close()
        again = ReadModel(path, "log")
        assert again.committed.frame in {steps[half - 1].head.frame, steps[-1].head.frame}
        for step in steps:
            if step.head.frame > again.resume_at.frame:
                again.take(step)
        again.commit()
        again.close()
        check_every_moment(path, steps)
        if not died:
            assert mortal.acts >= 6
            break
        lives += 1
    assert lives >= 6


def test_a_kill_at_every_statement_of_a_rebuild_leaves_the_old_file_as_it_was(
    tmp_path, monkeypatch
):
    """Until the new file is complete the old one answers; the next rebuild works."""
    monkeypatch.setattr(read_model, "FLUSH_EVERY", 4)
    steps = small_steps()
    path = tmp_path / "model.db"
    model = ReadModel(path, "log")
    for step in steps:
        model.take(step)
    model.commit()
    model.close()
    lives = 0
    while True:
        rebuilding = Rebuild(path, "log")
        real = rebuilding._connection
        rebuilding._connection = MortalConnection(real, lives)
        try:
            for step in steps:
                rebuilding.take(step)
            rebuilding.finish()
            break
        except Killed:
            real.close()
        check_every_moment(path, steps)
        lives += 1
    assert lives >= 10
    check_every_moment(path, steps)
    assert not list(tmp_path.glob("*.rebuild*"))


@pytest.mark.parametrize("recording", recordings(versions()[-1]), ids=lambda one: one.file)
def test_tables_and_state_agree_on_every_recorded_log(tmp_path, recording):
    """Logs of both policy families, with every kind of decision that the seeds know."""
    steps = asyncio.run(read_all(str(versions()[-1] / recording.file)))
    model = ReadModel(tmp_path / "model.db", steps[0].head.log_id)
    for step in steps:
        model.take(step)
    model.commit()
    model.close()
    check_every_moment(tmp_path / "model.db", steps)


async def read_all(path):
    """Return the steps of an exported log."""
    return [step async for step in History(open_log(path)).steps()]


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 300))
def test_what_holds_at_a_moment_lies_at_its_places(first, second, moment):
    """Whatever holds at a moment lies at one of its places, however long the log is."""
    begin, end = sorted((first, second + 300))
    if begin <= moment < end:
        assert fork(begin, end) in places(moment, 600)
    assert fork(begin, OPEN) in places(moment, 600)


@given(configurations(), histories, st.randoms(use_true_random=False))
@examples(15)
def test_pages_are_parts_of_what_is_there(tmp_path_factory, configuration, history, dice):
    """Narrowed by queue, application, node or key, page by page, whichever way the rows are looked for."""
    steps = steps_of(configuration, history)
    path = tmp_path_factory.mktemp("model") / "model.db"
    model = Rebuild(path, "log")
    for step in steps:
        model.take(step)
    model.finish()
    with closing(sqlite3.connect(path)) as reader, pytest.MonkeyPatch.context() as patch:
        for _ in range(8):
            patch.setattr(tabled, "FEW", dice.choice((0, 1, 2000)))
            check_pages(TabledMoment(reader, dice.randint(0, steps[-1].head.next_seq)), dice)


def check_pages(moment, dice):
    """Hold the pages of a moment against all of its rows."""
    for view in VIEWS:
        whole = moment.page(view, Narrowed()).rows
        key = whole[0].__struct_fields__[0] if whole else ""
        for field in ("queue", "application", "node"):
            values = sorted({getattr(row, field, None) or "" for row in whole} - {""})
            if key == field or not values:
                continue
            value = dice.choice(values)
            below = f"{value}."
            expected = [
                row
                for row in whole
                if getattr(row, field) == value
                or (field == "queue" and f"{row.queue}.".startswith(below))
            ]
            listed, after = [], None
            while True:
                page = moment.page(view, Narrowed(**{field: value}, after=after, limit=2))
                assert page.total == len(expected), (view, field)
                listed += page.rows
                if not page.more:
                    break
                after = getattr(page.rows[-1], key)
            assert listed == expected, (view, field, value)
        for row in whole[:3]:
            assert moment.page(view, Narrowed(key=getattr(row, key))).rows == [row]
        with pytest.raises(NoSuchRow):
            moment.page(view, Narrowed(after="never was"))

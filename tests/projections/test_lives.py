"""What became of applications, from the tables and by counting events one by one."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import lives
from projections.read_model import ReadModel
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.projections.test_asof import steps_of
from tests.replays.logs import read, sealed, story

MINUTE = 60_000


def model_of(path, steps):
    """Return a read model that holds these steps."""
    model = ReadModel(path, steps[0].head.log_id)
    for step in steps:
        model.take(step)
    model.commit()
    return model


def naive(steps, seq):
    """Count from the events up to ``seq``: the state, and by application what it asked, ran, used, and when it ended.

    Amount-milliseconds are added up a step at a time, and an application that comes again is
    another one.
    """
    state, time = State(), 0
    current, ended = {}, []
    for step in steps:
        for event in step.events:
            if event.seq > seq:
                break
            for allocation in state.allocations.values():
                sums = current[allocation.application]["used"].setdefault(allocation.node, {})
                for name, amount in state.types.shapes[allocation.shape].resources.items():
                    if time != step.time and amount:
                        sums[name] = sums.get(name, 0) + amount * (step.time - time)
            state.time = time = step.time
            before = dict(state.applications)
            apply(state, event)
            for name, one in state.applications.items():
                if before.get(name) is not one:
                    current[name] = {"seq": one.seq, "asked": None, "started": None, "used": {}}
            if isinstance(event, v.AskSubmitted):
                own = current[state.asks[event.ask].application]
                own["asked"] = own["asked"] or time
            if isinstance(event, v.AllocationBound | v.AllocationRestored):
                name = event.ask if isinstance(event, v.AllocationBound) else event.allocation
                own = current[state.allocations[name].application]
                own["started"] = own["started"] or time
            for name, one in before.items():
                if state.applications.get(name) is not one:
                    ended.append((name, time, current.pop(name)["started"]))
    return state, current, ended, time


def without_nothing(used):
    """Leave out what was used for no time, or of which nothing was."""
    kept = {
        node: {name: amount for name, amount in sums.items() if amount}
        for node, sums in used.items()
    }
    return {node: sums for node, sums in kept.items() if sums}


@given(configurations(), histories, st.integers(1, 60))
@examples(25)
def test_lives_are_those_counted_from_the_events(tmp_path_factory, configuration, history, seq):
    """When each application asked and ran first, what it used by node, and which ones ended: as counted event by event."""
    steps = steps_of(configuration, history)
    seq = min(seq, steps[-1].events[-1].seq)
    path = tmp_path_factory.mktemp("lives") / "model.db"
    with closing(model_of(path, steps)), closing(sqlite3.connect(path)) as connection:
        state, current, ended, time = naive(steps, seq)
        found = lives.lives_of(
            connection, seq, [(one.id, one.seq) for one in state.applications.values()]
        )
        for name, expected in current.items():
            life = found.of(name)
            assert (life.asked, life.started) == (expected["asked"], expected["started"])
            assert without_nothing(life.used) == without_nothing(expected["used"])
        over = lives.ended_since(connection, seq, time - 3_600_000)
        assert sorted((one.application, one.ended, one.started or 0) for one in over) == sorted(
            (name, at, started or 0) for name, at, started in ended
        )


@given(configurations(), histories)
@examples(12)
def test_counts_by_the_minute_are_those_of_the_state_then(tmp_path_factory, configuration, history):
    """At each full minute the counts are those of the state after everything that happened up to it."""
    steps = steps_of(configuration, history)
    seq, end = steps[-1].events[-1].seq, steps[-1].time
    path = tmp_path_factory.mktemp("lives") / "model.db"
    expected = []
    for minute in range(-(-steps[0].time // MINUTE) * MINUTE, end + 1, MINUTE):
        state = State()
        for step in steps:
            for event in step.events if step.time <= minute else ():
                state.time = step.time
                apply(state, event)
        expected.append((minute, len(state.applications), len(state.allocations)))
    with closing(model_of(path, steps)), closing(sqlite3.connect(path)) as connection:
        assert lives.per_minute(connection, seq, end - 86_400_000, end) == expected


@pytest.fixture(name="told")
def told_story(tmp_path):
    """Return a connection to the read model of the small story, and the end of it."""
    steps = read(sealed(story()))
    with (
        closing(model_of(tmp_path / "model.db", steps)),
        closing(sqlite3.connect(tmp_path / "model.db")) as connection,
    ):
        yield connection, steps


def test_what_was_preempted_is_known_apart(told):
    """Of what the victims' application used, the part by the preempted allocation is known; the preemptor has none."""
    connection, steps = told
    seq = steps[-1].events[-1].seq
    found = lives.lives_of(connection, seq, [("test", 1), ("prod", 1)])
    gone = found.of("test").preempted
    assert gone["n1"]["vcore"] > 0
    assert gone["n1"]["vcore"] < found.of("test").used["n1"]["vcore"]
    assert found.of("prod").preempted == {}


def test_an_ask_has_what_was_said_of_it_since_it_came(tmp_path):
    """A reason that was written for an ask is there with its time and number, and not for a later ask of that id."""
    large = v.AskSubmitted(
        ask="large", application="a", queue="root.prod", resources={"vcore": 11_000}
    )
    steps = steps_of(story_configuration(), [(0, [large], False), (60_000, [], False)])
    time, event = next(
        (step.time, event)
        for step in steps
        for event in step.events
        if isinstance(event, v.PreemptionFailed)
    )
    with (
        closing(model_of(tmp_path / "model.db", steps)),
        closing(sqlite3.connect(tmp_path / "model.db")) as connection,
    ):
        found = lives.lives_of(connection, steps[-1].events[-1].seq, [], ["large"])
    assert found.said("large", 0) == [(event.reason, time, 1)]
    assert found.said("large", event.seq + 1) == []


def test_a_refused_application_is_known_with_the_reason(tmp_path):
    """What was submitted to a queue that is not there is among the rejected ones, with who asked and why it was refused."""
    steps = steps_of(
        story_configuration(),
        [(0, [v.ApplicationSubmitted(application="a", queue="root.none", user="ann")], False)],
    )
    with (
        closing(model_of(tmp_path / "model.db", steps)),
        closing(sqlite3.connect(tmp_path / "model.db")) as connection,
    ):
        (found,) = lives.rejected_since(connection, steps[-1].events[-1].seq, 0)
    assert (found.application, found.user, found.queue) == ("a", "ann", "root.none")
    assert "root.none" in found.reason


def story_configuration():
    """Return the configuration of the small story."""
    return next(
        event.configuration
        for step in read(sealed(story()))
        for event in step.events
        if isinstance(event, v.ConfigurationApplied)
    )

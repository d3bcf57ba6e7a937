"""Pauses in the read model: who was paused, until when, and why, with a row that ends at the very event that ends the pause.

`STORY` is also the log that the page about audits shows, `docs/examples/pauses.jsonl`;
``EVSCHED_RECORD=1`` writes it down anew.
"""

from __future__ import annotations

import inspect
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from projections import audit
from projections.following import Follower
from projections.read_model import ReadModel
from projections.temporal import OPEN
from tests.core.histories import settle
from tests.core.small import ask, node, queue, running
from tests.examples import examples
from tests.projections.test_asof import check_every_moment, check_every_way
from tests.projections.test_asof import steps_of as steps_of_history
from tests.projections.test_following import agree
from tests.replays.logs import exported, read, sealed, written

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "examples" / "pauses.jsonl"
NINE = 1_767_258_000_000
"""2026-01-01T09:00:00Z."""

TWO = {"application.unschedasks.backoff": "2", "preemption.delay": "1s"}


def config(*queues):
    """Return a configuration with these queues below root."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return v.ConfigurationApplied(configuration=YunikornSpec(root=root))


def large(application, *numbers, vcore=64_000):
    """Return asks of an application in root.batch that fit on no node."""
    return [
        ask(f"{application}-{number}", "root.batch", vcore, application=application)
        for number in numbers
    ]


WITH, WITHOUT = (
    config(queue("batch", properties=TWO), queue("web")),
    config(queue("batch"), queue("web")),
)
STORY = (
    (0, [WITH, node("node-1", 4000)]),
    (10, large("report", 1, 2, vcore=8000)),
    (20, large("train", 1, 2)),
    (35, [v.AskWithdrawn(ask="train-1"), v.AskWithdrawn(ask="train-2")]),
    (50, [node("node-2", 20_000)]),
    (80, large("sweep", 1, 2, 3)),
    (90, [WITHOUT]),
)
"""Seconds from nine o'clock, and what came in."""


def steps_of(story):
    """Return the steps of a story as a leader takes them: (time, events, inbox_next)."""
    engine = Engine()
    found = [(NINE, engine.lead(NINE, 1, "leader-1", 20), 0)]
    position = 0
    for second, inputs in story:
        time = NINE + 1000 * second
        found += [(at, events, position) for at, events in settle(engine, time - 1)]
        proposals = [
            v.Proposal(input=one, position=position + number) for number, one in enumerate(inputs)
        ]
        position += len(inputs)
        found.append((time, engine.step(time, proposals), position))
    return [step for step in found if step[1]]


def model_of(path, story):
    """Write the read model of a story, with a commit after every other step; hold every moment against the state."""
    steps = [
        RecordedStep(
            Head(next_seq=events[-1].seq + 1, time=time, frame=number, hash="h", position=number),
            time,
            True,
            events,
        )
        for number, (time, events, _) in enumerate(steps_of(story), 1)
    ]
    model = ReadModel(path, "log")
    for number, step in enumerate(steps):
        model.take(step)
        if number % 2:
            model.commit()
    model.commit()
    model.close()
    check_every_moment(path, steps)
    return {event.seq: event for step in steps for event in step.events}


def seconds(time):
    """Return a time of the story in seconds, None for one that has not come."""
    return None if time == OPEN else (time - NINE) / 1000


def pauses_in(path):
    """Return what the question finds: (application, from, to, until, outcome) each, times in seconds."""
    answer = audit.ask(path, "pauses")
    rows = [dict(zip(answer.question.columns, row, strict=True)) for row in answer.rows]
    return [
        (
            row["application"],
            seconds(row["from_time"]),
            seconds(row["to_time"]),
            seconds(row["until"]),
            row["outcome"],
        )
        for row in rows
    ]


# ----------------------------------------------------------------------------------------- the rows


def test_who_was_paused_when_until_when_and_how_it_ended(tmp_path):
    """Given three applications, each pause is a row, and a second one in a row is a row of its own."""
    path = tmp_path / "model.db"
    events = model_of(path, STORY)
    assert pauses_in(path) == [
        ("report", 10, 40, 40, "time over"),
        ("train", 20, 35, 50, "last ask withdrawn"),
        ("report", 40, 70, 70, "time over"),
        ("sweep", 80, 90, 110, "configuration"),
    ]
    answer = audit.ask(path, "pauses", audit.Scope(queue="root.batch", first=1, limit=1))
    row = dict(zip(answer.question.columns, answer.rows[0], strict=True))
    assert (row["queue"], row["asks"], row["threshold"], answer.cut) == ("root.batch", 2, 2, True)
    assert isinstance(events[row["seq"]], v.ApplicationPaused)


ENDS = {
    "its time is over": ([], v.ApplicationResumed, "time over"),
    "a configuration without pauses": ([WITHOUT], v.ApplicationResumed, "configuration"),
    "a configuration without the queue": (
        [config(queue("web"))],
        v.ApplicationResumed,
        "configuration",
    ),
    "the last of its asks is withdrawn": (
        [v.AskWithdrawn(ask=f"a-{n}") for n in (1, 2)],
        v.AskWithdrawn,
        "last ask withdrawn",
    ),
    "the application is removed": (
        [v.ApplicationRemoved(application="a")],
        v.AskWithdrawn,
        "last ask withdrawn",
    ),
}


@pytest.mark.parametrize(("inputs", "kind", "outcome"), ENDS.values(), ids=ENDS)
def test_a_row_ends_at_the_event_that_ends_the_pause(tmp_path, inputs, kind, outcome):
    """Given a pause, its row ends at exactly one event, whether that is about pauses or not."""
    story = [(0, [WITH, node("n1", 4000)]), (10, large("a", 1, 2)), (20, inputs), (50, [])]
    path = tmp_path / "model.db"
    events = model_of(path, story)
    with closing(sqlite3.connect(path)) as connection:
        to_seq, found = connection.execute(
            "SELECT to_seq, outcome FROM pauses ORDER BY from_seq"
        ).fetchone()
    assert (type(events[to_seq]), found) == (kind, outcome)


def test_a_row_ends_when_the_last_ask_is_bound_in_the_pause(tmp_path):
    """Given an ask in flight, its binding is the end of the pause once the others are withdrawn."""
    story = [
        (
            0,
            [
                config(queue("batch", guaranteed={"vcore": 9000}, properties=TWO), queue("web")),
                node("n1", 4000),
            ],
        ),
        (1, [running("r", "root.web", "n1", 4000), *large("a", 1, vcore=4000)]),
        (5, large("a", 2, 3)),
        (6, [v.AskWithdrawn(ask="a-2"), v.AskWithdrawn(ask="a-3")]),
        (7, [v.AllocationReleased(allocation="r", reason="preempted")]),
    ]
    path = tmp_path / "model.db"
    model_of(path, story)
    assert pauses_in(path) == [("a", 5, 7, 35, "last ask bound")]


def test_a_pause_that_goes_on_has_no_end(tmp_path):
    """Given the end of the log within a pause, the row holds, and `paused-at` finds it there and not before."""
    path = tmp_path / "model.db"
    model_of(path, STORY[:2])
    assert pauses_in(path) == [("report", 10, None, 40, "")]
    (row,) = audit.ask(path, "paused-at").rows
    assert row[:4] == ("report", "root.batch", NINE + 10_000, NINE + 40_000)
    assert audit.ask(path, "paused-at", audit.Scope(seq=row[-1])).rows == [row]
    assert audit.ask(path, "paused-at", audit.Scope(seq=row[-1] - 1)).rows == []


def test_the_life_of_an_ask_has_the_pauses_of_its_application(tmp_path):
    """Given two pauses in a row and then room, the ask waits, is paused twice, and runs."""
    path = tmp_path / "model.db"
    model_of(path, STORY)
    answer = audit.ask(path, "life-of", audit.Scope(of="report-1"))
    life = [dict(zip(answer.question.columns, row, strict=True)) for row in answer.rows]
    assert [
        (one["what"], seconds(one["from_time"]), seconds(one["to_time"]), one["outcome"])
        for one in life
    ] == [
        ("waiting", 10, 70, "bound"),
        ("paused", 10, 40, "time over"),
        ("paused", 40, 70, "time over"),
        ("running", 70, None, ""),
    ]
    assert {one["detail"] for one in life if one["what"] == "paused"} == {"report"}


async def test_tables_and_state_agree_on_pauses_at_200_random_moments(tmp_path):
    """By seq and by time, over a log that a follower has read."""
    log = await written(sealed(steps_of(STORY)))
    model = ReadModel(tmp_path / "model.db", "log-of-a-test")
    follower = Follower(model, log)
    await follower.catch_up(await follower.reader())
    model.close()
    await agree(tmp_path / "model.db", log, Random(1))


@st.composite
def leaves(draw):
    """Return a configuration in which two leaves pause applications soon, or never."""
    properties = st.fixed_dictionaries(
        {
            "application.unschedasks.backoff": st.sampled_from(["0", "1", "1", "2"]),
            "application.unschedasks.backoff.delay": st.sampled_from(["2s", "20s"]),
            "preemption.delay": st.just("1s"),
        }
    )
    web = queue(
        "web", guaranteed={"vcore": draw(st.sampled_from([0, 4000]))}, properties=draw(properties)
    )
    return config(queue("batch", properties=draw(properties)), web)


tasks = st.sampled_from(["t1", "t2", "t3", "t4"])
happenings = st.one_of(
    st.builds(
        ask,
        tasks,
        st.sampled_from(["root.batch", "root.web"]),
        st.sampled_from([2000, 64_000, 64_000]),
    ),
    st.builds(v.AskWithdrawn, ask=tasks),
    st.builds(v.AllocationReleased, allocation=tasks),
    st.builds(
        v.ApplicationRemoved, application=st.sampled_from(["new-root.batch", "new-root.web"])
    ),
    st.builds(node, st.sampled_from(["n1", "n2"]), st.sampled_from([4000, 70_000])),
    st.builds(v.NodeRemoved, node=st.just("n2")),
    leaves(),
)
crowded = st.lists(
    st.tuples(
        st.sampled_from([0, 1000, 3000, 21_000]),
        st.lists(happenings, min_size=1, max_size=4),
        st.just(value=False),
    ),
    min_size=3,
    max_size=12,
)
"""Steps of a cluster of which hardly any ask has room."""


@given(leaves(), crowded)
@examples(60)
def test_tables_and_state_agree_on_pauses_at_every_moment(tmp_path_factory, configuration, history):
    """The property of all tables, over histories that are full of pauses."""
    steps = steps_of_history(configuration.configuration, history)
    check_every_way(tmp_path_factory.mktemp("model") / "model.db", steps)


# ------------------------------------------------------------------------------------ the questions

NAIVE = """
SELECT from_seq FROM pauses
WHERE {} AND (:queue IS NULL OR queue = :queue OR queue LIKE :queue || '.%') ORDER BY from_seq LIMIT 200"""
DIGITS = (1, 2, 3, 4, 6, 9, 13)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Return a read model with thousands of pauses of all lengths, from one event to more than any log has."""
    path = tmp_path_factory.mktemp("crowd") / "model.db"
    model = ReadModel(path, "log")
    model.commit()
    model.close()
    draw = Random(1)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, leaf in (("root.p", 0), ("root.p.a", 1), ("root.p.b", 1), ("root.q", 1)):
            connection.execute(
                "INSERT INTO queues (from_seq, from_time, to_seq, to_time, queue, place, leaf, dynamic, draining,"
                " guaranteed, maximum) VALUES (1, 1, ?, ?, ?, 0, ?, 0, 0, '{}', '{}')",
                (OPEN, OPEN, name, leaf),
            )
        for number in range(5000):
            first = 1 + 20 * number + draw.randrange(20)
            longest = 10 ** draw.choice(DIGITS)
            to = (
                OPEN
                if number % 500 == 0
                else first + draw.choice([longest - 1, longest, draw.randint(1, longest)]) + 1
            )
            row = (
                first,
                first,
                to,
                to,
                f"app-{number}",
                draw.choice(["root.p.a", "root.p.b", "root.q"]),
                first,
                1,
                1,
                "",
            )
            connection.execute(
                f"INSERT INTO pauses VALUES (NULL, {', '.join('?' * len(row))})", row
            )
    return path


def test_pauses_are_found_by_their_length_as_by_looking_at_all(crowd):
    """Any window and any moment, of everything, a parent or a leaf."""
    draw = Random(2)
    with closing(audit.connect(crowd)) as connection:
        for number in range(300):
            queue_name = draw.choice([None, "root.p", "root.p.a", "root.q"])
            first = draw.choice([0, draw.randrange(100_100)])
            end = audit.FOREVER if number % 5 == 0 else first + draw.choice([0, 1, 10, 5000])
            scope = audit.Scope(
                queue=queue_name,
                first=first,
                end=end,
                seq=None if number % 7 == 0 else first,
                limit=200,
            )
            values = {
                "queue": queue_name,
                "first": first,
                "end": end,
                "seq": audit.FOREVER if scope.seq is None else first,
            }
            for question, held in (
                ("pauses", "to_seq > :first AND from_seq < :end"),
                ("paused-at", "from_seq <= :seq AND to_seq > :seq"),
            ):
                naive = connection.execute(NAIVE.format(held), values).fetchall()
                assert [
                    row[-1] for row in audit.ask_connected(connection, question, scope).rows
                ] == [seq for (seq,) in naive]


def test_no_question_about_pauses_walks_through_all_of_them(crowd):
    """Every look at the table is a search in an index that begins and ends where the question does."""
    with closing(audit.connect(crowd)) as connection:
        for name in ("pauses", "pauses_leaf", "paused_at", "life_of"):
            statement = audit._statements()[name]
            takes = inspect.signature(statement).parameters
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN {statement.sql}", dict.fromkeys((*takes, "of"), 1)
            ).fetchall()
            looks = [line[-1] for line in plan if "pause" in line[-1]]
            assert looks
            assert all(line.startswith("SEARCH") for line in looks), plan


# ----------------------------------------------------------------------------------------- the page


async def test_the_log_that_the_page_shows_is_this_story(tmp_path):
    """And it can be written down anew, so that a changed rule does not leave it behind."""
    records = sealed(steps_of(STORY), "example-of-pauses")
    assert read(records)
    made = await exported(records, tmp_path / PAGE.name)
    if os.environ.get("EVSCHED_RECORD"):
        PAGE.write_bytes(made.read_bytes())
    assert PAGE.read_bytes() == made.read_bytes()

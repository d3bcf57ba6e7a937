"""Audit questions: every one runs, has a sentence, and documents exactly the columns it returns."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from projections import audit, rows
from projections.read_model import ReadModel
from replays.history.audit import AuditQuestion
from replays.history.audit import audit as answered
from tests.core.histories import START, configurations, histories, settle
from tests.examples import examples
from tests.replays.logs import taken


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the read model of a cluster in which prod, below its guarantee, takes from test, and a maximum is lowered.

    An application in test that is much too large is paused.
    """

    def spec(maximum):
        properties = {"quota.preemption.delay": "10s", "application.unschedasks.backoff": "1"}
        test = QueueSpec(name="test", maximum=maximum, properties=properties)
        prod = QueueSpec(
            name="prod", guaranteed={"vcore": 6000}, properties={"preemption.delay": "5s"}
        )
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(prod, test))
        return YunikornSpec(root=root, quota_preemption_enabled=True)

    engine = Engine()
    steps = []

    def step(time, *inputs):
        steps.extend(settle(engine, time - 1))
        proposals = [
            v.Proposal(input=one, id=f"p{len(steps)}-{number}") for number, one in enumerate(inputs)
        ]
        steps.append((time, engine.step(time, proposals)))

    node = v.NodeRegistered(node="n1", capacity={"vcore": 8000})
    step(START, v.ConfigurationApplied(configuration=spec({"vcore": 9000})), node)
    for number in range(4):
        step(
            START + 1 + number,
            v.AskSubmitted(
                ask=f"test-{number}", application="a", queue="root.test", resources={"vcore": 2000}
            ),
        )
    step(
        START + 10,
        v.AskSubmitted(ask="prod-1", application="b", queue="root.prod", resources={"vcore": 2000}),
    )
    step(START + 6000, v.AskWithdrawn(ask="nobody"))
    for victim in [a.id for a in engine.state.allocations.values() if a.eviction_requested]:
        step(START + 6100, v.AllocationReleased(allocation=victim, reason="preempted"))
    step(
        START + 6500,
        v.AskSubmitted(ask="huge", application="c", queue="root.test", resources={"vcore": 64_000}),
    )
    step(START + 7000, v.ConfigurationApplied(configuration=spec({"vcore": 3000})))
    step(START + 20_000)
    return written(tmp_path_factory.mktemp("audit") / "model.db", steps)


def written(path, steps):
    """Write the read model of these steps to a file and return its path."""
    model = ReadModel(path, "log")
    for number, (time, events) in enumerate(steps, 1):
        if events:
            head = Head(
                next_seq=events[-1].seq + 1, time=time, frame=number, hash="h", position=number
            )
            model.take(RecordedStep(head, time, True, events))
        if number % 2:
            model.commit()
    model.commit()
    model.close()
    return path


@pytest.mark.parametrize("name", list(audit.questions()))
def test_every_question_runs_and_documents_its_columns(path, name):
    """The documented columns are those of the result, in order; every question finds something in this history."""
    question = audit.questions()[name]
    assert question.sentence.endswith(".")
    connection = sqlite3.connect(path)
    for variant in (name.replace("-", "_"), f"{name.replace('-', '_')}_leaf"):
        if variant not in audit._statements():
            continue
        everything = {
            "queue": "root.test",
            "from_seq": 0,
            "to_seq": 2**62,
            "seq": 2**62,
            "of": "test-1",
            "limit": 10,
        }
        everything |= {"bucket": rows.BUCKET, "earliest": rows.EARLIEST}
        cursor = connection.execute(audit._statements()[variant].sql, everything)
        assert [column[0] for column in cursor.description] == list(question.columns)
        assert cursor.fetchall() or name == "preemptions-for", name
    connection.close()


def test_who_preempted_names_victim_and_preemptor(path):
    """The victim, its preemptor and the rule stand in one row."""
    answer = audit.ask(path, "who-preempted", audit.Scope(queue="root.test"))
    row = dict(zip(answer.question.columns, answer.rows[0], strict=True))
    assert row["for_ask"] == "prod-1"
    assert row["queue"] == "root.test"
    assert row["kind"] == "guarantee"
    assert row["reason"]
    assert audit.ask(path, "who-preempted", audit.Scope(queue="root.prod")).rows == []
    assert audit.ask(path, "who-preempted", audit.Scope(queue="root")).rows == answer.rows


def test_asks_from_before_all_calendars_can_be_added_up(tmp_path):
    """When an ask was created is said by whoever proposes it; thousands of absurd ones must not stop the read model."""
    engine = Engine()
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    asks = [
        v.AskSubmitted(
            ask=f"t{number}",
            application="x",
            queue="root.a",
            resources={"vcore": 1},
            created=-(2**53),
        )
        for number in range(1_500)
    ]
    inputs = [v.ConfigurationApplied(configuration=YunikornSpec(root=root)), *asks]
    steps = [
        (START, engine.step(START, [v.Proposal(input=one) for one in inputs])),
        (
            START + 1,
            engine.step(START + 1, [v.Proposal(input=v.AskWithdrawn(ask=one.ask)) for one in asks]),
        ),
    ]
    path = written(tmp_path / "model.db", steps)
    longest = START + 1 - rows.EARLIEST
    assert audit.ask(path, "waiting-times").rows == [
        ("root.a", "withdrawn", 1_500, longest, longest)
    ]


def test_a_limit_cuts_and_says_so(path):
    """One row more than the limit is noticed."""
    assert audit.ask(path, "usage-over-time", audit.Scope(limit=2)).cut
    assert not audit.ask(path, "config-history", audit.Scope(limit=2)).cut


WAITED = """
SELECT queue, outcome, count(*), sum(to_time - min(created, from_time)) / count(*), max(to_time - min(created, from_time))
FROM asks WHERE outcome <> '' AND to_seq >= ? AND to_seq < ? GROUP BY queue, outcome ORDER BY queue, outcome"""
VICTIMS = """
SELECT kind, queue, reason, count(*) FROM victims WHERE seq >= ? AND seq < ? GROUP BY kind, queue, reason"""


@given(configurations(), histories, st.integers(0, 60), st.integers(0, 60))
@examples(40)
def test_what_is_added_up_by_buckets_is_what_the_rows_say(
    tmp_path_factory, configuration, history, begin, end
):
    """Waiting times and victims of any window, counted naively and by buckets of a few events."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "BUCKET", 4)
        steps = [(time, events) for time, events, _ in taken(configuration, history)]
        path = written(tmp_path_factory.mktemp("counts") / "m.db", steps)
        with closing(audit.connect(path)) as connection:
            scope = audit.Scope(first=begin, end=end)
            naive = connection.execute(WAITED, (begin, end)).fetchall()
            assert audit.ask_connected(connection, "waiting-times", scope).rows == naive
            naive = connection.execute(VICTIMS, (begin, end)).fetchall()
            assert sorted(
                audit.ask_connected(connection, "preemptions-by-reason", scope).rows
            ) == sorted(naive)


def test_the_history_of_configurations_says_who_why_and_what(tmp_path):
    """The first one changed nothing, the second one what `config diff` says of the two."""
    engine = Engine()

    def applied(maximum, **more):
        leaf = QueueSpec(name="a", maximum={"vcore": maximum})
        spec = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(leaf,)))
        return v.ConfigurationApplied(configuration=spec, **more)

    first = v.Proposal(input=applied(4000, actor="ann", message="to begin with"), source="/ci")
    steps = [(START, engine.step(START, [first]))]
    lost = v.Proposal(input=v.NodeRemoved(node="n", actor="eve"), source="/agents/7")
    steps.append((START + 1, engine.step(START + 1, [v.Proposal(input=applied(8000)), lost])))
    path = written(tmp_path / "model.db", steps)
    found = answered(path, AuditQuestion(name="config-history"))
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [(one["actor"], one["source"], one["message"], one["difference"]) for one in rows] == [
        ("ann", "/ci", "to begin with", ""),
        ("", "", "", "queue root.a: resources.max.vcore 4 → 8"),
    ]
    found = answered(path, AuditQuestion(name="rejected-inputs"))
    (row,) = (dict(zip(found.columns, row, strict=True)) for row in found.rows)
    assert (row["source"], row["actor"]) == ("/agents/7", "eve")

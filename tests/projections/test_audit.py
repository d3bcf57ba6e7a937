"""Audit questions: every one runs, has a sentence, and documents exactly the columns it returns."""

from __future__ import annotations

import sqlite3

import pytest

from events import vocabulary as v
from events.chain import Head, Step
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from projections import audit
from projections.read_model import ReadModel
from tests.core.histories import START, settle


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the read model of a cluster in which prod, below its guarantee, takes from test, and a maximum is lowered."""

    def spec(maximum):
        test = QueueSpec(name="test", maximum=maximum, properties={"quota.preemption.delay": "10s"})
        prod = QueueSpec(name="prod", guaranteed={"vcore": 6000}, properties={"preemption.delay": "5s"})
        return YunikornSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=(prod, test)), quota_preemption_enabled=True)

    engine = Engine()
    steps = []

    def step(time, *inputs):
        steps.extend(settle(engine, time - 1))
        steps.append((time, engine.step(time, [v.Proposal(input=one, id=f"p{len(steps)}-{number}") for number, one in enumerate(inputs)])))

    step(START, v.ConfigurationApplied(configuration=spec({"vcore": 9000})), v.NodeRegistered(node="n1", capacity={"vcore": 8000}))
    for number in range(4):
        step(
            START + 1 + number,
            v.AskSubmitted(ask=f"test-{number}", application="a", queue="root.test", resources={"vcore": 2000}),
        )
    step(START + 10, v.AskSubmitted(ask="prod-1", application="b", queue="root.prod", resources={"vcore": 2000}))
    step(START + 6000, v.AskWithdrawn(ask="nobody"))
    for victim in [a.id for a in engine.state.allocations.values() if a.told]:
        step(START + 6100, v.AllocationReleased(allocation=victim, reason="preempted"))
    step(START + 7000, v.ConfigurationApplied(configuration=spec({"vcore": 3000})))
    step(START + 20_000)
    found = tmp_path_factory.mktemp("audit") / "model.db"
    model = ReadModel(found, "log")
    for number, (time, events) in enumerate(steps, 1):
        if events:
            head = Head(next_seq=events[-1].seq + 1, time=time, frame=number, hash="h", position=number)
            model.take(Step(head, time, True, events))
    model.commit()
    model.close()
    return found


@pytest.mark.parametrize("name", list(audit.questions()))
def test_every_question_runs_and_documents_its_columns(path, name):
    """The documented columns are those of the result, in order; every question finds something in this history."""
    question = audit.questions()[name]
    assert question.sentence.endswith(".")
    connection = sqlite3.connect(path)
    sql = getattr(audit._queries, name.replace("-", "_")).sql
    cursor = connection.execute(sql, {"queue": None, "from_time": 0, "to_time": 2**62, "limit": 10})
    assert [column[0] for column in cursor.description] == list(question.columns)
    rows = cursor.fetchall()
    connection.close()
    if name != "still-waiting":
        assert rows, name


def test_who_preempted_names_victim_and_preemptor(path):
    """The victim, its preemptor and the rule stand in one row."""
    answer = audit.ask(path, "who-preempted", queue="root.test")
    row = dict(zip(answer.question.columns, answer.rows[0], strict=True))
    assert row["for_ask"] == "prod-1"
    assert row["queue"] == "root.test"
    assert row["kind"] == "guarantee"
    assert row["reason"]
    assert audit.ask(path, "who-preempted", queue="root.prod").rows == []
    assert audit.ask(path, "who-preempted", queue="root").rows == answer.rows


def test_a_limit_cuts_and_says_so(path):
    """One row more than the limit is noticed."""
    assert audit.ask(path, "usage-over-time", limit=2).cut
    assert not audit.ask(path, "config-history", limit=2).cut

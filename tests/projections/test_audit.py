"""Audit questions: every one runs, has a sentence, and documents exactly the columns it returns."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.configuration import LimitSpec, QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.kueue.model import quota_in
from evsched.core.kueue.shares import dominant
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import audit, rows
from projections.read_model import ReadModel
from replays.history.audit import AuditQuestion
from replays.history.audit import audit as answered
from tests.api.histories import kueue
from tests.core.histories import START, configurations, histories, settle
from tests.examples import examples
from tests.replays.logs import taken

HOUR = 3_600_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the read model of a cluster in which prod, below its guarantee, takes from test, and a maximum is lowered.

    An application in test that is much too large is paused.
    """

    def spec(maximum):
        properties = {"quota.preemption.delay": "10s", "application.unschedasks.backoff": "1"}
        test = QueueSpec(name="test", maximum=maximum, properties=properties)
        limit = LimitSpec(users=("*",), max_resources=maximum)
        test = replace(test, limits=(limit,))
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
        everything |= {"bucket": rows.BUCKET, "wide": rows.WIDE, "earliest": rows.EARLIEST}
        cursor = connection.execute(audit._statements()[variant].sql, everything)
        assert [column[0] for column in cursor.description] == list(question.columns)
        assert cursor.fetchall() or name in {
            "preemptions-for", "below-guarantee", "quotas-at",
        }, name  # fmt: skip
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
    """Waiting times and victims of any window, counted naively and by small and wide buckets of a few events."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "BUCKET", 2)
        patch.setattr(rows, "WIDE", 3)
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


def rows_of(path, name, **scope):
    """Return the rows of an answer as dictionaries."""
    answer = audit.ask(path, name, audit.Scope(**scope))
    return [dict(zip(answer.question.columns, row, strict=True)) for row in answer.rows]


def test_sums_over_a_window_say_what_happened(path):
    """Who was short of a guarantee, or above a maximum, since when; who took from whom; who is near a limit; what changed."""
    (short,) = rows_of(path, "below-guarantee")
    assert (short["queue"], short["resource"], short["most_missing"]) == (
        "root.prod",
        "vcore",
        2000,
    )
    assert short["first_time"] == START + 10
    above = rows_of(path, "above-maximum", queue="root.test")
    assert [(one["queue"], one["lowest_maximum"]) for one in above] == [("root.test", 3000)]
    assert above[0]["from_time"] == START + 7000
    flows = rows_of(path, "who-preempts-whom")
    assert ("root.prod", "root.test", "guarantee") in {
        (one["for_queue"], one["queue"], one["kind"]) for one in flows
    }
    (limit,) = rows_of(path, "users-and-limits", seq=audit.FOREVER)
    assert (limit["queue"], limit["kind"], limit["maximum"]) == ("root.test", "user", 3000)
    (change,) = rows_of(path, "config-difference")
    assert (change["from_version"], change["to_version"]) == (1, 2)
    fair = {(one["queue"], one["resource"]): one for one in rows_of(path, "fairness")}
    assert fair["root.prod", "vcore"]["mean_entitled"] == pytest.approx(6000)
    assert 0 < fair["root.prod", "vcore"]["ratio"] < 1
    assert fair["root.test", "vcore"]["ratio"] is None


@given(configurations(), histories)
@examples(15)
def test_hours_of_use_are_those_of_a_fold_over_the_log(tmp_path_factory, configuration, history):
    """By hour, queue, user and resource, counted from the state between any two steps."""
    taken_steps = [(time, events) for time, events, _ in taken(configuration, history)]
    path = written(tmp_path_factory.mktemp("hours") / "m.db", taken_steps)
    state, expected, before = State(), {}, None
    for time, events in taken_steps:
        if not events:
            continue
        for application in state.applications.values():
            for number, amount in enumerate(application.usage):
                if amount and before is not None and time > before:
                    add_hours(expected, state, application, number, amount, (before, time))
        state.time = before = time
        for event in events:
            apply(state, event)
    found = {
        (one["hour"], one["queue"], one["user"], one["resource"]): one["used_hours"]
        for one in rows_of(path, "usage-by-hour", limit=100_000)
    }
    assert found == {key: pytest.approx(value) for key, value in expected.items()}


def add_hours(expected, state, application, number, amount, span):
    """Add what an application used of a resource in a stretch of time, hour by hour."""
    begin, end = span
    while begin < end:
        stop = min(end, (begin // HOUR + 1) * HOUR)
        hour = f"{datetime.fromtimestamp(begin // 1000, UTC):%Y-%m-%dT%H:00:00Z}"
        key = (hour, application.leaf.path, application.user, state.types.names[number])
        expected[key] = expected.get(key, 0) + amount * (stop - begin) / HOUR
        begin = stop


@pytest.mark.parametrize("seed", [2, 4, 5, 8])
def test_shares_over_a_window_are_those_of_fair_sharing(tmp_path, seed):
    """Mean share and mean borrowing of every ClusterQueue, counted with the scheduler's own shares between any two steps."""
    steps = [(time, events) for time, events, _ in kueue(seed, 60)]
    path = written(tmp_path / "model.db", steps)
    span = steps[-1][0] - steps[0][0]
    state, shares, borrowed, weights, before = State(), {}, {}, {}, None
    for time, events in steps:
        for queue in state.queues.values():
            quota = quota_in(queue)
            if queue.leaf and quota.parent is not None and time > before:
                part = (time - before) / span
                for index, used in quota.usage.items():
                    key = queue.path, state.types.names[index]
                    above = max(0, used - quota.nominal.get(index, 0))
                    borrowed[key] = borrowed.get(key, 0) + above * part
                over, lendable = dominant(quota, quota.usage) or (0, 1)
                share = share_in_weights(over / lendable, quota.weight_nano)
                shares[queue.path] = shares.get(queue.path, 0) + part * share
        state.time = before = time
        for event in events:
            apply(state, event)
        weights |= {
            queue.path: quota_in(queue).weight_nano / 1e9 for queue in state.queues.values()
        }
    rows = [one for one in rows_of(path, "fairness", limit=10_000) if one["mean_used"]]
    found = {one["queue"]: one["mean_share"] for one in rows if one["queue"] in shares}
    assert found == {
        queue: None if share == inf else pytest.approx(share)
        for queue, share in shares.items()
        if queue in found
    }
    assert any(found.values())
    means = {(one["queue"], one["resource"]): one["mean_borrowed"] for one in rows}
    cohorts = [queue for queue, _ in means if queue.startswith("cohort/")]
    assert all(means[queue, resource] is None for queue, resource in means if queue in cohorts)
    assert {key: mean for key, mean in means.items() if mean} == {
        key: pytest.approx(mean) for key, mean in borrowed.items() if mean
    }
    assert all(one["weight"] == weights[one["queue"]] for one in rows)


def share_in_weights(part, weight_nano):
    """Return a share by weight; with weight 0 one that borrows has an endless one."""
    return part * 1e9 / weight_nano if weight_nano else inf if part else 0


def test_quotas_of_kueue_stand_under_their_own_names(tmp_path):
    """Nominal quota is no maximum; limits of borrowing and lending are there; cohorts are named."""
    steps = [(time, events) for time, events, _ in kueue(1)]
    path = written(tmp_path / "model.db", steps)
    rows = rows_of(path, "quotas-at", limit=100)
    assert {one["queue"] for one in rows if one["quota"]}
    assert any(one["cohort"] for one in rows)
    assert any(one["nominal"] != "{}" for one in rows)
    assert {(one["guaranteed"], one["maximum"]) for one in rows_of(path, "queues-at")} == {
        (None, None)
    }

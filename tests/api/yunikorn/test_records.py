"""Events as YuniKorn's event records."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest

from events import vocabulary as v
from evsched.api.yunikorn.records import named, record
from projections.lives import Subject, subjects
from tests.api.yunikorn.views import story, view_of

TASK = {"t": Subject("app", {"vcore": 1000}, "n1")}

ROWS = [
    (v.ApplicationSubmitted(application="app"), (2, "app", 2, 203, "")),
    (v.ApplicationRemoved(application="app"), (2, "app", 1, 210, "")),
    (v.AskSubmitted(ask="t", application="app", resources={"vcore": 1000}), (2, "app", 2, 201, "t")),
    (v.AskWithdrawn(ask="t"), (1, "t", 3, 100, "app")),
    (v.AllocationBound(ask="t", node="n1"), (2, "app", 2, 200, "t")),
    (v.AllocationReleased(allocation="t"), (2, "app", 3, 500, "t")),
    (v.AllocationReleased(allocation="t", reason="preempted"), (2, "app", 3, 501, "t")),
    (v.AllocationReleased(allocation="t", reason="node removed"), (2, "app", 3, 504, "t")),
    (v.NodeRegistered(node="n1", capacity={"vcore": 1}), (3, "n1", 2, 0, "")),
    (v.NodeUpdated(node="n1", schedulable=False), (3, "n1", 1, 302, "")),
    (v.NodeUpdated(node="n1", capacity={"vcore": 2}), (3, "n1", 1, 304, "")),
    (v.NodeUpdated(node="n1", labels={"a": "b"}), (3, "n1", 1, 0, "")),
    (v.NodeRemoved(node="n1"), (3, "n1", 3, 300, "")),
    (v.NodeReserved(ask="t", node="n1"), (3, "n1", 2, 306, "t")),
    (v.ReservationReleased(ask="t", node="n1", reason="x"), (3, "n1", 3, 306, "t")),
    (v.QueueCreated(queue="root.u"), (4, "root.u", 2, 401, "")),
    (v.QueueRemoved(queue="root.u"), (4, "root.u", 3, 401, "")),
    (v.ApplicationPlaced(application="app", queue="root.a"), (4, "root.a", 2, 405, "app")),
    (v.InputRejected(reason="no", input=v.ApplicationSubmitted(application="app")), (2, "app", 3, 202, "")),
    (v.InputRejected(reason="no", input=v.AskSubmitted(ask="t", application="app")), (1, "t", 3, 100, "app")),
    (v.InputRejected(reason="no"), (0, "", 0, 0, "")),
    (v.PreemptionDecided(ask="t", node="n1", victims=(), algorithm="guarantee"), (1, "t", 0, 0, "app")),
    (v.CycleStarted(kind="preemption"), (0, "", 0, 0, "")),
]  # fmt: skip


@pytest.mark.parametrize(("event", "expected"), ROWS, ids=lambda one: type(one).__name__)
def test_a_record_says_what_happened_in_yunikorns_numbers(event, expected):
    """Type, subject, change and detail are YuniKorn's; the time is in nanoseconds."""
    made = record(event, 1234, TASK)
    assert (
        made.type, made.object_id, made.event_change_type, made.event_change_detail, made.reference_id,
    ) == expected  # fmt: skip
    assert made.timestamp_nano == 1_234_000_000


def test_amounts_are_values_by_resource():
    """The amounts of a record have the form of YuniKorn's scheduler interface."""
    made = record(v.AllocationBound(ask="t", node="n1"), 0, TASK)
    assert msgspec.to_builtins(made)["resource"] == {"resources": {"vcore": {"value": 1000}}}


def test_every_event_is_one_record_whatever_is_known_of_it(tmp_path):
    """Each event of a log becomes one record, with its subjects looked up and without them."""
    steps = story()
    events = [(step.time, event) for step in steps for event in step.events]
    with (
        view_of(tmp_path / "model.db", steps),
        closing(sqlite3.connect(tmp_path / "model.db")) as connection,
    ):
        found = subjects(connection, events[-1][1].seq, filter(None, map(named, _of(events))))
    released = next(event for _, event in events if isinstance(event, v.AllocationReleased))
    assert record(released, 0, found).object_id == "done"
    assert all(record(event, time, {}).timestamp_nano for time, event in events)


def _of(events):
    return (event for _, event in events)

"""What YuniKorn says of itself becomes a log: the present of its dump, and what its events tell of the past."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from events import vocabulary as v
from events.configuration import PlacementRuleSpec, QueueSpec, YunikornSpec
from evsched.api.yunikorn import records
from evsched.cli.main import run
from evsched.snapshots.names import names_of
from replays.history.views import allocations, asks, queues
from replays.importing.observed import ImportedLog
from replays.importing.yunikorn import NS, DumpInvalid, observed, read_dump, read_records
from tests.api.yunikorn.views import START, state_at, story, view_of
from tests.replays.logs import read

END = 100_000


def dumped(tmp_path):
    """Return the full state dump of a small cluster, as text."""
    with view_of(tmp_path / "model.db", story()) as view:
        return msgspec.json.encode(view.dump()).decode()


def streamed():
    """Return lines of the event stream of that cluster: its head, and a task of an application that ended."""
    app, node = "app-batch.test", "n1"
    told = [
        (1000, 2, app, 2, 201, {"vcore": 1000}), (2000, 2, app, 2, 200, {"vcore": 1000}),
        (2000, 3, node, 2, 303, {"vcore": 1000}), (9000, 2, app, 3, 501, {"vcore": 1000}),
    ]  # fmt: skip
    lines = [{"InstanceUUID": "x"}] + [
        {
            "type": kind, "objectID": thing, "timestampNano": (START + time) * NS, "eventChangeType": change,
            "eventChangeDetail": detail, "referenceID": "past-1",
            "resource": {"resources": {name: {"value": amount} for name, amount in amounts.items()}},
        }
        for time, kind, thing, change, detail, amounts in told
    ]  # fmt: skip
    return "\n".join(json.dumps(line) for line in lines)


def imported(past):
    """Return the steps of the log of a past, and what was refused."""
    log = ImportedLog("imported", "import")
    return read(list(log.records(past.inputs))), log.refused


def test_the_log_ends_in_the_state_that_was_dumped(tmp_path):
    """Queues, what runs on which node and what waits are those of the cluster; no step decided anything."""
    steps, refused = imported(observed(read_dump(dumped(tmp_path))))
    assert refused == []
    theirs, ours = state_at(story()), state_at(steps)
    assert [(row.queue, row.usage, row.pending, row.guaranteed, row.maximum) for row in queues(ours)] == [
        (row.queue, row.usage, row.pending, row.guaranteed, row.maximum) for row in queues(theirs)
    ]  # fmt: skip
    assert [(one.allocation, one.node, one.bound) for one in allocations(ours)] == [
        (one.allocation, one.node, one.bound) for one in allocations(theirs)
    ]
    assert [(one.ask, one.resources, one.priority) for one in asks(ours)] == [
        (one.ask, one.resources, one.priority) for one in asks(theirs)
    ]
    assert {name: (node.capacity, node.schedulable) for name, node in ours.nodes.items()} == {
        name: (node.capacity, node.schedulable) for name, node in theirs.nodes.items()
    }
    assert not any(step.decided for step in steps[1:])


def test_what_ended_before_the_dump_is_told_by_the_events(tmp_path):
    """Request, allocation, node and end are joined by the key; with one missing the task is left out and counted."""
    dump = read_dump(dumped(tmp_path))
    whole = observed(dump, read_records(streamed().splitlines()))
    told = [one for one in whole.inputs if "past-1" in names_of(one.input)]
    assert [(one.time - START, type(one.input)) for one in told] == [
        (1000, v.AskSubmitted), (2000, v.BindingObserved), (9000, v.AllocationReleased),
    ]  # fmt: skip
    assert (told[1].input.node, told[2].input.reason) == ("n1", "preempted")
    assert imported(whole)[1] == []
    assert whole.remarks == []
    part = observed(dump, read_records(streamed().splitlines()[:-1]))
    assert len(part.inputs) == len(whole.inputs) - 3
    assert part.remarks[0].startswith("1 tasks ended before the dump")


def test_the_numbers_of_event_records_are_those_that_evsched_writes():
    """What is read here and what `/ws/v1/events` says are one vocabulary."""
    from replays.importing import yunikorn as ours  # noqa: PLC0415

    assert (ours.APP, ours.NODE, ours.ADD, ours.REMOVE) == (2, 3, 2, 3)
    theirs = (records.APP, records.NODE, records.ADD, records.REMOVE)
    assert theirs == (2, 3, 2, 3)
    number = records.DETAILS
    assert (number["allocation"], number["request"]) == (ours.ALLOCATED, ours.REQUESTED)
    assert {number[name] for name in ("released", "preempted", "node removed")} <= ours.ENDS.keys()


def test_what_others_use_is_taken_off_and_placement_is_not_done_again():
    """Foreign pods are no allocations; a queue that placement had made is there, whatever its rule needs."""
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="ns", parent=True),)
    )
    rules = (PlacementRuleSpec(name="tag", value="namespace", create=True),)
    spec = YunikornSpec(root=root, placement_rules=rules)
    dump = read_dump(json.dumps({
        "timestamp": END * NS,
        "nodes": [{"partitionName": "default", "nodes": [
            {"nodeID": "n1", "capacity": {"vcore": 8000}, "occupied": {"vcore": 500}, "schedulable": True},
        ]}],
        "applications": [{
            "applicationID": "a", "queueName": "root.ns.blue", "submissionTime": 5 * NS, "applicationState": "Running",
            "allocations": [{"allocationKey": "k", "nodeId": "n1", "resource": {"vcore": 1000}, "priority": "3"}]}],
    }))  # fmt: skip
    past = observed(dump, configuration=spec)
    assert past.remarks == [
        "What others than YuniKorn use of nodes is taken off their capacity, as it is now."
    ]
    steps, refused = imported(past)
    state = state_at(steps)
    assert refused == []
    assert {name: node.resources for name, node in state.nodes.items()} == {"n1": {"vcore": 7500}}
    assert [(one.queue, one.node, one.priority) for one in allocations(state)] == [
        ("root.ns.blue", "n1", 3)
    ]
    with pytest.raises(DumpInvalid, match="expected --config"):
        observed(dump)


@pytest.mark.parametrize(
    ("dump", "events", "expected"),
    [
        ("{}", "", "dump.json: Object missing required field `timestamp`"),
        ('{"timestamp": 1}', "", "dump.json: config: has no partitions, expected --config"),
        ('{"timestamp": 1}', "{}\n[1]", "events.jsonl: line 2: "),
    ],
    ids=["no dump", "no configuration", "no records"],
)
def test_what_is_something_else_is_refused(dump, events, expected, tmp_path, monkeypatch, capsys):
    """With file, place and what was expected; no log is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.json").write_text(dump)
    (tmp_path / "events.jsonl").write_text(events)
    assert run(["import", "yunikorn", "dump.json", "week.jsonl", "--events", "events.jsonl"]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "week.jsonl").exists()


def test_an_imported_log_answers_questions(tmp_path, monkeypatch, capsys):
    """It verifies, an ended task is explained by its history, and no file is written over."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.json").write_text(dumped(tmp_path))
    (tmp_path / "events.jsonl").write_text(streamed())
    assert run(["import", "yunikorn", "dump.json", "week.jsonl", "--events", "events.jsonl"]) == 0
    assert "0 refused" in capsys.readouterr().err
    assert run(["verify", "--log", "week.jsonl"]) == 0
    assert run(["explain", "past-1", "--log", "week.jsonl"]) == 0
    assert "ended: preempted" in capsys.readouterr().out
    assert run(["import", "yunikorn", "dump.json", "week.jsonl"]) == 2
    assert asyncio.run(_length("week.jsonl")) > 5


def test_a_configuration_of_another_family_is_not_taken_for_the_dump(tmp_path, capsys):
    """Only a queues.yaml of one partition can say what YuniKorn's queues are."""
    (tmp_path / "dump.json").write_text('{"timestamp": 1}')
    kueue = "docs/examples/kueue/queues.yaml"
    command = ["import", "yunikorn", str(tmp_path / "dump.json"), str(tmp_path / "week.jsonl")]
    assert run([*command, "--config", kueue]) == 2
    assert "found kueue, expected one configuration of yunikorn" in capsys.readouterr().err


async def _length(file):
    """Return how many records a file holds."""
    from events.streams import open_log  # noqa: PLC0415

    log = open_log(file, 0)
    try:
        return await log.end()
    finally:
        await log.close()

"""Kueue's Workload objects become a log: what was asked for, admitted from which flavors, evicted, finished."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from events import vocabulary as v
from evsched.cli.main import run
from evsched.config import load
from evsched.core.engine import Engine
from replays.explaining.explain import explain_ask
from replays.history.rebuild import apply_step
from replays.history.views import allocations, asks
from replays.importing.kueue import observed, read_workloads
from replays.importing.observed import ImportedLog
from tests.replays.logs import read

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
(SPEC,) = load([EXAMPLES / "kueue"]).configurations
NINE = 1_767_258_000_000
"""2026-01-01T09:00:00Z."""


def objects():
    """Return the Workloads of the example."""
    return json.loads((EXAMPLES / "kueue-workloads.json").read_text())


def imported(document, form=json.dumps):
    """Return an engine at the end of the log of these Workloads, its steps, and what was refused and remarked."""
    past = observed(read_workloads(form(document), "workloads"), SPEC)
    log = ImportedLog("imported", "import")
    steps = read(list(log.records(past.inputs)))
    engine = Engine()
    for step in steps:
        apply_step(engine, step)
    return engine, steps, log.refused, past.remarks


def test_what_was_reserved_runs_and_what_was_not_waits():
    """With its flavors, times the counts of its podsets, from the moment at which quota was reserved."""
    engine, steps, refused, remarks = imported(objects())
    assert (refused, remarks) == ([], [])
    assert [(one.allocation, one.queue, one.bound - NINE, one.resources) for one in allocations(engine.state)] == [
        ("lab/sweep-2", "research", -298_000, {"on-demand/cpu": 4000}),
    ]  # fmt: skip
    assert [(one.ask, one.resources) for one in asks(engine.state)] == [
        ("lab/train-1", {"cpu": 4500})
    ]
    told = [(step.time - NINE, event) for step in steps for event in step.events]
    ended = [(time, event) for time, event in told if type(event) is v.AllocationReleased]
    assert [(time, event.allocation) for time, event in ended] == [(-600_000, "lab/sweep-1")]
    assert "4500m cpu of flavor on-demand requested" in explain_ask(engine, "lab/train-1").summary
    assert not any(step.decided for step in steps[1:])


def test_an_eviction_is_told_with_its_reason():
    """A Workload that holds its quota is leaving; of one that waits again a remark says what is lost."""
    document = objects()
    evicted = {
        "type": "Evicted", "status": "True", "reason": "Preempted", "message": "for another",
        "lastTransitionTime": "2026-01-01T09:40:00Z",
    }  # fmt: skip
    for one in document["items"][1:]:
        one["status"]["conditions"].append(evicted)
    engine, steps, refused, remarks = imported(document)
    assert refused == []
    assert remarks == [
        "1 Workloads were evicted and wait again; what they had before is no longer told."
    ]
    (told,) = (one for step in steps for one in step.events if type(one) is v.EvictionObserved)
    assert (told.allocation, told.reason, told.message) == (
        "lab/sweep-2",
        "Preempted",
        "for another",
    )
    assert engine.state.allocations["lab/sweep-2"].eviction_requested == NINE + 2_400_000


def test_init_containers_and_overhead_count_as_kueue_counts_them():
    """The larger of what runs and what starts, the overhead on top, times the count; YAML is read as well."""
    (one,) = objects()["items"][2:]
    spec = one["spec"]["podSets"][0]["template"]["spec"]
    spec["initContainers"] = [{"resources": {"requests": {"cpu": "2"}}}]
    spec["overhead"] = {"cpu": "100m"}
    engine, *_ = imported(one, json.dumps)
    assert [row.resources for row in asks(engine.state)] == [{"cpu": 3 * 2100}]
    as_yaml = "# from kubectl\n" + json.dumps(one)
    assert read_workloads(as_yaml, "w") == read_workloads(json.dumps(one), "w")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "Pod"}', "w.json: found Pod, expected Workloads alone"),
        ("[]", "w.json: found no object, expected a List of Workloads"),
        ('{"kind": "Workload"}', "expected a List of Workloads"),
        ("{", "w.json: "),
    ],
)
def test_what_is_something_else_is_refused(text, expected, tmp_path, monkeypatch, capsys):
    """With the file and what was expected; no log is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.json").write_text(text)
    assert (
        run(["import", "kueue", "w.json", "week.jsonl", "--config", str(EXAMPLES / "kueue")]) == 2
    )
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "week.jsonl").exists()


def test_an_amount_that_is_none_names_its_workload(tmp_path, capsys):
    """So it is found in a file of thousands."""
    document = objects()
    document["items"][0]["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {
        "cpu": "two"
    }
    (tmp_path / "w.json").write_text(json.dumps(document))
    command = ["import", "kueue", str(tmp_path / "w.json"), str(tmp_path / "week.jsonl")]
    assert run([*command, "--config", str(EXAMPLES / "kueue")]) == 2
    assert "Workload lab/sweep-1: " in capsys.readouterr().err

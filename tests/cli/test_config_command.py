"""`evsched config check` and `diff`."""

import asyncio
import json

import pytest

from events.streams import open_streams
from evsched.cli.main import run

TEXT = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: a
            resources: {max: {vcore: "%s"}, guaranteed: {vcore: "2"}}
"""


@pytest.fixture
def queues(tmp_path):
    """Return a function that writes a queues.yaml with this maximum."""

    def write(name, maximum):
        path = tmp_path / name
        path.write_text(TEXT % maximum)
        return str(path)

    return write


def test_a_valid_file_is_said_to_be_valid(queues, capsys):
    """Exit 0, with what is in it."""
    assert run(["config", "check", queues("q.yaml", 4)]) == 0
    assert "partition default: valid (2 queues)" in capsys.readouterr().out


def test_an_invalid_file_exits_1_with_the_place(queues, capsys):
    """The answer is no; file, line and path say where."""
    path = queues("q.yaml", 1)
    assert run(["config", "check", path]) == 1
    assert "q.yaml:8 partitions[0].queues[0].queues[0]" in capsys.readouterr().err
    assert run(["config", "check", "--json", path]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["valid"]
    assert document["faults"][0]["line"] == 8


def test_strict_refuses_what_only_brings_a_warning(tmp_path, capsys, monkeypatch):
    """For a pipeline that wants nothing in its files that is not decided; by default it is told."""
    monkeypatch.setenv("EVSCHED_LOG", f"sqlite:///{tmp_path / 'log.db'}")
    path = tmp_path / "check.yaml"
    path.write_text(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\n"
        "spec: {namespaceSelector: {}}\n---\n"
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: AdmissionCheck\nmetadata: {name: c}\n"
    )
    assert run(["config", "check", str(path)]) == 0
    assert "warning: " in capsys.readouterr().err
    assert run(["config", "check", str(path), "--strict"]) == 1
    assert "refused for its warnings" in capsys.readouterr().out
    assert run(["config", "check", str(path), "--strict", "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["valid"]
    assert run(["config", "apply", str(path), "--strict"]) == 2
    assert "AdmissionCheck has no effect" in capsys.readouterr().err
    assert run(["config", "apply", str(path)]) == 0


def test_a_missing_file_is_no_valid_configuration(capsys):
    """It is named."""
    assert run(["config", "check", "nowhere.yaml"]) in {1, 2}
    assert "nowhere.yaml" in capsys.readouterr().err


def test_a_difference_is_one_of_meaning(queues, capsys):
    """Another way of writing the same amount is none."""
    assert run(["config", "diff", queues("a.yaml", 4), queues("b.yaml", "4000m")]) == 0
    assert "no difference" in capsys.readouterr().err
    assert run(["config", "diff", "--json", queues("a.yaml", 4), queues("b.yaml", "5")]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["changed"] == [
        {"subject": "queue root.a", "field": "resources.max.vcore", "before": "4", "after": "5"}
    ]
    assert run(["config", "diff", queues("a.yaml", 4), queues("b.yaml", "1")]) == 2


def test_a_configuration_that_would_be_refused_is_no_mere_difference(tmp_path, queues, capsys):
    """0 nothing, 1 something, 2 it cannot be applied: by its file alone, or by the cluster as it is."""
    log = str(tmp_path / "demo.db")
    assert run(["demo", "--keep", log, "--json"]) == 0
    path = tmp_path / "kueue.yaml"
    path.write_text(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\n"
        "spec: {namespaceSelector: {}}\n"
    )
    capsys.readouterr()
    assert run(["config", "diff", str(path), "--log", log]) == 2
    assert "it would be refused" in capsys.readouterr().out
    assert run(["config", "diff", "--json", str(path), "--log", log]) == 2
    assert json.loads(capsys.readouterr().out)["refused"]
    assert run(["config", "diff", queues("a.yaml", 4), queues("b.yaml", "1")]) == 2


def test_what_it_would_do_to_the_cluster_as_it_is(tmp_path, capsys):
    """With one file the log says what is there: what runs above a maximum that is lowered, and which timer begins."""
    log = str(tmp_path / "demo.db")
    assert run(["demo", "--keep", log, "--json"]) == 0
    path = tmp_path / "q.yaml"
    path.write_text(
        """
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {name: research, resources: {guaranteed: {vcore: 4}}}
          - {name: web, resources: {max: {vcore: 2}}, properties: {quota.preemption.delay: 60s}}
"""
    )
    capsys.readouterr()
    assert run(["config", "diff", str(path), "--log", log]) == 1
    said = capsys.readouterr().out
    assert "queue root.web: resources.max.vcore 4 → 2" in said
    assert "queue root.web: uses vcore 4, above its maximum 2" in said
    assert "quota enforcement starts" in said


def test_who_applies_a_configuration_and_why_are_proposed_with_it(
    queues, tmp_path, capsys, monkeypatch
):
    """The inbox holds program, person and message, and a message without end is refused at once."""
    monkeypatch.setenv("EVSCHED_LOG", f"sqlite:///{tmp_path / 'log.db'}")
    monkeypatch.setenv("EVSCHED_ACTOR", "ann")
    path = queues("q.yaml", 4)
    assert run(["config", "apply", path, "--message", "x" * 5000]) == 2
    assert "--message: found 5000 characters, expected at most 4096" in capsys.readouterr().err
    assert run(["config", "apply", path, "--source", "/ci/7", "--message", "for the sale"]) == 0
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        '{"type": "NodeRemoved", "node": "n1"}\n'
        '{"type": "NodeRemoved", "node": "n2", "actor": "bob"}\n'
    )
    assert run(["submit", str(lines)]) == 0

    async def proposals():
        async with open_streams(f"sqlite:///{tmp_path / 'log.db'}", 0) as streams:
            return await streams.inbox.read(0)

    found = asyncio.run(proposals())
    assert [(one.source, one.input.actor) for one in found] == [
        ("/ci/7", "ann"),
        ("/evsched/submit", "ann"),
        ("/evsched/submit", "bob"),
    ]
    assert found[0].input.message == "for the sale"

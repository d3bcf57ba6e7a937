"""`evsched demo`: the story comes out as it is told."""

import json

from evsched.cli.main import run


def test_the_story_holds(capsys):
    """Preemption after the delay, the timer at 60 s although the process was killed, and the same digest from the log."""
    assert run(["demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["holds"]
    assert document["digest"] == document["rebuilt_digest"]
    found = [(one["at"], one["type"]) for one in document["decisions"]]
    assert (40, "PreemptionDecided") in found
    assert (100, "QuotaPreemptionScheduled") in found
    assert (160, "QuotaPreemptionDecided") in found
    bound = {
        one["ask"]: one["at"] for one in document["decisions"] if one["type"] == "AllocationBound"
    }
    assert (bound["research-1"], bound["research-2"]) == (45, 45)


def test_its_log_can_be_kept_and_read(tmp_path, capsys):
    """Two terms, of two processes; nothing differs when all is decided again; an existing file is not touched."""
    path = tmp_path / "demo.db"
    assert run(["demo", "--keep", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "the two are the same" in out
    assert "killed with SIGKILL" in err
    url = f"sqlite:///{path}"
    assert run(["log", "show", "--log", url, "--type", "LeaderStarted", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["log", "check", "--log", url, "--decide"]) == 0
    assert run(["demo", "--keep", str(path)]) == 2

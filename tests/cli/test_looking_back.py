"""The commands that look back, on an exported log and on a running one."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from events import vocabulary as v
from evsched.cli.main import run
from tests.core.histories import START
from tests.replays.logs import exported, sealed, story


def written_to(path, steps):
    """Export these steps to a file and return its name."""
    return str(asyncio.run(exported(sealed(steps), path)))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return an exported log."""
    return written_to(tmp_path_factory.mktemp("log") / "story.jsonl.zst", story())


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    """Return an exported log in which a victim was exchanged and all hashes made anew."""

    def forge(event):
        if isinstance(event, v.PreemptionDecided):
            return replace(event, victims=(replace(event.victims[0], id="test-2"),))
        return event

    steps = [(time, tuple(forge(event) for event in events), at) for time, events, at in story()]
    return written_to(tmp_path_factory.mktemp("log") / "forged.jsonl", steps)


def documents(capsys):
    """Return what was printed as JSON lines."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_verify_finds_nothing_in_an_untouched_log(log, capsys):
    """Exit 0, with how much was decided again and the hash of the end."""
    assert run(["verify", "--log", log]) == 0
    assert "35 events decided again, from 1 to 35: no difference" in capsys.readouterr().out
    assert run(["verify", "--log", log, "--json", "--from", "-10s"]) == 0
    (document,) = documents(capsys)
    assert (document["difference"], document["damage"]) == (None, None)
    assert document["first"] > 20


def test_verify_shows_the_first_difference_and_what_was_around_it(forged, capsys):
    """Exit 1, with both versions; for programs the same."""
    assert run(["verify", "--log", forged]) == 1
    out = capsys.readouterr().out
    assert "event 21 in frame 6" in out
    assert "differs in: victims" in out
    assert "root.test" in out
    assert run(["verify", "--log", forged, "--json"]) == 1
    (document,) = documents(capsys)
    assert document["difference"]["seq"] == 21
    assert document["around"]["asks"][0]["ask"] == "prod-1"


def test_verify_of_a_damaged_log_exits_3_and_says_where(forged, tmp_path, capsys):
    """A line of the file that was altered, and one that is missing."""
    lines = Path(forged).read_text().splitlines(keepends=True)
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join([*lines[:4], lines[4].replace("test-1", "test-9"), *lines[5:]]))
    assert run(["verify", "--log", str(path)]) == 3
    assert "line 5 of the file was altered" in capsys.readouterr().err
    path.write_text("".join([*lines[:4], *lines[5:]]))
    assert run(["verify", "--log", str(path)]) == 3
    assert "damaged at position 4" in capsys.readouterr().err
    assert run(["verify", "--log", str(tmp_path / "none.jsonl")]) == 3


@pytest.mark.parametrize(
    "view", ["queues", "nodes", "apps", "asks", "allocations", "timers", "config"]
)
def test_every_view_is_shown_at_any_moment(log, view, capsys):
    """As a table and as JSON, by seq and by time before the end, which begins with a hyphen."""
    assert run(["at", "-16s", view, "--log", log]) == 0
    said = capsys.readouterr()
    assert {"config": "setting"}.get(view, view.removesuffix("s")) in said.err
    assert run(["at", "--json", "-16s", view, "--log", log]) == 0
    assert len(documents(capsys)) == int(said.err.rsplit(": ", 1)[1].split()[0])


def test_the_state_is_that_of_the_moment(log, capsys):
    """A seq, a time, the start and the end; amounts are in base units for programs."""
    assert run(["at", "17", "queues", "--json", "--queue", "root.test", "--log", log]) == 0
    (queue,) = documents(capsys)
    assert (queue["usage"], queue["maximum"]) == ({"vcore": 8000}, {"vcore": 9000})
    assert run(["at", "2026-01-01T00:00:00.999Z", "allocations", "--json", "--log", log]) == 0
    assert [one["allocation"] for one in documents(capsys)] == ["test-1", "test-2"]
    assert run(["at", "start", "nodes", "--json", "--log", log]) == 0
    assert documents(capsys) == []
    assert run(["at", "end", "asks", "--json", "--log", log]) == 0
    assert documents(capsys) == []
    assert run(["at", "yesterday", "--log", log]) == 2
    assert "expected a seq" in capsys.readouterr().err


def test_diff_shows_what_came_went_and_changed(log, capsys):
    """Between two moments, entry by entry."""
    assert run(["diff", "17", "21", "--json", "--log", log]) == 0
    changes = {(one["kind"], one["key"]): one for one in documents(capsys)}
    assert changes["asks", "prod-1"]["what"] == "came"
    assert changes["allocations", "test-4"]["fields"]["eviction_requested"] == [None, START + 7000]
    assert changes["queues", "root.test"]["fields"]["preempting"] == [{}, {"vcore": 2000}]
    assert run(["diff", "-20s", "-1s", "--only", "config", "--log", log]) == 0
    assert "root.queues[test].maximum.vcore" in capsys.readouterr().out


def test_bisect_finds_the_first_event_and_shows_what_was_around_it(log, forged, capsys):
    """Exit 0 with the event, 1 when there is none, 2 when nothing is said; words may stand in quotes or not."""
    assert run(["bisect", "queue root.test usage.vcore > max.vcore", "--log", log]) == 0
    out = capsys.readouterr().out
    assert "event 27" in out
    assert run(["bisect", "allocation", "test-4", "leaving", "--json", "--log", log]) == 0
    assert documents(capsys)[0]["event"]["type"] == "PreemptionDecided"
    assert run(["bisect", "ask nobody gone", "--log", log]) == 1
    assert run(["bisect", "ask nobody", "--log", log]) == 2
    assert run(["bisect", f"digest != {forged}", "--json", "--log", log]) == 0
    assert documents(capsys)[0]["seq"] == 21
    assert run(["bisect", f"digest != {log}", "--log", log]) == 1
    assert run(["bisect", "digest", "--log", log]) == 2


NEVER = {
    "a queue of at": (["at", "end", "asks", "--queue", "root.wbe"], "queue root.wbe"),
    "a node of bisect": (["bisect", "node", "n99", "gone"], "node n99"),
    "an amount of bisect": (["bisect", "queue root.wbe usage.vcore > 1"], "queue root.wbe"),
}


@pytest.mark.parametrize("case", NEVER)
def test_a_name_that_never_was_is_refused(log, case, capsys):
    """A slip of the pen would pass for an empty answer; exit 1 with the name."""
    command, name = NEVER[case]
    assert run([*command, "--log", log]) == 1
    assert f"{name}: never was in this log" in capsys.readouterr().err


def test_everything_works_on_kafka_too(
    kafka_bootstrap, kafka_topic_name, tmp_path, monkeypatch, capsys
):
    """The log is the same there: verify, time travel, the read model, an export and an import."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = written_to(tmp_path / "story.jsonl", story())
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    assert run(["topics", "create", "--log", url]) == 0
    assert run(["log", "import", "--no-attach", path, "--log", url]) == 0
    assert run(["verify", "--log", url]) == 0
    assert "no difference" in capsys.readouterr().out
    assert run(["at", "-16s", "queues", "--json", "--queue", "root.test", "--log", url]) == 0
    assert documents(capsys)[0]["usage"] == {"vcore": 8000}
    assert run(["bisect", "allocation", "test-4", "leaving", "--json", "--log", url]) == 0
    assert documents(capsys)[0]["seq"] == 21
    assert run(["bisect", f"digest != {path}", "--log", url]) == 1
    assert run(["project", "rebuild", "--log", url]) == 0
    capsys.readouterr()
    assert run(["audit", "preemptions-for", "--json", "--log", url]) == 0
    assert [row["ask"] for row in documents(capsys)] == ["prod-1"]
    again = str(tmp_path / "again.jsonl")
    assert run(["log", "export", again, "--log", url]) == 0
    assert run(["log", "check", "--json", "--log", again]) == 0
    assert documents(capsys)[-1]["events"] == 35

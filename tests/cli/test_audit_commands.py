"""The read model and the questions to it, from the command line."""

import asyncio
import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evsched.cli.main import run
from projections.audit import questions
from tests.core.histories import START
from tests.replays.logs import exported, sealed, story

PAUSES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "pauses.jsonl"
LOSSES = """
-- name: create_schema#
CREATE TABLE losses (queue TEXT PRIMARY KEY, lost INTEGER NOT NULL);

-- name: on_PreemptionDecided!
INSERT INTO losses (queue, lost) SELECT value ->> 'queue', 1 FROM json_each(:victims) WHERE true
ON CONFLICT (queue) DO UPDATE SET lost = lost + 1;
"""


@pytest.fixture
def url(tmp_path, monkeypatch, capsys):
    """Return the address of a log, with a data directory of the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = str(asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl")))
    url = f"sqlite:///{tmp_path / 'log.db'}"
    assert run(["log", "import", "--no-attach", path, "--log", url]) == 0
    monkeypatch.setenv("EVSCHED_LOG", url)
    capsys.readouterr()
    return url


def documents(capsys):
    """Return what was printed as JSON lines."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def dump(path):
    """Return all rows of all tables of a read model, but for its place."""
    connection = sqlite3.connect(path)
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    rows = {
        name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}")))
        for name in tables
        if name != "kept_state"
    }
    connection.close()
    return rows


def test_a_rebuild_of_the_file_and_of_the_imported_log_are_the_same(url, tmp_path, capsys):
    """Made from the log and from its export; status says how far."""
    assert run(["project", "status"]) == 1
    assert "does not exist" in capsys.readouterr().out
    first, second = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    assert run(["project", "rebuild", "--db", first]) == 0
    assert run(["project", "rebuild", "--db", second, "--log", str(tmp_path / "story.jsonl")]) == 0
    assert run(["project", "rebuild", "--db", first]) == 0
    assert dump(first) == dump(second)
    capsys.readouterr()
    assert run(["project", "status", "--db", first, "--json"]) == 0
    (facts,) = documents(capsys)
    assert (facts["projected_seq"], facts["behind"]) == (35, 0)


def test_a_queue_that_never_was_is_not_found(url, tmp_path, capsys):
    """No rows would read as "nobody was preempted there"."""
    path = str(tmp_path / "a.db")
    assert run(["project", "rebuild", "--db", path]) == 0
    assert run(["audit", "who-preempted", "--queue", "root", "--db", path]) == 0
    capsys.readouterr()
    assert run(["audit", "who-preempted", "--queue", "root.nope", "--db", path]) == 1
    assert capsys.readouterr().err == "evsched: queue root.nope: never was in this log\n"


def test_the_questions_are_listed_with_their_columns(capsys):
    """Without a log or a file."""
    assert run(["audit"]) == 0
    out = capsys.readouterr().out
    for question in questions().values():
        assert question.sentence in out
    assert run(["audit", "--json"]) == 0
    assert len(documents(capsys)) == len(questions())


@pytest.mark.parametrize("question", list(questions()))
def test_every_question_is_answered_for_people_for_programs_and_as_csv(url, question, capsys):
    """The same rows three times."""
    assert run(["project", "rebuild"]) == 0
    call = ["audit", question, *(["--of", "test-4"] if "of" in questions()[question].takes else [])]
    capsys.readouterr()
    assert run(call) == 0
    said = capsys.readouterr()
    assert run([*call, "--json"]) == 0
    rows = documents(capsys)
    assert f" {len(rows)} row" in said.err
    assert run([*call, "--csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(table) == len(rows)
    assert rows or question in {
        "still-waiting", "pauses", "paused-at", "quotas-at", "users-and-limits",
    }  # fmt: skip
    assert all(list(row) == list(questions()[question].columns) for row in rows)


def test_a_window_and_a_moment_narrow_an_answer(url, capsys):
    """By seq, by time and by time before the end; the end of a window is not included."""
    assert run(["project", "rebuild"]) == 0
    capsys.readouterr()

    def seqs(*arguments):
        assert run(["audit", "who-preempted", "--json", *arguments]) == 0
        return [row["seq"] for row in documents(capsys)]

    everything = seqs()
    assert everything[0] == 21
    assert seqs("--from", "22") == everything[1:]
    assert seqs("--to", "21") == []
    assert seqs("--to", "2026-01-01T00:00:07.001Z") == [21]
    assert seqs("--from", "-5s") == [seq for seq in everything if seq > 21]
    assert seqs("--queue", "root.prod") == []
    assert seqs("--limit", "1") == [21]
    assert run(["audit", "queues-at", "--at", "21", "--queue", "root.test", "--json"]) == 0
    assert documents(capsys)[0]["usage"] == {"vcore": 8000}
    assert run(["audit", "life-of", "--of", "test-4", "--json"]) == 0
    life = documents(capsys)
    assert [row["what"] for row in life] == ["waiting", "running", "leaving"]
    assert (life[2]["from_time"], life[2]["detail"], life[2]["outcome"]) == (
        START + 7000,
        "prod-1",
        "preempted",
    )


def test_who_was_paused_is_answered_for_a_window_and_for_a_moment(tmp_path, capsys):
    """By seq and by time, from the log that the page about audits shows."""
    db = str(tmp_path / "model.db")
    assert run(["project", "rebuild", "--log", str(PAUSES), "--db", db]) == 0
    capsys.readouterr()

    def paused(question, *arguments):
        assert run(["audit", question, "--json", "--db", db, *arguments]) == 0
        return [row["application"] for row in documents(capsys)]

    assert paused("pauses") == ["report", "train", "report", "sweep"]
    assert paused("pauses", "--from", "2026-01-01T09:00:35Z", "--to", "2026-01-01T09:01:20Z") == [
        "report",
        "train",
        "report",
    ]
    assert paused("pauses", "--from", "16", "--to", "17") == ["report"]
    assert paused("pauses", "--queue", "root.web") == []
    assert paused("paused-at") == []
    assert paused("paused-at", "--at", "2026-01-01T09:00:34.999Z") == ["report", "train"]
    assert paused("paused-at", "--at", "2026-01-01T09:00:35Z") == ["report"]
    assert paused("paused-at", "--at", "-5s", "--queue", "root") == ["sweep"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (["pauses", "--at", "12"], "found --at, expected any of --queue, --from, --to"),
        (["paused-at", "--to", "12"], "found --to, expected any of --queue, --at"),
        (["config-history", "--queue", "root"], "found --queue, expected any of --from, --to"),
        (["queues-at", "--of", "test-1"], "found --of, expected any of --queue, --at"),
        (["life-of", "--of", "test-1", "--from", "3"], "found --from, expected any of --of"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_what_a_question_does_not_look_at_is_refused(url, call, expected, capsys):
    """Nobody takes an answer for narrowed that is not."""
    assert run(["project", "rebuild"]) == 0
    assert run(["audit", *call]) == 2
    assert expected in capsys.readouterr().err


def test_what_is_wrong_is_said(url, tmp_path, capsys):
    """An unknown question, a file that is missing, and one of another log."""
    assert run(["audit", "nonsense"]) == 2
    assert "who-preempted" in capsys.readouterr().err
    assert run(["audit", "who-preempted"]) == 2
    assert "evsched project rebuild" in capsys.readouterr().err
    (tmp_path / "text.db").write_text("no database")
    assert run(["audit", "who-preempted", "--db", str(tmp_path / "text.db")]) == 2
    assert run(["project", "run", "--db", str(tmp_path / "text.db")]) == 2
    assert "file is not a database" in capsys.readouterr().err
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "p.sql").write_text(LOSSES.replace("INTO losses", "INTO c"))
    assert (
        run(
            ["project", "rebuild", "--sql", str(tmp_path / "bad"), "--db", str(tmp_path / "own.db")]
        )
        == 2
    )
    assert "no such table: c" in capsys.readouterr().err
    assert not (tmp_path / "own.db").exists()


def test_a_projection_of_ones_own_is_made_followed_and_made_anew(url, tmp_path, capsys):
    """A folder with a .sql file."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "losses.sql").write_text(LOSSES)
    db = str(tmp_path / "losses.db")
    for _ in range(2):
        assert run(["project", "rebuild", "--sql", str(folder), "--db", db]) == 0
        connection = sqlite3.connect(db)
        assert connection.execute("SELECT * FROM losses").fetchall() == [("root.test", 1)]
        connection.close()
    assert run(["project", "rebuild", "--sql", str(tmp_path / "nothing"), "--db", db]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_follower_stops_when_it_is_told_to(url, tmp_path, number):
    """It makes a missing file, follows, commits, and ends with 0."""
    db = tmp_path / "model.db"
    command = [
        sys.executable,
        "-c",
        "from evsched.cli.main import main; main()",
        "project",
        "run",
        "--db",
        str(db),
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        deadline = time.monotonic() + 30
        line = process.stderr.readline()
        assert "follows" in line, line
        assert time.monotonic() < deadline
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert "stopped after event 35" in said
    assert run(["project", "status", "--db", str(db)]) == 0


def test_at_answers_from_the_read_model_as_from_the_log(url, tmp_path, capsys, monkeypatch):
    """Whatever it holds it says alike; the end of the log, and what it never heard of, is asked of the log."""
    path = str(tmp_path / "a.db")
    assert run(["project", "rebuild", "--db", path]) == 0
    capsys.readouterr()
    views = ("queues", "nodes", "apps", "asks", "allocations", "timers", "config")
    asked = [("21", view) for view in views] + [("end", "asks"), ("2026-01-01T00:00:00Z", "asks")]
    for moment, view in asked:
        told = []
        for db in (path, str(tmp_path / "none.db")):
            assert run(["at", moment, view, "--json", "--db", db]) == 0
            told.append(capsys.readouterr())
        assert told[0] == told[1], (moment, view)
    for db in (path, str(tmp_path / "none.db")):
        assert run(["at", "21", "queues", "--queue", "root.nowhere", "--db", db]) == 1
        assert "never was" in capsys.readouterr().err
    monkeypatch.setattr("evsched.cli.at.answer", None)
    assert run(["at", "21", "allocations", "--db", path]) == 0


def test_an_export_says_what_it_wrote_and_what_it_wants(url, tmp_path, capsys, monkeypatch):
    """One folder, one format, a read model that is there, and the extra for Parquet."""
    db, folder = str(tmp_path / "model.db"), str(tmp_path / "out")
    assert run(["project", "export", "--csv", folder, "--db", db]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert run(["project", "rebuild", "--db", db]) == 0
    for arguments in ([], ["--csv", folder, "--parquet", folder]):
        assert run(["project", "export", "--db", db, *arguments]) == 2
        assert "expected one of them" in capsys.readouterr().err
    assert run(["project", "export", "--csv", folder, "--db", db]) == 0
    assert ": 35 events, " in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["seq"] == 35
    monkeypatch.setitem(sys.modules, "projections.export.parquet_files", None)
    assert run(["project", "export", "--parquet", folder, "--db", db]) == 2
    assert "expected the extra evsched[parquet]" in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["format"] == "csv"

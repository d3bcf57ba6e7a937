"""Logs travel: export, import, check."""

import asyncio
import json

import pytest

from events.streams import open_streams
from evsched.cli.main import run
from tests.replays.logs import exported, sealed, story


@pytest.fixture
def log(tmp_path):
    """Return the address of a SQLite log and the name of the file from which it was made."""
    path = str(asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl.zst")))
    url = f"sqlite:///{tmp_path / 'log.db'}"
    assert run(["log", "import", path, "--log", url]) == 0
    return url, path


def document(capsys):
    """Return the last line that was printed, as JSON."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_what_is_imported_is_the_same_log(log, tmp_path, capsys):
    """The same hashes and digest; verify passes; a log that holds something takes nothing."""
    url, path = log
    reports = []
    for address in log:
        assert run(["log", "check", "--json", "--decide", "--log", address]) == 0
        reports.append(document(capsys))
    assert reports[0] == reports[1]
    assert (reports[0]["events"], len(reports[0]["terms"]), reports[0]["digests"], reports[0]["ignored"]) == (35, 2, 3, 0)
    kept = reports[0]["hash"]
    assert run(["verify", "--log", url, "--known", kept]) == 0
    assert run(["log", "check", "--log", url, "--known", "0" * 32, "--known", kept]) == 3
    assert run(["log", "import", path, "--log", url]) == 3


def test_a_damaged_file_is_not_imported_at_all(log, tmp_path, capsys):
    """Nothing of it reaches the log."""
    plain = tmp_path / "plain.jsonl"
    assert run(["log", "export", str(plain), "--log", log[0]]) == 0
    lines = plain.read_text().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(lines[:-3] + lines[-2:]))
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert run(["log", "import", str(broken), "--log", url]) == 3
    assert "damaged at position 12" in capsys.readouterr().err
    assert not (tmp_path / "new.db").exists()
    assert run(["log", "check", "--log", str(broken)]) == 3


def test_a_log_without_names_verifies_and_names_nobody(log, tmp_path, capsys):
    """A new log with another id, the same decisions, and none of the names."""
    path = str(tmp_path / "nameless.jsonl")
    assert run(["log", "export", "--anonymise", path, "--log", log[0]]) == 0
    assert run(["verify", "--json", "--log", path]) == 0
    found = document(capsys)
    assert found["events"] == 35
    assert found["log_id"] != "log-of-a-test"
    text = (tmp_path / "nameless.jsonl").read_text()
    for name in ("prod", "test-1", "n1", "p-prod-1", "log-of-a-test"):
        assert name not in text


def test_void_frames_are_counted_and_named(log, capsys):
    """A frame of a term that was superseded is passed over, and check says by which rule."""

    async def write_stale():
        async with open_streams(log[0]) as streams:
            first = [record async for batch in streams.log.read() for record in batch][1]
            await streams.log.append(first.data)

    asyncio.run(write_stale())
    assert run(["log", "check", "--log", log[0]]) == 0
    out = capsys.readouterr().out
    assert "1 void frames passed over" in out
    assert "term 1 was superseded by term 2" in out


def test_another_ending_is_refused(log, capsys):
    """So that every command recognises the file."""
    assert run(["log", "export", "monday.txt", "--log", log[0]]) == 2
    assert "expected .jsonl or .jsonl.zst" in capsys.readouterr().err

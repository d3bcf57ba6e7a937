"""Logs travel: export, import, check."""

import asyncio
import json

import pytest

from events.errors import LogFull, OutcomeUnknown
from events.streams import open_streams
from events.streams.sqlite import SqliteLog
from evsched.cli.main import run
from tests.replays.logs import exported, sealed, story


@pytest.fixture
def log(tmp_path):
    """Return the address of a SQLite log and the name of the file from which it was made."""
    path = str(asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl.zst")))
    url = f"sqlite:///{tmp_path / 'log.db'}"
    assert run(["log", "import", "--no-attach", path, "--log", url]) == 0
    return url, path


def document(capsys):
    """Return the last line that was printed, as JSON."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def records(url):
    """Return the bytes of the records of a log."""

    async def read():
        async with open_streams(url) as streams:
            return [record.data async for batch in streams.log.read() for record in batch]

    return asyncio.run(read())


def write(url, frames):
    """Write these to a log, which is made if it is missing."""

    async def append():
        async with open_streams(url) as streams:
            await streams.log.create()
            for data in frames:
                await streams.log.append(data)

    asyncio.run(append())


def test_what_is_imported_is_the_same_log(log, tmp_path, capsys):
    """The same hashes and digest; verify passes."""
    url, _ = log
    reports = []
    for address in log:
        assert run(["log", "check", "--json", "--decide", "--log", address]) == 0
        reports.append(document(capsys))
    assert "attach-inbox" in reports[0].pop("detached")
    assert reports[1].pop("detached") == ""
    assert reports[0] == reports[1]
    assert (
        reports[0]["events"],
        len(reports[0]["terms"]),
        reports[0]["digests"],
        reports[0]["ignored"],
    ) == (35, 2, 3, 0)
    kept = reports[0]["hash"]
    assert run(["verify", "--log", url, "--known", kept]) == 0
    assert run(["log", "check", "--log", url, "--known", "0" * 32, "--known", kept]) == 3


def test_an_interrupted_import_is_run_again(log, tmp_path, capsys):
    """It says how much was there already, and what is in the log now; once more is no error."""
    whole = records(log[0])
    url = f"sqlite:///{tmp_path / 'half.db'}"
    write(url, whole[:4])
    capsys.readouterr()
    for there in ("4", f"all {len(whole)}"):
        assert run(["log", "import", log[1], "--log", url]) == 0
        said = capsys.readouterr().err.splitlines()
        assert said[0] == f"{there} records were there already"
        assert said[1].startswith(f"half.db/0: {len(whole)} records, frame {len(whole)}, hash ")
        assert records(url)[: len(whole)] == whole


def test_a_log_that_is_no_beginning_of_the_file_takes_nothing(log, tmp_path, capsys):
    """Whether it differs or is longer: place, found and expected are said."""
    whole = records(log[0])
    url = f"sqlite:///{tmp_path / 'other.db'}"
    write(url, [whole[0], whole[2]])
    write(log[0], [whole[1]])
    last = len(whole) + 1
    for address, said in (
        (url, "record 2 at position 1 has hash "),
        (log[0], f"record {last} at position {last - 1} has hash "),
    ):
        before = records(address)
        assert run(["log", "import", log[1], "--log", address]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert "expected " in err
        assert records(address) == before


def test_an_import_that_fails_on_the_way_says_what_to_do(log, tmp_path, capsys, monkeypatch):
    """Whether there was no room or no answer: the same command goes on."""
    url = f"sqlite:///{tmp_path / 'half.db'}"
    append, faults = (
        SqliteLog.append,
        [None, None, LogFull("half.db", "no"), None, OutcomeUnknown("half.db", "no answer")],
    )

    async def failing(self, data):
        fault = faults.pop(0) if faults else None
        if fault is not None:
            raise fault
        return await append(self, data)

    monkeypatch.setattr(SqliteLog, "append", failing)
    for there in (2, 3):
        assert run(["log", "import", log[1], "--log", url]) == 3
        assert "(run it again and it goes on where it was)" in capsys.readouterr().err
        assert records(url) == records(log[0])[:there]
    assert run(["log", "import", log[1], "--log", url]) == 0
    assert "3 records were there already" in capsys.readouterr().err
    assert records(url)[:-2] == records(log[0])


def test_a_damaged_file_is_not_imported_at_all(log, tmp_path, capsys):
    """Nothing of it reaches the log."""
    plain = tmp_path / "plain.jsonl"
    assert run(["log", "export", str(plain), "--log", log[0]]) == 0
    lines = plain.read_text().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(lines[:-3] + lines[-2:]))
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert run(["log", "import", "--no-attach", str(broken), "--log", url]) == 3
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
    write(log[0], [records(log[0])[1]])
    assert run(["log", "check", "--log", log[0]]) == 0
    out = capsys.readouterr().out
    assert "1 void frames passed over" in out
    assert "term 1 was superseded by term 2" in out


def test_another_ending_is_refused(log, capsys):
    """So that every command recognises the file."""
    assert run(["log", "export", "monday.txt", "--log", log[0]]) == 2
    assert "expected .jsonl or .jsonl.zst" in capsys.readouterr().err


def test_a_restored_log_goes_on(log, tmp_path, capsys):
    """Importing attaches the inbox: behind the records of the file an event says so, and importing again finds nothing to do."""
    url = f"sqlite:///{tmp_path / 'restored.db'}"
    whole = records(log[0])
    capsys.readouterr()
    for count in (len(whole), f"all {len(whole)}"):
        assert run(["log", "import", log[1], "--log", url]) == 0
        said = capsys.readouterr().err
        assert f"{count} records" in said
        assert "is read from position 0 on" in said
        assert records(url)[: len(whole)] == whole
        assert len(records(url)) == len(whole) + 2
    assert run(["log", "check", "--decide", "--json", "--log", url]) == 0
    report = document(capsys)
    assert (report["detached"], report["difference"], report["inbox_next"]) == ("", None, 0)
    assert [one["position"] for one in report["attachments"]] == [0]
    assert run(["log", "attach-inbox", "--json", "--log", url]) == 0
    assert not document(capsys)["changed"]
    assert run(["verify", "--log", url]) == 0
    assert run(["log", "export", str(tmp_path / "again.jsonl"), "--log", url]) == 0
    assert run(["log", "export", "--anonymise", str(tmp_path / "x.jsonl"), "--log", url]) == 0
    assert run(["verify", "--log", str(tmp_path / "x.jsonl")]) == 0
    assert report["inbox"] not in (tmp_path / "x.jsonl").read_text()


def test_a_copy_is_attached_by_hand(log, tmp_path, capsys):
    """Proposing to it is refused before, with the command that helps; check and verify tell of it."""
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text('{"type": "NodeRegistered", "node": "n9", "capacity": {"vcore": 1}}\n')
    assert run(["submit", str(inputs), "--log", log[0]]) == 3
    assert "attach-inbox" in capsys.readouterr().err
    for command in (["verify"], ["log", "check"]):
        assert run([*command, "--log", log[0]]) == 0
        assert "attach-inbox" in capsys.readouterr().err
    assert run(["log", "attach-inbox", "--from", "5", "--log", log[0]]) == 3
    assert "position 5 of the first proposal" in capsys.readouterr().err
    assert run(["log", "attach-inbox", "--log", log[0]]) == 0
    assert "is read from position 0 on" in capsys.readouterr().err
    assert run(["submit", str(inputs), "--log", log[0]]) == 0
    assert run(["log", "check", "--log", log[0]]) == 0
    assert "attach-inbox" not in capsys.readouterr().err


def test_nothing_is_neither_exported_nor_imported(tmp_path, capsys):
    """An empty log makes no backup, and an empty backup makes no log."""
    url, file = f"sqlite:///{tmp_path / 'empty.db'}", tmp_path / "empty.jsonl"
    assert run(["topics", "create", "--log", url]) == 0
    assert run(["log", "export", str(file), "--log", url]) == 1
    assert not file.exists()
    file.write_text('{"format":"evsched-log","version":1,"log_id":"","partition":0}\n')
    target = tmp_path / "new.db"
    assert run(["log", "import", str(file), "--log", f"sqlite:///{target}"]) == 2
    assert "holds no record" in capsys.readouterr().err
    assert not target.exists()

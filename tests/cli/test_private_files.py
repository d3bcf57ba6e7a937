"""What is written lies where it should, and is for its owner alone."""

import asyncio
import os
import stat

import pytest

from events.streams.private_files import make_folder, plain_name
from evsched.cli.main import run
from replays.recordings import FOLDER
from tests.cli.test_audit_commands import LOSSES
from tests.replays.logs import exported, sealed, story
from tests.service.running import Running

ESCAPES = (
    "../../../cluster/log",
    "/cluster/log",
    "..",
    ".hidden",
    "-rf",
    "a/b",
    "a\\b",
    "a\nb",
    "a\0b",
    "Log",
    "log.db",
    "\N{CYRILLIC SMALL LETTER A}",
    "a" * 101,
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a data directory of the test's own, under a umask that takes no right away."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    before = os.umask(0)
    yield tmp_path / "share" / "evsched"
    os.umask(before)


@pytest.mark.parametrize("log_id", ESCAPES)
def test_the_id_of_a_strangers_log_leads_nowhere(home, tmp_path, log_id, capsys):
    """An id that is no plain name is refused as the name of a read model's file; nothing is written, a named file is."""
    other = tmp_path / "cluster" / "log.db"
    other.parent.mkdir()
    other.write_bytes(b"")
    file = asyncio.run(exported(sealed(story(), log_id), tmp_path / "stranger.jsonl"))
    before = sorted(tmp_path.rglob("*"))
    for command in (["project", "rebuild"], ["project", "run"], ["project", "status"]):
        assert run([*command, "--log", str(file)]) == 2
        assert "expected 1 to 100 lower-case letters" in capsys.readouterr().err
    assert run(["audit", "pauses", "--log", str(file)]) == 2
    assert run(["at", "end", "--log", str(file)]) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert run(["project", "rebuild", "--log", str(file), "--db", str(tmp_path / "own.db")]) == 0


def test_ids_that_evsched_gives_are_names_of_files():
    """Those of real logs and of the recordings."""
    for log_id in ("0123456789abcdef" * 2, *(f"recording-of-{name}" for name in names())):
        assert plain_name(log_id) == log_id


def names():
    """Return the names of the recordings."""
    return [path.name.partition(".")[0] for path in FOLDER.rglob("*.jsonl.zst")]


def test_every_file_is_its_owners_alone(home, tmp_path, capsys):
    """Logs, snapshots, readiness files, read models, projections and exports, whatever the umask."""
    work = tmp_path / "work"
    make_folder(work / "sql")
    (work / "sql" / "losses.sql").write_text(LOSSES)
    given = set(work.rglob("*"))
    log = ["--log", str(work / "new" / "log.db")]
    assert run(["log", "import", str(story_file(tmp_path)), *log]) == 0
    assert run(["log", "export", str(work / "kept.jsonl.zst"), *log]) == 0
    assert run(["project", "rebuild", *log]) == 0
    assert run(["project", "rebuild", "--db", str(work / "deep" / "er" / "model.db"), *log]) == 0
    assert run(["project", "rebuild", "--sql", str(work / "sql"), *log]) == 0
    assert run(["audit", "pauses", *log]) == 0
    service = Running(work, "run", "--log", str(work / "run.db")).start()
    try:
        service.wait_ready()
        found = rights([home, work], given)
        assert service.stop() == 0
    finally:
        service.kill()
    found |= rights([home, work], given)
    kinds = {path.suffix for path in found}
    assert {".db", ".ready", ".snapshot", ".zst", ".db-wal", ".checkpoint"} <= kinds
    del found[service.errors]  # written by this test
    expected = {path: 0o700 if path.is_dir() else 0o600 for path in found}
    assert {path: oct(mode) for path, mode in found.items() if mode != expected[path]} == {}


def story_file(folder):
    """Return a small exported log."""
    return asyncio.run(exported(sealed(story()), folder / "story.jsonl"))


def rights(folders, given):
    """Return the rights of everything in folders, and of these themselves, but for what the test put there."""
    found = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {path: stat.S_IMODE(path.stat().st_mode) for path in found if path not in given}


def test_a_link_at_the_place_of_a_draft_is_not_followed(home, tmp_path):
    """Who can write to the folder of an export cannot have another file overwritten by it."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".kept.jsonl.partial").symlink_to(victim)
    assert (
        run(["log", "export", str(tmp_path / "kept.jsonl"), "--log", str(story_file(tmp_path))])
        == 0
    )
    assert victim.read_text() == "precious"

"""What a person types wrongly, and what they are told: the exit code says whose fault it is, the sentence what and where."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evsched.cli import main, proposing
from evsched.cli.main import run

KUEUE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "kueue"
QUEUES = str(KUEUE.parent / "queues-next.yaml")
MODEL = ["--log", "demo.db", "--db", "model.db"]
BACKWARDS = ["--from", "30", "--to", "20", *MODEL]
MISTAKES = {
    "a command that is not there": (["stauts"], 2, 'Did you mean "status"'),
    "a log that is not there": (
        ["status", "--log", "nope.db"],
        3,
        "nope.db: does not exist, create it first (`evsched run`",
    ),
    "an address of no kind": (
        ["status", "--log", "nope"],
        2,
        "--log nope: not understood, expected kafka://",
    ),
    "a broker that is not there": (
        ["status", "--log", "kafka://127.0.0.1:9/x"],
        3,
        "stream x-log: unreachable",
    ),
    "a certificate that is not there": (
        [
            "status",
            "--log",
            "kafka://127.0.0.1:9/x",
            "--kafka-protocol",
            "SSL",
            "--kafka-ca-file",
            "nope.pem",
        ],
        2,
        "credentials nope.pem: cannot be read: No such file",
    ),
    "an exported log that is none": (
        ["verify", "--log", "text.jsonl"],
        3,
        "line 1 of the file is not the beginning",
    ),
    "a text for a log": (["status", "--log", "text.db"], 3, "text.db: SQLITE_NOTADB"),
    "a read model for a log": (
        ["status", "--log", "model.db"],
        3,
        "this is another program's file, or a read model",
    ),
    "nobody of that name": (
        ["explain", "nobody", "--log", "demo.db"],
        1,
        "nothing is called nobody",
    ),
    "a moment that is none": (
        ["at", "yesterday", "--log", "demo.db"],
        2,
        "moment 'yesterday': expected a seq",
    ),
    "an event that is still to come": (
        ["at", "999", "--log", "demo.db"],
        0,
        "event 999: the log does not go that far yet",
    ),
    "a slip in an event type": (
        ["log", "show", "--type", "NodeRemove", "--log", "demo.db"],
        2,
        "did you mean NodeRemoved?",
    ),
    "an event type of no kind": (
        ["log", "show", "--type", "x", "--log", "demo.db"],
        2,
        "expected one of AllocationBound, ",
    ),
    "an expression that is none": (
        ["bisect", "ask foo", "--log", "demo.db"],
        2,
        "expression: found 'ask foo', expected",
    ),
    "a scenario that is not there": (["simulate", "nope.yaml"], 2, "nope.yaml: No such file"),
    "a configuration not there": (
        ["whatif", "--config", "nope.yaml", "--log", "demo.db"],
        2,
        "nope.yaml: cannot be read",
    ),
    "a configuration of the other kind": (
        ["whatif", "--config", str(KUEUE), "--log", "demo.db"],
        2,
        "would be refused: ",
    ),
    "an ask that is not there": (
        ["plan", "nope.yaml", "--log", "demo.db"],
        2,
        "ask nope.yaml: No such file",
    ),
    "a forecast of what does not wait": (
        ["forecast", "nope", "--log", "demo.db"],
        1,
        "nope: neither waits nor is a queue at this moment",
    ),
    "a horizon that is no span": (
        ["forecast", "nope", "--horizon", "soon", "--log", "demo.db"],
        2,
        "--horizon: ",
    ),
    "proposals that are none": (["submit", "text.jsonl", "--log", "demo.db"], 2, "text.jsonl:1: "),
    "a proposal to a cluster partition that is not there": (
        ["submit", str(KUEUE.parent / "pods.jsonl"), "--partition", "2", "--log", "demo.db"],
        2,
        "--partition: found 2, expected a cluster partition that has begun",
    ),
    "a configuration for a cluster partition that is not there": (
        ["config", "apply", QUEUES, "--partition", "2", "--log", "demo.db"],
        2,
        "(`evsched run --partitions 3` begins it)",
    ),
    "an audit without a read model": (
        ["audit", "who-preempted", "--log", "demo.db"],
        2,
        "evsched project rebuild",
    ),
    "an empty cluster partition": (
        ["verify", "--partition", "7", "--log", "demo.db"],
        1,
        "is empty, so nothing was verified",
    ),
    "a check of an empty cluster partition": (
        ["log", "check", "--partition", "7", "--log", "demo.db"],
        1,
        "nothing was checked",
    ),
    "a what-if of nothing": (
        ["whatif", "--config", QUEUES, "--from", "end", "--log", "demo.db"],
        2,
        "nothing happens",
    ),
    "a what-if without queues": (
        ["whatif", "--config", QUEUES, "--from", "start", "--to", "1", "--log", "demo.db"],
        2,
        "was not tried: in this part of the log no configuration is in force",
    ),
    "a past that ends before it begins": (
        ["audit", "waiting-times", *BACKWARDS],
        2,
        "--from 30: comes after --to 20",
    ),
    "no row at all": (
        ["audit", "who-preempted", "--limit", "0", *MODEL],
        2,
        "--limit: found 0, expected 1 to ",
    ),
    "more rows than can be counted": (
        ["audit", "who-preempted", "--limit", "9" * 30, *MODEL],
        2,
        "expected 1 to ",
    ),
    "two forms of an answer": (
        ["audit", "who-preempted", "--json", "--csv", *MODEL],
        2,
        "found both, expected one of them",
    ),
    "the life of nobody": (["audit", "life-of", *MODEL], 2, "question life-of: expected --of"),
    "an export to no folder": (
        ["log", "export", "no/x.jsonl", "--log", "demo.db"],
        2,
        "no/x.jsonl: the folder does not exist",
    ),
    "an import of what can be read once": (
        ["log", "import", "/dev/null", "--log", "x.db"],
        2,
        "can be read only once",
    ),
    "a read model over its log": (
        ["project", "rebuild", "--log", "demo.db", "--db", "demo.db"],
        2,
        "demo.db: is a log",
    ),
    "a read model within its log": (
        ["project", "run", "--log", "demo.db", "--db", "demo.db"],
        2,
        "demo.db: is a log",
    ),
    "a read model over a text": (
        ["project", "rebuild", "--log", "demo.db", "--db", "text.db"],
        2,
        "text.db: is no database",
    ),
    "an audit of a log": (
        ["audit", "who-preempted", "--log", "demo.db", "--db", "demo.db"],
        2,
        "demo.db",
    ),
    "a partition of no number": (
        ["status", "--partition", "-3", "--log", "demo.db"],
        2,
        "--partition: found -3, expected 0",
    ),
    "a folder that is a file": (["demo", "--keep", "text.db/x.db"], 2, "text.db"),
}


@pytest.fixture(scope="module")
def demo_log(tmp_path_factory):
    """Return the file with the log of the demonstration."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    assert run(["demo", "--keep", str(path), "--json"]) == 0
    return path


@pytest.fixture
def folder(demo_log, tmp_path, monkeypatch, capsys):
    """Return a folder to work in, with the log of the demonstration in three forms and two files that are nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shutil.copy(demo_log, "demo.db")
    for name in ("text.jsonl", "text.db"):
        (tmp_path / name).write_text("no such thing\n" * 100)
    assert (
        run(["project", "rebuild", *MODEL])
        == run(["log", "export", "demo.jsonl", "--log", "demo.db"])
        == 0
    )
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered(folder, mistake, capsys):
    """By the code of whose fault it is and a sentence; never by a traceback."""
    arguments, code, sentence = MISTAKES[mistake]
    assert run(arguments) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_a_bug_is_told_from_the_answer_no(monkeypatch, capsys):
    """It exits with 70 and one sentence; the traceback is shown to those who ask for it."""
    monkeypatch.setitem(main.COMMANDS, "status", ("tests.cli.test_mistakes:broken", "Broken."))
    monkeypatch.delenv("EVSCHED_DEBUG", raising=False)
    assert run(["status"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("evsched: a bug in evsched: ZeroDivisionError: ")
    assert "Traceback" not in said
    assert run(["status", "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("EVSCHED_DEBUG", "1")
    assert run(["status"]) == 70
    assert "Traceback" in capsys.readouterr().err


def broken() -> None:
    """Be a command with a bug."""
    raise ZeroDivisionError("integer division")


def in_a_shell(folder: Path, arguments: list[str], rest: str) -> subprocess.CompletedProcess[str]:
    """Run a real process in a shell, with what the shell does to its output; the code is that of the process."""
    where = [] if "--help" in arguments else ["--log", "demo.db"]
    command = " ".join(
        [sys.executable, "-c", "'from evsched.cli.main import main; main()'", *arguments, *where]
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2])}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        ["bash", "-c", f"{command} {rest}; exit ${{PIPESTATUS[0]}}"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


LITTLE_AND_MUCH = [
    ["log", "show"], ["log", "show", "--json"], ["status", "--json"], ["at", "end", "asks"], ["diff", "start"], ["--help"],
    ["log", "--help"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", LITTLE_AND_MUCH)
@pytest.mark.parametrize("reader", ["head -c 1 > /dev/null", "true"])
def test_a_reader_may_have_seen_enough(folder, arguments, reader):
    """Output into a pipe that is closed early, as by `head`, or before anything is written, is no failure."""
    done = in_a_shell(folder, arguments, f"| {reader}")
    assert done.returncode == 0, done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.parametrize("arguments", LITTLE_AND_MUCH)
def test_output_that_finds_no_room_is_told_of_once(folder, arguments):
    """By a sentence and the code of misuse; Python has nothing to add when it ends."""
    done = in_a_shell(folder, arguments, "> /dev/full")
    assert done.returncode == 2
    assert "evsched: output: No space left on device" in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("arguments", LITTLE_AND_MUCH)
def test_without_an_output_nothing_is_written(folder, arguments):
    """A process that was given none does its work all the same."""
    done = in_a_shell(folder, arguments, ">&-")
    assert (done.returncode, "bug" in done.stderr) == (0, False), done.stderr


def test_without_an_output_for_errors_none_comes_among_the_data(folder):
    """What is said beside the data is lost then, and the code tells."""
    done = in_a_shell(folder, ["status", "nonsense"], "2>&-")
    assert (done.returncode, done.stdout) == (2, "")


async def test_who_waits_for_an_answer_is_told_why(capsys):
    """After a while without one, but not when it comes at once."""
    with proposing.remark(0.0, "no answer yet"):
        await asyncio.sleep(0.01)
    with proposing.remark(0.0, "somebody answers") as heard:
        heard()
        await asyncio.sleep(0.01)
    with proposing.remark(60.0, "too long"):
        pass
    assert capsys.readouterr().err == "no answer yet\n"

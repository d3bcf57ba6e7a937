"""A stranger's log in which every name, sentence and id speaks to a terminal: no command lets any of them through."""

import asyncio
import contextlib
import io
import json
import shutil

import msgspec
import pytest
import structlog

from events import vocabulary as v
from evsched.cli.answers import emit, escaped, printable
from evsched.cli.main import run
from evsched.service.logs import configure
from replays.history.anonymise import NAMES, PATHS, PUBLIC, VALUES
from tests.replays.logs import exported, sealed, story

EVIL = "\x1b[31m\x9b2J\u202e\x7f\nforged line\r\u2028forged line"
"""Escape sequences of both kinds, another direction, and the beginnings of lines."""
SENTENCES = {"message", "raw", "document", "description", "problem", "algorithm"}


def evil(name):
    """Return a name that does harm where it is printed; one that everybody uses stays."""
    return name if not name or name in PUBLIC else name + EVIL


def renamed(value, key=""):
    """Return a document with evil in every name and sentence of it."""
    if isinstance(value, dict):
        return {
            (name + EVIL if name == "vcore" else name): (
                {label: evil(item) for label, item in one.items()}
                if name in VALUES
                else renamed(one, name)
            )
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [renamed(item, key) for item in value]
    if isinstance(value, str) and key in PATHS:
        return ".".join(evil(part) for part in value.split("."))
    if isinstance(value, str) and key in NAMES | SENTENCES | {"leader", "reason"}:
        return evil(value)
    return value


def strangers():
    """Return the steps of a small cluster under names that its own leader would have refused, without digests."""
    numbers, steps = {0: 0}, []
    for time, events, inbox_next in story():
        taken = []
        for event in events:
            if isinstance(event, v.CheckpointRecorded):
                continue
            numbers[event.seq] = len(numbers)
            document = renamed(msgspec.to_builtins(event))
            document |= {"seq": numbers[event.seq], "cause": numbers.get(event.cause, 0)}
            taken.append(msgspec.convert(document, v.AnyEvent))
        if taken:
            steps.append((time, tuple(taken), inbox_next))
    return steps


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return the file of a stranger's log, whose id is no better than its names."""
    folder = tmp_path_factory.mktemp("stranger")
    return str(asyncio.run(exported(sealed(strangers(), "log" + EVIL), folder / "log.jsonl")))


COMMANDS = [
    ["log", "show"],
    ["log", "show", "--type", "PreemptionDecided"],
    ["log", "check"],
    ["log", "check", "--decide"],
    ["status"],
    ["verify"],
    ["at", "end"],
    *(["at", "end", kind] for kind in ("queues", "nodes", "applications", "asks", "allocations", "timers")),
    ["diff", "5", "end"],
    *(["explain", name + EVIL] for name in ("test-1", "test-2", "prod-1", "prod-2", "n1")),
    ["explain", "root.test" + EVIL],
    ["bisect", "waiting > 0"],
    ["audit", "pauses"],
    ["project", "status"],
    ["project", "rebuild"],
    ["project", "run"],
    ["config", "apply", "--wait"],
]  # fmt: skip


def clean(text):
    """Hold that no letter of a text speaks to a terminal, and that no line of it was begun by a stranger."""
    for line in text.split("\n"):
        assert line.isprintable(), repr(line)
        assert not line.lstrip().startswith("forged line"), repr(text)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_lets_a_strangers_text_speak(log, command, form, tmp_path, monkeypatch, capsys):
    """Names, sentences, ids of records and of the log are replaced in text and escaped in JSON, whatever comes of it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code = run([*command, *form, "--log", log])
    said = capsys.readouterr()
    clean(said.out)
    clean(said.err)
    assert code in {0, 1, 2, 3}
    assert said.out or said.err


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]], ids=["text", "json", "csv"])
def test_no_question_to_a_read_model_lets_it_speak(log, form, tmp_path, capsys):
    """All questions that need no further name, and the ones about a queue."""
    db = str(tmp_path / "model.db")
    assert run(["project", "rebuild", "--log", log, "--db", db]) == 0
    capsys.readouterr()
    shown = 0
    for question in (
        "who-preempted",
        "life-of",
        "pauses",
        "config-history",
        "queues-at",
        "waiting",
    ):
        for more in ([], ["--of", "test-1" + EVIL], ["--queue", "root.test" + EVIL]):
            run(["audit", question, *more, *form, "--db", db])
            said = capsys.readouterr()
            if form != ["--csv"]:
                clean(said.out)
            else:
                assert printable(said.out.replace("\n", "")) == said.out.replace("\n", "")
            clean(said.err)
            shown += "forged" in said.out
    assert shown


def test_json_stays_the_same_document(capsys):
    """What is escaped decodes to the same text, also beyond the basic plane."""
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10FFFF, 97)]))
    emit({"name": text})
    out = capsys.readouterr().out
    assert out.rstrip("\n").isprintable()
    assert json.loads(out) == msgspec.json.decode(out) == {"name": text}
    assert (
        escaped('{"a":"b \N{LATIN SMALL LETTER E WITH ACUTE}"}')
        == '{"a":"b \N{LATIN SMALL LETTER E WITH ACUTE}"}'
    )


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_line_of_the_service_is_a_line(form):
    """Values of log lines cannot begin lines of their own, nor speak to a terminal."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        configure(form)
        structlog.get_logger().warning("rejected", name=EVIL, names=[EVIL], sentence=f"a b {EVIL}")
    lines = err.getvalue().splitlines()
    structlog.reset_defaults()
    clean(err.getvalue())
    assert len(lines) == 1


FILES = {
    "queues.yaml": {"partitions": [{"name": "default" + EVIL, "queues": [{"name": "root"}, {"name": EVIL, "b" + EVIL: EVIL}]}]},
    "fine.yaml": {"partitions": [{"name": "default", "queues": [
        {"name": "root", "queues": [{"name": "a"}], "properties": {"x" + EVIL: EVIL}}]}]},
    "ask.yaml": {"ask": "a" + EVIL, "application": "a", "queue": "root." + EVIL, "user": EVIL, "resources": {EVIL: 1}},
    "lines.jsonl": {"type": "NodeRegistered" + EVIL, "node": EVIL},
    "scenario.json": {"name": EVIL, "format": EVIL, "steps": [{EVIL: EVIL}]},
    "trace.csv": {EVIL: EVIL},
    "text.yaml": "a: [" + EVIL,
}  # fmt: skip
"""Files whose names of fields, values and mistakes speak to a terminal."""

CALLS = [
    ["config", "check", "queues.yaml"],
    ["config", "check", "fine.yaml"],
    ["config", "check", "text.yaml"],
    ["config", "diff", "fine.yaml", "queues.yaml"],
    ["config", "apply", "fine.yaml"],
    ["whatif", "--config", "queues.yaml"],
    ["whatif", "--config", "fine.yaml"],
    ["plan", "ask.yaml"],
    ["plan", "text.yaml"],
    ["submit", "lines.jsonl"],
    ["submit", "text.yaml"],
    ["simulate", "scenario.json"],
    ["simulate", "text.yaml"],
    ["import", "openb", "trace.csv", "trace.csv"],
    ["log", "import", "lines.jsonl"],
    ["bisect", "waiting" + EVIL],
    ["log", "show", "--type", EVIL],
    ["at", EVIL],
    ["explain", EVIL],
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the file of a small log."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    assert run(["demo", "--keep", str(path), "--json"]) == 0
    return path


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_no_file_and_no_argument_speaks(call, demo, tmp_path, monkeypatch, capsys):
    """What is wrong in a stranger's file, or in what was pasted, is said without giving its letters to the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name, content in FILES.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    shutil.copyfile(demo, "demo.db")
    logless = call[0] == "simulate" or call[:2] in (["config", "check"], ["config", "diff"])
    code = run([*call, *([] if logless else ["--log", "demo.db"])])
    said = capsys.readouterr()
    clean(said.out)
    clean(said.err)
    assert code in {0, 1, 2, 3}
    assert said.out or said.err

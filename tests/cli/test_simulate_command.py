"""`evsched simulate` and the command line around it: exit codes, where data goes, what is said."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

from evsched.cli.main import COMMANDS, run

SCENARIO = {
    "scenario": 1,
    "name": "one ask",
    "config": {
        "format": "yunikorn",
        "queues": {"partitions": [{"name": "default", "queues": [{"name": "a"}]}]},
    },
    "nodes": [{"name": "n", "capacity": {"vcore": 1000}}],
    "pending": [{"id": "one", "application": "x", "queue": "root.a", "resources": {"vcore": 1000}}],
    "expect": {"bound": [{"ask": "one"}]},
    "observed": {"bound": []},
}


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a scenario file and returns its path."""

    def write(file_name="scenario.json", **more):
        path = tmp_path / file_name
        path.write_text(json.dumps(SCENARIO | more))
        return str(path)

    return write


def test_data_goes_to_stdout_a_line_a_scenario(file, capsys):
    """With --json nothing else is there, so that a program can read it."""
    assert run(["simulate", "--json", file("a.json"), file("b.json", name="two")]) == 0
    out, err = capsys.readouterr()
    documents = [json.loads(line) for line in out.splitlines()]
    assert [document["name"] for document in documents] == ["one ask", "two"]
    assert {"name", "decisions", "pending", "digest"} == set(documents[0])
    assert "2 scenarios: 2 as expected" in err


def test_a_difference_exits_1_and_is_printed(file, capsys):
    """Against what is expected by default, against what was observed when asked for."""
    assert run(["simulate", file(), "--against", "observed"]) == 1
    assert "ask one: bound, expected to wait" in capsys.readouterr().err
    assert run(["simulate", file(expect={"bound": []})]) == 1
    assert "differs" in capsys.readouterr().out


def test_a_broken_file_exits_2_with_the_path_of_the_field(file, capsys):
    """The others are simulated all the same."""
    assert run(["simulate", "--json", file("a.json", nodes=[{"name": "n"}]), file("b.json")]) == 2
    out, err = capsys.readouterr()
    assert "$.nodes[0]" in err
    assert "capacity" in err
    assert "a.json" in err
    assert len(out.splitlines()) == 1


def test_a_folder_stands_for_its_scenario_files(file, tmp_path, capsys):
    """Other files in it are left alone."""
    file("a.json")
    file("b.yaml")
    (tmp_path / "notes.txt").write_text("no scenario")
    assert run(["simulate", "--json", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate"], "FILE"),
        (["simulate", "--colour"], "--colour"),
        (["simulat"], "simulat"),
        (["simulate", "missing.json"], "No such file"),
        (["simulate", "--against", "hope", "x.json"], "hope"),
    ],
)
def test_misuse_exits_2_and_says_what_is_wrong(arguments, sentence, capsys):
    """On the standard error, one line, without a traceback."""
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_people_read_a_table(file, capsys):
    """Without --json: when, what, about whom, why."""
    assert run(["simulate", file()]) == 0
    out = capsys.readouterr().out
    assert "AllocationBound" in out
    assert "one on n" in out
    assert "as expected" in out


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_are_data(option, capsys):
    """They are what was asked for, so they exit 0."""
    assert run([option]) == 0
    assert "evsched" in capsys.readouterr().out


def test_every_command_explains_itself_with_an_example(capsys):
    """The overview names each with a line, and each shows how it is called."""
    run(["--help"])
    overview = capsys.readouterr().out
    for name in COMMANDS:
        assert name in overview
        assert run([name, "--help"]) == 0
        assert f"evsched {name}" in capsys.readouterr().out
        module, _, variable = COMMANDS[name][0].partition(":")
        if variable == "app":
            for inner in getattr(import_module(module), variable):
                if not inner.startswith("-"):
                    assert run([name, inner, "--help"]) == 0
                    assert (
                        f"evsched {name} {inner}" in capsys.readouterr().out.partition("Example")[2]
                    ), inner


def test_simulate_starts_without_brokers_and_databases():
    """It is called often and for small things, so it does not import what only a service needs."""
    code = "import sys; from evsched.cli.main import run; run(['simulate', '--json', 'missing.json']); print(sorted(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("aiokafka", "aiosqlite", "structlog", "asyncio.runners"):
        assert f"'{heavy}'" not in modules, heavy

"""What the pages show works: commands, SQL, programs."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from evsched.cli.main import run
from projections.custom import CustomProjection
from projections.read_model import ReadModel
from tests.docs.pages import DOCS, blocks, commands
from tests.replays.logs import LOG_ID, read, sealed, story

NO = "exit code 1"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return a folder with the log of the demonstration."""
    folder = tmp_path_factory.mktemp("demo")
    assert run(["demo", "--keep", str(folder / "demo.db"), "--json"]) == 0
    return folder


@pytest.mark.parametrize("page", ["debugging-by-replay.md", "auditing.md"])
def test_every_command_of_a_page_runs(demo, page, monkeypatch, tmp_path, capsys):
    """In order, in one folder, on the log of the demonstration; 1 is the answer where the page says so."""
    (tmp_path / "demo.db").write_bytes((demo / "demo.db").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if page == "auditing.md":
        (tmp_path / "queues.yaml").write_bytes(
            (DOCS / "examples" / "queues-next.yaml").read_bytes()
        )
        (tmp_path / "losses").mkdir()
        (tmp_path / "losses" / "losses.sql").write_text(blocks(page, "sql")[-1])
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    refused = {line.strip().partition("    #")[0].strip() for line in lines if NO in line}
    called = 0
    for command in commands(page):
        if command.startswith("evsched demo"):
            continue
        assert run(shlex.split(command)[1:]) == (1 if command in refused else 0), (
            f"{command}: {capsys.readouterr().err}"
        )
        called += 1
    assert called >= 7
    for program in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert "PreemptionDecided" in done.stdout, done.stdout


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return the files of two read models: of a small history with preemption and quota enforcement, and of one with pauses."""
    folder = tmp_path_factory.mktemp("model")
    made = ReadModel(folder / "model.db", LOG_ID)
    for step in read(sealed(story())):
        made.take(step)
    made.commit()
    made.close()
    paused = folder / "pauses.db"
    assert (
        run(
            [
                "project",
                "rebuild",
                "--log",
                str(DOCS / "examples" / "pauses.jsonl"),
                "--db",
                str(paused),
            ]
        )
        == 0
    )
    return folder / "model.db", paused


@pytest.mark.parametrize("sql", blocks("auditing.md", "sql")[:-1])
def test_every_query_of_the_page_finds_something(models, sql):
    """In one of the histories."""
    found = []
    for path in models:
        with closing(sqlite3.connect(path)) as connection:
            found += connection.execute(sql).fetchall()
    assert found


def test_the_projection_of_the_page_works(tmp_path):
    """One victim of each kind."""
    (tmp_path / "losses.sql").write_text(blocks("auditing.md", "sql")[-1])
    projection = CustomProjection(tmp_path, tmp_path / "losses.db", LOG_ID)
    for step in read(sealed(story())):
        projection.take(step)
    projection.commit()
    projection.close()
    with closing(sqlite3.connect(tmp_path / "losses.db")) as connection:
        assert connection.execute("SELECT queue, day, lost FROM losses").fetchall()[0][:2] == (
            "root.test",
            "2026-01-01",
        )

"""The rules of the tests themselves: absent scenarios are silent at a user's and loud in CI, and no broker outlives its tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
A_TEST = """
import pytest

@pytest.mark.cases("one")
def test_case(shared_case):
    assert shared_case.name == "a.json"

def test_folder(shared_cases):
    assert shared_cases.is_dir()

def test_other():
    pass
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with the real conftest and three tests, two of which want the folder beside it."""
    root = tmp_path / "clone"
    for name in ("conftest.py", "examples.py", "kafka"):
        source, target = TESTS / name, root / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    (root / "tests" / "test_it.py").write_text(A_TEST)
    shutil.copy(TESTS.parent / "pyproject.toml", root)
    return root


def run(clone: Path, ci: str) -> subprocess.CompletedProcess[str]:
    """Run the clone's tests in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(
        command,
        cwd=clone,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


def test_absent_scenarios_are_not_collected(clone: Path) -> None:
    """A user's clone runs the other tests and skips nothing."""
    done = run(clone, ci="")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 2 deselected" in done.stdout


def test_absent_scenarios_fail_in_ci(clone: Path) -> None:
    """In CI the run is refused and the folder is named."""
    done = run(clone, ci="true")
    assert done.returncode != 0
    assert str(clone.parent / "shared") in done.stdout + done.stderr


def test_scenarios_are_one_test_each(clone: Path) -> None:
    """Where the folder is there, each file is a test."""
    cases = clone.parent / "shared" / "cases" / "one"
    cases.mkdir(parents=True)
    (cases / "a.json").write_text("{}")
    done = run(clone, ci="true")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_an_empty_folder_of_scenarios_is_an_error(clone: Path) -> None:
    """A marker with a wrong name does not pass for want of files."""
    (clone.parent / "shared" / "cases").mkdir(parents=True)
    done = run(clone, ci="")
    assert done.returncode != 0
    assert "no scenario in one" in done.stdout + done.stderr


def test_what_a_guard_runs_ends_with_whoever_wanted_it() -> None:
    """When the pipe's other end is gone, however that came about, the command is killed."""
    program = "import sys, time; print('up', flush=True); time.sleep(600)"
    guard = [sys.executable, str(TESTS / "kafka" / "guard.py"), sys.executable, "-c", program]
    with subprocess.Popen(
        guard, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout.read() == b""  # the command held its end until it was gone
        assert process.wait(10) != 0

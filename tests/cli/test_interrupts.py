"""Ctrl-C ends `evsched` without a traceback, whenever it comes: while it loads, while it works, and while it ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import evsched
from evsched.cli.main import run
from evsched.cli.project import _until_told
from evsched.cli.run import _serve

ROOT = Path(evsched.__file__).parents[1]
# A shell lets what it starts in the background ignore the signal, and so would the test's own
# child.
HEED = "import atexit, os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
START = "from evsched.__main__ import main; main()"
SAID = "evsched: interrupted\n"
ODD = """
import asyncio, os, signal, time

def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)

class Freed:
    __del__ = interrupt

def working():
    interrupt()
    time.sleep(20)

def freeing():
    Freed()
    time.sleep(20)

async def awaiting():
    interrupt()
    await asyncio.sleep(20)

async def stepping():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    def callback():
        interrupt()
        done.set_result(None)
    loop.call_soon(callback)
    await done
    await asyncio.sleep(20)

async def stubborn():
    interrupt()
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        interrupt()
        time.sleep(20)
"""


def process(code: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run some Python to its end, with a folder to find modules in."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
        "XDG_DATA_HOME": str(folder),
    }
    command = [sys.executable, "-c", f"{HEED}\n{code}", *arguments]
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    "module", ["evsched.cli", "msgspec", "cyclopts", "evsched.cli.status", "asyncio.runners"]
)
def test_while_it_loads(module, tmp_path):
    """Nothing is in need of order yet, so it ends at once and says nothing."""
    finder = f"""
class Finder:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
"""
    done = process(finder + START, "status", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")


def test_while_it_ends(tmp_path):
    """What it was asked for is done and said; nothing is in need of order any more."""
    late = "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    done = process(late + START, "--version", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("command", ["working", "freeing", "awaiting", "stepping", "stubborn"])
def test_while_it_works(command, tmp_path):
    """In order, with a word: also where Python itself would only warn, in the middle of a step, and at the second time."""
    (tmp_path / "odd.py").write_text(ODD)
    odd = f"from evsched.cli.main import COMMANDS; COMMANDS['status'] = ('odd:{command}', 'Odd.')\n"
    done = process(odd + START, "status", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, SAID)


def test_where_it_is_ignored(tmp_path):
    """As by a shell for what runs in the background, it stays so."""
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN); atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    done = process(ignoring + START, "--version", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_who_calls_from_python_keeps_the_handlers(capsys):
    """Neither importing nor running the command line changes one."""
    before = (
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        sys.unraisablehook,
    )
    import evsched.__main__  # noqa: PLC0415, F401 - importing it is what is tested

    assert run(["--version"]) == run(["simulate", "--help"]) == 0
    assert before == (
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        sys.unraisablehook,
    )


class Served:
    """A service, or a follower, that is told to stop at once, and hears of it."""

    async def run(self, *_: object) -> None:
        """Wait to be told."""
        self.told = asyncio.Event()
        os.kill(os.getpid(), signal.SIGINT)
        await self.told.wait()

    keep_up = run

    def stop(self) -> None:
        """Be told."""
        self.told.set()


@pytest.mark.parametrize(
    "serve", [_serve, partial(_until_told, reader=None, ready="")], ids=["run", "project run"]
)
def test_who_has_served_leaves_signals_as_they_were(serve):
    """While streams are being closed, or all is begun anew, Ctrl-C is not Python's own again, which comes anywhere."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    async def served() -> list[object]:
        before = [signal.getsignal(number) for number in numbers]
        await serve(Served())
        return [
            one is other for one, other in zip(before, map(signal.getsignal, numbers), strict=True)
        ]

    assert asyncio.run(served()) == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["status", "--log", "demo.db"], ["--help"], ["run", "--log", "demo.db"]]
)
def test_at_any_instant(arguments, tmp_path):
    """Real processes: never a traceback, and the code of Ctrl-C or of work that was done before it came.

    Only Python itself may show one, when it was not through with its own start: then there is no
    function of ours in it.
    """
    assert run(["demo", "--keep", str(tmp_path / "demo.db"), "--json"]) == 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path)}
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for delay in range(0, 401, 40):
            command = [sys.executable, "-m", "evsched", *arguments]
            with subprocess.Popen(
                command,
                env=environment,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as started:
                time.sleep(delay / 1000)
                started.send_signal(signal.SIGINT)
                _, said = started.communicate(timeout=30)
            frames = [line for line in said.splitlines() if 'File "<frozen ' not in line]
            signs = (", in main", os.path.join("evsched", "cli"))  # noqa: PTH118 - a piece of a path
            ours = [line for line in frames if any(sign in line for sign in signs)]
            assert not ours, f"{delay} ms: {said}"
            # A slow machine is still in Python's own start after 40 ms, and that ends with 1 at times.
            codes = {1, -signal.SIGINT} if "Traceback" in said else {0, 130, -signal.SIGINT}
            assert started.returncode in codes, f"{delay} ms: {said}"
    finally:
        signal.signal(signal.SIGINT, heeded)

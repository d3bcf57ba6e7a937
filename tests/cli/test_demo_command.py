"""`evsched demo`: the story comes out as it is told."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
import urllib.request

from evsched.cli.main import run
from tests.service.running import EVSCHED


def test_the_story_holds(capsys):
    """Preemption after the delay, the timer at 60 s although the process was killed, and the same digest from the log."""
    assert run(["demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["holds"]
    assert document["digest"] == document["rebuilt_digest"]
    found = [(one["at"], one["type"]) for one in document["decisions"]]
    assert (40, "PreemptionDecided") in found
    assert (100, "QuotaPreemptionScheduled") in found
    assert (160, "QuotaPreemptionDecided") in found
    bound = {
        one["ask"]: one["at"] for one in document["decisions"] if one["type"] == "AllocationBound"
    }
    assert (bound["research-1"], bound["research-2"]) == (45, 45)


def test_its_log_can_be_kept_and_read(tmp_path, capsys):
    """Two terms, of two processes; nothing differs when all is decided again; an existing file is not touched."""
    path = tmp_path / "demo.db"
    assert run(["demo", "--keep", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "the two are the same" in out
    assert "killed with SIGKILL" in err
    url = f"sqlite:///{path}"
    assert run(["log", "show", "--log", url, "--type", "LeaderStarted", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["log", "check", "--log", url, "--decide"]) == 0
    assert run(["demo", "--keep", str(path)]) == 2


def test_whoever_sits_at_a_terminal_gets_the_story_in_a_browser(tmp_path):
    """It ends with an address and serves there until Ctrl-C; elsewhere, or with --no-serve, it ends by itself."""
    ours, theirs = pty.openpty()
    command = [str(EVSCHED), "demo"]
    errors = tmp_path / "errors"
    with (
        errors.open("wb") as file,
        subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=file) as process,
    ):
        os.close(theirs)
        drain = threading.Thread(target=_drained, args=(ours,))
        drain.start()
        try:
            found = _until(lambda: re.search(r"(http://\S+/) serves", errors.read_text()), process)
            address = found[1]
            _until(lambda: _answers(f"{address}readyz"), process)
            with urllib.request.urlopen(f"{address}v1/at/latest/queues") as page:
                assert json.load(page)["total"] == 3
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0, errors.read_text()
        finally:
            process.kill()
            process.wait()
            drain.join()
            os.close(ours)


def _drained(terminal):
    """Read what is shown until the other end is gone."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def _until(holds, process):
    """Return what holds, once it does."""
    for _ in range(2000):
        found = holds()
        if found:
            return found
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError


def _answers(address):
    try:
        with urllib.request.urlopen(address) as found:
            return found.status == 200
    except OSError:
        return False

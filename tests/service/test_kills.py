"""Real processes over a SQLite file, killed with SIGKILL: no acknowledged decision is lost or doubled, and timers go on."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from events.streams import open_streams
from events.vocabulary import LeaderStarted
from tests.service.histories import check
from tests.service.running import digest

KILLS = 80
"""Leaders that are killed, at least."""
LED = 25
"""How many of them, at least, had acknowledged a step before."""
ROOT = Path(__file__).resolve().parents[2]


def acknowledged(file: Path) -> list[str]:
    """Return the hashes of the steps that leaders believed to be in the log; a line that a kill cut short does not count."""
    found = []
    for line in file.read_text().split("\n")[:-1]:
        try:
            said = json.loads(line)
        except ValueError:
            assert "died" not in line, line
            continue
        if said["event"] == "step":
            found.append(said["hash"])
        assert said["level"] != "critical", line
    return found


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1, 2])
async def test_leaders_killed_at_any_instant_lose_nothing(seed, tmp_path):
    """Scores of leaders in processes of their own die while others propose; what one of them acknowledged is in the log."""
    command = [
        sys.executable,
        "-m",
        "tests.service.slaughter",
        str(tmp_path),
        str(KILLS),
        str(LED),
        str(seed),
    ]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=170
    )
    assert done.returncode == 0, done.stderr
    url = f"sqlite:///{tmp_path / 'log.db'}"
    hashes = acknowledged(tmp_path / "acknowledged")
    async with open_streams(url) as streams:
        history = await check(streams, hashes)
        assert history.steps[-1].head.inbox_next == await streams.inbox.end()
    assert len(history.only(LeaderStarted)) >= LED
    assert len(hashes) >= LED
    assert digest(url, 1) == digest(url, 2) == history.digest

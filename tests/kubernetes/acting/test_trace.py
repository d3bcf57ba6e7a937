"""A part of a recorded cluster on a real control plane, with kills; `trace.py` runs it in full."""

import pytest

from tests.kubernetes.acting.trace import Settings, TraceRun

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.own_control_plane,
    pytest.mark.timeout(600),
]


async def test_everything_runs_where_the_log_says_whoever_was_killed(shared_folder, tmp_path):
    """No pod was bound or evicted without a decision or twice, and deciding the log again finds the same."""
    settings = Settings(folder=shared_folder / "traces", nodes=8, pods=60, kills=1, restarts=1)
    report = await TraceRun(settings, tmp_path).run()
    assert report.holds, report
    assert report.kills == {"agent": 1, "leader": 1, "server": 1}
    assert report.bound > 0
    assert report.evicted > 0

"""Recorded logs of every version decide the same and end in the same state."""

from __future__ import annotations

import pytest

from events.streams import open_log
from replays.checking.chain_check import check_log
from replays.checking.verify import verify_log
from replays.history.rebuild import History
from replays.recordings import INDEX, recordings, versions

RECORDED = [(folder, one) for folder in versions() for one in recordings(folder)]
SEEDS = {
    "cross_queue_preemption",
    "kueue_preemption",
    "preemption_design",
    "priority_scheduling",
    "quota_enforcement",
}


@pytest.mark.parametrize(
    ("folder", "recording"), RECORDED, ids=[f"{folder.name}/{one.file}" for folder, one in RECORDED]
)
async def test_a_recording_verifies_and_ends_in_its_state(folder, recording):
    """Every hash, every decision, and the digest of the end.

    A difference is either a defect or a change that users must hear of.
    """
    log = open_log(str(folder / recording.file))
    report = await check_log(log)
    assert (report.events, report.hash) == (recording.events, recording.hash)
    outcome = await verify_log(History(log))
    assert outcome.damage is None
    assert outcome.difference is None
    assert report.digest == recording.digest


@pytest.mark.parametrize("folder", versions(), ids=[folder.name for folder in versions()])
def test_every_file_is_named_with_a_sentence_and_every_seed_is_there(folder):
    """Nothing lies in the folder that the index does not name."""
    named = recordings(folder)
    assert {path.name for path in folder.iterdir()} == {one.file for one in named} | {INDEX}
    assert {one.seed for one in named} >= SEEDS
    assert all(one.shows for one in named)

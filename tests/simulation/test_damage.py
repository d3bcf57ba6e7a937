"""Logs that were damaged at the broker: noticed by every machine, or led again when that is what was wanted."""

import pytest

from tests.simulation.damage import Edited, Restored, TailLost
from tests.simulation.judging import judge
from tests.simulation.story import run

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unclean_change_of_leader_is_noticed(seed):
    """Records that a heartbeat knew are gone: nothing more is acknowledged, and every machine gives up."""
    assert len(run(seed, TailLost).failures) >= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_an_edited_record_is_noticed(seed):
    """One digit of an old record is another one: no machine that reads it goes on."""
    assert len(run(seed, Edited).failures) >= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restored_log_is_led_whatever_snapshots_know(seed):
    """Snapshots that know more than the log are passed over; what is written then holds against every checker."""
    judge(run(seed, Restored))

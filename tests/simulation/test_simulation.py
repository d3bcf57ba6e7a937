"""The whole system from a seed: the real code of the service over a simulated broker, disks, clocks and lines."""

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from itertools import pairwise

import pytest

from tests.simulation.judging import judge
from tests.simulation.story import FAULTS, run

SEEDS = 300
told = cache(run)
"""For what only looks at stories."""
TWICE = (0, 5, 11)
"""A story of the tenants with clocks that jump, one without, and one of an enemy."""
PIECES = (12, 13, 18)
"""Stories with large steps in small frames."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_story_holds_against_every_checker(seed):
    """Whatever happens to machines, lines, disks and clocks, what must be true is true."""
    judge(run(seed))


@pytest.mark.parametrize("seed", TWICE)
def test_one_seed_is_one_log_byte_for_byte(seed):
    """A story that shows something can be told again."""
    first, second = run(seed), run(seed)
    assert first.log == second.log
    assert first == second


def test_the_seed_of_hashes_changes_nothing():
    """No order of a set or of a hash table reaches the log."""
    program = (
        "import hashlib; from tests.simulation.story import run;"
        "print(hashlib.sha256(b'\\n'.join(run(3).log)).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for number in ("1", "2")
    }
    assert said == {hashlib.sha256(b"\n".join(run(3).log)).hexdigest()}


def test_the_stories_are_eventful():
    """Every kind of fault happens, leaders change, both kinds of traffic come, timers fire and victims are evicted."""
    kinds, terms, traffic, events = set(), 0, set(), set()
    for seed in range(12):
        outcome = told(seed)
        kinds |= outcome.kinds.keys()
        steps = judge(outcome)
        terms += steps[-1].term
        traffic.add(outcome.tenants)
        events |= {event["type"] for step in steps for event in step.events}
    assert kinds == {fault.__name__.strip("_") for fault in FAULTS}
    assert terms > 36
    assert traffic == {True, False}
    assert events >= {
        "QuotaPreemptionDecided",
        "PreemptionDecided",
        "RulesAdopted",
        "CheckpointRecorded",
        "InputRejected",
    }


def test_steps_are_cut_into_frames_and_left_unfinished():
    """Some steps have several frames, some of those events in pieces, and some lack their end."""
    whole = pieces = unfinished = 0
    for seed in (*range(8), *PIECES):
        frames = [json.loads(data) for data in told(seed).log]
        for one, following in pairwise(frames):
            begun = not one.get("last", True)
            whole += begun and following["term"] == one["term"]
            unfinished += begun and following["term"] > one["term"]
            pieces += bool(one.get("fragment"))
    assert whole > 20
    assert pieces > 3
    assert unfinished


def test_the_log_of_a_story_is_json():
    """A checker needs nothing of ours to read it."""
    assert all(json.loads(data)["log_id"] for data in told(1).log)

"""Nothing depends on the seed of Python's hashes: two processes write the same frames, byte by byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from events.frame import decode_frame
from events.vocabulary import PreemptionDecided, QuotaPreemptionDecided
from tests.core.seeded import frames

ROOT = Path(__file__).parents[2]


def digests(seed: str, count: int) -> list[str]:
    """Return the digests that a process with this PYTHONHASHSEED finds."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.core.seeded", str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


@pytest.mark.parametrize(("one", "other"), [("0", "1"), ("7", "4242")])
def test_two_hash_seeds_give_the_same_frames(one, other):
    """Sixty histories of preemptions, quotas, lost nodes and refused proposals."""
    first = digests(one, 60)
    assert len(first) == 60
    assert first == digests(other, 60)


def test_the_histories_hold_what_they_are_to_test():
    """Preemptions for guarantees and for maxima happen in them."""
    kinds = {
        type(event)
        for seed in range(60)
        for data in frames(seed)
        for event in decode_frame(data).events
    }
    assert {PreemptionDecided, QuotaPreemptionDecided} <= kinds

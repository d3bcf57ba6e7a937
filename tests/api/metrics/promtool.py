"""Prometheus' own tool, for tests that need it.

It is that of the system, or the one that EVSCHED_TEST_PROMTOOL names; where there is neither, that of
the distribution's package is unpacked beside the tests' other tools, without being installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

FETCHED = Path(__file__).resolve().parents[3] / ".promtool"


@cache
def promtool():
    """Return the path of promtool; the test fails and says what is missing where there is none."""
    known = os.environ.get("EVSCHED_TEST_PROMTOOL") or shutil.which("promtool")
    if known:
        return known
    unpacked = FETCHED / "usr" / "bin" / "promtool"
    if not unpacked.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
        FETCHED.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=FETCHED, check=False)
        for package in FETCHED.glob("prometheus_*.deb"):
            subprocess.run(["dpkg", "-x", package, FETCHED], check=False)
    if not unpacked.exists():
        pytest.fail(
            "promtool is missing: install the package prometheus, or name it in EVSCHED_TEST_PROMTOOL"
        )
    return str(unpacked)

"""Make the recordings of this version anew: ``python -m replays.recordings [SCENARIOS]``, in a clone of the repository."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from replays.recordings import FOLDER
from replays.recordings.making import make


def main() -> int:
    """Record the scenarios of a folder (``tests/scenarios`` of this repository) as the present version."""
    scenarios = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER.parents[1] / "tests" / "scenarios"
    )
    if not scenarios.is_dir():
        sys.stderr.write(f"{scenarios}: no such folder, expected scenario files\n")
        return 2
    target = FOLDER / version("evsched")
    made = make(scenarios, target)
    sys.stdout.write(
        f"{target}: {len(made)} recordings, {sum(one.events for one in made)} events\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""``python -m tests.simulation SEEDS [FIRST]``: tell so many stories and print what was found."""

from __future__ import annotations

import sys
from collections import Counter
from time import perf_counter

from tests.simulation.judging import judge
from tests.simulation.story import run


def main(seeds: int, first: int) -> int:
    """Tell stories; return how many showed something."""
    begun, bad = perf_counter(), 0
    seen: Counter[str] = Counter()
    for seed in range(first, first + seeds):
        try:
            outcome = run(seed)
            steps = judge(outcome)
        except Exception as error:  # noqa: BLE001 - the next story is told all the same
            bad += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            continue
        seen.update(outcome.kinds)
        seen.update(steps=len(steps), terms=steps[-1].term, proposals=len(outcome.inbox))
    seconds = perf_counter() - begun
    told = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"{seeds} stories in {seconds:.0f} s, {bad} with findings; {told}")
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))

"""How long one victim search takes in Kueue cohorts of many sizes.

usage: python -m benchmarks.kueue [FOLDER] [--repeat N]

Reads every scenario (``*.json.gz``) of a folder with perf scenarios, brings its state up, and searches the victims of its ask again
and again on the ready state: the first search builds the index of candidates, which is told of every change from then on, so
that the first one is shown by itself. The victims are compared with those that the file has.
"""

from __future__ import annotations

import argparse
import gc
import gzip
from pathlib import Path
from statistics import median
from time import perf_counter_ns

from events.vocabulary import Proposal
from evsched.core.engine import Engine
from evsched.core.kueue.fixed import parts_of, requirements
from evsched.core.kueue.model import quota_of
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.trial import Trial
from replays.scenario import Scenario, parse_scenario
from replays.staging import Staging

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "perf" / "kueue"
TARGET_MS = {"fail": 100.0, "few": 10.0, "many": 10.0}
SMALL = "0010x010"
SMALL_TARGET_MS = 0.5


def ready(scenario: Scenario) -> Engine:
    """Return an engine that has taken in everything of second 0 and decided nothing."""
    engine = Engine()
    proposals = [Proposal(input=one) for one in Staging(scenario).beginning()]
    engine.step(scenario.start_ms, proposals, decide=False)
    return engine


def search(engine: Engine) -> tuple[float, list[str]]:
    """Search victims for the only ask; return milliseconds and the ids of the victims, sorted."""
    state = engine.state
    (ask,) = state.asks.values()
    queue = quota_of(state.queues[ask.queue])
    parts = parts_of(state, ask)
    assert parts is not None
    started = perf_counter_ns()
    trial = Trial()
    request, contested = requirements(state, trial, queue, parts)
    assert request is not None
    targets = Searcher(state).search(trial, ask, queue, request, contested)
    return (perf_counter_ns() - started) / 1e6, sorted(target.allocation.id for target in targets)


def expected(scenario: Scenario) -> list[str]:
    """Return the ids of the victims that the file has, sorted."""
    preemptions = (scenario.observed.preemptions if scenario.observed is not None else None) or ()
    return sorted(victim if isinstance(victim, str) else victim.id for one in preemptions for victim in one.victims)


def main() -> int:
    """Print a row for every file; return 1 when victims differ or a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    missed = 0
    print(f"{'file':<28}{'first ms':>10}{'median ms':>11}{'worst ms':>10}{'target':>8}  victims")
    for path in sorted(options.folder.glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        scenario = parse_scenario(gzip.decompress(path.read_bytes()), name)
        engine = ready(scenario)
        gc.collect()
        gc.freeze()
        first, victims = search(engine)
        times = [search(engine)[0] for _ in range(options.repeat)]
        gc.unfreeze()
        target = SMALL_TARGET_MS if name.endswith(SMALL) and "fail" not in name else TARGET_MS[name.split("-")[1]]
        same = victims == expected(scenario)
        missed += not same or median(times) > target
        print(
            f"{name:<28}{first:>10.2f}{median(times):>11.3f}{max(times):>10.3f}{target:>8}  "
            f"{len(victims)} {'as recorded' if same else 'DIFFER'}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())

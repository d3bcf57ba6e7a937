"""How well forecasts hold on a real trace: python -m benchmarks.openb.backtest NODES.csv PODS.csv.

The pods of the openb trace run through evsched on a virtual clock, on so few of its nodes that some
have to wait. Asks that waited in the last two weeks are then forecast from the moment they came,
with what the log said until then, and compared with their starts. Prints one JSON document; the band
should hold 75 to 85 %.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from benchmarks.openb.recorded import recorded, smaller
from benchmarks.openb.trace import read_nodes, read_pods
from evsched.core.engine import Engine
from replays.forecasting.backtest import Backtest, chosen, held
from replays.forecasting.past import Learning
from replays.history.rebuild import History, apply_step

DAY_MS = 86_400_000
DAYS = 14
SEED = 1


async def backtest(given: argparse.Namespace) -> dict[str, object]:
    """Record the trace, forecast, compare; return the figures."""
    nodes, pods = smaller(read_nodes(given.nodes), given.cards), read_pods(given.pods)
    history = History(await recorded(nodes, pods))
    engine = Engine()
    learnt = Learning(engine.state)
    async for step in history.steps():
        apply_step(engine, step)
        learnt.take(step, engine.state)
    last = max(one.submitted for one in learnt.waited())
    asks = chosen(learnt.waited(), last - DAYS * DAY_MS, given.asks)
    test = Backtest(given.runs, given.hours * 3_600_000, SEED, arrivals=True)

    async def told() -> None:
        print(".", end="", file=sys.stderr, flush=True)

    trials = await test.trials(history, learnt, asks, told)
    found = held(trials, given.runs)
    waits = sorted(
        one.started - one.submitted for one in learnt.waited() if one.started is not None
    )
    return {
        "nodes": len(nodes),
        "pods": len(pods),
        "waited": len(waits),
        "median_wait_ms": waits[len(waits) // 2],
        "held": msgspec.to_builtins(found),
        "percent": found.percent,
    }


def main() -> int:
    """Run it as the command line says; 1 when the band holds less than 75 % or more than 85 %."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nodes", type=Path)
    parser.add_argument("pods", type=Path)
    parser.add_argument("--cards", type=int, default=40, help="how many GPUs are there, about")
    parser.add_argument("--asks", type=int, default=100, help="how many are forecast")
    parser.add_argument("--runs", type=int, default=20, help="of each forecast")
    parser.add_argument("--hours", type=int, default=24, help="horizon of each run")
    found = asyncio.run(backtest(parser.parse_args()))
    print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    percent = found["percent"]
    return 0 if isinstance(percent, int) and 75 <= percent <= 85 else 1


if __name__ == "__main__":
    raise SystemExit(main())

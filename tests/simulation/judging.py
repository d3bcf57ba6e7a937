"""All checkers, one after the other."""

from __future__ import annotations

from tests.simulation.checkers import (
    answers,
    catching_up,
    liveness,
    memory,
    models,
    tasks,
    timers,
    truth,
)
from tests.simulation.story import Outcome
from tests.simulation.traffic import WEB_CORES

SETTLED_MS = 5000
LOOKED_MS = 10_000


def judge(outcome: Outcome) -> list[truth.Step]:
    """Hold an outcome against everything that must be true; return the steps that count.

    Raises:
        Found: Something is not.
    """
    steps = truth.follow(outcome.log)
    truth.check(steps, outcome.acknowledged)
    liveness.check_leader(steps, outcome, SETTLED_MS)
    answers.check(steps, outcome.inbox, outcome.told)
    catching_up.check(steps, outcome.backlog)
    ledger = tasks.Ledger(rooms=outcome.tenants)
    ledger.take(steps)
    end = outcome.calm + LOOKED_MS
    timers.check(steps, outcome.arrived, end)
    timers.check_pace(steps, outcome.arrived, outcome.calm)
    liveness.check_agreement(steps, ledger, outcome)
    if outcome.tenants:
        now = steps[-1].time + end - outcome.arrived[steps[-1].place]
        liveness.check_asks(ledger, now, WEB_CORES)
    memory.check(outcome)
    if outcome.model is not None:
        models.check(steps, tasks.Ledger(rooms=outcome.tenants), outcome.model)
    return steps

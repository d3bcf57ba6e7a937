"""Whatever follows tasks through a log follows every event that begins or ends one.

The tables that say what is done about an event lie in many rooms. A type that is missing in one of
them raises nothing: its tasks would just be lost there.
"""

from collections.abc import Set as AbstractSet

import pytest

from events import vocabulary as v
from evsched.agents.emulated.agent import Agent
from evsched.agents.kubernetes import logged
from evsched.agents.kubernetes.acting import orders
from evsched.api.metrics import fold
from evsched.api.yunikorn import records
from evsched.core.engine import Engine
from projections import rows
from tests.core.hostile import Hostile
from tests.simulation.checkers.tasks import Ledger

TASKS = {
    v.AskSubmitted,
    v.AskWithdrawn,
    v.AllocationBound,
    v.BindingObserved,
    v.AllocationRestored,
    v.AllocationReleased,
}
"""The types that begin or end an ask or an allocation."""


def names(types: object) -> set[str]:
    """Return the names of the types that a table has a line for."""
    assert isinstance(types, dict)
    return {key if isinstance(key, str) else key.__name__ for key in types}


@pytest.mark.parametrize(
    "table",
    [
        names(rows._HANDLERS),
        names(records._RECORDS),
        names(fold._BEFORE) | names(fold._AFTER),
        names(logged._FOLDS),
        names(orders._HANDLERS),
        names(Agent(grace_ms=0)._handlers),
        names(Ledger(rooms=True)._takes),
    ],
    ids=["read model", "YuniKorn's events", "metrics", "recorder", "actor", "emulator", "checker"],
)
def test_no_table_lacks_an_event_that_begins_or_ends_a_task(table: AbstractSet[str]) -> None:
    """The read model, the interfaces, the agents and the checkers know all of them."""
    assert {one.__name__ for one in TASKS} <= table


def test_no_other_event_begins_or_ends_a_task() -> None:
    """In hostile histories of both families, what changes who waits and who runs is in the list."""
    found: set[type] = set()
    for seed in range(12):
        hostile, leader, follower, time = Hostile(seed), Engine(), Engine(), 0
        for _ in range(25):
            time = max(time, hostile.pause(time, leader.next_due()))
            for event in leader.step(time, hostile.proposals(leader.state)):
                before = set(follower.state.asks), set(follower.state.allocations)
                follower.apply(event, time)
                if before != (set(follower.state.asks), set(follower.state.allocations)):
                    found.add(type(event))
    assert found == TASKS

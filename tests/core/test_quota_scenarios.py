"""Quota enforcement on the random scenarios, judged by the seed: what another scheduler did there is often not lawful."""

from __future__ import annotations

from unittest import mock

from evsched.core import snapshot
from evsched.core.quota import plan as quota_plan
from replays.scenarios.scenario import read_scenario
from replays.scenarios.simulate import Simulation
from tests.core.quota_clusters import judge


def enforce(path):
    """Run a scenario; return its decisions about quotas, and for every plan the state, queue, target and victims."""
    plans = []

    class Kept(quota_plan.QuotaPlan):
        def __init__(self, state, queue, target):
            super().__init__(state, queue, target)
            data = snapshot.encode(state)
            plans.append(
                (
                    snapshot.decode(data, state.time),
                    queue.path,
                    target,
                    [one.id for one in self.victims()],
                )
            )

    with mock.patch.object(quota_plan, "QuotaPlan", Kept):
        document = Simulation(read_scenario(path)).run()
    return [
        one for one in document["decisions"] if one["type"].startswith("QuotaPreemption")
    ], plans


def test_every_enforcement_is_lawful(shared_cases):
    """No guarantee broken, no victim in vain, nobody left who could lawfully go; every scenario has one that was due."""
    files = sorted((shared_cases / "yunikorn" / "random").glob("3*.json"))
    assert files
    for path in files:
        decided, plans = enforce(path)
        assert any("due" in one for one in decided), path.name
        for state, queue, target, names in plans:
            judge(state, state.queues[queue], target, names)

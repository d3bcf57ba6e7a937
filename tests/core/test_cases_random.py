"""The scenario files beside the repository, judged by the oracle: every decision lawful, and nobody left waiting in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from events import vocabulary as v
from evsched.core.engine import Engine
from replays.scenarios.compare import differences
from replays.scenarios.scenario import read_scenario
from replays.scenarios.simulate import Simulation
from tests.core.oracle import World

CROSS_NODE = "reclaim-from-a-sibling-basic-01"
"""It expects a victim on node-2 and the reservation of node-1. The seed (preemption_design,
"Preemption Logic"): "Cross node preemption is not supported. Any set of victims that get preempted
must run on the same node. … After choosing a group and indirectly a node, the node is reserved for
the pod." So the victim's own node is reserved."""


def judge(steps) -> Engine:
    """Replay what was decided and hold every preemption against the oracle; return the engine at the end."""
    engine = Engine()
    for time, events in steps:
        for event in events:
            if isinstance(event, v.PreemptionDecided) and event.algorithm == "guarantee":
                engine.state.time = time
                world = World(engine.state)
                ask = world.asks[event.ask]
                victims = [world.allocations[victim.id] for victim in event.victims]
                assert world.broken(ask, event.node, victims) == [], event
                if not all(victim.allow_preemption for victim in victims):
                    spared = [
                        plan
                        for _, plan in world.plans(ask)
                        if all(victim.allow_preemption for victim in plan)
                    ]
                    assert spared == [], f"law1: {event}"
                best = world.best(ask)
                assert (event.node, tuple(sorted(victim.id for victim in event.victims))) == (
                    best.node,
                    best.victims,
                )
            if isinstance(event, v.PreemptionDecided) and event.algorithm == "required-node":
                engine.state.time = time
                world = World(engine.state)
                victims = [victim.id for victim in event.victims]
                assert world.broken_required(world.asks[event.ask], event.node, victims) == [], (
                    event
                )
            engine.apply(event, time)
    return engine


def check_nobody_waits(engine: Engine) -> None:
    """Hold those that still wait, are old enough and have not preempted yet, against the oracle."""
    world = World(engine.state)
    for ask in world.asks.values():
        old = ask.created + world.settings[ask.queue].preemption_delay_ms <= engine.state.time
        if not ask.may_preempt or ask.id in world.in_flight or ask.preempted:
            continue
        if ask.required_node is not None:
            assert world.required_plans(ask) == []
        elif old:
            assert list(world.plans(ask)) == [], f"{ask.id} waits"


@pytest.mark.cases("yunikorn/random", "yunikorn/designed", "yunikorn/observed")
def test_every_decision_is_lawful_and_nobody_waits_in_vain(shared_case: Path):
    """No law is broken, no victim is superfluous, the plan is the cheapest, and whoever could have one has it."""
    simulation = Simulation(read_scenario(shared_case))
    simulation.run()
    check_nobody_waits(judge(simulation.steps))


@pytest.mark.cases("yunikorn/designed", "yunikorn/observed")
def test_the_expectation_holds(shared_case: Path):
    """What the file expects comes out."""
    scenario = read_scenario(shared_case)
    found = differences(scenario.expect, Simulation(scenario).run())
    if shared_case.stem == CROSS_NODE:
        assert found == ["ask alloc-3: preempts on node node-2, expected node-1"]
    else:
        assert found == []

"""Preemption for guarantees against the naive oracle, and the rules of the cycle."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.reducer import apply
from evsched.core.rules import RULES
from evsched.core.step import Step
from evsched.core.yunikorn import guarantee
from evsched.core.yunikorn.cost import named
from evsched.core.yunikorn.guarantee import Plan
from tests.core.clusters import NOW, built, clusters
from tests.core.oracle import World
from tests.core.wide import wide_cluster
from tests.examples import examples


def decide(state, ask, plan):
    """Write a plan down, as the cycle does."""
    victims = tuple(
        v.Victim(id=victim.id, queue=victim.queue, reason="law5") for victim in plan.victims
    )
    Step(state, NOW, apply).emit(
        v.PreemptionDecided,
        cause=ask.seq,
        ask=ask.id,
        node=plan.node,
        victims=victims,
        algorithm="guarantee",
    )


@given(clusters())
@examples(250)
def test_the_search_finds_what_the_oracle_finds(inputs):
    """A plan is found exactly when a lawful one exists, and it is the very plan that costs least; earlier decisions count."""
    state = built(inputs).state
    for ask in list(state.asks.values()):
        if ask.required_node is not None:
            continue
        world = World(state)
        found = guarantee.find_plan(state, named("default", RULES[1]), ask)
        wanted = world.best(ask)
        if not isinstance(found, Plan):
            event("no plan: " + found.code)
            assert wanted is None, found
            assert not found.cut
            continue
        assert world.broken(ask, found.node, found.victims) == []
        assert wanted is not None
        assert (found.node, tuple(sorted(victim.id for victim in found.victims))) == (
            wanted.node,
            wanted.victims,
        )
        event(f"victims: {len(found.victims)}")
        decide(state, ask, found)


@given(clusters(most=6))
@examples(150)
def test_dropping_the_index_changes_no_decision(inputs):
    """The index kept up to date, one built anew and one after a restart lead to the same plan."""
    state = built(inputs).state
    for ask in list(state.asks.values()):
        if ask.required_node is not None:
            continue
        kept = guarantee.find_plan(state, named("default", RULES[1]), ask)
        state.index = None
        assert guarantee.find_plan(state, named("default", RULES[1]), ask) == kept
        restarted = snapshot.decode(snapshot.encode(state), state.time)
        assert (
            guarantee.find_plan(restarted, named("default", RULES[1]), restarted.asks[ask.id])
            == kept
        )
        if isinstance(kept, Plan):
            decide(state, ask, kept)


@pytest.mark.parametrize("name", ["youngest", "smallest"])
@given(clusters(most=6))
@examples(120)
def test_every_cost_function_keeps_the_laws(name, inputs):
    """Whatever the cost, a plan is found exactly when there is one, lawful and minimal, and it spares who asked to be spared."""
    state = built(inputs).state
    for ask in list(state.asks.values()):
        if ask.required_node is not None:
            continue
        world = World(state)
        found = guarantee.find_plan(state, named(name, RULES[1]), ask)
        plans = list(world.plans(ask))
        assert isinstance(found, Plan) == bool(plans)
        if isinstance(found, Plan):
            assert world.broken(ask, found.node, found.victims) == []
            fewest = min(
                sum(not victim.allow_preemption for victim in victims) for _, victims in plans
            )
            assert sum(not victim.allow_preemption for victim in found.victims) == fewest
            decide(state, ask, found)


@given(st.integers(0, 2**32))
@examples(300)
def test_the_search_finds_it_among_many_nodes(seed):
    """On wider clusters, where most nodes are ruled out by their bounds, the plan is still the very one that costs least."""
    state = built(wide_cluster(seed)).state
    for ask in list(state.asks.values()):
        world = World(state)
        found = guarantee.find_plan(state, named("default", RULES[1]), ask)
        wanted = world.best(ask)
        assert isinstance(found, Plan) == (wanted is not None), found
        if isinstance(found, Plan):
            assert world.broken(ask, found.node, found.victims) == []
            assert (found.node, tuple(sorted(victim.id for victim in found.victims))) == (
                wanted.node,
                wanted.victims,
            )
            assert not found.cut
            decide(state, ask, found)

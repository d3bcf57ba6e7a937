"""The seam between the scheduler and a family holds a third one: it is registered, and everything else is as for the others."""

import json

import msgspec
import pytest

from events import vocabulary as v
from events.configuration import CustomSpec
from events.streams import open_streams
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.registry import FAMILIES
from replays.checking.verify import verify
from replays.explaining.explain import explain_ask
from replays.scenarios.scenario import parse_scenario
from replays.scenarios.simulate import simulate
from tests.core.age.family import AgeFamily
from tests.service.clocked import START, Leader

SECTIONS = {"queues": {"prod": 10, "test": 0}, "preemption": {"age_ms": 5000}}
SPEC = CustomSpec(family="age", sections=SECTIONS)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the family; nothing else is done to have it."""
    monkeypatch.setitem(FAMILIES, "custom/age", AgeFamily())


def asked(name, queue, vcore):
    """Return an ask."""
    return v.AskSubmitted(
        ask=name, application=name, queue=f"root.{queue}", resources={"vcore": vcore}
    )


async def fill(leader):
    """Fill a node of four cores from the queue of no priority, one task a millisecond; then ask for two."""
    await leader.happen(
        START,
        v.ConfigurationApplied(configuration=SPEC),
        v.NodeRegistered(node="n1", capacity={"vcore": 4000}),
    )
    for number in range(4):
        await leader.happen(START + number, asked(f"t{number}", "test", 1000))
    await leader.happen(START + 1000, asked("p", "prod", 2000))


async def test_a_third_family_decides_over_a_real_log_across_a_restart(tmp_path):
    """Its cycle is due after a restart when it was before; the youngest go, the ask is bound, and the log verifies."""
    async with open_streams(f"sqlite:///{tmp_path / 'log.db'}", 0) as streams:
        await streams.log.create()
        before = Leader(streams, 1)
        await before.start(START)
        await fill(before)
        leader = Leader(streams, 2)
        await leader.start(START + 3000)
        assert leader.engine.next_due() == before.engine.next_due() == START + 6000
        (decided, cycle) = await leader.happen(START + 6000)
        assert [victim.id for victim in decided.victims] == ["t3", "t2"]
        assert (decided.node, decided.algorithm, cycle.tried) == ("n1", "age", ())
        left = [v.AllocationReleased(allocation=one, reason="preempted") for one in ("t2", "t3")]
        bound = (await leader.happen(START + 7000, *left))[-1]
        assert (bound.ask, bound.node) == ("p", "n1")
        steps = await leader.steps()
        assert verify(Engine(), steps) is None
        state = leader.engine.state
        again = snapshot.decode(snapshot.encode(state), state.time)
        assert again.digest() == state.digest()


async def test_a_third_family_is_explained(tmp_path):
    """What holds an ask up, and that a victim of its decision has not left, is told by the same question."""
    async with open_streams("memory://", 0) as streams:
        leader = Leader(streams, 1)
        await streams.log.create()
        await leader.start(START)
        await fill(leader)
        found = explain_ask(leader.engine, "p")
        assert found.status == "waits"
        assert found.summary == "No node has room; the nearest, n1, lacks 2 vcore."
        await leader.happen(START + 6000)
        assert "t3" in explain_ask(leader.engine, "p").summary


def test_a_third_family_is_simulated():
    """A scenario file names the family and its sections; what it decides comes out as for any other."""
    scenario = {
        "scenario": 1,
        "name": "age",
        "source": "the third family",
        "config": {"format": "custom", "custom": {"family": "age", "sections": SECTIONS}},
        "nodes": [{"name": "n1", "capacity": {"vcore": 2000}}],
        "running": [
            {
                "id": "t",
                "application": "a",
                "queue": "root.test",
                "node": "n1",
                "resources": {"vcore": 2000},
            },
        ],
        "pending": [
            {"id": "p", "application": "b", "queue": "root.prod", "resources": {"vcore": 1000}}
        ],
        "evictions": {"confirm_after": "1s"},
        "steps": [{"advance": "10s"}],
    }
    document = simulate(parse_scenario(json.dumps(scenario).encode(), "age.json"))
    taken = [one["type"] for one in document["decisions"] if "Application" not in one["type"]]
    assert taken == [
        "PreemptionDecided",
        "AllocationBound",
    ]
    assert document["pending"] == []


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (CustomSpec(family="size"), "format 'custom/size' found, expected one of custom/age"),
        (CustomSpec(family="kueue"), "format 'custom/kueue' found"),
        (CustomSpec(family="age"), "preemption age_ms: preemption: found no age_ms"),
    ],
)
def test_a_configuration_of_no_family_or_against_its_rules_is_refused(spec, code):
    """Refused with what was found and what is known; nothing is applied."""
    engine = Engine()
    (event,) = engine.step(START, [v.Proposal(input=v.ConfigurationApplied(configuration=spec))])
    assert isinstance(event, v.InputRejected)
    assert code in event.reason
    assert engine.state.configuration is None


def test_a_custom_configuration_survives_the_wire():
    """It is read as it was written, with the types of its values."""
    written = msgspec.json.encode(v.ConfigurationApplied(configuration=SPEC))
    assert msgspec.json.decode(written, type=v.ConfigurationApplied).configuration == SPEC

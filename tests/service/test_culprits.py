"""Which queue is at fault when a decision fails: it is found by trying, and only where it is one of few."""

import pytest

from events import vocabulary as v
from evsched.config import from_mapping
from evsched.core.engine import Engine
from evsched.core.yunikorn.family import YunikornFamily
from evsched.service.culprits import MOST, queue_at_fault
from tests.service.inputs import ask, node

START = 1_767_258_000_000
LEAVES = [f"q{number}" for number in range(9)]


@pytest.fixture
def state():
    """Return a state in which an ask waits in each leaf."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": name} for name in LEAVES]}
    (configuration,) = from_mapping(
        "yunikorn", {"partitions": [{"name": "default", "queues": [root]}]}, "test"
    )
    inputs = [
        v.ConfigurationApplied(configuration=configuration),
        node(cores=1),
        *(v.ApplicationSubmitted(application=name, queue=f"root.{name}") for name in LEAVES),
        *(ask(f"task-{name}", name) for name in LEAVES),
    ]
    engine = Engine()
    engine.step(START, [v.Proposal(input=one) for one in inputs], decide=False)
    assert len(engine.state.asks) == len(LEAVES)
    return engine.state


@pytest.fixture
def bad(monkeypatch):
    """Return a set: allocation raises while an ask waits in a leaf whose name is in it."""
    found = set()
    honest = YunikornFamily.allocate

    def allocate(family, step):
        assert not any(one.queue.removeprefix("root.") in found for one in step.state.asks.values())
        honest(family, step)

    monkeypatch.setattr(YunikornFamily, "allocate", allocate)
    return found


@pytest.mark.parametrize("name", LEAVES)
def test_it_is_found_wherever_it_stands(state, bad, name):
    """The state that is tried stays as it is."""
    before = state.digest()
    bad.add(name)
    assert queue_at_fault(state, START) == f"root.{name}"
    assert state.digest() == before


def test_of_a_few_the_first_is_found(state, bad):
    """The next one is, when the step fails again without it."""
    bad.update(LEAVES[2 : 2 + MOST])
    assert queue_at_fault(state, START) == "root.q2"


@pytest.mark.parametrize("names", [[], LEAVES[: MOST + 1], LEAVES])
def test_none_is_at_fault_where_none_or_many_are(state, bad, names):
    """A step that does not fail, or with the asks of any leaf, says nothing about a queue."""
    bad.update(names)
    assert queue_at_fault(state, START) == ""


def test_the_only_one_is_not_at_fault(state, bad):
    """With asks in one leaf alone nothing tells its fault from that of the decision."""
    bad.update(LEAVES)
    engine = Engine(state)
    for name in LEAVES[1:]:
        engine.suspend(START, "queue", f"root.{name}", ("?", "?"))
    assert queue_at_fault(engine.state, START) == ""


def test_a_step_that_fails_without_asks_is_no_queues_fault(state, monkeypatch):
    """Nothing is to be gained by setting a queue aside."""
    monkeypatch.setattr(Engine, "_fire", lambda *_: 1 // 0)
    assert queue_at_fault(state, START) == ""

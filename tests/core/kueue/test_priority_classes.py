"""Workloads that name their WorkloadPriorityClass."""

import msgspec

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core.engine import Engine
from tests.core.kueue.plain import NOW, Partition, asks, bound, queue
from tests.core.quota_clusters import Cluster, partition
from tests.core.quota_clusters import queue as yunikorn_queue

CLASSES = {"low": -5, "high": 1000}


def named(ask: v.AskSubmitted, name: str) -> v.AskSubmitted:
    """Return an ask with a class."""
    return msgspec.structs.replace(ask, priority_class=name)


def test_a_class_gives_an_ask_its_priority():
    """The more important one is admitted first; the log holds both the name and the number."""
    there = Partition(queue("q", cpu=1), priority_classes=CLASSES)
    inputs = (asks("a", "q", 7, cpu=1), named(asks("b", "q", cpu=1), "high"))
    events = there.engine.step(there.now, [v.Proposal(input=one) for one in inputs])
    taken = [event for event in events if isinstance(event, v.AskSubmitted)]
    assert [(one.priority, one.priority_class) for one in taken] == [(7, ""), (1000, "high")]
    assert bound(events) == ["b"]


def test_the_class_decides_where_an_ask_has_both():
    """So an ask of the log, taken again, is the same ask, and another value can be tried on it."""
    there = Partition(queue("q", cpu=1), priority_classes=CLASSES)
    there.does(named(asks("a", "q", 1000, cpu=2), "low"))
    assert there.engine.state.asks["a"].priority == -5


def test_a_class_that_changes_changes_no_ask_that_was_taken_in():
    """As in Kueue; the next ask has the new value."""
    there = Partition(queue("q", cpu=1), priority_classes=CLASSES)
    there.does(named(asks("a", "q", cpu=2), "low"))
    changed = msgspec.structs.replace(there.spec, priority_classes={"low": 3})
    there.does(v.ConfigurationApplied(configuration=changed))
    there.does(named(asks("b", "q", cpu=2), "low"))
    state = there.engine.state
    assert (state.asks["a"].priority, state.asks["b"].priority) == (-5, 3)


def refusal(events) -> tuple[str, str]:
    """Return code and reason of the only refusal."""
    (found,) = [event for event in events if isinstance(event, v.InputRejected)]
    return found.code, found.reason


def test_a_class_that_is_not_there_is_refused():
    """The refusal names those that are."""
    there = Partition(queue("q", cpu=1), priority_classes=CLASSES)
    events = there.does(named(asks("a", "q", cpu=1), "hihg"))
    reason = "ask a: found priority class hihg, expected one of high, low"
    assert refusal(events) == ("unknown", reason)
    events = Partition(queue("q", cpu=1)).does(named(asks("a", "q", cpu=1), "high"))
    assert refusal(events)[1].endswith(
        "found priority class high, expected none, as there are none"
    )


def test_a_queues_yaml_knows_no_classes():
    """An ask that names one is refused, as it would be placed by a priority that nobody gave."""
    engine = Cluster(partition(yunikorn_queue("a"))).engine
    ask = v.AskSubmitted(
        ask="t", application="x", queue="root.a", resources={"vcore": 1}, priority_class="high"
    )
    events = engine.step(engine.state.time, [v.Proposal(input=ask)])
    reason = "ask t: found priority class high, expected none with a queues.yaml"
    assert refusal(events) == ("invalid", reason)


def test_an_ask_with_a_class_is_decided_again_alike():
    """The inputs that the log holds, taken once more, make the same events."""
    there = Partition(queue("q", cpu=1), priority_classes=CLASSES)
    inputs = [
        v.ConfigurationApplied(configuration=there.spec),
        named(asks("a", "q", cpu=1), "high"),
    ]
    first = Engine().step(NOW, [v.Proposal(input=one) for one in inputs])
    again = [msgspec.structs.replace(event, seq=0) for event in first if isinstance(event, v.Input)]
    assert isinstance(again[0].configuration, KueueSpec)
    assert Engine().step(NOW, [v.Proposal(input=one) for one in again]) == first

"""What counts as a difference between an expectation and what was decided."""

import msgspec
import pytest

from replays.scenarios.compare import differences
from replays.scenarios.scenario import Expectation

VICTIMS = [{"id": "v1", "queue": "q", "reason": "r"}, {"id": "v2", "queue": "q", "reason": "r"}]
DOCUMENT = {
    "decisions": [
        {"at": 0, "type": "PreemptionFailed", "ask": "c", "reason": "none"},
        {"at": 0, "type": "AllocationBound", "ask": "b", "node": "n1", "flavors": {"cpu": "x"}},
        {
            "at": 1,
            "type": "PreemptionDecided",
            "ask": "a",
            "node": "n1",
            "victims": VICTIMS,
            "algorithm": "guarantee",
        },
        {
            "at": 9,
            "type": "PreemptionDecided",
            "ask": "a",
            "node": "n2",
            "victims": VICTIMS[:1],
            "algorithm": "guarantee",
        },
        {
            "at": 9,
            "type": "QuotaPreemptionDecided",
            "queue": "root.a",
            "victims": VICTIMS[:1],
            "target": {},
        },
        {
            "at": 9,
            "type": "QuotaPreemptionDecided",
            "queue": "root.a",
            "victims": VICTIMS[1:],
            "target": {},
        },
    ]
}
A = {"ask": "a", "victims": ["v2", "v1"]}


@pytest.mark.parametrize(
    "holds",
    [
        {},
        {"preemptions": [A]},
        {"preemptions": [A | {"node": "n1"}]},
        {"preemptions": [A, {"ask": "c", "victims": []}]},
        {"preemptions": [{"ask": "a", "victims": [{"id": "v1", "reason": "r"}, "v2"]}]},
        {
            "quota": [
                {"queue": "root.a", "victims": ["v1", "v2"]},
                {"queue": "root.b", "victims": []},
            ]
        },
        {"bound": [{"ask": "b"}]},
        {"bound": [{"ask": "b", "node": "n1", "flavors": {"cpu": "x"}}]},
        {"order": [["c", "b", "a"]]},
        {"any_of": [{"preemptions": []}, {"preemptions": [A]}]},
    ],
)
def test_what_holds_has_no_differences(holds):
    """Victims are sets, the first preemption of an ask counts, what is absent is not compared."""
    assert differences(msgspec.convert(holds, Expectation), DOCUMENT) == []


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"preemptions": []}, "ask a: preempts ['v1', 'v2'], expected nobody"),
        (
            {"preemptions": [A, {"ask": "b", "victims": ["v9"]}]},
            "ask b: preempts nobody, expected ['v9']",
        ),
        (
            {"preemptions": [{"ask": "a", "victims": ["v1"]}]},
            "ask a: preempts ['v1', 'v2'], expected ['v1']",
        ),
        ({"preemptions": [A | {"node": "n2"}]}, "ask a: preempts on node n1, expected n2"),
        (
            {"preemptions": [{"ask": "a", "victims": [{"id": "v1", "reason": "s"}, "v2"]}]},
            "ask a: victim v1 has the reason r, expected s",
        ),
        (
            {"quota": [{"queue": "root.a", "victims": ["v1"]}]},
            "queue root.a: quota enforcement takes ['v1', 'v2'], expected ['v1']",
        ),
        ({"bound": []}, "ask b: bound, expected to wait"),
        ({"bound": [{"ask": "b"}, {"ask": "z"}]}, "ask z: not bound, expected to be"),
        ({"bound": [{"ask": "b", "node": "n7"}]}, "ask b: bound to node n1, expected n7"),
        (
            {"bound": [{"ask": "b", "flavors": {"cpu": "y"}}]},
            "ask b: got flavors {'cpu': 'x'}, expected {'cpu': 'y'}",
        ),
        (
            {"bound": [{"ask": "b", "podsets": [{"name": "p", "flavors": {"cpu": "y"}}]}]},
            "ask b: podset p got flavors None, expected {'cpu': 'y'}",
        ),
        (
            {"order": [["a", "b", "c"]]},
            "order: asks were considered as [['c', 'b', 'a']], expected [['a', 'b', 'c']]",
        ),
        (
            {"any_of": [{"preemptions": []}, {"bound": []}]},
            "ask a: preempts ['v1', 'v2'], expected nobody",
        ),
    ],
)
def test_each_difference_is_one_sentence(wanted, sentence):
    """The sentence names the subject first, then what was found and expected."""
    assert differences(msgspec.convert(wanted, Expectation), DOCUMENT) == [sentence]


def test_orders_of_cycles_come_before_those_of_decisions():
    """Where a scheduling cycle tells its order, list by list, the lists may stand in any order."""
    document = {
        "decisions": [
            {"at": 0, "type": "CycleStarted", "order": [["x"], ["a", "b"]]},
            *DOCUMENT["decisions"],
        ]
    }
    assert differences(msgspec.convert({"order": [["a", "b"], ["x"]]}, Expectation), document) == []
    assert differences(msgspec.convert({"order": [["b", "a"], ["x"]]}, Expectation), document) != []

"""The laws of preemption as a table: one cluster a row, and who may be being evicted there."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from evsched.core.yunikorn import laws
from evsched.core.yunikorn.laws import Asker
from tests.core.small import ask, engine, node, preemptions, queue, run_until, running, step

FENCE = {"preemption.policy": "FENCE"}
NONE: dict[str, str] = {}


def delayed(**properties):
    """Return the properties of a leaf whose asks may preempt after a second."""
    return {
        "preemption.delay": "1s",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }


@dataclass
class Row:
    """A cluster with one full node, who asks, and whom it costs its place.

    Attributes:
        queues: Below root; the asker is in root.a unless said otherwise.
        runs: (id, leaf, vcore, further fields).
        asks: (leaf, vcore, further fields) of the ask.
        spares: The code of the rule that spares the allocation named first in ``runs``; None when
            it may go.
        goes: The victims.
    """

    queues: tuple
    runs: tuple
    asks: tuple = ("root.a", 2, NONE)
    spares: str | None = None
    goes: list[str] = field(default_factory=list)


A = queue("a", guaranteed={"vcore": 4}, properties=delayed())
TABLE = {
    "a queue without a guarantee gives": Row(
        (A, queue("b")), (("v", "root.b", 2, NONE),), goes=["v"]
    ),
    "law 1: who opted out goes when nobody else can": Row(
        (A, queue("b")), (("v", "root.b", 2, {"allow_preemption": False}),), goes=["v"]
    ),
    "law 1: who opted out stays when two others can": Row(
        (A, queue("b")),
        (
            ("v", "root.b", 2, {"allow_preemption": False}),
            ("w", "root.b", 1, NONE),
            ("x", "root.b", 1, NONE),
        ),
        goes=["w", "x"],
    ),
    "an originator stays when two others can": Row(
        (A, queue("b")),
        (
            ("v", "root.b", 2, {"originator": True}),
            ("w", "root.b", 1, NONE),
            ("x", "root.b", 1, NONE),
        ),
        goes=["w", "x"],
    ),
    "law 2: a removal that would cross the guarantee": Row(
        (A, queue("b", guaranteed={"vcore": 3})), (("v", "root.b", 4, NONE),), spares="law2"
    ),
    "law 2: a removal that ends at the guarantee": Row(
        (A, queue("b", guaranteed={"vcore": 2})),
        (("v", "root.b", 2, NONE), ("w", "root.b", 2, {"priority": 9})),
        goes=["v"],
    ),
    "law 2: the guarantee of a parent counts as well": Row(
        (A, queue("p", queue("b"), guaranteed={"vcore": 3})),
        (("v", "root.p.b", 4, NONE),),
        spares="law2",
    ),
    "law 2: two that are lawful alone are not together": Row(
        (A, queue("b", guaranteed={"vcore": 3})),
        (("v", "root.b", 1, NONE), ("w", "root.b", 1, NONE), ("x", "root.b", 2, {"priority": 9})),
        spares=None,
    ),
    "law 4: the asker's queue is at its guarantee": Row(
        (queue("a", guaranteed={"vcore": 2}, properties=delayed()), queue("b")),
        (("v", "root.b", 2, NONE), ("own", "root.a", 2, NONE)),
    ),
    "law 4: no guarantee on the path": Row(
        (queue("a", properties=delayed()), queue("b")), (("v", "root.b", 2, NONE),)
    ),
    "law 4: the guarantee of the closest parent": Row(
        (queue("p", queue("a", properties=delayed()), guaranteed={"vcore": 2}), queue("b")),
        (("v", "root.b", 2, NONE),),
        ("root.p.a", 2, NONE),
        goes=["v"],
    ),
    "law 4: the closest guarantee is met, though one above is not": Row(
        (
            queue(
                "p",
                queue("a", guaranteed={"vcore": 0}, properties=delayed()),
                guaranteed={"vcore": 8},
            ),
            queue("b"),
        ),
        (("v", "root.b", 2, NONE),),
        ("root.p.a", 2, NONE),
    ),
    "law 4: no victim inside the queue whose guarantee is restored": Row(
        (
            queue("p", queue("a", properties=delayed()), queue("c"), guaranteed={"vcore": 8}),
            queue("b"),
        ),
        (("v", "root.p.c", 2, NONE),),
        ("root.p.a", 2, NONE),
        spares="law4",
    ),
    "law 5: a queue at its guarantee gives nothing": Row(
        (A, queue("b", guaranteed={"vcore": 2})), (("v", "root.b", 2, NONE),), spares="law5"
    ),
    "law 5: nor does one below a parent that is at its guarantee": Row(
        (A, queue("p", queue("b"), guaranteed={"vcore": 2})),
        (("v", "root.p.b", 2, NONE),),
        spares="law5",
    ),
    "law 6: higher priority": Row(
        (A, queue("b")), (("v", "root.b", 2, {"priority": 1}),), spares="law6"
    ),
    "law 6: equal priority": Row(
        (A, queue("b")),
        (("v", "root.b", 2, {"priority": 1}),),
        ("root.a", 2, {"priority": 1}),
        goes=["v"],
    ),
    "law 6: an offset lifts the victim's queue": Row(
        (A, queue("b", properties={"priority.offset": "1"})),
        (("v", "root.b", 2, NONE),),
        spares="law6",
    ),
    "law 6: an offset lifts the asker's": Row(
        (queue("a", guaranteed={"vcore": 4}, properties=delayed(priority_offset="1")), queue("b")),
        (("v", "root.b", 2, {"priority": 1}),),
        goes=["v"],
    ),
    "law 6: behind a fence the offset stands for every priority": Row(
        (A, queue("b", properties={"priority.policy": "fence"})),
        (("v", "root.b", 2, {"priority": 99}),),
        goes=["v"],
    ),
    "law 6: what the common ancestor adds does not matter": Row(
        (
            queue(
                "p", A, queue("b"), properties={"priority.policy": "fence", "priority.offset": "-9"}
            ),
        ),
        (("v", "root.p.b", 2, NONE),),
        ("root.p.a", 2, NONE),
        goes=["v"],
    ),
    "law 7: a fence keeps the asker in": Row(
        (queue("t", A, properties=FENCE), queue("b")),
        (("v", "root.b", 2, NONE),),
        ("root.t.a", 2, NONE),
        spares="law7",
    ),
    "law 7: but lets it look around inside": Row(
        (queue("t", A, queue("b"), properties=FENCE),),
        (("v", "root.t.b", 2, NONE),),
        ("root.t.a", 2, NONE),
        goes=["v"],
    ),
    "law 7: and lets others in": Row(
        (A, queue("t", queue("b"), properties=FENCE)), (("v", "root.t.b", 2, NONE),), goes=["v"]
    ),
    "law 7: the nearest fence decides": Row(
        (queue("t", queue("u", A, properties=FENCE), queue("b"), properties=FENCE),),
        (("v", "root.t.b", 2, NONE),),
        ("root.t.u.a", 2, NONE),
        spares="law7",
    ),
    "beside: nobody of the own leaf": Row(
        (A, queue("b")), (("v", "root.a", 2, NONE),), spares="own-leaf"
    ),
    "beside: nobody with a required node": Row(
        (A, queue("b")), (("v", "root.b", 2, {"required_node": "n1"}),), spares="required-node"
    ),
    "beside: nobody where preemption is disabled": Row(
        (A, queue("b", properties={"preemption.policy": "Disabled"})),
        (("v", "root.b", 2, NONE),),
        spares="disabled",
    ),
    "beside: disabled is inherited": Row(
        (A, queue("p", queue("b"), properties={"preemption.policy": "disabled"})),
        (("v", "root.p.b", 2, NONE),),
        spares="disabled",
    ),
    "beside: disabled may still preempt": Row(
        (
            queue("a", guaranteed={"vcore": 4}, properties=delayed(preemption_policy="disabled")),
            queue("b"),
        ),
        (("v", "root.b", 2, NONE),),
        goes=["v"],
    ),
    "the policy Never": Row(
        (A, queue("b")), (("v", "root.b", 2, NONE),), ("root.a", 2, {"preemption_policy": "Never"})
    ),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_who_may_be_told_to_go(row: Row):
    """The decision is as the law says, and the predicate names the law that spares the first of those that run."""
    cluster = engine(*row.queues)
    full = sum(vcore for _, _, vcore, _ in row.runs)
    step(
        cluster,
        0,
        node("n1", full),
        *(running(name, leaf, "n1", vcore, **rest) for name, leaf, vcore, rest in row.runs),
    )
    leaf, vcore, rest = row.asks
    step(cluster, 0, ask("asker", leaf, vcore, **rest))
    state = cluster.state
    first = state.allocations[row.runs[0][0]]
    assert laws.objection(state, Asker(state, state.asks["asker"]), first) == row.spares
    decided = preemptions(run_until(cluster, 1000))
    assert decided == ([("asker", "n1", row.goes)] if row.goes else [])


def test_an_application_never_preempts_itself():
    """Law 3 as a predicate; an application lives in one leaf, so the rule of the own leaf comes before it in any decision."""
    cluster = engine(A, queue("b"))
    step(cluster, 0, node("n1", 2), running("v", "root.a", "n1", 2, application="x"))
    step(cluster, 0, ask("asker", "root.a", 2, application="x"))
    state = cluster.state
    asker = Asker(state, state.asks["asker"])
    assert not laws.law3_other_application(asker, state.allocations["v"])
    assert laws.objection(state, asker, state.allocations["v"]) == "law3"


def test_law_1_is_judged_over_all_nodes():
    """An opted-out victim is lawful only where no plan without one exists anywhere."""
    cluster = engine(A, queue("b"))
    step(cluster, 0, node("n1", 2), running("v", "root.b", "n1", 2, allow_preemption=False))
    victims = [cluster.state.allocations["v"]]
    assert laws.law1_opt_out_is_last_resort(victims, sparing_plan=False)
    assert not laws.law1_opt_out_is_last_resort(victims, sparing_plan=True)


def test_the_node_with_an_opted_out_pod_alone_is_passed_over():
    """Law 1: the first node would need an opted-out pod, the second two others."""
    cluster = engine(A, queue("b"))
    step(
        cluster,
        0,
        node("n1", 2),
        node("n2", 2),
        running("v", "root.b", "n1", 2, allow_preemption=False),
    )
    step(
        cluster,
        0,
        running("w", "root.b", "n2", 1),
        running("x", "root.b", "n2", 1),
        ask("asker", "root.a", 2),
    )
    assert preemptions(run_until(cluster, 1000)) == [("asker", "n2", ["w", "x"])]


def test_a_plan_that_breaks_a_law_is_named():
    """`broken_by` judges a whole plan: law 2 for all victims together."""
    cluster = engine(A, queue("b", guaranteed={"vcore": 3}))
    step(
        cluster,
        0,
        node("n1", 4),
        *(running(f"r{number}", "root.b", "n1", 1) for number in range(4)),
        ask("asker", "root.a", 2),
    )
    state = cluster.state
    asker = Asker(state, state.asks["asker"])
    assert laws.broken_by(state, asker, [state.allocations["r0"]]) is None
    assert (
        laws.broken_by(state, asker, [state.allocations["r0"], state.allocations["r1"]]) == "law2"
    )

"""Explaining an ask that waits because of what its pod says of nodes."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.pods import PodFacts
from evsched.core import snapshot
from replays.explaining.explain import explain_ask
from tests.core.test_node_rules import APART, NODES, ask, cluster, node, take

SAID = {
    "no node has the label": (
        PodFacts(node_selector={"disk": "nvme"}),
        ("Of 4 nodes none may take its pod: nodeSelector disk=nvme not matched by 3; taint"
        " gpu=true:NoSchedule not tolerated on 1."),
        "a node that its pod may run on",
    ),
    "pods that repel it run on the others": (
        APART,
        ("No node has room; the nearest, n4, lacks nothing, but takes nobody. Of 4 nodes 1 may take its pod:"
        " anti-affinity to what runs on 2; taint gpu=true:NoSchedule not tolerated on 1."),
        "a node n4 that is schedulable",
    ),
    "the node that takes it is full": (
        PodFacts(node_selector={"zone": "z1"}),
        ("No node has room; the nearest, n1, lacks 1m cpu. Of 4 nodes 1 may take its pod: nodeSelector zone=z1 not"
        " matched by 2; taint gpu=true:NoSchedule not tolerated on 1."),
        "1m cpu more on n1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_an_explanation_counts_the_nodes_that_do_not_take_the_pod(name: str) -> None:
    """Each reason with its number of nodes; what would change it is a node that the pod may run on, or room there."""
    pod, summary, unblock = SAID[name]
    nodes = [node(one, **says) for one, says in NODES.items()]
    engine = cluster(*nodes, *(ask(f"f{number}", APART) for number in range(2)))
    take(engine, decide=True)
    take(engine, ask("x", pod, cpu=4), decide=True)
    found = explain_ask(engine, "x")
    assert found.summary == summary
    assert found.unblock[0].sentence == unblock


def test_an_explanation_names_what_is_not_modelled() -> None:
    """What a pod asks for beyond is carried by name, and never guessed."""
    pod = PodFacts(node_selector={"disk": "nvme"}, unmodelled=("topology spread", "volumes"))
    engine = cluster(node("n1"), ask("x", pod))
    take(engine, decide=True)
    assert explain_ask(engine, "x").unmodelled == ("topology spread", "volumes")


def test_a_log_that_only_records_says_so_wherever_it_is_asked() -> None:
    """The term begins with it, snapshots keep it, digests tell it apart, and the explanation of an ask says it."""
    engine = cluster(ask("x", PodFacts()))
    before, deciding = explain_ask(engine, "x"), engine.state.digest()
    assert not before.observed
    time = engine.state.time
    engine.begin_term(time, v.LeaderStarted(term=0, leader="l", observes=True))
    assert explain_ask(engine, "x").observed
    kept = snapshot.decode(snapshot.encode(engine.state), time)
    assert kept.observed
    assert kept.digest() == engine.state.digest() != deciding

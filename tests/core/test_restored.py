"""A restored engine decides as the one that never stopped: what a snapshot and a replay must not lose, case by case."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.configuration import PlacementRuleSpec, QueueSpec, YunikornSpec
from evsched.core import snapshot
from evsched.core.engine import Engine
from tests.core.small import START, ask, engine, node, queue, run_until, running, step

DELAY = {"preemption.delay": "1s"}


def restored(live: Engine) -> Engine:
    """Return an engine from a snapshot of another."""
    return Engine(snapshot.decode(snapshot.encode(live.state), live.state.time))


def tree(*queues: QueueSpec, **fields) -> v.ConfigurationApplied:
    """Return a new configuration with these queues below root."""
    root = QueueSpec(name="root", parent=True, queues=queues, submit_acl="*")
    return v.ConfigurationApplied(configuration=YunikornSpec(root=root, **fields))


def refusal(cluster: Engine, proposed: v.AnyInput) -> tuple[str, str] | None:
    """Return why a proposal is refused now: code and sentence; None when it is taken."""
    events = cluster.step(cluster.state.time, [v.Proposal(input=proposed)])
    found = [one for one in events if isinstance(one, v.InputRejected)]
    return (found[0].code, found[0].reason) if found else None


# ------------------------------------------------------------------------------------------- orders


def test_asks_in_flight_lose_a_node_in_the_order_of_the_log():
    """After a restart the withdrawals of a lost node come in the order in which its asks preempted, not by name."""
    live = engine(
        queue("high", guaranteed={"vcore": 20}, properties=DELAY), queue("low", properties=DELAY)
    )
    step(live, 0, node("n1", 10), *(running(f"v{k}", "root.low", "n1", 5) for k in (1, 2)))
    step(live, 0, ask("a-9", "root.high", 5))
    run_until(live, 5_000)
    step(live, 5_000, ask("a-10", "root.high", 5))
    run_until(live, 20_000)
    assert list(live.state.preemptions) == ["a-9", "a-10"]
    again = restored(live)
    events = step(live, 20_000, v.NodeRemoved(node="n1"))
    assert step(again, 20_000, v.NodeRemoved(node="n1")) == events


def test_a_queue_that_drains_keeps_its_place_among_dynamic_ones():
    """A dynamic queue that came after another began to drain stays behind it when a snapshot is restored."""
    users = QueueSpec(name="users", parent=True)
    live = engine(queue("old"), users)
    step(live, 0, node("n1", 10), running("t", "root.old", "n1", 1))
    placed = PlacementRuleSpec(
        name="user", create=True, parent=PlacementRuleSpec(name="fixed", value="users")
    )
    step(live, 0, tree(users, placement_rules=(placed,)))
    step(live, 0, v.ApplicationSubmitted(application="x", user="ann"))
    assert list(live.state.queues) == ["root", "root.users", "root.old", "root.users.ann"]
    again = restored(live)
    assert list(again.state.queues) == list(live.state.queues)
    orders = [one.order for one in again.state.queues.values()]
    assert orders == sorted(orders)
    assert again.state.digest() == live.state.digest()


# ------------------------------------------------------------------------------------- hidden state


def test_an_ask_that_came_back_under_its_id_with_never_makes_no_cycle_due():
    """The entry of the former ask says when it would have preempted; the ask that is there now never may."""
    live = engine(
        queue("high", guaranteed={"vcore": 10}, properties=DELAY), queue("low", properties=DELAY)
    )
    step(live, 0, node("n1", 10), running("v", "root.low", "n1", 10))
    step(live, 0, ask("a", "root.high", 5, created=START))
    assert live.next_due() == START + 1000
    step(
        live,
        0,
        v.AskWithdrawn(ask="a"),
        ask("a", "root.high", 5, created=START, preemption_policy="Never"),
    )
    again = restored(live)
    assert again.next_due() is None
    assert live.next_due() is None
    assert step(live, 60_000) == step(again, 60_000) == ()


def test_an_ask_that_lost_its_node_is_patient_as_long_as_before():
    """It may preempt again, and waits for room of others until the time that was written down, in every engine."""
    live = engine(
        queue("high", guaranteed={"vcore": 10}, properties=DELAY), queue("low", properties=DELAY)
    )
    step(live, 0, node("n1", 10), running("v", "root.low", "n1", 10))
    step(live, 0, ask("a", "root.high", 5), ask("b", "root.high", 5), decide=False)
    state, until = live.state, START + 90_000

    def told(kind: type[v.AnyEvent], /, **fields: object) -> None:
        live.apply(kind(seq=state.seq + 1, cause=1, **fields), state.time)  # type: ignore[arg-type]

    victim = v.Victim(id="v", queue="root.low", reason="law2")
    told(v.PreemptionFailed, ask="a", reason="", until=until)
    told(v.CycleStarted, kind="preemption", tried=("a", "b"))
    assert live.next_due() == until
    told(v.PreemptionDecided, ask="a", node="n1", victims=(victim,), algorithm="guarantee")
    assert live.next_due() == START + 30_000  # the grace of the victim; patience is over for now
    told(v.PreemptionWithdrawn, ask="a", victims=("v",), reason="", node_lost=True)
    told(v.CycleStarted, kind="preemption", tried=("a",))
    assert restored(live).next_due() == until
    assert live.next_due() == until


# ------------------------------------------------------------------------------- shapes of the tree


@pytest.mark.parametrize("child", ["x", "x.y"])
def test_a_parent_stays_a_parent_while_something_below_it_is_in_use(child):
    """A configuration that makes a leaf of it is refused, says where work is, and is taken once that is gone."""
    below = queue(child) if child == "x" else queue("x", queue("y"))
    live = engine(queue("team", below), queue("low"))
    leaf = f"root.team.{child}"
    step(live, 0, node("n1", 10), ask("a", leaf, 20))
    code, reason = refusal(live, tree(queue("team"), queue("low")))
    assert code == "conflict"
    assert reason == (
        "configuration: queue root.team becomes a leaf while applications run below it "
        f"(in {leaf}); leave it a parent, or out, until they are gone"
    )
    run_until(live, 60_000)
    step(live, 60_000, v.AskWithdrawn(ask="a"))
    step(live, 60_000, tree(queue("team"), queue("low")))
    step(live, 60_000, ask("b", "root.team", 5))
    run_until(live, 120_000)
    assert live.state.allocations["b"].queue == "root.team"


def test_what_drains_keeps_its_parents_from_becoming_leaves():
    """A parent that left the configuration with a leaf in use may not come back as a leaf before that is empty."""
    live = engine(queue("team", queue("x")), queue("low"))
    step(live, 0, node("n1", 10), running("t", "root.team.x", "n1", 1))
    step(live, 0, tree(queue("low")))
    found = refusal(live, tree(queue("team"), queue("low")))
    assert found is not None
    assert found[0] == "conflict"


def test_a_dynamic_queue_keeps_its_parents_from_becoming_leaves():
    """Neither the parent that a placement rule made, nor one that it found, may become a leaf above a dynamic one in use."""
    placed = PlacementRuleSpec(
        name="user", create=True, parent=PlacementRuleSpec(name="fixed", value="users", create=True)
    )
    live = engine(queue("low"), placement_rules=(placed,))
    step(live, 0, v.ApplicationSubmitted(application="x", user="ann"))
    found = refusal(live, tree(queue("users"), queue("low")))
    assert found is not None
    assert "root.users.ann" in found[1]
    step(live, 0, v.ApplicationRemoved(application="x"))
    assert refusal(live, tree(queue("users"), queue("low"))) is None

"""A replay that counts at its end gives what one gives that counts all along: the truth, every tally, what is due next."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.recorded import IMPOSSIBLE
from evsched.core.state import State
from evsched.core.tallies import uncounted
from tests.core.histories import START, configurations, first_step, histories, settle
from tests.core.kueue.test_history import run
from tests.core.test_history import check_sums
from tests.examples import examples

Log = list[tuple[int, v.AnyEvent]]


def tallies(state: State) -> dict[str, object]:
    """Return everything that `evsched.core.tallies` counts."""
    applications = state.applications.values()
    queues = (state.root, *state.queues.values())
    quotas = [queue.quota for queue in state.queues.values() if queue.quota is not None]
    return {
        "queues": {one.path: (one.usage, one.pending, one.preempting, one.claimed, one.pending_asks) for one in queues},
        "members": {queue.path: set(queue.applications) for queue in queues},
        "quotas": {quota.path: {index: amount for index, amount in quota.usage.items() if amount} for quota in quotas},
        "borrowers": {
            quota.path: {index: {one.path for one in found} for index, found in quota.borrowers.items() if found}
            for quota in quotas
        },
        "applications": {one.id: (one.usage, one.priorities, set(one.asks), set(one.allocations)) for one in applications},
        "running": {one.id: one.running for one in applications if one.running != len(one.allocations)},
        "nodes": {node.name: (node.used, set(node.allocations), node.reserved) for node in state.nodes.values()},
        "lost": {name: (node.used, set(node.allocations)) for name, node in state.lost.items()},
        "total": state.total,
    }  # fmt: skip


def check(log: Log, begin: int, end: int) -> None:
    """Replay a log all along, and with the events from ``begin`` to ``end`` uncounted; compare there, and at the end."""
    counted, other = Engine(), Engine()
    for time, event in log[:end]:
        counted.apply(event, time)
    for time, event in log[:begin]:
        other.apply(event, time)
    with uncounted(other.state):
        for time, event in log[begin:end]:
            other.apply(event, time)
    for rest in (log[end:], []):
        assert tallies(other.state) == tallies(counted.state)
        assert other.state.digest() == counted.state.digest()
        assert other.next_due() == counted.next_due()
        for time, event in rest:
            counted.apply(event, time)
            other.apply(event, time)


def places(data: st.DataObject, log: Log) -> tuple[int, int]:
    """Return two places of a log, in the middle of steps too."""
    one, two = (data.draw(st.integers(0, len(log))) for _ in range(2))
    return min(one, two), max(one, two)


@given(configurations(), histories, st.data())
@examples(150)
def test_yunikorn(configuration, history, data):
    """Any part of a log of queues and nodes may go uncounted."""
    engine, log, time = Engine(), [], START
    for index, (later, inputs, _) in enumerate([(0, [], False), *history]):
        for at, events in settle(engine, time + later - 1):
            log.extend((at, event) for event in events)
        time += later
        proposals = first_step(configuration) if index == 0 else [v.Proposal(input=proposed) for proposed in inputs]
        log.extend((time, event) for event in engine.step(time, proposals))
    begin, end = places(data, log)
    check(log, begin, end)
    check(log, 0, len(log))


@given(st.integers(0, 2**32), st.data())
@examples(60)
def test_kueue(seed, data):
    """Any part of a log of cohorts may go uncounted."""
    log = [(time, event) for time, events in run(seed)[0] for event in events]
    begin, end = places(data, log)
    check(log, begin, end)
    check(log, 0, len(log))


def test_tallies_are_there_when_a_replay_is_interrupted():
    """However the block is left, the state is whole."""
    engine = Engine()

    def interrupted(inner: Engine) -> None:
        inner.apply(v.NodeRegistered(seq=1, node="n1", capacity={"vcore": 8}), START)
        raise InterruptedError

    with pytest.raises(InterruptedError), uncounted(engine.state):
        interrupted(engine)
    assert engine.state.counting
    assert engine.state.nodes["n1"].used == [0]


@pytest.mark.parametrize(
    "event",
    [
        v.AllocationBound(seq=9, cause=8, ask="waits", node="nowhere"),
        v.AllocationBound(seq=9, cause=8, ask="nobody", node="n1"),
        v.AllocationRestored(seq=9, allocation="new", application="x", queue="root.a", resources={"vcore": 1}, node="nowhere"),
        v.AllocationReleased(seq=9, allocation="nobody"),
        v.AskWithdrawn(seq=9, ask="nobody"),
        v.AskSubmitted(seq=9, ask="new", queue="root.nowhere", resources={"vcore": 1}),
        v.NodeRemoved(seq=9, node="nowhere"),
    ],
    ids=lambda event: f"{type(event).__name__}-{event.seq}",
)
@pytest.mark.parametrize("count", [True, False], ids=["counted", "uncounted"])
def test_what_cannot_be_is_noticed_at_its_place(event, count):
    """An event that nothing led to raises, whether tallies are kept or not, and they are right afterwards."""
    engine = Engine()
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    engine.step(START, first_step(YunikornSpec(root=root)))
    engine.step(START, [v.Proposal(input=v.AskSubmitted(ask="waits", queue="root.a", resources={"vcore": 10**9}))])
    with pytest.raises(IMPOSSIBLE), nullcontext() if count else uncounted(engine.state):
        engine.apply(event, START)
    check_sums(engine.state)

"""Properties of any history: what is kept along the way is what a recount gives, and what a replay gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.frame import decode_event, encode_event
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.state import State
from tests.core.histories import START, configurations, first_step, histories, settle
from tests.examples import examples


def naive_sums(state: State) -> dict[str, tuple[dict[str, int], ...]]:
    """Count usage, pending, preempting and claimed of every queue from what runs and waits, by scanning."""
    names, shapes = state.types.names, state.types.shapes
    sums: dict[str, tuple[dict[str, int], ...]] = {path: ({}, {}, {}, {}) for path in state.queues}

    def count(leaf: str, which: int, shape: int) -> None:
        for queue in state.queues[leaf].lineage:
            for index, amount in shapes[shape].pairs:
                found = sums[queue.path][which]
                found[names[index]] = found.get(names[index], 0) + amount

    for allocation in state.allocations.values():
        count(allocation.queue, 0, allocation.shape)
        if allocation.eviction_requested:
            count(allocation.queue, 2, allocation.shape)
    for ask in state.asks.values():
        count(ask.queue, 1, ask.shape)
        if ask.id in state.preemptions:
            count(ask.queue, 3, ask.shape)
    return sums


def check_sums(state: State) -> None:
    """Compare all that is kept incrementally with a recount."""
    named = state.types.named
    for path, expected in naive_sums(state).items():
        queue = state.queues[path]
        kept = (queue.usage, queue.pending, queue.preempting, queue.claimed)
        counted = tuple(dict(sorted(found.items())) for found in expected)
        assert tuple(named(enumerate(vector)) for vector in kept) == counted, path
    for node in state.nodes.values():
        used = [0] * state.width
        for allocation in node.allocations.values():
            for index, amount in state.types.shapes[allocation.shape].pairs:
                used[index] += amount
        assert node.used == used
        assert set(node.reserved) == {
            ask for ask, name in state.reservations.items() if name == node.name
        }
    running = {
        name for application in state.applications.values() for name in application.allocations
    }
    assert running == set(state.allocations)
    assert not state.lost
    assert not state.arriving


@given(configurations(), histories)
@examples(80)
def test_every_history_is_replayed_to_the_same_state(configuration, history):
    """Replay equals live, a restart from a snapshot at any step changes nothing, and sums equal a recount."""
    live, broken = Engine(), Engine()
    log: list[tuple[int, v.AnyEvent]] = []
    time = START
    for index, (later, inputs, restart) in enumerate([(0, [], False), *history]):
        if restart:
            broken = Engine(snapshot.decode(snapshot.encode(broken.state), broken.state.time))
        settle_to = time + later
        for at, events in settle(live, settle_to - 1):
            again = broken.step(at)
            assert list(map(encode_event, again)) == list(map(encode_event, events))
            log.extend((at, event) for event in events)
        time = settle_to
        proposals = (
            first_step(configuration)
            if index == 0
            else [v.Proposal(input=proposed) for proposed in inputs]
        )
        events = live.step(time, proposals)
        again = broken.step(time, proposals)
        assert list(map(encode_event, again)) == list(map(encode_event, events))
        log.extend((time, event) for event in events)
        check_sums(live.state)
    replayed = Engine()
    for at, event in log:
        replayed.apply(decode_event(encode_event(event)), at)
    assert replayed.state.digest() == live.state.digest()
    assert broken.state.digest() == live.state.digest()
    assert [event.seq for _, event in log] == list(range(1, len(log) + 1))


@given(histories)
@examples(100)
def test_nothing_that_is_proposed_raises(history):
    """Before any configuration too, every proposal is applied or refused with a reason."""
    engine = Engine()
    time = START
    for later, inputs, _ in history:
        time += later
        events = engine.step(time, [v.Proposal(input=proposed) for proposed in inputs])
        answered = [event for event in events if event.cause == 0]
        assert len(answered) == len(inputs)
        assert all(event.reason for event in answered if isinstance(event, v.InputRejected))


@given(st.lists(st.sampled_from(["n1", "n2"]), max_size=6))
def test_a_repeated_proposal_id_is_refused_as_a_duplicate(names):
    """The second proposal with an id changes nothing, whatever it says."""
    engine = Engine()
    proposals = [
        v.Proposal(input=v.NodeRegistered(node=name, capacity={"vcore": 1}), id=name)
        for name in names
    ]
    events = engine.step(START, proposals)
    fresh = [name not in names[:index] for index, name in enumerate(names)]
    assert [type(event) is v.NodeRegistered for event in events] == fresh
    assert all(event.code == "duplicate" for event in events if isinstance(event, v.InputRejected))

"""What is refused at the door because the state could not hold it, or a later reader would judge it otherwise."""

from __future__ import annotations

import tracemalloc

import pytest

from events import vocabulary as v
from events.bounds import (
    MAX_AMOUNT,
    MAX_ID,
    MAX_PROPOSAL_BYTES,
    MAX_QUEUES,
    MAX_RESOURCE_TYPES,
    MAX_TALLIES,
    SUM_LIMIT,
)
from events.chain import START, ChainReader, RecordedStep, cut_into_frames
from events.cloudevents import InboxRecord, proposals, read_proposal
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    KueueSpec,
    QueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.yunikorn.columns import columns_of
from replays.checking.verify import verify

NOW = 1_767_225_600_000


def partition(*queues: QueueSpec, **more: object) -> v.ConfigurationApplied:
    """Return a configuration with these queues below root."""
    root = QueueSpec(name="root", parent=True, queues=queues)
    return v.ConfigurationApplied(configuration=YunikornSpec(root=root, **more))


def step(engine: Engine, *inputs: v.AnyInput, time: int = NOW) -> tuple[v.AnyEvent, ...]:
    """Take one step with these inputs."""
    return engine.step(time, [v.Proposal(input=one) for one in inputs])


def refusal(events: tuple[v.AnyEvent, ...]) -> str:
    """Return the reason of the only refusal among events."""
    (reason,) = [event.reason for event in events if isinstance(event, v.InputRejected)]
    return reason


def verified(events: tuple[v.AnyEvent, ...]) -> None:
    """Hold one first step, as the log would hold it, against deciding it again."""
    reader, steps = ChainReader(), list[RecordedStep]()
    fence = Engine().lead(NOW, 1, "me")
    engine = Engine()
    for number, part in enumerate((fence, events)):
        (sealed,) = cut_into_frames(
            reader.head if number else START_OF_TERM,
            part,
            time=NOW,
            decided=bool(number),
            inbox_next=0,
        )
        found = reader.accept(sealed.data, number)
        assert found is not None
        steps.append(found)
    assert verify(engine, steps) is None


START_OF_TERM = type(START)(log_id="log", term=1, leader="me")


BAD_IDS = {"a line end": "a\nb", "an escape": "\x1b[2J", "too long": "x" * (MAX_ID + 1)}


@pytest.mark.parametrize("bad", BAD_IDS)
@pytest.mark.parametrize("where", ["record", "input", "proposal"])
def test_the_id_that_counts_is_judged_wherever_it_comes_from(where: str, bad: str) -> None:
    """An id that may not be is refused by the leader, and verify decides the same."""
    name = BAD_IDS[bad]
    node = v.NodeRegistered(node="n", capacity={"vcore": 1})
    match where:
        case "record":
            (record,) = proposals([node])
            proposal = read_proposal(InboxRecord(data=record.data, id=name), 0)
        case "input":
            proposal = v.Proposal(input=v.NodeRegistered(node="n", capacity={}, proposal=name))
        case _:
            proposal = v.Proposal(input=node, id=name)
    engine = Engine()
    engine.lead(NOW, 1, "me")
    events = engine.step(NOW, [proposal])
    assert "its id" in refusal(events)
    assert (events[0].code, events[0].proposal) == ("malformed", name[:MAX_ID])
    assert not engine.state.nodes
    verified(events)


def test_a_record_with_an_id_that_may_be_is_taken_under_it() -> None:
    """The id of the record is that of the event, where the input has none."""
    engine = Engine()
    engine.lead(NOW, 1, "me")
    (record,) = proposals([v.NodeRegistered(node="n", capacity={})])
    events = engine.step(NOW, [read_proposal(InboxRecord(data=record.data, id="p é"), 0)])
    assert [(type(event), event.proposal) for event in events] == [(v.NodeRegistered, "p é")]
    verified(events)


def test_what_runs_and_what_waits_count_together() -> None:
    """1,022 allocations of 2**53 on one node and as many asks that reserve it: what no column can hold is refused."""
    engine = Engine()
    step(engine, partition(QueueSpec(name="a")), v.NodeRegistered(node="n", capacity={"vcore": 1}))
    fit = SUM_LIMIT // MAX_AMOUNT
    running, waiting = fit // 2, fit - fit // 2
    many = {"application": "app", "queue": "root.a", "resources": {"vcore": MAX_AMOUNT}}
    taken = step(
        engine,
        *(v.AllocationRestored(allocation=f"r{i}", node="n", **many) for i in range(running)),
        *(v.AskSubmitted(ask=f"a{i}", **many) for i in range(waiting)),
        *(v.ReservationRestored(ask=f"a{i}", node="n") for i in range(waiting)),
    )
    assert not [event for event in taken if isinstance(event, v.InputRejected)]
    more = v.AllocationRestored(allocation="more", node="n", **many)
    assert "makes the sum pass" in refusal(step(engine, more))
    assert "makes the sum pass" in refusal(step(engine, v.AskSubmitted(ask="more", **many)))
    columns = columns_of(engine.state)
    columns.settle()
    assert columns.available[0].tolist() == [1 - SUM_LIMIT]
    step(engine, v.NodeUpdated(node="n", capacity={"vcore": 0}), time=NOW + 60_000)
    again = snapshot.decode(snapshot.encode(engine.state), engine.state.time)
    assert again.digest() == engine.state.digest()


def test_the_largest_times_fit_into_timers_and_snapshots() -> None:
    """The longest grace from the latest moment is a timer that a snapshot holds."""
    engine = Engine()
    longest = 2**53
    leaf = QueueSpec(name="a", properties={"preemption.delay": "1s"}, guaranteed={"vcore": 1})
    other = QueueSpec(name="b")
    step(
        engine,
        partition(leaf, other, eviction_grace_ms=longest),
        v.NodeRegistered(node="n", capacity={"vcore": 1}),
        v.AllocationRestored(allocation="b", queue="root.b", node="n", resources={"vcore": 1}),
        v.AskSubmitted(ask="a", queue="root.a", resources={"vcore": 1}),
    )
    events = step(engine, time=longest)
    assert v.PreemptionDecided in [type(event) for event in events]
    assert max(timer.due for timer in engine.state.timers.armed.values()) == 2 * longest
    again = snapshot.decode(snapshot.encode(engine.state), engine.state.time)
    assert again.digest() == engine.state.digest()


def measured(*inputs: v.AnyInput) -> tuple[tuple[v.AnyEvent, ...], int]:
    """Return the events of a step that takes these inputs, and the bytes that it needed at most."""
    engine = Engine()
    tracemalloc.start()
    try:
        events = step(engine, *inputs)
        return events, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_proposal_cannot_take_half_a_gigabyte() -> None:
    """4,000 queues with a resource type each, in about 100 kB, are refused before a sum is made room for."""
    queues = tuple(QueueSpec(name=f"q{i}", maximum={f"r{i}": 1}) for i in range(4000))
    proposed = partition(*queues)
    assert len(proposals([proposed])[0].data) < MAX_PROPOSAL_BYTES
    events, peak = measured(proposed)
    assert f"names 4000 resources, expected at most {MAX_RESOURCE_TYPES}" in refusal(events)
    assert peak < 8_000_000


def test_queues_times_resource_types_are_bounded() -> None:
    """Both within their bounds, but together more sums than are kept; by a configuration or by a node that comes later."""
    types = {f"r{i}": 1 for i in range(1000)}
    most = MAX_TALLIES // len(types)
    queues = tuple(QueueSpec(name=f"q{i}") for i in range(most))
    assert len(queues) < MAX_QUEUES
    first = QueueSpec(name="first", maximum=types)
    assert "expected their product" in refusal(measured(partition(first, *queues))[0])
    events, peak = measured(partition(*queues), v.NodeRegistered(node="n", capacity=types))
    assert "resource types" in refusal(events)
    assert peak < 20_000_000


def test_types_of_former_configurations_count() -> None:
    """A type is never forgotten, so configurations that follow each other cannot pass the bound either."""
    engine = Engine()
    half = MAX_RESOURCE_TYPES // 2 + 1

    def named(letter: str) -> v.ConfigurationApplied:
        return partition(QueueSpec(name="a", maximum={f"{letter}{i}": 1 for i in range(half)}))

    assert isinstance(step(engine, named("r"))[0], v.ConfigurationApplied)
    assert isinstance(step(engine, named("r"))[0], v.ConfigurationApplied)
    assert f"at most {MAX_RESOURCE_TYPES}" in refusal(step(engine, named("s")))
    assert len(engine.state.types.names) == half


def test_pairs_of_flavor_and_resource_are_bounded() -> None:
    """Kueue's quotas make a type for each pair; ClusterQueues and Cohorts together may not make too many."""

    def group(number: int) -> ResourceGroupSpec:
        names = tuple(f"r{i}" for i in range(30))
        quotas = {name: QuotaSpec(nominal=1) for name in names}
        return ResourceGroupSpec(
            resources=names, flavors=(FlavorQuotaSpec(flavor=f"f{number}", quotas=quotas),)
        )

    few = ClusterQueueSpec(name="q0", groups=(group(0),))
    more = tuple(CohortSpec(name=f"c{i}", groups=(group(i),)) for i in range(1, 35))
    spec = KueueSpec(cluster_queues=(few,), cohorts=more)
    events, _ = measured(v.ConfigurationApplied(configuration=spec))
    assert f"at most {MAX_RESOURCE_TYPES} pairs" in refusal(events)


LONG = "n" * 150_000
LONG_NAMES = {
    "a queue above many": partition(
        QueueSpec(name=LONG, parent=True, queues=tuple(QueueSpec(name="!") for _ in range(4000)))
    ),
    "a partition": partition(QueueSpec(name="a"), partition=LONG),
    "a ClusterQueue": v.ConfigurationApplied(
        configuration=KueueSpec(
            cluster_queues=(
                ClusterQueueSpec(
                    name=LONG, groups=(ResourceGroupSpec(resources=("!",) * 4000, flavors=()),)
                ),
            )
        )
    ),
}


@pytest.mark.parametrize("whose", LONG_NAMES)
def test_a_long_name_is_not_repeated_for_everything_it_holds(whose: str) -> None:
    """What is said about a refused configuration is short, and takes little room while it is found."""
    events, peak = measured(LONG_NAMES[whose])
    assert len(refusal(events)) < 5000
    assert peak < 8_000_000


def test_an_event_says_which_program_proposed_it_and_for_whom():
    """Accepted or refused: the record's own source counts, and deciding again finds the same."""
    engine = Engine()
    engine.lead(NOW, 1, "me")
    applied = v.ConfigurationApplied(
        configuration=partition(QueueSpec(name="a")).configuration,
        actor="ann",
        source="/copied/from/elsewhere",
        message="A queue for the sale",
    )
    lost = read_proposal(InboxRecord(data=b'{"type":"Nothing","actor":"bob"}', source="/x"), 7)
    events = engine.step(
        NOW,
        [
            v.Proposal(input=applied, source="/evsched/config/apply"),
            v.Proposal(input=v.NodeRemoved(node="n1", actor="ann", source="/agents/7")),
            lost,
        ],
    )
    said = [(type(one).__name__, one.source, one.actor) for one in events if not one.cause]
    assert said == [
        ("ConfigurationApplied", "/evsched/config/apply", "ann"),
        ("InputRejected", "/agents/7", "ann"),
        ("InputRejected", "/x", "bob"),
    ]
    assert events[0].message == "A queue for the sale"
    verified(events)


def test_an_actor_that_cannot_be_shown_is_refused():
    """Who did it is read by auditors, so it is held to what every name is."""
    events = step(Engine(), v.NodeRegistered(node="n1", capacity={}, actor="a\nb"))
    assert refusal(events) == "name 'a\\nb': holds control characters, expected printable ones"

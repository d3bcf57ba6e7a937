"""What a new configuration would do, said before it is applied."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    FlavorSpec,
    KueueSpec,
    LimitSpec,
    QueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from evsched.config.difference import Above, ChangedField, HeldUp, TimerChange, describe
from evsched.core.engine import Engine
from tests.core.histories import configurations, first_step, histories
from tests.core.quota_clusters import START, Cluster, partition, pod, pods, queue
from tests.examples import examples


def test_the_same_configuration_makes_no_difference():
    """Not even where something runs above its maximum already."""
    same = partition(queue("a", maximum={"vcore": 2000}, delay=60))
    assert describe(same, same).empty
    assert [*describe(same, same).sentences()] == []


def test_queues_that_come_go_and_change():
    """Fields are named as in the file, amounts written as there."""
    old = partition(
        queue("a", maximum={"vcore": 2000}, properties={"priority.offset": "1"}), queue("b")
    )
    new = partition(
        queue("a", maximum={"vcore": 1500, "memory": 10**9}, submit_acl="ann"),
        queue("c"),
        quota_miss_percent=10,
    )
    found = describe(old, new)
    assert (found.added, found.removed) == (("queue root.c",), ("queue root.b",))
    assert found.changed == (
        ChangedField(
            subject="partition default",
            field="preemption.quota.preemption.miss",
            before="100%",
            after="10%",
        ),
        ChangedField(subject="queue root.a", field="resources.max.memory", before=None, after="1G"),
        ChangedField(
            subject="queue root.a", field="resources.max.vcore", before="2", after="1500m"
        ),
        ChangedField(subject="queue root.a", field="submitacl", before=None, after="ann"),
        ChangedField(
            subject="queue root.a", field="properties.priority.offset", before="1", after=None
        ),
    )
    assert [*found.sentences()] == [
        "queue root.c: added",
        "queue root.b: removed",
        "partition default: preemption.quota.preemption.miss 100% → 10%",
        "queue root.a: resources.max.memory not set → 1G",
        "queue root.a: resources.max.vcore 2 → 1500m",
        "queue root.a: submitacl not set → ann",
        "queue root.a: properties.priority.offset 1 → not set",
    ]


def test_the_first_configuration_only_adds():
    """Nothing was there, so nothing is removed or changed."""
    found = describe(None, partition(queue("a")))
    assert found.added == ("partition default", "queue root", "queue root.a")
    assert not found.removed
    assert not found.changed


def test_timers_that_start_restart_and_are_cancelled():
    """What quota enforcement itself says it would do."""
    cluster = Cluster(
        partition(
            queue("a", maximum={"vcore": 5}, delay=60),
            queue("b", maximum={"vcore": 5}, delay=60),
            queue("c"),
        )
    )
    new = partition(
        queue("a", maximum={"vcore": 4}, delay=60),
        queue("b", maximum={"vcore": 6}, delay=60),
        queue("c", maximum={"vcore": 1}, delay=90),
    )
    found = describe(None, new, cluster.engine.state)
    assert found.timers == (
        TimerChange(
            queue="root.a",
            action="restarts",
            delay_ms=60_000,
            reason="maximum was lowered; enforced after 1m",
        ),
        TimerChange(
            queue="root.b", action="is cancelled", delay_ms=None, reason="maximum was raised"
        ),
        TimerChange(
            queue="root.c",
            action="starts",
            delay_ms=90_000,
            reason="has a maximum now; enforced after 1m30s",
        ),
    )
    assert "queue root.b: quota enforcement is cancelled: maximum was raised" in [
        *found.sentences()
    ]


def test_what_runs_above_and_what_waits_in_vain():
    """Usage above new maxima, and asks that no empty cluster could take any more, each with the queue that is in the way."""
    old = partition(queue("a", queue("x"), queue("y")), queue("gone"))
    cluster = Cluster(old, *pods(3, "root.a.x", {"vcore": 1000}))
    waiting = {"application": "w", "user": "ann", "resources": {"vcore": 10**9}}
    cluster.give(
        v.AskSubmitted(ask="1", queue="root.a.y", **waiting),
        v.AskSubmitted(ask="2", queue="root.a.y", **waiting),
        v.AskSubmitted(ask="3", queue="root.gone", application="g", resources={"vcore": 10**9}),
        v.AskSubmitted(
            ask="4", queue="root.a.x", application="v", user="eve", resources={"vcore": 10**9}
        ),
    )
    limit = LimitSpec(users=("eve",), max_resources={"vcore": 500})
    state = cluster.engine.state
    digest = state.digest()
    found = describe(
        None,
        partition(queue("a", queue("x", limits=(limit,)), queue("y"), maximum={"vcore": 2000})),
        state,
    )
    assert found.above == (Above(queue="root.a", resource="vcore", used=3000, maximum=2000),)
    assert found.held_up == (
        HeldUp(
            ask="1",
            queue="root.a.y",
            reason="queue root.a may use at most vcore 2, 1000000 are asked for",
        ),
        HeldUp(
            ask="2",
            queue="root.a.y",
            reason="queue root.a may use at most vcore 2, 1000000 are asked for",
        ),
        HeldUp(
            ask="3", queue="root.gone", reason="queue root.gone is no longer in the configuration"
        ),
        HeldUp(
            ask="4",
            queue="root.a.x",
            reason="queue root.a.x: user eve may use at most vcore 500m, 1000000 are asked for",
        ),
    )
    assert [*found.sentences()][-3:] == [
        "2 asks (1, …): cannot be bound any more: queue root.a may use at most vcore 2, 1000000 are asked for",
        "ask 3: cannot be bound any more: queue root.gone is no longer in the configuration",
        "ask 4: cannot be bound any more: queue root.a.x: user eve may use at most vcore 500m, 1000000 are asked for",
    ]
    assert state.digest() == digest
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_what_would_be_refused():
    """The leader's own checks: nothing is said of a state that the configuration will never meet."""
    cluster = Cluster(partition(queue("a")), pod("p", "root.a", {"vcore": 1}))
    found = describe(None, partition(queue("a", queue("x"))), cluster.engine.state)
    assert (
        found.refused == "configuration: queue root.a becomes a parent while applications run in it"
    )
    assert next(iter(found.sentences())).startswith(
        "it would be refused: configuration: queue root.a"
    )


def kueue(nominal, **fields):
    """Return one ClusterQueue in a cohort, with this quota of cpu, beside one with 2."""

    def group(amount):
        quotas = FlavorQuotaSpec(flavor="default", quotas={"cpu": QuotaSpec(nominal=amount)})
        return (ResourceGroupSpec(resources=("cpu",), flavors=(quotas,)),)

    queues = (
        ClusterQueueSpec(name="team", cohort="org", groups=group(nominal), **fields),
        ClusterQueueSpec(name="other", cohort="org", groups=group(2000)),
    )
    return KueueSpec(
        flavors=(FlavorSpec(name="default"),),
        cohorts=(CohortSpec(name="org"),),
        cluster_queues=queues,
    )


def test_kueue_manifests():
    """Quotas by flavor and resource; an ask beyond all that could be borrowed can never be admitted."""
    engine = Engine()
    engine.step(START, [v.Proposal(input=v.ConfigurationApplied(configuration=kueue(9000)))])
    running = v.AllocationRestored(
        allocation="r", queue="team", resources={"cpu": 8000}, flavors={"cpu": "default"}
    )
    asking = v.AskSubmitted(ask="w", queue="team", resources={"cpu": 9000})
    engine.step(START, [v.Proposal(input=running), v.Proposal(input=asking)], decide=False)
    found = describe(None, kueue(4000, strict_fifo=True), engine.state)
    assert found.changed == (
        ChangedField(
            subject="ClusterQueue team", field="strict_fifo", before="false", after="true"
        ),
        ChangedField(
            subject="ClusterQueue team",
            field="quota default/cpu.nominalQuota",
            before="9",
            after="4",
        ),
    )
    assert found.above == (Above(queue="team", resource="default/cpu", used=8000, maximum=6000),)
    said = [*found.sentences()]
    assert "queue team: uses default/cpu 8, above its maximum 6" in said
    assert found.held_up == (
        HeldUp(
            ask="w",
            queue="team",
            reason="ClusterQueue team could use at most cpu 6, 9 are asked for",
        ),
    )


@given(configurations(), histories, configurations())
@examples(60)
def test_the_timers_it_names_are_those_that_the_leader_arms(first, history, new):
    """What is said before a configuration is applied is what happens when it is; the state is not touched by asking."""
    engine, now = Engine(), START
    engine.step(now, first_step(first))
    for wait, inputs, _ in history:
        now += wait
        engine.step(now, [v.Proposal(input=one) for one in inputs])
    digest = engine.state.digest()
    found = describe(None, new, engine.state)
    assert engine.state.digest() == digest
    events = engine.step(
        now, [v.Proposal(input=v.ConfigurationApplied(configuration=new))], decide=False
    )
    rejected = [event.reason for event in events if isinstance(event, v.InputRejected)]
    assert rejected == ([] if found.refused is None else [found.refused])
    scheduled = {
        event.queue: event.at - now
        for event in events
        if isinstance(event, v.QuotaPreemptionScheduled)
    }
    cancelled = [event.queue for event in events if isinstance(event, v.QuotaPreemptionCancelled)]
    assert {
        one.queue: one.delay_ms for one in found.timers if one.delay_ms is not None
    } == scheduled
    assert [one.queue for one in found.timers if one.delay_ms is None] == cancelled


@given(configurations(), configurations(), st.booleans())
@examples(60)
def test_a_difference_is_empty_only_between_equals(one, other, same):
    """Whatever differs in the model shows in the fields."""
    other = one if same else other
    assert describe(one, other).empty is (one == other)
    assert isinstance(one, YunikornSpec)
    assert isinstance(one.root, QueueSpec)

"""Quota enforcement for ClusterQueues: when nominal quotas are lowered, with a delay."""

import pytest

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from tests.core.kueue.plain import Partition, queue, runs

DELAY = {"quota_preemption_delay_ms": 10_000}


def lowered(partition, *queues):
    """Apply other queues and return what was written."""
    return partition.does(v.ConfigurationApplied(configuration=Partition(*queues).spec))


def victims(events):
    """Return the victims of quota enforcement by queue."""
    return {
        event.queue: [one.id for one in event.victims]
        for event in events
        if isinstance(event, v.QuotaPreemptionDecided)
    }


def test_usage_comes_down_to_a_lowered_nominal_quota_after_the_delay():
    """Nothing happens before; then the least important workloads go, as many as needed."""
    partition = Partition(queue("q", cpu=10, **DELAY))
    partition.does(*(runs(f"w{number}", "q", number, cpu=2) for number in range(5)))
    scheduled = lowered(partition, queue("q", cpu=5, **DELAY))
    assert [event.at for event in scheduled if isinstance(event, v.QuotaPreemptionScheduled)] == [
        partition.now + 10_000
    ]
    assert victims(partition.after(9)) == {}
    assert victims(partition.after(1)) == {"q": ["w0", "w1", "w2"]}


def test_without_a_delay_nobody_goes():
    """No annotation, no enforcement: so does the real scheduler."""
    partition = Partition(queue("q", cpu=10))
    partition.does(runs("w", "q", cpu=8))
    lowered(partition, queue("q", cpu=5))
    assert victims(partition.after(3600)) == {}


@pytest.mark.parametrize(("others", "gone"), [(0, {}), (5, {"q": ["w1"]})])
def test_what_the_cohort_can_lend_may_stay(others, gone):
    """Usage above nominal is borrowed; only what the tree cannot hold has to go."""
    partition = Partition(queue("q", "team", cpu=8, **DELAY), queue("o", "team", cpu=5))
    partition.does(runs("w1", "q", cpu=4), runs("w2", "q", 1, cpu=4))
    if others:
        partition.does(runs("o1", "o", cpu=others))
    lowered(partition, queue("q", "team", cpu=4, **DELAY), queue("o", "team", cpu=5))
    assert victims(partition.after(10)) == gone


def test_a_borrowing_limit_holds_too():
    """What is above nominal and limit goes, though the cohort had room."""
    partition = Partition(queue("q", "team", cpu=8, **DELAY), queue("o", "team", cpu=50))
    partition.does(runs("w1", "q", cpu=4), runs("w2", "q", 1, cpu=4))
    lowered(partition, queue("q", "team", cpu=(4, 0, None), **DELAY), queue("o", "team", cpu=50))
    assert victims(partition.after(10)) == {"q": ["w1"]}


def test_a_restart_forgets_nothing_of_the_delay():
    """The timer is state."""
    partition = Partition(queue("q", cpu=10, **DELAY))
    partition.does(runs("w", "q", cpu=8))
    lowered(partition, queue("q", cpu=5, **DELAY))
    partition.after(5)
    partition.engine = Engine(
        snapshot.decode(snapshot.encode(partition.engine.state), partition.now)
    )
    assert victims(partition.after(5)) == {"q": ["w"]}

"""What-if: an unchanged configuration reproduces the log; another one tells what it would have changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from replays.checking.tried import ConfigurationRefused, TriedConfiguration
from replays.checking.whatif import EvictionTimes
from replays.checking.worlds import WhatIf
from replays.history.rebuild import apply_step
from replays.history.steps import copy
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.replays.test_anonymise import run
from tests.replays.test_explain import Cluster, queue


def tried(steps, configuration, start=0, *, throughout=False):
    """Run a what-if over steps, from the step number ``start`` on."""
    recorded = Engine()
    for step in steps[:start]:
        apply_step(recorded, step)
    rest = steps[start:]
    evictions = EvictionTimes()
    for step in rest:
        evictions.take(step)
    candidate = (
        None if configuration is None else TriedConfiguration(configuration, throughout=throughout)
    )
    run = WhatIf(recorded, copy(recorded), candidate, evictions.median_ms())
    for step in rest:
        run.take(step)
    return run.answer()


@given(configurations(), histories)
@examples(40)
def test_an_unchanged_configuration_reproduces_any_log(configuration, history):
    """From the beginning and from the middle, event by event."""
    steps = run(configuration, history)
    assert tried(steps, None).identical
    assert tried(steps, configuration).identical
    half = len(steps) // 2
    engine = Engine()
    for step in steps[:half]:
        apply_step(engine, step)
    applied = [
        event.configuration for event in steps[half].events if type(event) is v.ConfigurationApplied
    ]
    report = tried(steps, applied[-1] if applied else engine.state.configuration, half)
    assert report.identical
    assert report.changes == ()
    assert (report.left_out, report.confirmed, report.moved, report.refused) == (0, 0, 0, 0)


def starved():
    """Return a cluster in which prod preempts test after 31 s, the eviction takes 4 s, and prod's pod ends after a minute."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test"))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    cluster.step(31_000)
    cluster.step(4000, v.AllocationReleased(allocation="t3", reason="preempted"))
    cluster.step(60_000, v.AllocationReleased(allocation="p1"))
    return cluster


def spec(cluster, **changes):
    """Return the configuration of a cluster with another guarantee of prod."""
    root = cluster.engine.state.configuration.root
    prod = replace(root.queues[0], **changes)
    return replace(
        cluster.engine.state.configuration, root=replace(root, queues=(prod, *root.queues[1:]))
    )


def test_without_the_guarantee_nobody_would_have_had_to_go():
    """The eviction did not happen, so its confirmation is left out; prod's pod waits on."""
    cluster = starved()
    report = tried(cluster.steps, spec(cluster, guaranteed=None))
    assert not report.identical
    assert report.left_out == 1
    assert (report.recorded["root.test"].victims, report.supposed.get("root.test").victims) == (
        1,
        0,
    )
    assert report.supposed["root.prod"].waited_ms > report.recorded["root.prod"].waited_ms
    changes = {(change.subject, change.kind): change.supposed for change in report.changes}
    assert changes["t3", "evicted"] is None
    assert changes["p1", "bound"] is None


def test_with_a_shorter_delay_it_would_have_happened_sooner():
    """The eviction that only happens there is confirmed after the recorded time, and the pod's life moves with its beginning."""
    cluster = starved()
    report = tried(cluster.steps, spec(cluster, properties={"preemption.delay": "1s"}))
    assert report.eviction_ms == 5000
    assert report.confirmed == 1
    assert report.supposed["root.prod"].waited_ms < report.recorded["root.prod"].waited_ms
    assert report.moved == 1


def test_a_configuration_that_is_invalid_is_refused():
    """Nothing is compared with a configuration that could never have been in force."""
    cluster = starved()
    bad = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(queue("a", 5000, 1000),)))
    with pytest.raises(ConfigurationRefused):
        tried(cluster.steps, bad, start=3)


def reconfigured():
    """Return a cluster whose prod is guaranteed less after 10 s, and nothing from 20 s on, before it may preempt."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test"))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    for guaranteed in (1000, None):
        applied = spec(cluster, guaranteed={"vcore": guaranteed} if guaranteed else None)
        cluster.step(10_000, v.ConfigurationApplied(configuration=applied))
    cluster.step(40_000)
    return cluster


def test_the_answer_says_over_which_stretch_the_candidate_was_in_force():
    """It ends where another configuration was applied; before, a reader took it for the whole log."""
    cluster = reconfigured()
    candidate = spec(cluster, guaranteed={"vcore": 2000})
    applied = [
        (event.seq, step.time)
        for step in cluster.steps
        for event in step.events
        if type(event) is v.ConfigurationApplied
    ]
    stretch = tried(cluster.steps, candidate).stretch
    assert [(stretch.first, stretch.begin), (stretch.last, stretch.end)] == applied[:2]
    assert stretch.replaced == 0
    # From the middle on it is applied right before the first step that is taken.
    half = next(n for n, step in enumerate(cluster.steps) if step.events[0].seq > applied[0][0])
    stretch = tried(cluster.steps, candidate, half).stretch
    assert stretch.first == cluster.steps[half].events[0].seq
    assert stretch.last == applied[1][0]


def test_throughout_keeps_the_candidate_in_force():
    """What was applied later gives way to it, and it decides to the end."""
    cluster = reconfigured()
    candidate = spec(cluster, guaranteed={"vcore": 2000})
    report = tried(cluster.steps, candidate, throughout=True)
    assert (report.stretch.last, report.stretch.end, report.stretch.replaced) == (None, None, 2)
    # Recorded was nothing: prod was guaranteed nothing any more when its 30 s were over.
    evicted = [one for one in report.changes if one.kind == "evicted"]
    assert [(one.recorded, one.supposed.ask) for one in evicted] == [(None, "p1")]

"""Metrics: functions of the log, in the names that dashboards ask for."""

from __future__ import annotations

import re
import subprocess
from contextlib import closing
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from events import vocabulary as v
from evsched.api.metrics import counts as counts_module
from evsched.api.metrics.counts import OTHER, Counts, decode, encode
from evsched.api.metrics.fold import MetricsFold
from evsched.api.metrics.scrape import Scrape, Vitals, metrics, written
from evsched.core.reducer import apply
from evsched.core.state import State
from projections import read_model
from projections.read_model import ReadModel, Rebuild
from tests.api.metrics.promtool import promtool
from tests.core.histories import configurations, histories
from tests.core.kueue.test_history import run
from tests.examples import examples
from tests.projections.test_asof import steps_of
from tests.replays.logs import read, sealed, story

OPEN = "application/openmetrics-text; version=1.0.0"


def followed(steps):
    """Return state and fold after these steps."""
    state, fold = State(), MetricsFold()
    assert fold.begin(state, None)
    for step in steps:
        for event in step.events:
            state.time = step.time
            fold.before(event, state)
            apply(state, event)
            fold.after(event, state)
        fold.end(step, state)
    return state, fold


def scraped(state, fold, accepted="text/plain", **vitals):
    """Return the text of a scrape."""
    return written(metrics(Scrape(state, fold, Vitals(**vitals))), accepted)[0].decode()


def samples(found, parse=plain_text):
    """Return the samples of a text: name and labels to value."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(found)
        for sample in family.samples
    }


def values(found, name, **labels):
    """Return the values of one metric of a text with these labels, by its other labels."""
    return {
        tuple(value for key, value in key_labels if key not in labels): value
        for (metric, key_labels), value in samples(found).items()
        if metric == name and labels.items() <= dict(key_labels).items()
    }


@pytest.fixture(name="told", scope="module")
def told_story():
    """Return state and fold at the end of the small story."""
    return followed(read(sealed(story())))


def test_preemptions_are_counted_by_preemptor_victim_and_rule(told):
    """A victim counts for the queue that wanted its room, its own, and the rule; one of a lowered quota has no preemptor."""
    assert values(scraped(*told), "evsched_preemptions_total") == {
        ("root.prod", "guarantee", "root.test"): 1,
        ("", "quota", "root.test"): 2,
    }


def test_a_guarantee_that_was_not_met_counts_its_amount_seconds(told):
    """Prod lacked 2 cores for the 7.5 s from its ask to its room: 15,000 thousandths of a core times seconds."""
    assert values(scraped(*told), "evsched_guarantee_unmet_total") == {
        ("root.prod", "vcore"): 15_000
    }


def test_the_seq_that_moved_a_counter_is_its_exemplar(told):
    """In OpenMetrics a counter names the event that moved it last, and a bucket the last event in it."""
    found = scraped(*told, OPEN)
    assert 'evsched_preemptions_total{preemptor_queue="root.prod",' in found
    (line,) = re.findall(r"evsched_preemptions_total\{preemptor_queue=\"root.prod\".*", found)
    assert '# {seq="21"}' in line
    (bucket,) = re.findall(r"evsched_decided_to_gone_seconds_bucket.*le=\"5.0\".*", found)
    assert '# {seq="24"} 2.5' in bucket
    assert found.endswith("# EOF\n")


def naive(steps):
    """Count by looking at everything after every event: waiting since, lacking amount-milliseconds, bound, released."""
    state, time = State(), steps[0].time
    unmet, bound, released = {}, {}, {}
    for step in steps:
        for queue in state.queues.values():
            for index, guaranteed in queue.guaranteed.items():
                short = min(guaranteed - queue.usage[index], queue.pending[index])
                if short > 0:
                    key = (queue.path, state.types.names[index])
                    unmet[key] = unmet.get(key, 0) + short * (step.time - time)
        time = step.time
        for event in step.events:
            if isinstance(event, v.AllocationReleased):
                path = state.allocations[event.allocation].queue
                released[path] = released.get(path, 0) + 1
            state.time = step.time
            apply(state, event)
            if isinstance(event, v.AllocationBound):
                path = state.allocations[event.ask].queue
                bound[path] = bound.get(path, 0) + 1
    return state, unmet, bound, released


@given(configurations(), histories)
@examples(40)
def test_what_is_kept_is_what_counting_everything_gives(configuration, history):
    """Counters, the oldest ask, how applications stand and what was not met are those of looking at everything each time."""
    steps = steps_of(configuration, history)
    state, fold = followed(steps)
    expected, unmet, bound, released = naive(steps)
    assert {key: one for key, one in fold.unmet(state.time).items() if one} == {
        key: one for key, one in unmet.items() if one
    }
    assert {key[0]: one.value for key, one in fold.counts.series("bound").items()} == bound
    over = {}
    for labels, one in fold.counts.series("released").items():
        over[labels[0]] = over.get(labels[0], 0) + one.value
    assert over == released
    oldest = {}
    for ask in expected.asks.values():
        oldest[ask.queue] = min(ask.created, oldest.get(ask.queue, ask.created))
    assert fold.oldest() == oldest
    standing, running = {}, {}
    for application in expected.applications.values():
        how = "running" if application.allocations else "accepted" if application.asks else "new"
        for queue in application.leaf.lineage:
            standing[queue.path, how] = standing.get((queue.path, how), 0) + 1
        path = application.leaf.path
        running[path] = running.get(path, 0) + len(application.allocations)
    assert fold.standing == standing
    assert {path: fold.admitted(path) for path in running} == running


@given(configurations(), histories, st.data())
@examples(12)
def test_a_restart_changes_no_metric(tmp_path_factory, configuration, history, data):
    """A server that stopped at any step and went on from its file shows what one shows that never stopped."""
    steps = steps_of(configuration, history)
    at = data.draw(st.integers(0, len(steps)))
    path = tmp_path_factory.mktemp("metrics") / "model.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_model, "KEEP_STATE_EVERY", data.draw(st.sampled_from([1, 5, 1000])))
        for part in (steps[:at], steps):
            fold = MetricsFold()
            with closing(ReadModel(path, "", fold=fold)) as model:
                for step in part:
                    if step.head.frame > model.resume_at.frame:
                        model.take(step)
                        model.commit()
                shown = scraped(model.state, fold, OPEN)
    assert shown == scraped(*followed(steps), OPEN)


def test_what_was_kept_without_metrics_is_counted_anew(tmp_path):
    """A read model that was rebuilt without metrics, or by another version of them, gives them by reading the log again."""
    steps = read(sealed(story()))
    log_id = steps[0].head.log_id
    rebuild = Rebuild(tmp_path / "model.db", log_id)
    for step in steps:
        rebuild.take(step)
    rebuild.finish()
    fold = MetricsFold()
    with closing(ReadModel(tmp_path / "model.db", log_id, fold=fold)) as model:
        assert model.resume_at.frame == 0
        for step in steps:
            model.take(step)
        assert scraped(model.state, fold) == scraped(*followed(steps))
    assert decode(encode(Counts(version=counts_module.VERSION + 1))) is None
    assert decode(b"torn") is None


@given(st.integers(0, 2**32))
@examples(6)
def test_a_kueue_configuration_has_kueues_names(seed):
    """Every metric of Kueue's that published queries ask for is there, all with the replica's role; none of YuniKorn's is."""
    frames, _, engine = run(seed)
    state, fold = followed([SimpleNamespace(time=time, events=events) for time, events in frames])
    found = scraped(state, fold)
    pending = values(found, "kueue_pending_workloads", status="active")
    assert sum(pending.values()) == len(engine.state.asks)
    assert sum(values(found, "kueue_admitted_active_workloads").values()) == len(
        engine.state.allocations
    )
    names = {family.name for family in plain_text(found)}
    for name in (
        "kueue_cluster_queue_resource_usage", "kueue_cluster_queue_nominal_quota", "kueue_cluster_queue_status",
        "kueue_pending_workloads", "kueue_admission_wait_time_seconds", "kueue_admitted_workloads",
        "kueue_finished_workloads", "kueue_evicted_workloads", "kueue_workload_eviction_latency_seconds",
        "kueue_preempted_workloads", "kueue_admitted_until_ready_wait_time_seconds",
        "kueue_pod_scheduling_gate_removal_seconds",
    ):  # fmt: skip
        assert name in names
    assert all(
        dict(labels).get("replica_role") == "leader"
        for name, labels in samples(found)
        if name.startswith("kueue_")
    )
    assert not [name for name in names if name.startswith("yunikorn_")]


def test_the_names_of_yunikorns_published_dashboard_are_there(told):
    """Both the labelled metrics of today and those with the path in their name show the same amounts."""
    found = scraped(*told)
    now = values(found, "yunikorn_queue_resource", queue="root.test")
    assert now == values(found, "yunikorn_root_test_queue_resource")
    assert now["vcore", "allocated"] == 6000
    assert values(found, "yunikorn_root_test_queue_container") == {
        ("allocated",): 4,
        ("released",): 1,
    }
    assert values(found, "yunikorn_scheduler_container_allocation_attempt_total") == {
        ("allocated",): 6, ("error",): 0, ("rejected",): 1, ("released",): 2,
    }  # fmt: skip
    assert values(found, "yunikorn_scheduler_application_total") == {
        ("accepted",): 0, ("completed",): 1, ("new",): 0, ("running",): 2,
    }  # fmt: skip
    assert values(found, "yunikorn_scheduler_scheduling_latency_milliseconds_count") == {(): 0}


def test_series_are_bounded(monkeypatch):
    """Beyond a number of label values everything counts as `other`, and nothing is lost from the sum."""
    monkeypatch.setattr(counts_module, "MOST_SERIES", 3)
    found = Counts()
    for number in range(10):
        found.add("x", (f"q{number}", "rule"), number, 0)
        found.observe("y", (f"q{number}",), number, 5)
    assert list(found.series("x")) == [(f"q{n}", "rule") for n in range(3)] + [(OTHER, OTHER)]
    assert sum(one.value for one in found.series("x").values()) == 10
    assert sum(sum(one.buckets) for one in found.spreads["y"].values()) == 10


def test_what_this_process_knows_of_the_leader_is_shown(told):
    """Heartbeat age and lag are shown where they are known; before everything is read nothing is counted out."""
    found = scraped(*told, heartbeat_age_ms=1500, lag_frames=3, ready=False)
    assert values(found, "evsched_heartbeat_age_seconds") == {(): 1.5}
    assert values(found, "evsched_log_lag_frames") == {(): 3}
    assert values(found, "evsched_ready") == {(): 0}
    assert "evsched_seq" not in found
    assert "yunikorn_" not in found
    assert values(scraped(*told), "evsched_heartbeat_age_seconds") == {}


@given(configurations(), histories)
@examples(8)
def test_both_texts_are_read_by_the_parsers_of_the_library(configuration, history):
    """Plain text and OpenMetrics of any history parse, and say the same."""
    state, fold = followed(steps_of(configuration, history))
    open_found = samples(scraped(state, fold, OPEN), openmetrics)
    assert open_found == samples(scraped(state, fold))


def test_promtool_finds_no_fault_in_the_text(told):
    """Prometheus' own linter reads the text; names that are YuniKorn's and Kueue's it may find ugly, our own it may not."""
    done = subprocess.run(
        [promtool(), "check", "metrics"],
        input=scraped(*told),
        text=True,
        capture_output=True,
        check=False,
    )
    assert "error while linting" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("evsched_")] == []


def test_the_last_verification_is_shown(told):
    """What the last verification came to has the value 1, everything else 0."""
    found = values(scraped(*told, verification="different"), "evsched_verification_state")
    assert found == {("none",): 0, ("equal",): 0, ("different",): 1, ("damaged",): 0}

"""The timeline of a read model says what a walk through the log says."""

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from events import vocabulary as v
from evsched.core.reducer import apply
from evsched.core.state import State
from projections.read_model import ReadModel
from replays.history.timeline import MOST_BUCKETS, TimelineQuestion, timeline
from replays.history.views import queues
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.projections.test_asof import steps_of


def walked(steps, edges):
    """Return what the naive way finds at and between edges: every event applied, one after the other."""
    state = State()
    states = {0: {}}
    evictions, refusals = [0] * (len(edges) - 1), [0] * (len(edges) - 1)
    places = [edge.seq for edge in edges]
    for step in steps:
        state.time = step.time
        for event in step.events:
            apply(state, event)
            states[event.seq] = {row.queue: row for row in queues(state)}
            bucket = bisect_left(places, event.seq) - 1
            if not 0 <= bucket < len(evictions):
                continue
            if isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
                evictions[bucket] += len(event.victims)
            refusals[bucket] += isinstance(event, v.InputRejected)
    return states, evictions, refusals


@given(
    configurations(), histories, st.data(), st.integers(1, 40), st.sampled_from(["events", "time"])
)
@examples(25)
def test_the_timeline_is_what_a_walk_through_the_log_finds(
    tmp_path_factory, configuration, history, data, buckets, scale
):
    """Any stretch of any history, in any number of pieces: counts, usage and limits are those of the state.

    Within a step, amounts are those of the step before: they are written down at the end of steps.
    """
    steps = steps_of(configuration, history)
    path = tmp_path_factory.mktemp("model") / "model.db"
    model = ReadModel(path, "log")
    for step in steps:
        model.take(step)
    model.commit()
    model.close()
    last = steps[-1].head.next_seq - 1
    start = data.draw(st.integers(0, last))
    end = data.draw(st.integers(start, last))
    question = TimelineQuestion(start=start, end=end, buckets=buckets, scale=scale, lanes="*")
    found = timeline(path, question)

    places = [edge.seq for edge in found.edges]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (start, end)
    assert len(places) <= buckets + 1
    times = {event.seq: step.time for step in steps for event in step.events}
    assert all(edge.time == times.get(edge.seq, steps[0].time) for edge in found.edges)

    states, evictions, refusals = walked(steps, found.edges)
    assert (found.evictions, found.refusals) == (evictions, refusals)
    leaves = sorted(row.queue for row in states[end].values() if row.leaf)
    assert [lane.queue for lane in found.lanes] == leaves
    ends = [0, *(step.events[-1].seq for step in steps)]
    for lane in found.lanes:
        for number, place in enumerate(places):
            row = states[ends[bisect_right(ends, place) - 1]].get(lane.queue)
            used = {name: series[number] for name, series in lane.used.items() if series[number]}
            assert used == (row.usage if row is not None else {})
            assert lane.waiting[number] == (row.pending_asks if row is not None else 0)
            row = states[place].get(lane.queue)
            limits = [one for one in lane.limits if one.seq <= place]
            if row is not None and row.maximum is not UNSET:
                assert (limits[-1].guaranteed, limits[-1].maximum) == (row.guaranteed, row.maximum)
    marks = [mark.seq for mark in found.marks if mark.kind == "configuration"]
    applied = [
        event.seq
        for step in steps
        for event in step.events
        if isinstance(event, v.ConfigurationApplied) and start < event.seq <= end
    ]
    assert marks == applied


@pytest.mark.parametrize(
    "question",
    [
        TimelineQuestion(buckets=0),
        TimelineQuestion(buckets=MOST_BUCKETS + 1),
        TimelineQuestion(start=3, end=2),
    ],
)
def test_a_stretch_that_makes_no_sense_is_refused(tmp_path, question):
    """Too few pieces, too many, and an end before the start; the sentence names the field."""
    with pytest.raises(ValueError, match=r"^(buckets|end): found"):
        timeline(tmp_path / "none.db", question)

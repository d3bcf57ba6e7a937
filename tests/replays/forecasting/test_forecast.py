"""Forecasts: the engine runs ahead of small clusters whose future can be told by hand."""

import pytest
from hypothesis import given

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    FlavorQuotaSpec,
    FlavorSpec,
    KueueSpec,
    QueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from evsched.core.engine import Engine
from replays.forecasting.arrivals import PastArrivals
from replays.forecasting.backtest import Band
from replays.forecasting.draws import Draws
from replays.forecasting.forecast import ForecastQuestion, NotForecast, forecast
from replays.forecasting.levers import levers
from replays.forecasting.past import Learning
from replays.forecasting.running_ahead import RunAhead, RunRefused
from replays.history.rebuild import History, apply_step
from replays.history.steps import copier
from tests.core.histories import configurations, histories
from tests.core.kueue.cohorts import engine_with, problem
from tests.examples import examples
from tests.replays.logs import read, sealed, taken, written

MINUTE = 60_000


def pod(name, leaf="web", vcore=4000, **more):
    """Return an ask for half of the node."""
    resources = {"vcore": vcore}
    return v.AskSubmitted(
        ask=name, application=leaf, queue=f"root.{leaf}", resources=resources, **more
    )


def spec(*leaves):
    """Return queues below root, to which everybody may submit."""
    return YunikornSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves))


WEB = QueueSpec(name="web", maximum={"vcore": 8000})
OTHER = QueueSpec(name="other")
CLUSTER = [v.NodeRemoved(node="n2"), v.NodeRemoved(node="n3")]


def busy(lives=30, *leaves):
    """Return the steps of a cluster in which every pod of web runs a minute, and one more than fits waits.

    The pods of the past came one by one; of the two that run now one is 20 seconds old, the other 10.
    """
    history = [(0, [v.NodeUpdated(node="n1", capacity={"vcore": 8000}), *CLUSTER], False)]
    for number in range(lives):
        history.append((1000, [pod(f"p{number}")], False))
        history.append((MINUTE, [v.AllocationReleased(allocation=f"p{number}")], False))
    history += [
        (1000, [pod("old")], False),
        (10_000, [pod("young")], False),
        (10_000, [pod("next")], False),
    ]
    return taken(spec(*(leaves or (WEB, OTHER))), history)


async def asked(steps, subject, **more):
    """Ask about a subject at the end of a log; few runs, as each is told by hand."""
    history = History(await written(sealed(steps)))
    more = {"runs": 10, "horizon_ms": 10 * MINUTE, "backtest": 0, "changes": False, **more}
    return await forecast(history, ForecastQuestion(subject=subject, **more))


async def test_an_ask_starts_when_the_first_that_runs_ends():
    """All lived a minute, the older one for 20 s: every run starts the ask 40 s from now."""
    found = await asked(busy(), "next", arrivals=False)
    (one,) = found.asks
    assert (one.p10_ms, one.p50_ms, one.p90_ms) == (40_000, 40_000, 40_000)
    assert (one.started, one.preempted, found.ends) == (10, 0, 30)


async def test_the_same_question_has_the_same_answer():
    """With arrivals, changes and a back-test; another seed may say something else."""
    more = {"changes": True, "backtest": 2, "runs": 4}
    first = await asked(busy(), "next", **more)
    assert first == await asked(busy(), "next", **more)
    assert first.arrived == 33


async def test_nothing_is_written_and_the_state_stays():
    """The log is as long as before."""
    history = History(await written(sealed(busy())))
    before = await history.log.end()
    question = ForecastQuestion(subject="next", runs=2, backtest=1)
    await forecast(history, question)
    assert await history.log.end() == before


async def test_an_ask_that_no_end_lets_in_does_not_start_within_the_horizon():
    """The queue's maximum is below what it asks for: no run starts it, and no percentile is known."""
    steps = busy(30, QueueSpec(name="web", maximum={"vcore": 8000}), OTHER)
    found = await asked(steps, "next", horizon_ms=30_000, arrivals=False)
    assert found.asks[0].p10_ms is None
    assert "later than 30s" in found.summary[0]


async def test_a_queue_is_answered_with_each_ask_in_it():
    """Two wait: the second one gets the room of the other that runs, ten seconds later."""
    steps = busy()
    history = taken_on(steps, [(1000, [pod("second")], False)])
    found = await asked(history, "root", arrivals=False)
    assert [(one.ask, one.p50_ms) for one in found.asks] == [("next", 39_000), ("second", 49_000)]
    assert (found.kind, found.all.started) == ("queue", 20)


def taken_on(steps, more):
    """Return steps with further ones behind them."""
    engine = Engine()
    for time, events, _ in steps:
        for event in events:
            engine.apply(event, time)
    time, _, position = steps[-1]
    found = list(steps)
    for later, inputs, _ in more:
        time += later
        events = engine.step(time, [v.Proposal(input=one) for one in inputs])
        found.append((time, events, position))
    return found


async def test_a_preemption_of_what_started_is_counted():
    """Prod comes as it came in the past, and takes its guarantee back from what was started."""
    prod = QueueSpec(name="prod", guaranteed={"vcore": 8000}, properties={"preemption.delay": "1s"})
    test = QueueSpec(name="test")
    history = [(0, [v.NodeUpdated(node="n1", capacity={"vcore": 8000}), *CLUSTER], False)]
    for number in range(6):
        name = f"prod-{number}"
        history += [
            (10_000, [pod(name, "prod", 8000)], False),
            (20_000, [v.AllocationReleased(allocation=name)], False),
        ]
    history += [(1000, [pod("last", "prod", 8000)], False), (1000, [pod("t", "test", 8000)], False)]
    found = await asked(taken(spec(prod, test), history), "t", runs=20)
    assert found.all.started == 20
    assert found.all.preempted > 0


async def test_what_shortens_it_is_found_by_running_ahead():
    """The queue holds the ask, not the node: a larger maximum and another queue start it at once."""
    narrow = QueueSpec(name="web", maximum={"vcore": 8000})
    history = [(0, [v.NodeUpdated(node="n1", capacity={"vcore": 64_000}), *CLUSTER], False)]
    for number in range(25):
        history.append((1000, [pod(f"p{number}")], False))
        history.append((MINUTE, [v.AllocationReleased(allocation=f"p{number}")], False))
    history += [(1000, [pod("a"), pod("b"), pod("next")], False)]
    found = await asked(
        taken(spec(narrow, OTHER), history), "next", changes=True, arrivals=False, runs=3
    )
    at_once = {(one.kind, one.where) for one in found.changes if one.p50_ms == 0}
    assert at_once == {("maximum", "root.web"), ("queue", "root.other")}
    assert all(one.without_p50_ms == MINUTE for one in found.changes)
    assert found.changes[0].p50_ms == 0


async def test_what_the_engine_refuses_is_said_to_be_refused():
    """A guarantee above the maximum breaks a rule of queues.yaml; the change says which."""
    full = QueueSpec(name="web", maximum={"vcore": 8000}, guaranteed={"vcore": 8000})
    found = await asked(busy(30, full, OTHER), "next", changes=True, runs=2)
    (refused,) = (one for one in found.changes if one.kind == "guaranteed")
    assert "guaranteed" in refused.refused
    assert found.changes[-1] == refused


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("old", "old: runs already, expected an ask that waits, or a queue"),
        ("nobody", "nobody: neither waits nor is a queue at this moment"),
        ("root.other", "queue root.other: nothing waits in it at this moment"),
    ],
)
async def test_what_does_not_wait_is_refused(subject, said):
    """The sentence says what it is instead."""
    with pytest.raises(NotForecast, match=said):
        await asked(busy(1), subject)


@pytest.mark.parametrize(
    ("band", "waited", "seen", "place"),
    [
        ((10, 20, 30), 9, 100, -1),
        ((10, 20, 30), 10, 100, 0),
        ((10, 20, 30), 30, 100, 0),
        ((10, 20, 30), 31, 100, 1),
        ((10, 20, None), 31, 100, 0),
        ((None, None, None), 31, 100, -1),
        ((None, None, None), 61, 100, 0),
        ((10, 20, 30), None, 30, None),
        ((10, 20, 30), None, 31, 1),
        ((10, 20, None), None, 50, None),
        ((10, 20, None), None, 61, 0),
    ],
)
def test_a_start_lies_before_in_or_after_the_band(band, waited, seen, place):
    """The horizon is 60; what still waits at the end of the log is judged once it is behind the band or the horizon."""
    assert Band(*band, 60).place(waited, seen) == place


async def test_the_back_test_judges_asks_that_waited():
    """Every second pod waited for its predecessor, which lives about a minute: each forecast is right."""
    history = [(0, [v.NodeUpdated(node="n1", capacity={"vcore": 4000}), *CLUSTER], False)]
    for number in range(40):
        history += [
            (1000, [pod(f"a{number}")], False),
            (1000, [pod(f"b{number}")], False),
            (MINUTE, [v.AllocationReleased(allocation=f"a{number}")], False),
            (MINUTE, [v.AllocationReleased(allocation=f"b{number}")], False),
        ]
    history += [(1000, [pod("now")], False), (1000, [pod("next")], False)]
    found = await asked(taken(spec(WEB, OTHER), history), "next", backtest=6, arrivals=False)
    assert (found.held.asks, found.held.judged, found.held.inside) == (6, 6, 6)


def quotas(nominal, *, borrowing=None):
    """Return one flavor for a ClusterQueue with this quota, and one beside it that lends nothing."""

    def groups(amount):
        quota = QuotaSpec(nominal=amount, borrowing_limit=borrowing)
        flavor = FlavorQuotaSpec(flavor="spot", quotas={"cpu": quota})
        return (ResourceGroupSpec(resources=("cpu",), flavors=(flavor,)),)

    return KueueSpec(
        flavors=(FlavorSpec(name="spot"),),
        cluster_queues=(
            ClusterQueueSpec(name="web", groups=groups(nominal)),
            ClusterQueueSpec(name="lab", groups=groups(8000)),
        ),
    )


def workload(name, cpu=4000):
    """Return a workload of web."""
    return v.AskSubmitted(ask=name, queue="web", resources={"cpu": cpu})


async def test_a_workload_of_kueue_starts_when_quota_is_free_and_each_quota_is_tried():
    """Every workload of the past ran a minute; half of its size fits at once, and so does the other queue."""
    history = []
    for number in range(25):
        history.append((1000, [workload(f"p{number}")], False))
        history.append((MINUTE, [v.AllocationReleased(allocation=f"p{number}")], False))
    history += [(1000, [workload("runs")], False), (10_000, [workload("next")], False)]
    found = await asked(taken(quotas(6000), history), "next", changes=True, arrivals=False, runs=3)
    assert [found.all.p10_ms, found.all.p90_ms] == [50_000, 50_000]
    assert {(one.kind, one.where, one.detail): one.p50_ms for one in found.changes} == {
        ("nominal", "web", "spot"): 0,
        ("queue", "lab", ""): 0,
        ("shape", "web", ""): 0,
    }


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_changes_of_any_cohort_tree_are_taken_or_refused(seed, fair):
    """Whatever quotas there are: each change either runs ahead, or the engine says why not."""
    spec_of_tree, running, ask = problem(seed, fair=fair)
    engine = engine_with(spec_of_tree, running, ask)
    learning = Learning(engine.state)
    answers = [
        attempted(engine, learning, name, lever)
        for name in tuple(engine.state.asks)
        for lever in levers(engine.state, engine.state.asks[name], of_ask=True)
    ]
    assert answers
    assert all(answers)


def attempted(engine, learning, name, lever):
    """Return what becomes of an ask with a change, or why the engine refuses that."""
    run = RunAhead(copier(engine)(), learning.until(), Draws(1, 0), ())
    try:
        return run.go([name], MINUTE, tried=lever.inputs)
    except RunRefused as refused:
        return str(refused)


@given(configurations(), histories)
@examples(15)
def test_any_state_can_be_run_ahead(configuration, history):
    """Every ask that waits has an outcome, and the state that is copied stays as it is."""
    engine, learning = Engine(), None
    learning = Learning(engine.state)
    for step in read(sealed(taken(configuration, history))):
        apply_step(engine, step)
        learning.take(step, engine.state)
    before, lessons = engine.state.digest(), learning.until()
    coming = tuple(PastArrivals(lessons).drawn(Draws(1, 0), MINUTE))
    assert [one.after_ms for one in coming] == sorted(one.after_ms for one in coming)
    outcomes = RunAhead(copier(engine)(), lessons, Draws(1, 0), coming).go(
        tuple(engine.state.asks), MINUTE
    )
    assert outcomes.keys() == engine.state.asks.keys()
    assert engine.state.digest() == before

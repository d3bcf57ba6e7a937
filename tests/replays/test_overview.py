"""Explanations of queues, applications, nodes and users: what they have, what limits it, what holds their asks."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from events.configuration import LimitSpec, QueueSpec
from replays import wording_overviews
from replays.explaining.overview import ASKS_EXPLAINED, overview
from replays.explaining.question import ExplainQuestion, explain
from replays.history.rebuild import History
from tests.replays.logs import sealed, story, written
from tests.replays.test_explain import Cluster, queue
from tests.replays.test_explain_kueue import World
from tests.replays.test_explain_kueue import ask as workload
from tests.replays.test_explain_kueue import queue as cluster_queue


def tenants():
    """Return a cluster with asks that a limit of ann holds, the maximum of web, and the size of the node."""
    limit = LimitSpec(users=("ann",), max_resources={"vcore": 4000}, max_applications=3)
    research = QueueSpec(name="research", limits=(limit,))
    cluster = Cluster(queue("web", maximum=2000), research)
    for number in range(4):
        cluster.step(
            1000,
            v.AskSubmitted(
                ask=f"a{number}", application="spark", queue="root.research", user="ann", resources={"vcore": 2000},
            ),
        )  # fmt: skip
    for number in range(2):
        cluster.ask(f"w{number}", "root.web")
    cluster.step(
        1000,
        v.AskSubmitted(
            ask="large", application="big", queue="root.research", user="bob", resources={"vcore": 9000},
        ),
    )  # fmt: skip
    return cluster


def told(cluster, name, kind=None):
    """Return the overview of a thing, and its sentence."""
    found = overview(cluster.engine, name, kind)
    return found, wording_overviews.overview(found, kueue=False)


LARGE = "No node is large enough: the nearest, n1, has 8 vcore, 9 vcore requested."
ANN = "Queue root.research: 2 vcore requested, 4 used or promised of user ann, its limit is 4."
WEB = "Queue root.web: 2 vcore requested, 2 used, 2 allowed."

THINGS = {
    "root.research": (
        "Queue root.research: 2 allocations run, 3 asks wait.",
        {("a2", "a3"): ANN, ("large",): LARGE},
        ["Queue root.research for user ann: 1 of 3 applications run.", "Queue root.research for user ann: 4 of 4 vcore used."],
        ["root.research", "root"],
    ),
    "root": (
        "Queue root: 3 allocations run, 4 asks wait.",
        {("a2", "a3"): ANN, ("large",): LARGE, ("w1",): WEB}, [], ["root"],
    ),
    "spark": (
        "Application spark of user ann in queue root.research: 2 allocations run, 2 asks wait.",
        {("a2", "a3"): ANN},
        ["Queue root.research for user ann: 1 of 3 applications run.", "Queue root.research for user ann: 4 of 4 vcore used."],
        ["root.research", "root"],
    ),
    "n1": ("Node n1: 3 allocations run, 0 asks wait.", {}, [], []),
    "bob": (
        "User bob with 1 application: 0 allocations run, 1 ask waits.", {("large",): LARGE}, [], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THINGS)
def test_what_is_no_ask_is_explained_too(name):
    """What it has, the limits that count it, and the asks that wait there, together where the same holds them."""
    sentence, held, limits, path = THINGS[name]
    found, said = told(tenants(), name)
    assert said == sentence
    assert {one.asks: one.summary for one in found.held} == held
    assert sorted(wording_overviews.limit(one) for one in found.limits) == limits
    assert [one.queue for one in found.queues] == path


def test_an_overview_changes_nothing_of_the_state():
    """The limits are counted anew for it: a count that is left behind would be one that a decision may use."""
    cluster = tenants()
    before, index = cluster.engine.state.digest(), cluster.engine.state.index
    for name in THINGS:
        overview(cluster.engine, name)
    assert (cluster.engine.state.digest(), cluster.engine.state.index) == (before, index)


def test_of_many_asks_the_most_urgent_are_explained():
    """The rest is counted, and the answer says how many were looked at."""
    cluster = Cluster(queue("web", maximum=1000))
    for number in range(ASKS_EXPLAINED + 5):
        cluster.ask(f"w{number:02}", "root.web")
    found, _ = told(cluster, "root.web")
    assert (found.waiting, found.explained) == (ASKS_EXPLAINED + 5, ASKS_EXPLAINED)
    ((asks, codes),) = [(one.asks, one.causes) for one in found.held]
    assert asks == tuple(f"w{number:02}" for number in range(ASKS_EXPLAINED))
    assert codes == ("queue-maximum",)


def test_a_cluster_queue_is_called_so():
    """In the words of Kueue, with the quota of its cohort beside it."""
    world = World(cluster_queue("a"))
    world.happen(workload("x", cpu=9000))
    found = overview(world.engine, "a")
    assert wording_overviews.overview(found, kueue=True).startswith("ClusterQueue a: ")
    assert [one.queue for one in found.queues] == ["a", "cohort/all"]
    assert [one.causes for one in found.held] == [("quota",)]


async def test_an_ask_comes_before_a_thing_of_its_name_unless_a_kind_is_said():
    """`test` is an application of the story, `test-5` was an ask; a kind that nothing of the name is, is unknown."""
    history = History(await written(sealed(story())))

    async def status(subject, **more):
        answer = await explain(history, ExplainQuestion(subject=subject, **more))
        assert (answer.overview is None) == (
            answer.explanation.status in ("gone", "waits", "runs", "unknown")
        )
        return answer.explanation.status

    assert await status("test") == "application"
    assert await status("test-5") == "gone"
    assert await status("root.test") == "queue"
    assert await status("n1") == "node"
    assert await status("u") == "user"
    assert await status("test", kind="node") == "unknown"
    assert await status("n1", things=False) == "unknown"

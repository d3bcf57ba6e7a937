"""Explanations: the binding limit, the rule, who was spared, what would change it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.configuration import LimitSpec, PlacementRuleSpec, QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from replays.explaining.decision import explain_decision
from replays.explaining.explain import explain_allocation, explain_ask
from replays.explaining.mentions import mentions
from replays.explaining.plan import plan_ask
from replays.history.steps import copy, retake
from replays.history.views import apps, asks
from replays.wording import CAUSES, SENTENCES, YES
from tests.core.histories import START, settle

ROOT = Path(__file__).parents[2]


def queue(name, guaranteed=None, maximum=None, **properties):
    """Return a leaf with amounts of vcore."""
    return QueueSpec(
        name=name,
        guaranteed=None if guaranteed is None else {"vcore": guaranteed},
        maximum=None if maximum is None else {"vcore": maximum},
        properties={key.replace("_", "."): value for key, value in properties.items()},
    )


def sentences(notes):
    """Return what notes say."""
    return tuple(note.sentence for note in notes)


class Cluster:
    """A cluster whose steps are kept."""

    def __init__(self, *leaves, capacity=8000, preemption=True):
        """Start with a configuration and one node."""
        self.engine = Engine()
        self.steps: list[RecordedStep] = []
        self.time = START
        root = QueueSpec(name="root", parent=True, queues=leaves)
        spec = YunikornSpec(root=root, preemption_enabled=preemption)
        self.step(
            0,
            v.ConfigurationApplied(configuration=spec),
            v.NodeRegistered(node="n1", capacity={"vcore": capacity}),
        )

    def step(self, later, *inputs):
        """Let time pass, then propose; return the events."""
        for at, events in settle(self.engine, self.time + later - 1):
            self._keep(at, events)
        self.time += later
        return self._keep(
            self.time, self.engine.step(self.time, [v.Proposal(input=one) for one in inputs])
        )

    def _keep(self, time, events):
        if events:
            number = len(self.steps) + 1
            head = Head(
                next_seq=events[-1].seq + 1, time=time, frame=number, hash="h", position=number
            )
            self.steps.append(RecordedStep(head, time, True, events))
        return events

    def ask(self, name, leaf, vcore=2000, **more):
        """Submit an ask a millisecond later."""
        application = more.pop("application", leaf)
        return self.step(
            1,
            v.AskSubmitted(
                ask=name, application=application, queue=leaf, resources={"vcore": vcore}, **more
            ),
        )


def test_a_full_queue_is_named_with_its_numbers():
    """The binding level, requested, used and limit; and what would change it."""
    cluster = Cluster(queue("a", maximum=4000))
    for name in ("a1", "a2", "a3"):
        cluster.ask(name, "root.a")
    found = explain_ask(cluster.engine, "a3", mentions("a3", cluster.steps))
    assert found.status == "waits"
    assert found.summary == "Queue root.a: 2 vcore requested, 4 used, 4 allowed."
    assert [(level.queue, level.binding) for level in found.levels] == [
        ("root.a", True),
        ("root", False),
    ]
    assert found.unblock[0].sentence == "2 vcore less use in root.a, or as much more maximum"
    assert [one.text for one in found.history] == ["submitted"]


def test_a_full_cluster_names_the_nearest_node_and_the_laws_that_spare():
    """Nobody is above a guarantee, so nobody has to go, and every pod is spared by a law that is named."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test", guaranteed=8000))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    cluster.step(40_000)
    found = explain_ask(cluster.engine, "p1")
    assert found.summary == "No node has room; the nearest, n1, lacks 2 vcore."
    assert {note.code for note in found.passed_over if note.subject.startswith("t")} <= {
        "law2",
        "law5",
    }
    assert all(note.sentence for note in found.passed_over)


def test_missed_opportunities_are_counted():
    """Every preemption cycle since the first that tried an ask in vain is one more that it missed."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test", guaranteed=8000))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    assert explain_ask(cluster.engine, "p1").missed == 0
    cluster.step(40_000)
    assert explain_ask(cluster.engine, "p1").missed == 1
    cluster.step(1, v.NodeRegistered(node="n2", capacity={"vcore": 1}))
    cluster.step(10_000)
    assert explain_ask(cluster.engine, "p1").missed == 2
    (row,) = (row for row in asks(cluster.engine.state) if row.ask == "p1")
    assert row.missed == 2


PAUSES = {"application_unschedasks_backoff": "2"}


def test_an_ask_of_a_paused_application_hears_until_when_and_why():
    """The pause is the answer, with what led to it; it stands in the history, among the applications and in what unblocks."""
    cluster = Cluster(queue("a", **PAUSES))
    for name in ("a1", "a2"):
        cluster.ask(name, "root.a", vcore=9000, application="x")
    cluster.ask("small", "root.a", application="x")
    pause = "2026-01-01T00:00:30.002Z"
    history = mentions("small", cluster.steps)
    found = explain_ask(cluster.engine, "small", history)
    assert (
        found.summary
        == f"Application x is paused until {pause}: 2 of its asks fit on no node (application.unschedasks.backoff)."
    )
    assert sentences(found.unblock) == (
        f"nothing has to change: it is bound to n1 at {pause}",
        f"the end of the pause of x at {pause}",
    )
    assert [(row.application, row.paused_until) for row in apps(cluster.engine.state)] == [
        ("x", START + 30_002)
    ]
    cluster.step(1, v.NodeRegistered(node="n2", capacity={"vcore": 90_000}))
    assert explain_ask(cluster.engine, "a1").summary == (
        f"Application x is paused until {pause}: its asks had no room, now they have (application.unschedasks.backoff)."
    )
    cluster.step(30_000)
    assert [one.text for one in mentions("a1", cluster.steps)] == [
        "submitted", f"its application is paused until {pause}: 2 of its asks fit on no node",
        "the pause of its application is over", "bound to n2",
    ]  # fmt: skip
    assert [one.text for one in mentions("small", cluster.steps)] == [
        "submitted", "the pause of its application is over", "bound to n1"
    ]  # fmt: skip
    assert [row.paused_until for row in apps(cluster.engine.state)] == [None]


def test_young_asks_hear_when_preemption_is_tried():
    """When the delay is over is part of the answer, and whether anything comes of it."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test"))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    found = explain_ask(cluster.engine, "p1")
    ripe = "2026-01-01T00:00:30.005Z"
    assert f"nothing has to change: it preempts t3 on n1 at {ripe}" in sentences(found.unblock)
    cluster.ask("t4", "root.test")
    vain = explain_ask(cluster.engine, "t4")
    # No two cycles come within a second of each other.
    tried = "preemption is tried at 2026-01-01T00:00:31.005Z (preemption.delay)"
    assert tried in sentences(vain.unblock)


def test_nothing_is_promised_of_preemption_that_is_disabled():
    """The engine never tries it, so the explanation names no time and no victim, but says why."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test"), preemption=False)
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    for _ in range(2):
        found = explain_ask(cluster.engine, "p1")
        assert (found.next.code, found.later) == ("waits", None)
        assert sentences(found.unblock) == (
            "2 vcore more on n1",
            "preemption is disabled in this partition (preemption.enabled)",
        )
        assert not found.passed_over
        assert not cluster.step(60_000)
    planned = plan_ask(
        cluster.engine,
        v.AskSubmitted(ask="p2", application="p", queue="root.prod", resources={"vcore": 2000}),
    )
    assert planned.outcome == "waits"


def test_a_limit_and_an_order_that_hold_an_ask_are_named():
    """A user's limit, the number of applications, and one new application at a time: what holds it is said in numbers."""
    held = (LimitSpec(users=("ann",), max_resources={"vcore": 3000}, max_applications=1),)
    leaf = msgspec.structs.replace(queue("a", application_sort_policy="stateaware"), limits=held)
    cluster = Cluster(leaf)
    cluster.ask("a1", "root.a", application="x", user="ann")
    cluster.ask("a2", "root.a", application="x", user="ann")
    found = explain_ask(cluster.engine, "a2")
    assert found.summary == (
        "Queue root.a: 2 vcore requested, 2 used or promised of user ann, its limit is 3."
    )
    assert found.unblock[0].code == "limit"
    cluster.ask("a3", "root.a", application="y", user="ann", vcore=1000)
    second = explain_ask(cluster.engine, "a3")
    assert second.summary == (
        "Queue root.a: 1 applications of user ann run or start, maxapplications is 1."
    )
    cluster.ask("b1", "root.a", application="z", user="bob", vcore=9000)
    behind = explain_ask(cluster.engine, "b1")
    assert [one.code for one in behind.causes] == ["behind", "too-large"]


def test_every_limit_that_holds_an_ask_is_named():
    """Queue, user and number of applications at once: lifting one of them alone would not help."""
    limited = LimitSpec(users=("ann",), max_resources={"vcore": 2000}, max_applications=1)
    leaf = msgspec.structs.replace(queue("a", maximum=3000), limits=(limited,))
    cluster = Cluster(leaf)
    cluster.ask("a1", "root.a", user="ann")
    cluster.ask("a2", "root.a", user="ann", application="other")
    found = explain_ask(cluster.engine, "a2")
    assert [one.sentence for one in found.causes] == [
        "Queue root.a: 2 vcore requested, 2 used, 3 allowed.",
        "Queue root.a: 2 vcore requested, 2 used or promised of user ann, its limit is 2.",
        "Queue root.a: 1 applications of user ann run or start, maxapplications is 1.",
    ]
    assert found.needs == (((0,),), ((1,),), ((2,),))
    assert found.summary.endswith("All of this has to change.")


def test_a_preemption_is_decided_again_with_shares_before_and_after():
    """Who had to go for whom, by which rule, what the queues had before and have after, and that it comes out the same."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test", guaranteed=2000))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test", allow_preemption=number != 3)
    cluster.ask("p1", "root.prod")
    cluster.step(31_000)
    event = next(
        event
        for step in cluster.steps
        for event in step.events
        if isinstance(event, v.PreemptionDecided)
    )
    engine = Engine()
    for step in cluster.steps:
        if event in step.events:
            found = explain_decision(copy(engine), step, event.seq)
            break
        retake(engine, step)
    assert found is not None
    assert found.identical
    assert (found.for_ask, found.for_queue, found.algorithm) == ("p1", "root.prod", "guarantee")
    assert [victim.id for victim in found.victims] == ["t2"]
    shares = {
        (one.queue, one.resource): (one.guaranteed, one.before, one.after) for one in found.shares
    }
    assert shares["root.prod", "vcore"] == (4000, 0, 2000)
    assert shares["root.test", "vcore"] == (2000, 8000, 6000)
    explained = explain_allocation(cluster.engine, "t2", mentions("t2", cluster.steps))
    assert explained.status == "leaving"
    assert "for ask p1" in explained.summary
    assert "evicted for ask p1" in explained.history[-1].text
    in_flight = explain_ask(cluster.engine, "p1")
    assert in_flight.status == "in flight"
    assert in_flight.summary == "It preempts on n1 and waits for t2 to leave."
    assert in_flight.unblock[-1].sentence == "the end of t2"


def test_an_ask_that_no_node_can_ever_hold_is_told_so():
    """It is not that a node lacks room now: the largest one is too small."""
    cluster = Cluster(queue("a"), capacity=10_000)
    cluster.ask("a1", "root.a")
    cluster.ask("a2", "root.a", vcore=20_000)
    found = explain_ask(cluster.engine, "a2")
    assert (
        found.summary
        == "No node is large enough: the nearest, n1, has 10 vcore, 20 vcore requested."
    )
    assert sentences(found.unblock)[0] == "a node with 20 vcore, or a smaller request"


def test_a_decision_shows_the_guarantee_by_which_it_was_taken():
    """A configuration that came in the deciding step raised it before; the old one would look like an unlawful preemption."""
    cluster = Cluster(queue("prod"), queue("test"))
    for number in range(4):
        cluster.ask(f"t{number}", "root.test")
    cluster.ask("p1", "root.prod")
    cluster.step(40_000)
    root = QueueSpec(
        name="root", parent=True, queues=(queue("prod", guaranteed=4000), queue("test"))
    )
    before = copy(cluster.engine)
    cluster.step(5_000, v.ConfigurationApplied(configuration=YunikornSpec(root=root)))
    step = cluster.steps[-1]
    event = next(one for one in step.events if isinstance(one, v.PreemptionDecided))
    found = explain_decision(before, step, event.seq)
    assert found.identical
    assert {one.queue: one.guaranteed for one in found.shares}["root.prod"] == 4000


def test_a_plan_does_not_look_behind_the_end_of_a_pause():
    """An ask with room, of a paused application, would not run at once; one of another application would."""
    cluster = Cluster(queue("batch", application_unschedasks_backoff="2"), capacity=4000)
    for name in ("a1", "a2"):
        large = v.AskSubmitted(
            ask=name, application="x", queue="root.batch", resources={"vcore": 8000}
        )
        cluster.step(1, large)
    assert "x" in cluster.engine.state.paused

    def planned(application):
        ask = v.AskSubmitted(
            ask="new", application=application, queue="root.batch", resources={"vcore": 1000}
        )
        return plan_ask(cluster.engine, ask)

    assert planned("x").outcome == "waits"
    assert planned("x").summary.startswith("It would wait. Application x is paused until ")
    assert planned("y").outcome == "bound"


def test_a_plan_tells_what_would_happen_and_writes_nothing():
    """Bound, at whose cost, waiting with a reason, or refused; the engine is as before."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test", maximum=8000))
    for number in range(3):
        cluster.ask(f"t{number}", "root.test")
    digest = cluster.engine.state.digest()

    def planned(leaf, vcore):
        ask = v.AskSubmitted(ask="new", application="new", queue=leaf, resources={"vcore": vcore})
        return plan_ask(cluster.engine, ask)

    assert (planned("root.prod", 2000).outcome, planned("root.prod", 2000).node) == ("bound", "n1")
    preempting = planned("root.prod", 4000)
    assert preempting.outcome == "preempts"
    assert [victim.id for victim in preempting.victims] == ["t2"]
    waiting = planned("root.test", 4000)
    assert waiting.outcome == "waits"
    assert "Queue root.test" in waiting.summary
    refused = planned("root.none", 1)
    assert (refused.outcome, "root.none does not exist" in refused.summary) == ("refused", True)
    assert cluster.engine.state.digest() == digest


def test_every_code_that_a_policy_notes_has_a_sentence():
    """No explanation shows a bare code."""
    used: dict[str, str] = {}
    for path in (ROOT / "evsched" / "core").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for code in re.findall(
            r"tracer\.note\(\s*[^,()]+(?:\([^)]*\))?,\s*\"([a-zA-Z0-9-]+)\"", text
        ):
            used[code] = path.name
    assert len(used) >= 8
    missing = {code: name for code, name in used.items() if code not in SENTENCES}
    assert not missing


def test_every_code_stands_on_the_page_of_the_laws():
    """Whoever finds a code in an answer finds there what it means."""
    page = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    kueue_outcomes = {"admit", "preempt", "no-fit", "no-victims", "never-fits", "flavor", "fits"}
    enforcement = {"chosen", "guarantee", "type", "running", "max", "borrowing-limit"}
    passed = {"not-reached", "not-needed", "node-free"}
    known = set(SENTENCES) - YES - kueue_outcomes - enforcement - passed
    assert [code for code in sorted(known | set(CAUSES)) if f"`{code}`" not in page] == []


def test_each_half_of_law_4_and_the_queue_of_law_5_are_named():
    """Which guarantee rules an eviction out is said of the queue that has it, not of the leaf."""

    def noted(guaranteed):
        dev = QueueSpec(name="dev", parent=True, guaranteed={"vcore": 4000}, queues=(queue("x"),))
        cluster = Cluster(queue("prod", guaranteed=guaranteed), dev, capacity=6000)
        for name, leaf in (("x1", "dev.x"), ("x2", "dev.x"), ("p1", "prod"), ("p2", "prod")):
            cluster.ask(name, f"root.{leaf}")
        cluster.step(40_000)
        return {one.subject: one for one in explain_ask(cluster.engine, "p2").passed_over}

    assert noted(2000)["root.prod"].code == "law4-not-below"
    assert noted(None)["root.prod"].code == "law4-no-guarantee"
    found = noted(4000)
    said = "queue root.dev is not above its guarantee (law 5)"
    assert found["x1"].sentence == found["root.dev"].sentence == said


def test_a_decision_shows_what_was_used_right_before_it():
    """What the same step bound before it decided counts, as it did for the laws."""
    cluster = Cluster(queue("prod", guaranteed=4000), queue("test"), capacity=6000)
    for name in ("t1", "t2", "t3"):
        cluster.ask(name, "root.test")
    old = {"created": cluster.time - 60_000, "resources": {"vcore": 2000}}
    released = v.AllocationReleased(allocation="t1")
    asks = [
        v.AskSubmitted(ask=name, application="p", queue="root.prod", **old) for name in ("p1", "p2")
    ]
    events = cluster.step(60_000, released, *asks)
    assert [one.ask for one in events if isinstance(one, v.AllocationBound)] == ["p1"]
    (decided,) = [one for one in events if isinstance(one, v.PreemptionDecided)]
    engine = Engine()
    for step in cluster.steps[:-1]:
        for event in step.events:
            engine.apply(event, step.time)
    found = explain_decision(engine, cluster.steps[-1], decided.seq)
    shares = {one.queue: (one.before, one.after) for one in found.shares}
    assert shares["root.prod"] == (2000, 4000)
    assert shares["root.test"] == (4000, 2000)


def test_a_plan_runs_a_new_application_through_placement_and_access():
    """The queue that the rules choose is said; who may not submit there is refused, and nothing is written."""
    leaf = msgspec.structs.replace(queue("ann"), submit_acl="ann")
    root = QueueSpec(name="root", parent=True, queues=(leaf, queue("b")))
    rule = PlacementRuleSpec(name="user")
    engine = Engine()
    spec = YunikornSpec(root=root, placement_rules=(rule,))
    node = v.NodeRegistered(node="n1", capacity={"vcore": 8000})
    engine.step(
        START,
        [v.Proposal(input=v.ConfigurationApplied(configuration=spec)), v.Proposal(input=node)],
    )
    digest = engine.state.digest()
    asked = v.AskSubmitted(ask="x", application="new", user="ann", resources={"vcore": 8})
    found = plan_ask(engine, asked)
    assert (found.outcome, found.queue, found.resources) == ("bound", "root.ann", {"vcore": 8})
    refused = plan_ask(engine, msgspec.structs.replace(asked, user="eve"))
    assert (refused.outcome, refused.queue) == ("refused", "")
    assert engine.state.digest() == digest

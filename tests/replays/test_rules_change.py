"""One log begins with rules 1 and adopts rules 2 with work in flight: every question holds across the change."""

from __future__ import annotations

import asyncio
import os

import pytest

from events import vocabulary as v
from events.errors import WrittenByNewer
from evsched.cli.main import run
from evsched.core.rules import FIRST, NEWEST
from replays.checking.verify import verify_log
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.explaining.question import ExplainQuestion, explain
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.core.small import START, ask, engine, node, queue, running
from tests.replays.logs import exported, sealed, written


def changing():
    """Return the steps of the log.

    Under rules 1 a and b evict a task each, though b would fit beside a. Under rules 2 c evicts one,
    and d is nominated to what is left beside a.
    """
    high = queue("high", guaranteed={"vcore": 40}, properties={"preemption.delay": "1s"})
    spec = engine(high, queue("low")).state.configuration
    live = engine(high, queue("low")).__class__()
    steps = [(START, live.lead(START, 1, "l1", 7), 0)]

    def take(at, *inputs):
        proposals = [v.Proposal(input=one) for one in inputs]
        events = live.step(START + at, proposals)
        if events or inputs:
            steps.append((START + at, events, 0))

    def until(at):
        while (due := live.next_due()) is not None and due <= START + at:
            take(max(due, live.state.time) - START)

    nodes = [node(f"n{k}", 10) for k in range(1, 5)]
    big = [running(f"v{k}", "root.low", f"n{k}", 6 if k % 2 else 10) for k in range(1, 5)]
    take(0, v.ConfigurationApplied(configuration=spec), *nodes, *big)
    take(0, ask("a", "root.high", 5, priority=2), ask("b", "root.high", 5, priority=2))
    until(5_000)
    take(5_000, v.RulesAdopted(rules=NEWEST, proposal="adopt"))
    until(6_000)
    take(6_000, ask("c", "root.high", 10, priority=2), ask("d", "root.high", 5, priority=2))
    until(12_000)
    steps.append((START + 12_000, live.lead(START + 12_000, 2, "l2", 7), 0))
    for at, name in enumerate(list(live.state.allocations)):
        if live.state.allocations[name].eviction_requested:
            take(13_000 + at, v.AllocationReleased(allocation=name, reason="preempted"))
    until(60_000)
    return steps


STEPS = changing()
EVENTS = [event for _, events, _ in STEPS for event in events]


def seq_of(kind, number=0):
    """Return the ``seq`` of an event of the log."""
    return [event.seq for event in EVENTS if isinstance(event, kind)][number]


def ask_questions(question):
    """Return what a function of a history answers about the log."""

    async def story():
        return await question(History(await written(sealed(STEPS))))

    return asyncio.run(story())


def test_the_log_changes_its_rules_with_work_in_flight():
    """Asks are in flight when the rules change, and something is decided by either version."""
    change = seq_of(v.RulesAdopted)
    decided = [event.seq for event in EVENTS if isinstance(event, v.PreemptionDecided)]
    assert min(decided) < change < max(decided)
    assert change < seq_of(v.AskNominated)
    marks = {(one.rules, one.record) for one in EVENTS if isinstance(one, v.CheckpointRecorded)}
    assert marks == {(1, 1), (2, 2)}
    assert [one.rules for one in EVENTS if isinstance(one, v.LeaderStarted)] == [FIRST, NEWEST]


def test_it_verifies_from_the_beginning_and_from_any_moment():
    """Each step is decided again by the rules in force at its place."""
    answer = ask_questions(verify_log)
    assert answer.difference is None
    assert answer.damage is None


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_decisions_of_both_versions_are_explained(name):
    """What is decided again for an explanation comes out as recorded, before and after the change."""
    found = ask_questions(lambda history: explain(history, ExplainQuestion(subject=name)))
    assert all(decision.identical for decision in found.decisions)
    in_flight = seq_of(v.AskNominated)
    nominated = next(event.ask for event in EVENTS if isinstance(event, v.AskNominated))
    if name == nominated:
        moment = Moment(seq=in_flight)
        found = ask_questions(
            lambda history: explain(history, ExplainQuestion(subject=name, moment=moment))
        )
        assert found.explanation.status == "in flight"
        assert "It is nominated to n1, where victims of others are leaving" in (
            found.explanation.summary
        )


def test_what_if_tells_what_rules_would_have_changed():
    """Under rules 2 b evicts nothing, under rules 1 d does; the rules as recorded change nothing."""

    def victims(answer, world):
        return sum(one.victims for one in getattr(answer, world).values())

    same = ask_questions(lambda history: what_if(history, WhatIfQuestion(start=Moment(seq=0))))
    assert same.identical
    newest = ask_questions(lambda history: what_if(history, WhatIfQuestion(rules=NEWEST)))
    assert not newest.identical
    assert newest.first_difference < seq_of(v.RulesAdopted)
    b = next(one for one in newest.changes if (one.subject, one.kind) == ("b", "bound"))
    assert b.supposed.node == "n1"
    assert b.recorded.node != "n1"
    first = ask_questions(lambda history: what_if(history, WhatIfQuestion(rules=FIRST)))
    assert first.first_difference > seq_of(v.RulesAdopted)
    assert victims(first, "supposed") > victims(first, "recorded")


def test_rules_that_decide_as_recorded_make_no_difference():
    """What only names the rules, or is a digest under them, is no decision."""
    before = Moment(seq=seq_of(v.AskSubmitted) - 1)
    question = WhatIfQuestion(rules=NEWEST, end=before)
    assert ask_questions(lambda history: what_if(history, question)).identical


def test_the_command_line_tries_rules(tmp_path, capsys):
    """`whatif --rules` needs no configuration, and refuses rules that are not known."""
    path = asyncio.run(exported(sealed(STEPS), tmp_path / "log.jsonl"))
    assert run(["whatif", "--log", os.fspath(path), "--rules", "2"]) == 1
    assert "decisions differ" in capsys.readouterr().out
    assert run(["whatif", "--log", os.fspath(path), "--rules", "99"]) == 2
    assert run(["whatif", "--log", os.fspath(path)]) == 2
    assert run(["rules", "diff", "1", "2"]) == 0
    assert run(["rules", "diff", "2", "1"]) == 2
    assert run(["rules", "list", "--json"]) == 0


def test_explain_promises_the_nomination_that_the_engine_then_makes():
    """Just before, an ask is told where it will be nominated, and when."""
    moment = Moment(seq=seq_of(v.AskNominated) - 2)
    nominated = next(event.ask for event in EVENTS if isinstance(event, v.AskNominated))
    question = ExplainQuestion(subject=nominated, moment=moment)
    found = ask_questions(lambda history: explain(history, question)).explanation
    assert (found.later.code, found.later.node) == ("nominated", "n1")
    assert "it is nominated to n1, where victims of others are leaving" in " ".join(
        [found.summary, *(one.sentence for one in found.unblock)]
    )


def test_a_log_with_rules_that_are_not_known_is_read_and_not_judged():
    """Its state is known at every moment; what cannot be decided again says that a newer release did."""
    last = EVENTS[-1].seq
    steps = [*STEPS, (STEPS[-1][0], (v.RulesAdopted(seq=last + 1, rules=99),), 0)]
    steps.append((STEPS[-1][0], (v.NodeRemoved(seq=last + 2, node="none"),), 0))

    async def story():
        history = History(await written(sealed(steps)))
        engine = await history.at(Moment(seq=last + 1))
        assert engine.state.rules_version == 99
        with pytest.raises(WrittenByNewer, match="rules 99 are in force"):
            await verify_log(history)

    asyncio.run(story())

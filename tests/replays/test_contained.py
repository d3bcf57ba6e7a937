"""Readers of a log in which faults were contained: what-if, verify, export without names, and bundles made from it."""

from __future__ import annotations

import asyncio
import json

import pytest
import zstandard
from msgspec.structs import replace

from events import vocabulary as v
from evsched.cli.main import run
from evsched.core import reducer
from evsched.core.engine import Engine
from evsched.core.faults import StepFailed
from replays.checking import bundle
from replays.checking.cutting import cut
from replays.checking.verify import verify
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.history.anonymise import anonymise, collect
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.replays.contained import SPEC, contained
from tests.replays.logs import exported, read, written


@pytest.fixture(scope="module")
def records():
    """Return the records of the log."""
    return contained()


@pytest.fixture
def file(records, tmp_path):
    """Return the log as a file."""
    return str(asyncio.run(exported(records, tmp_path / "log.jsonl")))


def made(records, moment=None, **options):
    """Return a bundle."""

    async def answer():
        return await cut(History(await written(records)), moment, **options)

    return asyncio.run(answer())


@pytest.fixture
def broken(monkeypatch):
    """Return a function that lets the fold of an ask raise."""

    def breaks(name):
        honest, has_proposal = reducer._FOLDS[v.AskSubmitted]

        def fold(state, event):
            if event.ask == name:
                raise RuntimeError(f"broken at {event.ask}")
            honest(state, event)

        monkeypatch.setitem(reducer._FOLDS, v.AskSubmitted, (fold, has_proposal))

    return breaks


def test_the_log_holds_every_remedy(records):
    """Else what follows proves nothing; and it verifies."""
    steps = read(records)
    kinds = {type(event).__name__ for step in steps for event in step.events}
    assert kinds >= {
        *("InputRejected", "DecisionSuspended", "DecisionResumed", "InboxAttached", "RulesAdopted"),
        *("AskWithdrawn", "PreemptionDecided", "CheckpointRecorded", "AllocationBound"),
    }
    assert verify(Engine(), steps) is None


def test_an_unchanged_configuration_gives_the_log_again(records):
    """What-if takes the remedies as facts, from the beginning and from behind them."""

    async def answers():
        history = History(await written(records))
        return [
            await what_if(history, WhatIfQuestion(configurations=(SPEC,), start=start))
            for start in (None, Moment(seq=1), Moment(seq=20))
        ]

    assert [one.identical for one in asyncio.run(answers())] == [True] * 3


def test_another_configuration_is_tried_over_remedies(records):
    """With nothing guaranteed to web nothing is evicted for it, and no remedy stops the answer."""
    web, research = SPEC.root.queues
    queues = (replace(web, guaranteed=None), research)
    changed = replace(SPEC, root=replace(SPEC.root, queues=queues))

    async def answer():
        question = WhatIfQuestion(configurations=(changed,), start=Moment(seq=1))
        return await what_if(History(await written(records)), question)

    found = asyncio.run(answer())
    assert not found.identical
    assert ("evicted", "runs") in {(one.kind, one.subject) for one in found.changes}


def test_a_log_with_remedies_is_shown_without_names(records):
    """Every decision is the same, and no name, reason or beginning of a proposal is left."""
    steps = read(records)
    shown = list(anonymise(collect(steps), steps))
    text = repr([events for _, events in shown])
    for name in ("secret", "bad", "other-inbox", "research", "KeyError"):
        assert name not in text
    assert [len(events) for _, events in shown] == [len(step.events) for step in steps]


def test_the_last_failure_becomes_a_bundle_that_fails(records, broken):
    """The refused proposal is proposed again, to the state before it, and the traceback is in the file."""
    broken("secret-worst")
    found = made(records)
    assert (found.kind, found.subject) == ("input", "1")
    assert "RuntimeError: broken at secret-worst" in found.traceback
    assert [one.input.ask for one in found.proposals] == ["behind", "secret-worst"]
    outcome = bundle.take(bundle.read(bundle.encode(found)))
    assert isinstance(outcome, StepFailed)
    assert bundle.is_reproduced(found, outcome)


def test_a_bundle_is_made_where_the_fault_is_mended_too(records):
    """It holds what the leader wrote of it, and is not reproduced."""
    found = made(records)
    assert (found.kind, found.subject, found.traceback) == ("input", "p-secret-worst", "")
    assert not bundle.is_reproduced(found, bundle.take(found))


def test_what_was_set_aside_is_decided_again_with_the_proposals_behind_it(records):
    """The state is that before the first mark, the proposals those of the next step."""
    seqs = [
        event.seq
        for step in read(records)
        for event in step.events
        if isinstance(event, v.DecisionSuspended)
    ]
    found = made(records, Moment(seq=seqs[0]))
    assert (found.kind, found.subject, found.place) == ("ask", "secret-ask", "search.py:7 find")
    assert found.decide
    assert [one.input.ask for one in found.proposals] == ["more"]


def test_any_other_step_gives_its_events_again(records):
    """Every step of the log is a bundle that is reproduced; one in which nothing is decided counts as the one before it."""
    for step in read(records)[1:]:
        if any(getattr(event, "code", "") == "internal-error" for event in step.events):
            continue
        found = made(records, Moment(seq=step.events[0].seq))
        if not found.kind:
            assert bundle.is_reproduced(found, bundle.take(found))


def test_a_bundle_without_names_fails_alike(records, broken):
    """No name is left in it, and the same step raises under the new names."""
    found = made(records, nameless=True)
    text = bundle.encode(found).decode() + repr(zstandard.decompress(found.state))
    for name in ("secret", "research", "behind", "KeyError", "log-of-a-test"):
        assert name not in text
    broken(found.proposals[-1].input.ask)
    again = made(records, nameless=True)
    assert again.kind == "input"
    assert "secret" not in again.traceback
    assert bundle.is_reproduced(again, bundle.take(again))


def test_the_commands_make_and_take_a_bundle(file, tmp_path, capsys, broken):
    """For the owner alone, never over another file; 1 where there is none, or it does not fail any more."""
    target = tmp_path / "fault.json"
    broken("secret-worst")
    assert run(["debug", "bundle", str(target), "--log", file]) == 0
    assert target.stat().st_mode & 0o077 == 0
    assert "fails at" in capsys.readouterr().err
    assert run(["debug", "replay", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reproduced"] is True
    assert run(["debug", "bundle", str(target), "--log", file]) == 2
    assert run(["debug", "bundle", str(tmp_path / "no" / "x.json"), "--log", file]) == 2
    early = str(tmp_path / "early.json")
    assert run(["debug", "bundle", early, "--at", "start", "--log", file]) == 1
    assert "no step" in capsys.readouterr().err

"""`evsched log show`: of a stretch, of one subject, and each event on a short line."""

from __future__ import annotations

import asyncio
import json

import pytest

from events import vocabulary as v
from events.cloudevents import rfc3339
from evsched.cli.event_lines import MOST_LETTERS, event_line
from evsched.cli.main import run
from tests.replays.logs import exported, sealed, story


def shown(capsys):
    """Return the documents that were printed."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


NARROWED = {
    "a queue": (["--queue", "root.prod"], {"prod-1", "prod-2"}),
    "an application": (["--application", "test", "--type", "AskSubmitted"], {f"test-{one}" for one in range(1, 6)}),
    "an ask": (["--ask", "test-4"], {"test-4"}),
    "an allocation, by the end of what was an ask": (["--allocation", "prod-1", "--type", "AllocationReleased"], {"prod-1"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROWED)
def test_the_log_is_shown_of_one_queue_application_or_ask(name, tmp_path, capsys):
    """Each event names it, or an ask of it; of a decision its victims count as well."""
    options, expected = NARROWED[name]
    file = asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl"))
    assert run(["log", "show", "--log", str(file), "--json", *options]) == 0
    found = [one["event"] for one in shown(capsys)]
    named = [
        {
            one.get("ask"),
            one.get("allocation"),
            *(victim["id"] for victim in one.get("victims", [])),
        }
        for one in found
        if one["type"] not in ("ApplicationPlaced", "QuotaPreemptionScheduled", "InputRejected")
    ]
    assert all(expected & one for one in named)
    assert expected <= set().union(*named)


def test_the_log_is_shown_of_a_stretch_of_time(tmp_path, capsys):
    """Times and time before the end include both ends, as numbers of events do."""
    file = asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl"))
    assert run(["log", "show", "--log", str(file), "--json"]) == 0
    times = [one["time"] for one in shown(capsys)]
    some = sorted(set(times))[3]
    assert run(["log", "show", "--log", str(file), "--json", "--from", rfc3339(some), "--to", rfc3339(some)]) == 0  # fmt: skip
    assert [one["time"] for one in shown(capsys)] == [one for one in times if one == some]
    assert run(["log", "show", "--log", str(file), "--json", "--from", "-1s"]) == 0
    assert [one["time"] for one in shown(capsys)] == [
        one for one in times if one >= times[-1] - 1000
    ]
    assert run(["log", "show", "--log", str(file), "--from", "end"]) == 1


def test_a_large_event_is_one_short_line(tmp_path, capsys):
    """A configuration that is found, shown or refused is named; `--json` has all of it."""
    asks = tuple(v.Victim(id=f"victim-{one}", queue="root.test", reason="law") for one in range(99))
    large = v.PreemptionDecided(seq=1, ask="a", node="n", victims=asks, algorithm="guarantee")
    line = event_line(large, 0)
    assert len(line) < 3 * MOST_LETTERS
    assert "letters, --json shows all)" in line
    spec = next(e for _, events, _ in story() for e in events if type(e) is v.ConfigurationApplied)
    refused = v.InputRejected(seq=2, input=spec, reason="no", code="conflict")
    assert "root" not in event_line(refused, 0)
    file = asyncio.run(exported(sealed(story()), tmp_path / "story.jsonl"))
    assert run(["bisect", "event", "ConfigurationApplied", "--log", str(file)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[:2])) < MOST_LETTERS

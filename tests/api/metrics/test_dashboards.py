"""Dashboards, recording rules and alerts: every name in them exists, and Prometheus takes them."""

from __future__ import annotations

import json
import re
import subprocess
from types import SimpleNamespace

import pytest
import yaml

from evsched.api import dashboards
from evsched.api.dashboards import FILES
from evsched.cli.main import run
from tests.api.metrics.promtool import promtool
from tests.api.metrics.test_metrics import followed, scraped
from tests.core.kueue.test_history import run as kueue_history
from tests.docs.pages import DOCS
from tests.replays.logs import read, sealed, story

NAME = re.compile(r"\b(?:evsched|yunikorn|kueue)[a-z0-9_]*(?::[a-z0-9_:]+)?\b")
BOARDS = [name for name in FILES if name.endswith(".json")]


def shown():
    """Return the names of all metrics that are ever shown, of both families, with those of their parts."""
    frames, _, _ = kueue_history(3)
    kueue = [SimpleNamespace(time=time, events=events) for time, events in frames]
    found = set()
    for steps in (read(sealed(story())), kueue):
        text = scraped(*followed(steps), heartbeat_age_ms=1, lag_frames=1)
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
            found.add(name)
            if kind == "histogram":
                found.update(f"{name}_{part}" for part in ("bucket", "sum", "count"))
    return found


def recorded():
    """Return the rules by what they record."""
    groups = yaml.safe_load(dashboards.read("evsched-rules.yaml"))["groups"]
    return {rule["record"]: rule["expr"] for group in groups for rule in group["rules"]}


def alerts():
    """Return the alerts by name."""
    groups = yaml.safe_load(dashboards.read("evsched-alerts.yaml"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def asked():
    """Return every expression with the place where it stands."""
    found = [(name, expr) for name, expr in recorded().items()]
    found += [(name, rule["expr"]) for name, rule in alerts().items()]
    for name in BOARDS:
        board = json.loads(dashboards.read(name))
        found += [
            (f"{name}: {panel['title']}", target["expr"])
            for panel in board["panels"]
            for target in panel.get("targets", ())
        ]
        found += [
            (f"{name}: variable {one['name']}", one["definition"])
            for one in board["templating"]["list"]
            if "definition" in one
        ]
    return found


def test_every_metric_that_is_asked_for_exists():
    """No dashboard, rule or alert asks for a name that is neither shown nor recorded."""
    known = shown() | set(recorded())
    wrong = [
        (place, name) for place, expr in asked() for name in NAME.findall(expr) if name not in known
    ]
    assert wrong == []
    assert len(asked()) > 40


def test_panels_do_not_overlap_and_say_what_they_show():
    """Each panel has a title, a sentence, a place of its own, and the data source that is chosen."""
    for name in BOARDS:
        board = json.loads(dashboards.read(name))
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, (name, panel["title"])
            assert place["x"] + place["w"] <= 24
            taken |= cells
            if panel["type"] != "row":
                assert panel["description"].endswith("."), panel["title"]
                assert panel["datasource"]["uid"] == "${datasource}"
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    """Each alert leads to its section, which says what it means, what to type and what to expect; there is no other section."""
    text = (DOCS / "runbooks.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"
        assert re.search(r"^    (evsched|curl) ", sections[name], re.MULTILINE), name
        assert "xpect" in sections[name], name


def test_promtool_takes_the_rules_and_the_alerts(tmp_path):
    """Prometheus' own tool finds no fault in the files that are exported."""
    assert run(["dashboards", "export", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    files = [str(tmp_path / name) for name in FILES if name.endswith(".yaml")]
    done = subprocess.run(
        [promtool(), "check", "rules", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "FAILED" not in done.stdout + done.stderr


SERIES = [
    ("evsched_heartbeat_age_seconds", "60x20", "EvschedNoLeader", "5m", {}),
    ('evsched_suspended_decisions{kind="ask"}', "1x20", "EvschedDecisionSuspended", "5m", {"kind": "ask"}),
    (
        'evsched_oldest_waiting_ask_timestamp_seconds{queue="root.a"}', "-7200x40", "EvschedAskWaitsLong", "20m",
        {"queue": "root.a"},
    ),
    (
        'evsched_guarantee_lacking{queue="root.a",resource="vcore"}', "500x60", "EvschedGuaranteeUnmet", "40m",
        {"queue": "root.a", "resource": "vcore"},
    ),
    (
        'evsched_quota_deadline_timestamp_seconds{queue="root.a"}', "900x20", "EvschedQuotaEnforcementNear", "10m",
        {"queue": "root.a"},
    ),
    ("evsched_log_lag_frames", "500x20", "EvschedReaderBehind", "10m", {}),
]  # fmt: skip
"""What is scraped each minute, the alert that it raises, by when, and its labels."""


def test_alerts_are_raised_by_what_they_are_about(tmp_path):
    """On series that go wrong each alert fires with its queue or kind; on none of them does it fire at the start."""
    assert run(["dashboards", "export", str(tmp_path)]) == 0
    severities = {name: rule["labels"]["severity"] for name, rule in alerts().items()}
    tests = []
    for series, values, name, at, labels in SERIES:
        fired = {"exp_labels": {"severity": severities[name], **labels}}
        tests.append({
            "interval": "1m",
            "input_series": [{"series": series, "values": values}],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                    "eval_time": at,
                    "exp_samples": [{"labels": "{}", "value": 1}],
                },
                {
                    "expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}',
                    "eval_time": "0m",
                    "exp_samples": [],
                },
                {
                    "expr": f'sum by ({", ".join(sorted(fired["exp_labels"]))}) '
                    f'(ALERTS{{alertname="{name}",alertstate="firing"}})',
                    "eval_time": at,
                    "exp_samples": [{
                        "labels": "{"
                        + ", ".join(f'{key}="{one}"' for key, one in sorted(fired["exp_labels"].items()))
                        + "}",
                        "value": 1,
                    }],
                },
            ],
        })  # fmt: skip
    file = tmp_path / "tests.yaml"
    rules = [name for name in FILES if name.endswith(".yaml")]
    file.write_text(
        yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests})
    )
    done = subprocess.run(
        [promtool(), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_export_says_what_it_wrote_and_what_it_cannot_write(tmp_path, capsys):
    """The folder is made, each file named; where a file lies in the way the command ends with code 2 and says so."""
    assert run(["dashboards", "export", str(tmp_path / "new"), "--json"]) == 0
    named = [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()]
    assert named == [str(tmp_path / "new" / name) for name in FILES]
    (tmp_path / "file").write_text("")
    assert run(["dashboards", "export", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err


@pytest.mark.parametrize("name", FILES)
def test_files_end_with_a_line_and_name_no_place_of_ours(name):
    """What is exported is text that ends with a line, without addresses of any machine."""
    text = dashboards.read(name)
    assert text.endswith("\n")
    assert "127.0.0.1" not in text
    assert "localhost" not in text

"""Kueue as its users see it: one installation with `evsched run`, in which partition 0 has queues.yaml and 1 Kueue manifests.

The log is made once, by real processes, and everything that looks back is asked about it. The
story: in both partitions somebody has to go for somebody more entitled; then a nominal quota is
lowered, and the scheduler is killed before the delay has passed.
"""

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest

from evsched.cli.main import run
from tests.service.running import Running, wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {name: prod, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
          - {name: test}
"""
LOWERED = "nominalQuota: 2}"


def said(*arguments):
    """Return the documents that a command prints, and its exit code."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*arguments, "--json"])
    return [json.loads(line) for line in out.getvalue().splitlines()], code


class Installation:
    """A log with two cluster partitions, and what is known of its making."""

    def __init__(self, folder):
        self.folder, self.url = folder, str(folder / "cluster.db")
        self.manifests, self.lowered = folder / "manifests", folder / "lowered"
        shutil.copytree(EXAMPLES / "kueue", self.manifests)
        text = (self.manifests / "queues.yaml").read_text().replace("delay: 2m", "delay: 3s")
        (self.manifests / "queues.yaml").write_text(text)
        shutil.copytree(self.manifests, self.lowered)
        (self.lowered / "queues.yaml").write_text(text.replace("nominalQuota: 6}", LOWERED))
        (folder / "queues.yaml").write_text(QUEUES)
        self.before_kill = []

    def on(self, partition):
        """Return the options that name a partition of this log."""
        return ("--log", self.url, "--partition", str(partition))

    def events(self, partition, *types):
        """Return the events of some types, each with its time."""
        chosen = [option for name in types for option in ("--type", name)]
        lines, _ = said("log", "show", *chosen, *self.on(partition))
        return [{"time": line["time"], **line["event"]} for line in lines]

    def submit(self, partition, *asks):
        """Propose events and wait for the answer."""
        path = self.folder / "asks.jsonl"
        path.write_text("".join(f"{json.dumps(ask)}\n" for ask in asks))
        assert run(["submit", str(path), "--wait", *self.on(partition)]) == 0

    def make(self):
        """Tell the story."""
        scheduler = Running(self.folder, "run", "--partitions", "2", "--log", self.url)
        agents = [
            Running(
                self.folder, "emulate", "--grace", "200ms", *self.on(number), name=f"agent-{number}"
            )
            for number in (0, 1)
        ]
        try:
            scheduler.start().wait_ready()
            for agent in agents:
                agent.start()
            self._preempt_in_both(scheduler)
            assert run(["config", "apply", str(self.lowered), "--wait", *self.on(1)]) == 0
            scheduler.kill()
            self.before_kill, _ = said("at", "end", "timers", *self.on(1))
            scheduler.start().wait_ready()
            wait_until(lambda: len(self._gone_for_quota()) == 2, 20, scheduler)
            assert scheduler.stop() == 0
        finally:
            for one in (scheduler, *agents):
                one.kill()

    def _preempt_in_both(self, scheduler):
        assert (
            run(["config", "apply", str(self.folder / "queues.yaml"), "--wait", *self.on(0)]) == 0
        )
        assert run(["config", "apply", str(self.manifests), "--wait", *self.on(1)]) == 0
        pods = [
            {
                "type": "AskSubmitted",
                "ask": name,
                "application": queue,
                "queue": f"root.{queue}",
                "resources": {"vcore": 2000},
            }
            for name, queue in (("t1", "test"), ("t2", "test"), ("t3", "test"), ("p1", "prod"))
        ]
        self.submit(
            0, {"type": "NodeRegistered", "node": "n1", "capacity": {"vcore": 6000}}, *pods[:3]
        )
        self.submit(0, pods[3])
        assert run(["submit", str(EXAMPLES / "kueue.jsonl"), "--wait", *self.on(1)]) == 0
        assert run(["submit", str(EXAMPLES / "kueue-lab.jsonl"), "--wait", *self.on(1)]) == 0
        bound = {0: "p1", 1: "lab-1"}
        for number, name in bound.items():
            wait_until(lambda number=number, name=name: name in self._bound(number), 20, scheduler)

    def _bound(self, partition):
        return [event["ask"] for event in self.events(partition, "AllocationBound")]

    def _gone_for_quota(self):
        told = {
            one["id"]
            for event in self.events(1, "QuotaPreemptionDecided")
            for one in event["victims"]
        }
        return [one for one in self.events(1, "AllocationReleased") if one["allocation"] in told]


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """Return the installation after the story."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("installation")
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    made = Installation(folder)
    made.make()
    yield made
    patch.undo()


def test_both_families_preempt_in_one_installation(installation):
    """Each by its own rules, and both partitions verify."""
    (guarantee,) = installation.events(0, "PreemptionDecided")
    assert (guarantee["ask"], guarantee["algorithm"], guarantee["node"]) == (
        "p1",
        "guarantee",
        "n1",
    )
    (reclaim,) = installation.events(1, "PreemptionDecided")
    assert (reclaim["ask"], reclaim["algorithm"]) == ("lab-1", "classic")
    assert [(one["queue"], one["reason"]) for one in reclaim["victims"]] == [
        ("web", "InCohortReclamation")
    ]
    assert reclaim["victims"][0]["message"] == (
        "Preempted to accommodate a workload (UID: lab-1, JobUID: UNKNOWN) due to reclamation within the cohort; "
        "preemptor path: /company/science/research; preemptee path: /company/web"
    )
    for partition in (0, 1):
        (found,), code = said("verify", *installation.on(partition))
        assert (code, found["difference"], found["damage"], found["first"]) == (0, None, None, 1)


def test_a_lowered_nominal_quota_is_enforced_after_its_delay_whatever_is_killed(installation):
    """The timer was armed before the kill, fired when it was due, and only what the cohort cannot hold any more had to go."""
    (timer,) = [one for one in installation.before_kill if one["kind"] == "quota"]
    scheduled = installation.events(1, "QuotaPreemptionScheduled")[-1]
    (decided,) = installation.events(1, "QuotaPreemptionDecided")
    terms = installation.events(1, "LeaderStarted")
    assert (timer["subject"], timer["due"]) == ("web", scheduled["at"])
    assert scheduled["at"] == scheduled["time"] + 3000
    assert scheduled["time"] < terms[-1]["time"] < decided["time"]
    assert decided["due"] == scheduled["at"] <= decided["time"]
    assert (decided["queue"], decided["target"]) == ("web", {"on-demand/cpu": 4000})
    assert len(decided["victims"]) == 2


def test_status_and_views_speak_of_quotas(installation, capsys):
    """Nominal quotas, what cohorts have with those below them, borrowing limits; for people and for programs."""
    (status,), _ = said("status", *installation.on(1))
    queues = {one["queue"]: one for one in status["queues"]}
    assert queues["research"]["nominal"] == {"on-demand/cpu": 4000}
    assert queues["research"]["borrowing_limit"] == {"on-demand/cpu": 2000}
    assert queues["cohort/company"]["quota"] == {"on-demand/cpu": 6000}
    assert run(["status", *installation.on(1)]) == 0
    assert "nominal" in (shown := capsys.readouterr().out)
    assert "guaranteed" not in shown
    rows, _ = said("at", "end", "queues", *installation.on(1))
    company = next(row for row in rows if row["queue"] == "cohort/company")
    assert (company["nominal"], company["quota"]) == ({}, {"on-demand/cpu": 6000})
    for view in ("asks", "allocations", "config", "timers", "apps"):
        assert said("at", "end", view, *installation.on(1))[1] == 0


def at_preemption(installation):
    """Return the seq after which lab-1 is in flight."""
    return str(installation.events(1, "PreemptionDecided")[0]["seq"])


def test_a_waiting_workload_is_told_which_quota_binds(installation, capsys):
    """At which level, by which limit and how much; which flavors were looked at; who is spared by which policy."""
    bound = str(installation.events(1, "AllocationBound")[-1]["seq"] + 1)
    (document,), _ = said("explain", "lab-2", "--at", bound, *installation.on(1))
    found = document["explanation"]
    assert found["summary"] == (
        "ClusterQueue research: 4 cpu of flavor on-demand requested, 4 used, 6 allowed (quota 4 and borrowing limit 2). "
        "Cohort company: 4 cpu of flavor on-demand requested, 10 used, 10 allowed (quota 10). Both have to change."
    )
    assert [(one["queue"], one["binding"], one["missing"]) for one in found["quotas"]] == [
        ("research", "borrowing limit", 2000),
        ("cohort/science", "", 0),
        ("cohort/company", "quota", 4000),
    ]
    assert [(one["flavor"], one["mode"]) for one in found["flavors"]] == [
        ("on-demand", "noCandidates")
    ]
    assert {one["subject"]: one["code"] for one in found["passed_over"]}[
        "lab-1"
    ] == "withinClusterQueue-priority"
    assert run(["explain", "lab-2", "--at", bound, *installation.on(1)]) == 0
    shown = capsys.readouterr().out
    assert "2 too much (borrowing limit)" in shown
    assert "on-demand for cpu 4: it is full, and nobody may be preempted" in shown


def test_a_victim_is_told_for_whom_why_and_what_the_quotas_were(installation, capsys):
    """With the message that its owner reads; and who was spared instead says why."""
    (victim,) = installation.events(1, "PreemptionDecided")[0]["victims"]
    (document,), _ = said("explain", victim["id"], *installation.on(1))
    (decision,) = document["decisions"]
    assert (decision["for_ask"], decision["for_queue"], decision["identical"]) == (
        "lab-1",
        "research",
        True,
    )
    moved = {
        one["queue"]: (one["before"], one["after"], one["quota"]) for one in decision["shares"]
    }
    assert moved == {
        "research": (0, 4000, 4000), "cohort/science": (0, 4000, 4000),
        "cohort/company": (8000, 10_000, 10_000), "web": (8000, 6000, 6000),
    }  # fmt: skip
    assert run(["explain", victim["id"], *installation.on(1)]) == 0
    assert "due to reclamation within the cohort" in " ".join(capsys.readouterr().out.split())
    spared = next(name for name in ("web-1", "web-2") if name != victim["id"])
    (document,), _ = said(
        "explain", spared, "--at", at_preemption(installation), *installation.on(1)
    )
    assert [(one["for_ask"], one["code"]) for one in document["spared"]] == [
        ("lab-1", "not-reached")
    ]


def test_what_if_and_plan_answer_for_quotas(installation, tmp_path, capsys):
    """Another quota, tried on what happened; an ask that is not submitted."""
    larger = tmp_path / "larger"
    shutil.copytree(installation.manifests, larger)
    text = (larger / "queues.yaml").read_text()
    (larger / "queues.yaml").write_text(text.replace("nominalQuota: 6}", "nominalQuota: 8}"))
    assert run(["whatif", "--config", str(larger), "--from", "start", *installation.on(1)]) == 1
    shown = capsys.readouterr().out
    assert "below nominal quota" in shown
    assert "cpu from on-demand" in shown
    (tmp_path / "ask.yaml").write_text(
        "{ask: new, queue: lab/main, priority: 10, resources: {cpu: '1'}}"
    )
    (planned,), code = said("plan", str(tmp_path / "ask.yaml"), *installation.on(1))
    assert (planned["outcome"], code) == ("preempts", 0)
    assert [(one["id"], one["reason"]) for one in planned["victims"]] == [
        ("lab-1", "InClusterQueue")
    ]
    podsets = "[{name: driver, resources: {cpu: 500m}}, {name: workers, resources: {cpu: '3'}}]"
    (tmp_path / "ask.yaml").write_text(
        f"{{ask: new, queue: lab/main, priority: 10, podsets: {podsets}}}"
    )
    (planned,), code = said("plan", str(tmp_path / "ask.yaml"), *installation.on(1))
    assert (planned["outcome"], code) == ("preempts", 0)
    (tmp_path / "ask.yaml").write_text("{ask: new, queue: web, resources: {gpu: 1}}")
    (planned,), code = said("plan", str(tmp_path / "ask.yaml"), *installation.on(1))
    assert (planned["outcome"], code) == ("waits", 1)
    assert [(one["code"], one["sentence"]) for one in planned["unblock"]] == [
        ("uncovered", "a quota for gpu in ClusterQueue web")
    ]


def test_audits_bisection_and_differences(installation, tmp_path, capsys):
    """The read model, the first moment of something, two moments, two configurations."""
    model = str(tmp_path / "audit.db")
    assert run(["project", "rebuild", "--db", model, *installation.on(1)]) == 0
    rows, _ = said("audit", "who-preempted", "--queue", "web", "--db", model, *installation.on(1))
    assert [(one["for_ask"], one["reason"]) for one in rows if one["for_ask"]] == [
        ("lab-1", "InCohortReclamation")
    ]
    assert sum(one["kind"] == "quota" for one in rows) == 2
    assert run(["bisect", "queue web usage.on-demand/cpu > 6", *installation.on(1)]) == 0
    assert "web-4" in capsys.readouterr().out
    changes, _ = said("diff", "start", "end", "--only", "queues", *installation.on(1))
    assert {one["key"] for one in changes} == {
        "cohort/company",
        "cohort/science",
        "research",
        "web",
    }
    (change,), code = said("config", "diff", str(installation.manifests), str(installation.lowered))
    assert code == 1
    assert "nominalQuota 6 → 2" in json.dumps(change, ensure_ascii=False) or change["changed"]


def test_a_difference_says_that_a_quota_will_be_enforced(installation, tmp_path, capsys):
    """In the words of Kueue, with the delay of the annotation."""
    lower = tmp_path / "lower"
    shutil.copytree(installation.lowered, lower)
    text = (lower / "queues.yaml").read_text()
    (lower / "queues.yaml").write_text(text.replace(LOWERED, "nominalQuota: 1}"))
    assert run(["config", "diff", str(lower), *installation.on(1)]) == 1
    shown = capsys.readouterr().out
    assert "ClusterQueue web: quota on-demand/cpu.nominalQuota 2 → 1" in shown
    assert (
        "queue web: quota enforcement starts: nominal quota was lowered; enforced after 3s" in shown
    )


def test_an_anonymised_log_verifies_and_names_nobody(installation, tmp_path):
    """Queues, cohorts, flavors and workloads get new names everywhere, in messages and paths too."""
    path = str(tmp_path / "nameless.jsonl")
    assert run(["log", "export", path, "--anonymise", *installation.on(1)]) == 0
    (found,), code = said("verify", "--log", path)
    assert (code, found["difference"]) == (0, None)
    text = Path(path).read_text()
    assert not [
        name
        for name in ("research", "company", "science", "on-demand", "lab-1", "web")
        if name in text
    ]


def test_manifests_are_taken_one_by_one_and_as_a_folder(installation, tmp_path, capsys):
    """The same configuration; what one file alone lacks is said with its place, and so is what is wrong."""
    files = [str(path) for path in sorted(installation.manifests.iterdir())]
    assert run(["config", "check", *files]) == 0
    assert run(["config", "check", str(installation.manifests)]) == 0
    assert (
        capsys.readouterr().out.splitlines()
        == ["partition default: valid (2 ClusterQueues, 1 Cohort)"] * 2
    )
    assert run(["config", "check", files[-1]]) == 0
    assert (
        "queues.yaml:16 spec.resourceGroups[0].flavors[0].name: ClusterQueue research: "
        in capsys.readouterr().err
    )
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        (installation.manifests / "queues.yaml")
        .read_text()
        .replace("quota-preemption-delay", "quota-delay")
    )
    assert run(["config", "check", files[0], str(wrong)]) == 1
    assert "found the unknown annotation 'evsched.io/quota-delay'" in capsys.readouterr().err


def test_preempted_workloads_come_again_as_they_were(installation):
    """The emulated agent re-creates a workload in the queue that it named, so that both sides of the circle close."""
    released = {one["allocation"] for one in installation.events(1, "AllocationReleased")}
    again = {
        one["ask"].partition("~")[0]: one
        for one in installation.events(1, "AskSubmitted")
        if "~" in one["ask"]
    }
    assert set(again) == released
    assert {one["queue"] for one in again.values()} == {"web"}

"""The commands that work on a log, on SQLite, with a leader in between."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from select import select

import pytest

from benchmarks.openb import COMMAND
from events.chain import ChainReader
from events.streams import Leadership, open_streams
from events.streams.leadership import Environment
from evsched.cli import main
from evsched.cli.logs import Where, data_directory
from evsched.cli.main import run
from evsched.core.engine import Engine
from tests.events.world import lead as lead_log
from tests.events.world import write

QUEUES = """
partitions:
  - name: default
    queues:
      - {name: a, resources: {max: {vcore: "4"}}}
"""
QUEUES_FILE = str(Path(__file__).parents[2] / "docs" / "examples" / "queues.yaml")
NODE = {"type": "NodeRegistered", "node": "n1", "capacity": {"vcore": 4000}, "proposal": "p1"}
ASK = {
    "type": "AskSubmitted",
    "ask": "t1",
    "application": "x",
    "queue": "root.a",
    "resources": {"vcore": 1000},
    "proposal": "p2",
}


@pytest.fixture
def url(tmp_path, monkeypatch):
    """Return the address of a log of the test's own, which is also the default one."""
    monkeypatch.setenv("EVSCHED_LOG", f"sqlite:///{tmp_path / 'log.db'}")
    return os.environ["EVSCHED_LOG"]


@pytest.fixture
def lead(url):
    """Return a function that leads for one step: it takes what is in the inbox."""

    async def one_step():
        engine = Engine()

        def apply(step):
            for event in step.events:
                engine.apply(event, step.time)

        async def pause(lost):
            await asyncio.sleep(0)

        world = Environment(now=lambda: 1_000_000, new_id=lambda: os.urandom(8).hex(), pause=pause)
        async with open_streams(url) as streams:
            leadership = await Leadership.acquire(streams.log, ChainReader(), apply, world)
            proposals = await streams.inbox.read(leadership.head.inbox_next)
            moment = leadership.stamp(1_000_000)
            inbox_next = proposals[-1].position + 1 if proposals else leadership.head.inbox_next
            await leadership.append_step(
                engine.step(moment, proposals), time=moment, decided=True, inbox_next=inbox_next
            )

    return lambda: asyncio.run(one_step())


@pytest.fixture
def lines(tmp_path):
    """Return a function that writes JSON lines to a file and returns its path."""

    def write(*documents):
        path = tmp_path / "inputs.jsonl"
        path.write_text(
            "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in documents)
        )
        return str(path)

    return write


def shown(capsys):
    """Return what was printed as JSON lines."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def filled(url, lead, lines, tmp_path, capsys):
    """A log in which one ask was bound and one proposal refused."""
    (tmp_path / "queues.yaml").write_text(QUEUES)
    assert run(["config", "apply", str(tmp_path / "queues.yaml")]) == 0
    assert run(["submit", lines(NODE, ASK, ASK)]) == 0
    lead()
    capsys.readouterr()


def test_a_broken_line_sends_nothing_and_is_numbered(url, lines, capsys):
    """Everything is read before the first proposal is sent."""
    assert run(["submit", lines(NODE, {"type": "NodeRegistered", "node": 7})]) == 2
    assert "inputs.jsonl:2: " in capsys.readouterr().err
    assert run(["submit", lines(NODE, ASK | {"aplication": "x"})]) == 2
    said = capsys.readouterr().err
    assert "inputs.jsonl:2: found the unknown field 'aplication', expected 'application'" in said
    assert run(["submit", lines("{")]) == 2
    assert run(["submit", "missing.jsonl"]) == 2
    capsys.readouterr()
    run(["submit", "--json", lines(NODE)])
    assert [one["position"] for one in shown(capsys)] == [0]


def test_a_line_without_an_id_gets_one(url, lines, capsys):
    """So that its answer can be found."""
    run(
        [
            "submit",
            "--json",
            lines({"type": "NodeRemoved", "node": "n"}, "", {"type": "NodeRemoved", "node": "n"}),
        ]
    )
    found = [one["proposal"] for one in shown(capsys)]
    assert len(set(found)) == 2
    assert all(name.startswith("submit:") for name in found)


def test_waiting_tells_who_was_refused(url, lead, lines, tmp_path, capsys):
    """With --wait the command exits 1 when anything was refused, and says why."""
    (tmp_path / "queues.yaml").write_text(QUEUES)
    run(["config", "apply", str(tmp_path / "queues.yaml")])
    path = lines(NODE, ASK | {"resources": {"vcore": 1}, "queue": "root.b"})
    code = f"from evsched.cli.main import main; main(['submit', {path!r}, '--wait', '--json'])"
    waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while waiting.poll() is None and time.monotonic() < deadline:
        lead()
    out, _ = waiting.communicate(timeout=5)
    assert waiting.returncode == 1
    answers = {one["proposal"]: one["answer"] for one in map(json.loads, out.splitlines())}
    assert answers["p1"] == "accepted"
    assert "root.b" in answers["p2"]


def test_the_log_is_shown_event_by_event(filled, capsys):
    """By number and by type, for people and as JSON; exit 1 when there is nothing."""
    assert run(["log", "show", "--json"]) == 0
    events = [one["event"] for one in shown(capsys)]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {"LeaderStarted", "ConfigurationApplied", "AllocationBound", "InputRejected"} <= {
        event["type"] for event in events
    }
    assert run(["log", "show", "--type", "AllocationBound"]) == 0
    assert "AllocationBound ask=t1 node=n1" in capsys.readouterr().out
    assert run(["log", "show", "--json", "--from", "2", "--to", "3"]) == 0
    assert [one["event"]["seq"] for one in shown(capsys)] == [2, 3]
    assert run(["log", "show", "--type", "NodeRemoved"]) == 1


def test_moments_in_events_are_shown_as_times(capsys):
    """Until when a pause lasts is read like the times of the lines; JSON keeps the milliseconds."""
    pauses = str(Path(QUEUES_FILE).parent / "pauses.jsonl")
    assert run(["log", "show", "--log", pauses, "--type", "ApplicationPaused"]) == 0
    assert " application=report until=2026-01-01T09:00:40.000Z asks=2 " in capsys.readouterr().out
    assert run(["log", "show", "--log", pauses, "--type", "ApplicationPaused", "--json"]) == 0
    assert next(one["event"]["until"] for one in shown(capsys)) == 1767258040000


def test_what_was_refused_does_not_speak_to_a_terminal(filled, lead, lines, capsys):
    """A refused proposal stands in the log as it came, with its control characters; people see none of them."""
    run(
        [
            "submit",
            lines(
                NODE | {"proposal": "p9", "node": "\u009b31m", "labels": {"\u202e": "\u009b31m"}}
            ),
        ]
    )
    lead()
    capsys.readouterr()
    assert run(["log", "show", "--type", "InputRejected"]) == 0
    out = capsys.readouterr().out
    assert "31m" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_status_shows_the_state_of_the_log(filled, capsys):
    """Who leads, what runs, and the digest; the same for people."""
    assert run(["status", "--json"]) == 0
    (facts,) = shown(capsys)
    assert (facts["term"], facts["nodes"], facts["allocations"], facts["waiting"]) == (1, 1, 1, 0)
    assert run(["status"]) == 0
    assert facts["digest"] in capsys.readouterr().out


def test_a_log_can_be_exported_and_read_from_the_file(filled, tmp_path, capsys):
    """Every reading command takes the file; what is imported again has the same digest."""
    path, again = str(tmp_path / "log.jsonl.zst"), f"sqlite:///{tmp_path / 'again.db'}"
    assert run(["log", "export", path]) == 0
    assert run(["log", "export", path]) == 2
    assert run(["log", "import", path, "--no-attach", "--log", again]) == 0
    assert run(["log", "import", path, "--no-attach", "--log", again]) == 0
    assert "were there already" in capsys.readouterr().err
    assert run(["log", "import", "nope.jsonl", "--log", again]) == 2
    capsys.readouterr()
    for address in (path, again):
        assert run(["status", "--json", "--log", address]) == 0
    assert run(["status", "--json"]) == 0
    assert len({one["digest"] for one in shown(capsys)}) == 1


def test_a_log_that_holds_together_is_said_to(filled, capsys):
    """Its chain and its digests; with --decide its decisions too."""
    assert run(["log", "check", "--json", "--decide"]) == 0
    (facts,) = shown(capsys)
    assert facts["difference"] is None
    assert facts["events"] == 6


def test_an_import_goes_on_where_it_stopped(url, lead, tmp_path, capsys, monkeypatch):
    """What the log or the inbox holds is not proposed again."""
    (tmp_path / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,1024,1,V100\n"
    )
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    rows = "".join(
        f"p-{number},1000,16,1,100,,LS,Running,{number},700,200\n" for number in range(4)
    )
    (tmp_path / "pods.csv").write_text(head + rows)
    monkeypatch.setattr(main, "COMMANDS", {**main.COMMANDS, **COMMAND})
    call = [
        "openb",
        str(tmp_path / "nodes.csv"),
        str(tmp_path / "pods.csv"),
        "--json",
        "--apply-queues",
    ]
    assert run([*call, "--limit", "2"]) == 0
    assert shown(capsys) == [{"proposed": 8, "known": 0}]
    lead()
    assert run([*call, "--limit", "3", "--speed", "1000"]) == 0
    assert shown(capsys) == [{"proposed": 1, "known": 8}]
    assert run(call) == 0
    assert shown(capsys) == [{"proposed": 1, "known": 9}]
    lead()
    run(["status", "--json"])
    assert shown(capsys)[0]["allocations"] == 4
    assert run(["openb", "missing.csv", "missing.csv"]) == 2
    assert run([*call, "--speed", "0"]) == 2


def test_topics_are_made_and_verified(url, capsys):
    """A log that does not exist is no misuse: it is not there to be reached."""
    assert run(["topics", "check"]) == 3
    assert run(["topics", "create", "--partitions", "2"]) == 0
    assert run(["topics", "check", "--partition", "1"]) == 2, "it is about all of them"
    assert run(["topics", "check", "--json", "--partitions", "2"]) == 0
    assert [one["partition"] for one in shown(capsys)] == [1, 0]


def test_addresses_that_lead_nowhere(tmp_path, capsys):
    """What is not understood is misuse, what is not there is unreachable."""
    assert run(["status", "--log", "ftp://x/y"]) == 2
    assert run(["status", "--log", f"sqlite:///{tmp_path}/none.db"]) == 3
    assert run(["status", "--log", f"{tmp_path}/none.jsonl"]) == 3
    assert (
        run(["status", "--log", "kafka://localhost:1/x", "--kafka-protocol", "CARRIER_PIGEON"]) == 2
    )
    assert "Traceback" not in capsys.readouterr().err


def test_a_damaged_log_exits_3_with_the_place(tmp_path, capsys):
    """What cannot stand there is not believed."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"no": "frame"}\n')
    assert run(["status", "--log", str(path)]) == 3
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["log", "check"],
        ["at", "end", "queues"],
        ["explain", "x"],
        ["diff", "1", "end"],
        ["bisect", "node x gone"],
        ["whatif", "--config", QUEUES_FILE],
        ["project", "rebuild", "--db", "audit.db"],
    ],
    ids=" ".join,
)
def test_an_event_that_cannot_stand_there_is_damage(command, url, capsys, monkeypatch, tmp_path):
    """A log of somebody else may hold together by its hashes and yet remove a node that never was; the event is named."""
    monkeypatch.chdir(tmp_path)

    async def impossible():
        async with open_streams(url) as streams:
            await streams.log.create()
            await write(await lead_log(streams.log), "ghost")

    asyncio.run(impossible())
    assert run(command) == 3
    assert (
        "damaged at position 1: event 2, NodeRemoved, cannot follow what came before it"
        in capsys.readouterr().err
    )


def test_the_default_log_lies_where_the_platform_keeps_data(monkeypatch, tmp_path):
    """XDG_DATA_HOME when it is an absolute path."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_directory() == tmp_path / "evsched"
    assert Where().url == f"sqlite:///{tmp_path}/evsched/log.db"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_directory() == tmp_path / ".local" / "share" / "evsched"


@pytest.mark.parametrize("arguments", [["log", "tail"], ["log", "tail", "--json"], ["emulate"]])
def test_ctrl_c_ends_what_never_ends_by_itself(filled, arguments, monkeypatch):
    """With code 130 and one line, without a traceback; what there was to say was said before, through a pipe too."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    # A shell lets what it starts in the background ignore the signal, and so would the test's own
    # child.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heed}; from evsched.cli.main import main; main({arguments!r})"
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    told = running.stdout if arguments[0] == "log" else running.stderr
    try:
        assert select([told], [], [], 20)[0], "nothing was said"
        assert told.readline()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=10)
    finally:
        running.kill()
    assert running.returncode == 130
    assert err.strip() == "evsched: interrupted"

"""The programs in docs/examples/consumers, on a real broker, with kills in the middle: nothing is lost or comes twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest

from events import vocabulary as v
from events.chain import ChainReader
from events.frame import decode_frame
from events.streams import open_streams
from events.streams.reading import read_steps
from tests.docs.pages import DOCS
from tests.docs.test_consuming import records
from tests.replays.logs import story
from tests.service.inputs import application, node, queues
from tests.service.running import Running, wait_until

FOLDER = DOCS / "examples" / "consumers"
TORN = b'{"time": 1, "events": [{"seq": 99'


@contextmanager
def started(program, *arguments):
    """Start a program of the folder; it is killed (SIGKILL) at the end of the block, wherever it is then."""
    command = [sys.executable, str(FOLDER / program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def append(bootstrap, name, frames, *, create=False):
    """Write frames into the log of this name."""
    async with open_streams(f"kafka://{bootstrap}/{name}") as streams:
        if create:
            await streams.log.create()
        for data in frames:
            await streams.log.append(data)


def beginnings(frames):
    """Return how many frames there are up to the first one of each step that has several."""
    whole = [decode_frame(data).last for data in frames]
    return [at + 1 for at in range(1, len(whole)) if whole[at - 1] and not whole[at]]


def run_with_kills(program, bootstrap, name, path, torn=None):
    """Feed a log to a program that is killed again and again, while it has only the beginning of a step.

    ``torn``: what the kills do to the file besides.
    """
    frames, written = records(), 0
    last = max(event.seq for _, events, _ in story() for event in events)
    cuts = beginnings(frames)
    assert len(cuts) > 1
    for cut in [*cuts, len(frames)]:
        asyncio.run(append(bootstrap, name, frames[written:cut], create=not written))
        written = cut
        with started(program, bootstrap, name, str(path)) as process:
            for line in process.stdout:
                if written < len(frames) or line.strip() == str(last):
                    break
        if torn is not None and written < len(frames):
            torn(path)


def expected():
    """Return what every consumer must have seen: number and type of each event that counts, in order."""
    return [(event.seq, type(event).__name__) for _, events, _ in story() for event in events]


def test_events_come_into_sqlite_exactly_once(kafka_bootstrap, kafka_topic_name, tmp_path):
    """Killed in the middle of a log with overtaken leaders, cut steps and fragments, and started again."""
    path = tmp_path / "events.db"
    run_with_kills("into_sqlite.py", kafka_bootstrap, kafka_topic_name, path)
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT seq, type FROM events ORDER BY rowid").fetchall()
    assert found == expected()


def test_steps_come_into_a_file_exactly_once(kafka_bootstrap, kafka_topic_name, tmp_path):
    """With confluent-kafka; a kill may leave half a line, too."""
    path = tmp_path / "steps.jsonl"

    def tear(path):
        with path.open("ab") as file:
            file.write(TORN)

    run_with_kills("with_confluent.py", kafka_bootstrap, kafka_topic_name, path, tear)
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    found = [(event["seq"], event["type"]) for step in steps for event in step["events"]]
    assert found == expected()


@pytest.fixture
def leader(kafka_bootstrap, kafka_topic_name, tmp_path):
    """Start an `evsched run`."""
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    running = Running(tmp_path, "run", "--log", url, "--create-topics").start()
    try:
        wait_until(lambda: running.leading() == {0}, 60, running)
        yield url
    finally:
        running.kill()


async def propose(url, *inputs):
    """Write proposals into the inbox."""
    async with open_streams(url) as streams:
        await streams.inbox.propose(list(inputs), "test")


async def submissions(url):
    """Return the asks that the log accepted."""
    async with open_streams(url) as streams:
        return [
            event.ask
            async for steps in read_steps(streams.log, ChainReader())
            for step in steps
            for event in step.events
            if isinstance(event, v.AskSubmitted)
        ]


def test_an_answer_is_found_after_a_kill(leader, kafka_bootstrap, kafka_topic_name):
    """Killed while its ask waits for a node; the second run proposes again, is recognised, and sees it bound."""
    asyncio.run(propose(leader, queues(), application("web")))
    wanted = json.dumps({"application": "web", "queue": "root.web", "resources": {"vcore": 1000}})
    call = ("wait_for_answer.py", kafka_bootstrap, kafka_topic_name, "job-1", wanted)
    with started(*call) as process:
        first = process.stdout.readline().split()
    assert first[0] == "accepted"
    with started(*call) as process:
        assert process.stdout.readline().split() == first
        asyncio.run(propose(leader, node()))
        assert process.stdout.readline().split()[::2] == ["bound", "node-1"]
        assert process.wait(60) == 0
    wrong = json.dumps({"application": "web", "queue": "root.nowhere", "resources": {"vcore": 1}})
    with started(*call[:-2], "job-2", wrong) as process:
        assert process.stdout.readline().startswith("refused ")
        assert process.wait(60) == 1
    assert asyncio.run(submissions(leader)) == ["job-1"]

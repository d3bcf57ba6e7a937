"""The server as a whole: whether it is ready, whom it answers, what every answer carries, how it ends."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
import urllib.request

import httpx
import pytest

from events.streams import open_streams
from evsched.cli.main import run
from tests.api.served import kept, listening, reached, serving, serving_steps
from tests.replays.logs import LOG_ID, sealed, story
from tests.service.running import Running, wait_until


async def test_it_says_which_log_it_serves(tmp_path):
    """Its id, and how far it has read it."""
    async with serving_steps(story(), tmp_path) as client:
        found = (await client.get("/v1/log")).json()
        assert (found["log_id"], found["seq"], found["ready"]) == (LOG_ID, 35, True)
        for address in ("/livez", "/readyz"):
            assert (await client.get(address)).json() == {"status": "ok"}


async def test_an_empty_log_is_served(tmp_path):
    """It has no rows, and no seq but 0; what comes later is seen."""
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept([], url)
    async with serving(url, tmp_path) as client:
        assert (await client.get("/v1/at/latest/asks")).json()["rows"] == []
        assert (await client.get("/v1/at/0/queues")).json()["rows"] == []
        await kept(sealed(story()), url)
        await reached(client, 35)
        assert (await client.get("/v1/at/35/queues")).json()["total"] == 3


async def test_a_stream_says_how_far_the_log_goes_whenever_that_changes(tmp_path):
    """Now, after more was written, and until the server stops; each message has the seq as its id."""
    url = f"sqlite://{tmp_path / 'log.db'}"
    records = sealed(story())
    await kept(records[:5], url)
    async with listening(url, tmp_path) as (address, served):
        first = served.past.tail.seq
        async with (
            httpx.AsyncClient(timeout=20) as client,
            client.stream("GET", f"{address}/v1/log/stream") as found,
        ):
            assert found.headers["content-type"].startswith("text/event-stream")
            lines = found.aiter_lines()
            assert await _told(lines) == (first, first)
            async with open_streams(url) as streams:
                for record in records[5:]:
                    await streams.log.append(record.data)
            seq = first
            while seq < 35:
                before, (seq, told) = seq, await _told(lines)
                assert before < seq == told
            served.past.tail.stop()
            assert [line async for line in lines if line.startswith("id")] == []


async def _told(lines):
    """Return id and seq of the next message of a stream."""
    message = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        message[name] = value
        if not line and "data" in message:
            return int(message["id"]), json.loads(message["data"])["seq"]
        if not line:
            message = {}
    raise AssertionError("the stream ended")


HOSTS = {
    "localhost": 200,
    "LOCALHOST:8080": 200,
    "127.0.0.1:1": 200,
    "[::1]:8080": 200,
    "evil.example": 421,
    "127.0.0.1.evil.example:80": 421,
    "": 421,
}


async def test_it_answers_under_its_own_names_alone(tmp_path):
    """A stranger's name that leads to this machine gets nothing (DNS rebinding)."""
    async with serving_steps(story(), tmp_path) as client:
        for host, status in HOSTS.items():
            found = await client.get("/v1/log", headers={"host": host})
            assert found.status_code == status, host
            # A probe calls it by whatever address it has.
            assert (await client.get("/readyz", headers={"host": host})).status_code == 200


async def test_every_answer_forbids_what_is_foreign(tmp_path):
    """Scripts and styles of our own alone, no frames, and no permission for other origins to read."""
    async with serving_steps(story(), tmp_path) as client:
        for address in ("/v1/log", "/v1/none", "/"):
            found = await client.get(address, headers={"origin": "http://evil.example"})
            policy = found.headers["content-security-policy"]
            assert policy.startswith("default-src 'self';"), address
            assert found.headers["x-content-type-options"] == "nosniff"
            assert not [name for name in found.headers if name.startswith("access-control-")]


def test_a_process_serves_until_it_is_told(tmp_path):
    """It says its address once it listens, answers, and ends in order on a signal."""
    asyncio.run(kept(sealed(story()), f"sqlite://{tmp_path / 'log.db'}"))
    arguments = ["--log", str(tmp_path / "log.db"), "--listen", "127.0.0.1:0"]
    kept_files = ["--db", str(tmp_path / "model.db"), "--snapshots", str(tmp_path / "snapshots")]
    server = Running(tmp_path, "serve", *arguments, *kept_files).start()
    try:
        wait_until(lambda: " serves " in server.said(), 60, server)
        address = server.said().split(" serves ")[0]
        with urllib.request.urlopen(f"{address}livez") as found:
            assert found.read() == b'{"status":"ok"}'
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "Traceback" not in server.said()
    finally:
        server.kill()


@pytest.mark.parametrize(
    "listen", ["8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "0.0.0.0:80", "10.0.0.1:80"]
)
def test_without_settings_it_serves_this_machine_alone(tmp_path, listen, capsys):
    """Any other place to listen at is refused, and so is one that cannot be read."""
    assert run(["serve", "--log", str(tmp_path / "log.db"), "--listen", listen]) == 2
    assert f"--listen {listen}" in capsys.readouterr().err


@pytest.mark.timeout(400)
def test_a_scheduler_serves_too_and_its_server_ends_with_it(tmp_path):
    """`run --listen` leads and has a server beside it, which is gone when the scheduler is, killed or told."""
    url = f"sqlite://{tmp_path / 'log.db'}"
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    leader = Running(tmp_path, "run", "--log", url, "--listen", "127.0.0.1:0", environment=data)
    for end in (signal.SIGTERM, signal.SIGKILL):
        before = leader.said().count(" serves ") if leader.errors.exists() else 0
        leader.start()
        try:
            wait_until(lambda before=before: leader.said().count(" serves ") > before, 60, leader)
            address = re.findall(r"(http://\S+/) serves", leader.said())[-1]
            wait_until(lambda address=address: reaches(f"{address}readyz"), 60, leader)
            leader.wait_ready()
            leader.signal(end)
            assert leader.wait() == (0 if end == signal.SIGTERM else -signal.SIGKILL)
            for _ in range(1000):
                if not reaches(f"{address}livez"):
                    break
                time.sleep(0.01)
            assert not reaches(f"{address}livez")
        finally:
            leader.kill()


def reaches(address):
    """Tell whether something answers there."""
    try:
        with urllib.request.urlopen(address) as found:
            return found.status == 200
    except OSError:
        return False

"""`evsched run` as a process of its own, over the embedded log."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from events.streams import open_streams
from events.vocabulary import AllocationBound, LeaderStarted, QuotaPreemptionDecided
from tests.service.histories import check
from tests.service.inputs import ask, cluster, queues
from tests.service.running import EVSCHED, Running, wait_until


@pytest.fixture
def url(tmp_path):
    """Return the address of a log that does not exist yet."""
    return f"sqlite:///{tmp_path / 'data' / 'log.db'}"


@pytest.fixture
def run(tmp_path, url):
    """Return a function that starts `evsched run`; all are killed in the end."""
    with ExitStack() as stack:

        def start(*options, name="run", log=url, **environment):
            running = Running(
                tmp_path, "run", "--log", log, *options, name=name, environment=environment
            )
            stack.callback(running.kill)
            return running.start()

        yield start


async def propose(url, *inputs):
    """Propose these."""
    async with open_streams(url) as streams:
        await streams.inbox.propose(inputs, "test")


async def checked(url, *running):
    """Hold the log against all rules and return its history."""
    async with open_streams(url) as streams:
        return await check(streams, [one for each in running for one in each.acknowledged()])


async def answered(url):
    """Wait until everything proposed was taken."""
    async with open_streams(url) as streams:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            history = await check(streams)
            if history.steps and history.steps[-1].head.inbox_next == await streams.inbox.end():
                return
    raise AssertionError("not answered in 20 s")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order(run, url, number):
    """The log is made, decisions are taken, and the exit code is 0; the readiness file is gone."""
    process = run()
    process.wait_ready()
    assert process.roles() == {0: "leading"}
    await propose(url, *cluster())
    await answered(url)
    process.signal(number)
    assert process.wait() == 0
    assert not process.ready_file.exists()
    history = await checked(url, process)
    assert len(history.only(AllocationBound)) == 5
    assert [line["event"] for line in process.lines()][-1] == "resigned"


async def test_killed_and_started_again_it_is_ready_within_two_seconds(run, url):
    """Its predecessor was a process of this machine and is gone, so nobody waits for a lease; nothing is lost."""
    process = run()
    for number in range(6):
        process.wait_ready()
        await propose(url, *(cluster() if number == 0 else []), ask(f"more-{number}"))
        await asyncio.sleep(0.05 * number)
        process.kill()
        begun = time.monotonic()
        process.start()
        wait_until(lambda: process.leading() == {0}, 20, process)
        took = time.monotonic() - begun
        print(f"ready again after {took:.2f} s")
    await answered(url)
    assert process.stop() == 0
    history = await checked(url, process)
    assert len(history.only(LeaderStarted)) == 7


async def test_a_standby_takes_over(run, url):
    """At once when the leader is gone in order or is killed here, after the lease when it only hangs; then it stands by."""
    first = run(name="first")
    first.wait_ready()
    second = run(name="second")
    second.wait_ready()
    assert (first.roles(), second.roles()) == ({0: "leading"}, {0: "standby"})
    await propose(url, *cluster())
    first.signal(signal.SIGSTOP)
    wait_until(lambda: second.leading() == {0}, 20, second)
    await propose(url, ask("late"))
    first.signal(signal.SIGCONT)
    wait_until(lambda: first.roles() == {0: "standby"}, 20, first, second)
    second.kill()
    wait_until(lambda: first.leading() == {0}, 20, first)
    second.start()
    second.wait_ready()
    assert first.stop() == 0
    wait_until(lambda: second.leading() == {0}, 20, second)
    await answered(url)
    second.stop()
    history = await checked(url, first, second)
    assert len(history.only(LeaderStarted)) == 4


async def test_a_timer_goes_on_while_nobody_runs(run, url):
    """Armed for 3 s, the process killed after 1 s and started after 4 s: it fires once, at once."""
    process = run()
    process.wait_ready()
    await propose(url, *cluster())
    await answered(url)
    await propose(url, queues(4, "3s"))
    await answered(url)
    process.kill()
    await asyncio.sleep(3)
    process.start()
    wait_until(lambda: process.leading() == {0}, 20, process)
    await asyncio.sleep(0.5)
    assert process.stop() == 0
    assert len((await checked(url, process)).only(QuotaPreemptionDecided)) == 1


async def test_poison_is_refused_and_the_service_goes_on(run, url):
    """Whatever lies in the inbox is answered."""
    from events.cloudevents import InboxRecord  # noqa: PLC0415

    process = run()
    process.wait_ready()
    poison = [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"type": "NoSuchType"}',
        b"[" * 100_000,
        b'{"type": "AskSubmitted"}',
        b"null",
    ]
    async with open_streams(url) as streams:
        await streams.inbox.put(
            [
                InboxRecord(data=data, id=f"poison-{n}", source="mallory")
                for n, data in enumerate(poison)
            ]
        )
    await propose(url, *cluster())
    await answered(url)
    assert process.stop() == 0
    history = await checked(url, process)
    assert len(history.only(AllocationBound)) == 5


async def test_a_damaged_log_ends_it_with_code_3(run, url, tmp_path):
    """It says at which position, and writes nothing."""
    import sqlite3  # noqa: PLC0415

    process = run()
    process.wait_ready()
    await propose(url, *cluster())
    await answered(url)
    await propose(url, ask("one-more"))
    await answered(url)
    process.kill()
    with sqlite3.connect(tmp_path / "data" / "log.db") as file:
        file.execute("drop trigger log_keeps_updated")
        position, data = file.execute(
            "select position, data from log where instr(data, 'web-1') > 0 order by position"
        ).fetchone()
        altered = (data.replace(b"web-1", b"web-9"), position)
        file.execute("update log set data = ? where position = ?", altered)
        file.execute(
            "create trigger log_keeps_updated before update on log begin select raise(abort, 'the log only grows'); end"
        )
    file.close()
    process.start()
    assert process.wait() == 3
    (line,) = [line for line in process.lines() if line["event"] == "log damaged"]
    assert (
        line["position"] == position + 1
    )  # the frame after the one that was altered does not follow it


def test_misuse_and_absent_brokers_have_their_codes(tmp_path):
    """2 where the caller is at fault, 3 where the log cannot be reached; the sentence names what is wrong."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}

    def code(*arguments):
        done = subprocess.run(
            [*arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=tmp_path,
        )
        return done.returncode, done.stderr

    run = (str(EVSCHED), "run")
    assert code(*run, "--log", "nonsense")[0] == 2
    assert code(*run, "--log", "kafka:///cluster")[0] == 2
    assert code(*run, "--lease", "1", "--heartbeat", "1")[0] == 2
    assert code(*run, "--partitions", "0")[0] == 2
    assert "-O" in code(sys.executable, "-O", str(EVSCHED), "run")[1]
    assert code(sys.executable, "-O", str(EVSCHED), "run")[0] == 2
    unreachable = code(*run, "--log", "kafka://127.0.0.1:1/cluster")
    assert unreachable[0] == 3
    assert "127.0.0.1" in unreachable[1]


def test_no_secret_is_ever_said(tmp_path):
    """Not where the broker refuses us, and not where the address holds one by mistake."""
    environment = {
        **os.environ,
        "EVSCHED_KAFKA_PASSWORD": "hunter2secret",
        "EVSCHED_KAFKA_USERNAME": "me",
    }
    for log in ("kafka://127.0.0.1:1/cluster", "kafka://me:hunter2secret@127.0.0.1:1/cluster"):
        command = [
            EVSCHED,
            "run",
            "--log",
            log,
            "--kafka-protocol",
            "SASL_PLAINTEXT",
            "--kafka-mechanism",
            "PLAIN",
            "--verbose",
        ]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode in (2, 3)
        assert "hunter2secret" not in done.stdout + done.stderr

"""Forks leaders over a SQLite file and kills them with SIGKILL at random instants, while another process proposes.

``python -m tests.service.slaughter FOLDER KILLS LED SEED``. Forking spares each leader the start of
Python, so that scores of them die in a minute. Every leader writes the hash of each step it
believes to be in the log to ``FOLDER/acknowledged``. The producer goes on until it is told to stop
(SIGTERM).
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

from events.chain import ChainReader
from events.streams import open_streams
from events.streams.reading import read_steps
from evsched.agents.emulated.agent import Agent
from evsched.service.environment import SystemClock
from evsched.service.leading import Pace
from evsched.service.logs import configure
from evsched.service.member import Member
from evsched.service.rebuilding import Snapshots
from tests.service.inputs import ask, cluster, queues

LEASE_S = 0.2
"""A leader that dies between its fence and its first heartbeat is waited for; the next one gets a life that is long enough."""
FIRST_LIFE_S = 0.1
"""The longest life of the first leader. One that acknowledges nothing makes the next lives longer, one
that does makes them shorter: about half of them acknowledge something, however fast the machine is."""
LONGER, SHORTER = 1.25, 0.8
PAUSE_S = 0.02


def fork(main: Coroutine[None, None, None], errors: Path) -> int:
    """Run a coroutine in a process of its own, its standard error in a file; return the process's number."""
    number = os.fork()
    if number:
        main.close()
        return number
    try:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        configure("json", verbose=True)
        asyncio.run(main)
        os._exit(0)
    except BaseException as error:
        os.write(2, f"died: {error!r}\n".encode())
        raise
    finally:
        os._exit(1)


async def lead(url: str, folder: Path) -> None:
    """Be a member until killed, or until told to stop."""
    async with open_streams(url) as streams:
        pace = Pace(beat=LEASE_S / 4, lease=LEASE_S, checkpoint_every=100)
        member = Member(
            streams, SystemClock(), pace=pace, snapshots=Snapshots(folder / "snapshots", every=500)
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, member.stop)
        await member.run()


async def propose(url: str, seed: int) -> None:
    """Propose what tenants and a cluster would, until told to stop."""
    chance = random.Random(seed)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    agent, reader, count = Agent(grace_ms=100, default_life_ms=400), ChainReader(), 0
    async with open_streams(url) as streams:
        await streams.inbox.propose(cluster(), "tenants")
        while not stopped.is_set():
            count += 1
            inputs = [ask(f"t{count}", chance.choice(["web", "research"]), chance.choice([1, 2]))]
            if chance.random() < 0.05:
                inputs.append(queues(chance.choice([4, 10]), "1s", f"queues:{count}"))
            async for steps in read_steps(streams.log, reader):
                for step in steps:
                    for event in step.events:
                        agent.take(event, step.time)
            inputs += agent.owed(time.time_ns() // 1_000_000)
            await streams.inbox.propose(inputs, "tenants")
            await asyncio.sleep(PAUSE_S)


def acknowledged(said: Path) -> int:
    """Return how many steps leaders have acknowledged so far."""
    return said.read_bytes().count(b'"event": "step"') if said.exists() else 0


def main(folder: Path, kills: int, led: int, seed: int) -> None:
    """Kill that many leaders or more, until ``led`` of them had acknowledged a step; then let one answer what is left."""
    url, chance = f"sqlite:///{folder / 'log.db'}", random.Random(seed)

    async def create() -> None:
        async with open_streams(url) as streams:
            await streams.log.create()

    asyncio.run(create())
    producer = fork(propose(url, seed), folder / "producer")
    said, longest, wait, killed, spoke = folder / "acknowledged", FIRST_LIFE_S, 0.0, 0, 0
    while killed < kills or spoke < led:
        before = acknowledged(said)
        leader = fork(lead(url, folder), said)
        time.sleep(wait + chance.uniform(0, longest))
        os.kill(leader, signal.SIGKILL)
        os.waitpid(leader, 0)
        silent = acknowledged(said) == before
        longest *= LONGER if silent else SHORTER
        wait = LEASE_S * 1.5 if silent else 0.0
        killed, spoke = killed + 1, spoke + (not silent)
    os.kill(producer, signal.SIGTERM)
    assert os.waitpid(producer, 0)[1] == 0
    last = fork(lead(url, folder), said)
    time.sleep(2)
    os.kill(last, signal.SIGTERM)
    assert os.waitpid(last, 0)[1] == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))

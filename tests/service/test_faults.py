"""Kills, pauses, lost answers and wrong clocks at random, in virtual time: nothing is lost, doubled or decided twice.

Each seed is a story of its own: processes come and go on one log while tenants and a cluster
propose. A kill happens at any call of the log or the inbox, before or after it takes effect.
"""

import asyncio
import logging
from random import Random

import pytest
import structlog
from structlog.testing import capture_logs

from events.chain import ChainReader
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from events.streams.reading import read_steps
from evsched.agents.emulated.agent import Agent
from evsched.service.leading import Pace
from tests.service.histories import History, check, fingerprint
from tests.service.inputs import ask, cluster, queues
from tests.service.processes import Process
from tests.service.virtual import VirtualClock, simulate

SEEDS = 50
KILLS = 10
PACE = Pace(beat=0.5, lease=2.5, checkpoint_every=20)


class Story:
    """One seed's story.

    Attributes:
        kills: How many processes died in it.
    """

    def __init__(self, seed: int, kills: int):
        self.kills = 0
        self._wanted = kills
        self._random = Random(seed)
        self._store = MemoryStore()
        # The log names its inbox, so two runs of a story must have the same one.
        self._store.inbox_id = f"story-{seed}"
        self._outside = Streams(MemoryLog(self._store), MemoryInbox(self._store))
        self._processes = []
        self._clock = VirtualClock()
        self._agent = Agent(grace_ms=3000, default_life_ms=40_000)
        self._reader = ChainReader()

    def _start(self):
        process = Process(self._store, seed=self._random.getrandbits(64), pace=PACE)
        process.lose = self._random.choice([0.0, 0.0, 0.02, 0.2])
        process.clock.offset_ms = self._random.choice([0, 0, 1500, -1500, 5000])
        process.die_after = self._random.randint(1, 400)
        self._processes.append(process)

    async def tell(self) -> History:
        """Let it happen, then let one process answer what is left, and hold the log against all rules."""
        await self._outside.inbox.propose(cluster(), "test")
        turn = 0
        while self.kills < self._wanted:
            turn += 1
            await self._turn(turn)
        last = Process(self._store, seed=0, pace=PACE)
        self._processes.append(last)
        await asyncio.sleep(30)
        for process in self._processes:
            if not process.alive:
                await process.kill()
            else:
                process.resume()
                process.die_after, process.lose = None, 0.0
                await process.stop()
        history = await check(self._outside)
        assert history.steps[-1].head.inbox_next == len(self._store.inbox)
        return history

    async def _turn(self, turn: int):
        random = self._random
        living = [one for one in self._processes if one.alive]
        for one in self._processes:
            if not one.alive and not one.task.done():
                self.kills += 1
                await one.kill()
        while len(living) < 2:
            self._start()
            living = [one for one in self._processes if one.alive]
        if random.random() < 0.05:
            one = random.choice(living)
            one.paused = True
            asyncio.get_running_loop().call_later(random.uniform(0.5, 8), one.resume)
        if random.random() < 0.1:
            random.choice(living).clock.offset_ms += random.choice([-3_600_000, -700, 700, 60_000])
        proposed = [
            ask(f"t{turn}", random.choice(["web", "web", "research"]), random.choice([1, 2, 3])),
            *(
                [queues(random.choice([4, 6, 10]), random.choice(["5s", "60s"]))]
                if random.random() < 0.1
                else []
            ),
        ]
        await self._outside.inbox.propose(proposed if random.random() < 0.5 else [], "test")
        async for steps in read_steps(self._outside.log, self._reader):
            for step in steps:
                for event in step.events:
                    self._agent.take(event, step.time)
        await self._outside.inbox.propose(self._agent.owed(self._clock.now()), "cluster")
        await asyncio.sleep(random.uniform(0.05, 1.5))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_or_doubled(seed):
    """Ten kills a seed, and whatever else may happen between them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    story = Story(seed, KILLS)
    with capture_logs() as said:
        history = simulate(story.tell())
    acknowledged = [line["hash"] for line in said if line["event"] == "step"]
    assert story.kills >= KILLS
    assert len(acknowledged) > KILLS
    assert set(acknowledged) <= history.hashes


def test_the_same_story_is_the_same_log():
    """A seed that fails can be looked at again: byte for byte the same happens."""
    first, second = (simulate(Story(7, 5).tell()) for _ in range(2))
    assert fingerprint(first) == fingerprint(second)

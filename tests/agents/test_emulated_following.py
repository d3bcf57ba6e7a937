"""The emulated cluster over real streams: the circle of binding, eviction and re-creation closes."""

import asyncio

from events.chain import ChainReader
from events.streams import Leadership, open_streams
from events.streams.leadership import Environment
from events.vocabulary import (
    AllocationReleased,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
)
from evsched.agents.emulated.agent import Agent
from evsched.agents.emulated.following import emulate_on
from evsched.config import from_mapping
from evsched.core.engine import Engine


class Cluster:
    """A leader with a manual clock on streams in memory."""

    def __init__(self):
        """Stand before the first term."""
        self.streams = open_streams("memory://")
        self.engine = Engine()
        self.now = 1000
        self.released = []

    async def start(self):
        """Lead."""

        async def pause(lost):
            await asyncio.sleep(0)

        world = Environment(now=lambda: self.now, new_id=lambda: f"id-{id(self)}", pause=pause)
        self.leadership = await Leadership.acquire(
            self.streams.log, ChainReader(), self.apply, world
        )

    def apply(self, step):
        """Take what the log says."""
        for event in step.events:
            self.engine.apply(event, step.time)

    async def step(self):
        """Take what is in the inbox, until there is nothing."""
        while proposals := await self.streams.inbox.read(
            self.leadership.head.inbox_next, wait_s=0.2
        ):
            events = self.engine.step(self.now, proposals)
            self.released += [event for event in events if isinstance(event, AllocationReleased)]
            await self.leadership.append_step(
                events,
                time=self.leadership.stamp(self.now),
                decided=True,
                inbox_next=proposals[-1].position + 1,
            )


async def test_what_runs_ends_and_the_next_one_comes():
    """With room for one, the second is bound when the first has lived its life; a restart of the agent changes nothing."""
    cluster = Cluster()
    await cluster.start()
    queues = {"partitions": [{"name": "default", "queues": [{"name": "a"}]}]}
    asks = [
        AskSubmitted(ask=name, application="x", queue="root.a", resources={"vcore": 1})
        for name in ("one", "two")
    ]
    await cluster.streams.inbox.propose(
        [
            ConfigurationApplied(configuration=from_mapping("yunikorn", queues)[0]),
            NodeRegistered(node="n", capacity={"vcore": 1}),
            ApplicationSubmitted(application="x", queue="root.a"),
            *asks,
        ]
    )
    await cluster.step()
    assert set(cluster.engine.state.allocations) == {"one"}
    for expected in ("one", "two"):
        agent = asyncio.create_task(
            emulate_on(cluster.streams, Agent(grace_ms=1, default_life_ms=500), lambda: cluster.now)
        )
        cluster.now += 500
        await cluster.step()
        agent.cancel()
        await asyncio.gather(agent, return_exceptions=True)
        assert [event.allocation for event in cluster.released][-1] == expected
    assert len(cluster.released) == 2
    assert not cluster.engine.state.allocations

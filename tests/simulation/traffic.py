"""Those who propose: two tenants and a cluster that answers, or somebody hostile."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from events.chain import ChainReader
from events.cloudevents import InboxRecord, proposals
from events.errors import StreamError
from events.streams.reading import read_steps
from events.vocabulary import NodeRegistered, RulesAdopted
from evsched.agents.emulated.agent import Agent
from evsched.core.engine import Engine
from evsched.core.rules import NEWEST
from tests.core.hostile import Hostile
from tests.service.inputs import ask, cluster, node, queues
from tests.service.virtual import VirtualClock
from tests.simulation.broker import Broker, Line, SimulatedInbox, SimulatedLog
from tests.simulation.checkers.found import Found

WEB_CORES = 10
PROBE_CORES = 200


class Producer:
    """Sends each proposal until it is told where it stands, the same one again when nobody knows.

    Attributes:
        told: Position and id of each record that was acknowledged.
    """

    def __init__(self, broker: Broker, line: Line) -> None:
        self.told: list[tuple[int, str]] = []
        self._inbox = SimulatedInbox(broker, line)
        self._count = 0

    async def send(self, inputs) -> None:
        """Propose these, each under an id of its own unless it has one."""
        named = []
        for one in inputs:
            self._count += 1
            named.append(one if one.proposal else replace(one, proposal=f"p{self._count}"))
        await self.put(proposals(named, "traffic"))

    async def put(self, records) -> None:
        """Write records until they are acknowledged."""
        while records:
            try:
                positions = await self._inbox.put(records)
            except StreamError:
                continue
            self.told += zip(positions, (one.id for one in records), strict=True)
            return


class Tenants:
    """Two tenants who share nodes, and an agent that evicts, completes and creates again."""

    hostile = False

    def __init__(self, dice: Random, broker: Broker, line: Line) -> None:
        self._dice, self._log = dice, SimulatedLog(broker, line)
        self.producer = Producer(broker, line)
        self._turn = 0
        self._clock = VirtualClock()
        self._forget()

    def _forget(self) -> None:
        self._agent = Agent(grace_ms=3000, default_life_ms=25_000)
        self._reader = ChainReader()

    async def begin(self) -> None:
        """Set the cluster up."""
        await self.producer.send(cluster())

    async def turn(self) -> None:
        """Let a tenant want something, and the cluster answer what was decided."""
        dice = self._dice
        self._turn += 1
        inputs = []
        if dice.random() < 0.6:
            name = f"t{self._turn}"
            inputs.append(
                ask(name, dice.choice(["web", "web", "research"]), dice.choice([1, 2, 3]))
            )
        if dice.random() < 0.12:
            inputs.append(
                queues(dice.choice([4, 6, 10]), dice.choice(["3s", "10s"]), f"q{self._turn}")
            )
        if dice.random() < 0.04:
            inputs.append(RulesAdopted(rules=NEWEST))
        if dice.random() < 0.05:
            inputs.append(node(f"node-{dice.randrange(2, 5)}", 4))
            inputs[-1] = replace(inputs[-1], proposal="")
        if dice.random() < 0.05:
            await self.producer.put([InboxRecord(data=b'{"type":"Ask', source="traffic")])
        if dice.random() < 0.05:
            self._forget()
        await self.producer.send(inputs)
        await self.answer()

    async def answer(self) -> None:
        """Let the agent do what the log says, and report back."""
        try:
            async for steps in read_steps(self._log, self._reader):
                for step in steps:
                    for event in step.events:
                        self._agent.take(event, step.time)
        except StreamError:
            return
        await self.producer.send(self._agent.owed(self._clock.now()))

    async def probe(self) -> None:
        """Propose what must be bound: there is room, and no maximum in the way."""
        room = NodeRegistered(node="probe", capacity={"vcore": PROBE_CORES * 1000})
        await self.producer.send(
            [
                queues(WEB_CORES, "3s", "q-last"),
                room,
                ask("probe-1", "research"),
                ask("probe-2", "web", 1),
            ]
        )


class Enemy:
    """A producer that proposes anything; it reads the log, so that what it proposes matters."""

    hostile = True

    def __init__(self, dice: Random, broker: Broker, line: Line) -> None:
        self._log, self._hostile = SimulatedLog(broker, line), Hostile(dice.getrandbits(32))
        self.producer = Producer(broker, line)
        self._dice = dice
        self._engine, self._reader = Engine(), ChainReader()

    async def begin(self) -> None:
        """Propose the first things."""
        await self.turn()

    async def turn(self) -> None:
        """Propose some things."""
        await self.answer()
        records = []
        for one in self._hostile.proposals(self._engine.state):
            if one.input is None:
                records.append(InboxRecord(data=one.raw.encode(), id=one.id))
            else:
                records += proposals([replace(one.input, proposal=one.id)], "enemy")
        if self._dice.random() < 0.03:
            records += proposals([RulesAdopted(rules=NEWEST, proposal="rules")], "enemy")
        await self.producer.put(records)

    async def answer(self) -> None:
        """Read what became of it."""
        try:
            async for steps in read_steps(self._log, self._reader):
                for step in steps:
                    self._fold(step)
        except StreamError:
            return

    def _fold(self, step) -> None:
        try:
            for event in step.events:
                self._engine.apply(event, step.time)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise Found("truth", f"frame {step.head.frame} cannot be folded: {error!r}") from error

    async def probe(self) -> None:
        """Propose one more thing."""
        await self.turn()

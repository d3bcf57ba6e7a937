"""One seed, one story: machines, faults and traffic, then a time without faults; what came of it is an `Outcome`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import structlog
from structlog.testing import capture_logs

from events.bounds import MAX_FRAME_BYTES
from events.chain import cut_into_frames
from events.cloudevents import InboxRecord
from events.streams import leadership
from evsched.service import leading, rebuilding
from projections import read_model
from tests.service.virtual import NothingEverHappens
from tests.simulation.broker import Broker, Line
from tests.simulation.checkers.found import Found
from tests.simulation.group import Group
from tests.simulation.loop import simulate
from tests.simulation.machine import PACE, Machine
from tests.simulation.reading import Reading, Row
from tests.simulation.traffic import Enemy, Tenants

FAULTS_S = 30.0
CALM_S = 10.0
JUMP_S = 5.5
"""When clocks are set once more, after the faults; whoever leads goes on leading."""
LEADER_WITHIN_S = 3 * PACE.lease
STOP_S = 30.0
GROUPED = 0.3
"""In how many of the stories a consumer group says who goes first."""
READS = 0.25
"""How many of the stories have a read model beside them."""
KEEP_STATE_EVERY = 60
"""Events after which a read model keeps its state; a story has some hundred."""
SMALL_FRAME_BYTES = 1500
"""In half of the stories a step is cut into frames of this size, between which machines die, too."""


class Replica(NamedTuple):
    """What a machine believes in the end; ``frame`` is the hash of the last one it has read."""

    machine: int
    frame: str
    digest: str
    running: frozenset[str]
    tasks: int
    heap: int
    timers: int


class Outcome(NamedTuple):
    """What came of a story.

    Attributes:
        log: Records of the log.
        arrived: When each was written, milliseconds since the epoch.
        backlog: How many proposals the inbox held then.
        inbox: Records of the inbox.
        told: Position and id of each proposal that a producer was told of.
        acknowledged: Hashes of the steps that leaders believed to be in the log.
        calm: When the faults ended, milliseconds since the epoch.
        leader_after_s: How long it took then until somebody led; None: nobody did.
        replicas: What each machine believes in the end.
        failures: Why machines gave up.
        snapshots: How many files there are.
        model: What a read model says in the end; None: the story has none.
        tenants: Whether the traffic was that of the two tenants.
        kinds: What kinds of faults there were, and how many.
    """

    log: tuple[bytes, ...]
    arrived: tuple[int, ...]
    backlog: tuple[int, ...]
    inbox: tuple[InboxRecord, ...]
    told: tuple[tuple[int, str], ...]
    acknowledged: tuple[str, ...]
    calm: int
    leader_after_s: float | None
    replicas: tuple[Replica, ...]
    failures: tuple[str, ...]
    snapshots: int
    model: tuple[Row, ...] | None
    tenants: bool
    kinds: dict[str, int]


class Story:
    """See the top of this module.

    Attributes:
        reads: Whether some of these stories have a read model beside them.
    """

    reads = True

    def __init__(self, seed: int, folder: Path, said: list[dict[str, Any]]) -> None:
        """Prepare the story of a seed; ``said`` holds the lines of the service."""
        self._said = said
        self.dice = Random(f"story {seed}")
        self.seed, self.folder = seed, folder
        self.kinds: dict[str, int] = {}
        self.clocks = self.dice.random() < 0.5
        self.enemy = self.dice.random() < 0.3
        self.reading: Reading | None = None

    async def tell(self) -> Outcome:
        """Let it happen."""
        self.machines: list[Machine] = []
        try:
            return await self._told()
        finally:
            for machine in self.machines:
                if not machine.dead:
                    machine.kill()
                await machine.bury()
            if self.reading is not None:
                await self.reading.bury()

    async def _told(self) -> Outcome:
        dice, loop = self.dice, asyncio.get_running_loop()
        self.broker = broker = Broker()
        group = Group() if Random(f"group {self.seed}").random() < GROUPED else None
        self.machines += [
            Machine(number, broker, self.folder / str(number), self.seed, group)
            for number in range(dice.choice((2, 2, 3)))
        ]
        if self.reads and Random(f"reads {self.seed}").random() < READS:
            self.reading = Reading(broker, self.folder / "reading", self.seed)
        line = Line(Random(f"producer {self.seed}"))
        line.lose = dice.choice((0.0, 0.02, 0.2))
        self.traffic = (Enemy if self.enemy else Tenants)(dice, broker, line)
        await self.traffic.begin()
        while loop.time() < FAULTS_S:
            await self._turn()
        line.heal()
        for machine in self.machines:
            machine.heal()
        if self.reading is not None:
            self.reading.heal()
        return await self._ending()

    async def _ending(self) -> Outcome:
        """Live on without faults, and look at everything."""
        loop = asyncio.get_running_loop()
        calm = loop.time()
        leader_after = await self._leader()
        await self.traffic.probe()
        jumped = not self.clocks
        while loop.time() < calm + CALM_S:
            await asyncio.sleep(0.5)
            if not jumped and loop.time() > calm + JUMP_S:
                jumped = True
                self._set_clocks()
            await self.traffic.answer()
        await self._agree()
        outcome = self._outcome(calm, leader_after)
        if self.reading is not None:
            last = max(one.member.engine.state.seq for one in self._built())
            outcome = outcome._replace(model=await self.reading.rows(last))
        for machine in self.machines:
            await _stopped(machine)
        return outcome

    def _set_clocks(self) -> None:
        """Let somebody set every clock, which is no fault that anything may come of."""
        hour = self.dice.choice((-3_600_000, 3_600_000))
        for machine in self.machines:
            machine.clock.offset_ms += hour

    async def _turn(self) -> None:
        dice = self.dice
        await self.traffic.turn()
        if self.reading is not None:
            self.reading.turn()
        if dice.random() < 0.3:
            fault = dice.choice(FAULTS)
            machine = dice.choice(self.machines)
            if fault is _jump and not self.clocks:
                fault = _kill
            name = fault.__name__.strip("_")
            self.kinds[name] = self.kinds.get(name, 0) + 1
            seconds = dice.choice((0.2, 1.0, 3.0, 6.0)) * dice.uniform(0.5, 1.5)
            mend = fault(machine, dice)
            if mend is not None:
                asyncio.get_running_loop().call_later(seconds, mend)
        await asyncio.sleep(dice.uniform(0.05, 1.2))

    async def _leader(self) -> float | None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not any(one.leads for one in self.machines):
            if loop.time() > begun + LEADER_WITHIN_S:
                return None
            await asyncio.sleep(0.05)
        return loop.time() - begun

    async def _agree(self) -> None:
        """Give the machines a moment in which everything is answered and all of them have read the same."""
        for _ in range(60):
            read = [one.member for one in self.machines if one.member.engine is not None]
            heads = {one._warm.reader.head for one in read}
            # A leader's state is ahead of what it has read while its step is being written.
            whole = all(one.engine.state.seq == one._warm.reader.head.next_seq - 1 for one in read)
            if whole and {(one.position, one.inbox_next) for one in heads} == {
                (len(self.broker.log) - 1, len(self.broker.inbox))
            }:
                return
            await asyncio.sleep(0.05)

    def _built(self) -> list[Machine]:
        """Return the machines that have a state."""
        return [one for one in self.machines if one.member.engine is not None]

    def _outcome(self, calm: float, leader_after: float | None) -> Outcome:
        broker, clock = self.broker, self.machines[0].clock
        begun = clock.now() - clock.offset_ms - round(clock.elapsed() * 1000 * (1 + clock.drift))
        return Outcome(
            log=tuple(broker.log),
            arrived=tuple(begun + round(at * 1000) for at in broker.arrived),
            backlog=tuple(broker.backlog),
            inbox=tuple(broker.inbox),
            told=tuple(self.traffic.producer.told),
            acknowledged=tuple(line["hash"] for line in self._said if line["event"] == "step"),
            calm=begun + round(calm * 1000),
            leader_after_s=leader_after,
            replicas=tuple(_replica(one) for one in self._built()),
            failures=tuple(
                f"machine {one.number}: {one.member.failure!r}"
                for one in self.machines
                if one.member.failure is not None
            ),
            snapshots=max(
                len(list((self.folder / str(one.number)).rglob("*"))) for one in self.machines
            ),
            model=None,
            tenants=not self.traffic.hostile,
            kinds=self.kinds,
        )


async def _stopped(machine: Machine) -> None:
    """Stop a process in order; raise Found when it does not stop."""
    try:
        async with asyncio.timeout(STOP_S):
            await machine.stop()
    except TimeoutError as error:
        raise Found("liveness", f"machine {machine.number} does not stop") from error


def _replica(machine: Machine) -> Replica:
    state = machine.member.engine.state
    return Replica(
        machine=machine.number,
        frame=machine.member._warm.reader.head.hash,
        digest=state.digest(),
        running=frozenset(state.allocations),
        tasks=sum(not one.done() for one in machine.host.tasks),
        heap=len(state.timers._heap.entries),
        timers=len(state.timers.armed),
    )


# ------------------------------------------------------------------------------------------- faults


def _kill(machine: Machine, dice: Random) -> Callable[[], None] | None:
    if machine.dead:
        return None
    machine.kill(power=dice.random() < 0.5)

    def start() -> None:
        if machine.dead:
            machine.start()

    return start


def _pause(machine: Machine, dice: Random) -> Callable[[], None]:
    if not machine.dead:
        machine.pause()
    return machine.resume


def _cut(machine: Machine, dice: Random) -> Callable[[], None]:
    machine.line.cut = True
    return machine.line.heal


def _half_open(machine: Machine, dice: Random) -> Callable[[], None]:
    machine.line.half_open = True
    return machine.line.heal


def _delay(machine: Machine, dice: Random) -> Callable[[], None]:
    machine.line.delay = dice.choice((0.02, 0.2, 0.5))
    return machine.line.heal


def _lose(machine: Machine, dice: Random) -> Callable[[], None]:
    machine.line.lose = dice.choice((0.05, 0.4, 1.0))
    return machine.line.heal


def _refuse(machine: Machine, dice: Random) -> Callable[[], None]:
    machine.line.refuse = dice.choice((0.1, 1.0))
    return machine.line.heal


def _jump(machine: Machine, dice: Random) -> None:
    machine.clock.offset_ms += dice.choice((-3_600_000, -700, 700, 5000, 3_600_000))
    machine.clock.drift = dice.choice((0.0, 0.001, -0.001))


def _disk(machine: Machine, dice: Random) -> Callable[[], None]:
    match dice.randrange(3):
        case 0:
            machine.disk.full = True
        case 1:
            machine.disk.lies = True
        case _:
            machine.slow_disk_s = dice.choice((0.05, 0.5, 3.0))

    def mend() -> None:
        machine.disk.full = machine.disk.lies = False
        machine.slow_disk_s = 0.0

    return mend


FAULTS = (_kill, _kill, _pause, _pause, _cut, _half_open, _delay, _lose, _refuse, _jump, _disk)
"""Each does something to a machine and returns what mends it; None: nothing does, or nothing was done."""


# ------------------------------------------------------------------------------------------ running


class _Ticks:
    """The time that a rebuild takes: the same amount every time it is looked at."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        """Return seconds."""
        self._now += 0.004
        return self._now


@contextmanager
def still_world(seed: int):
    """Take away what differs from run to run, and say what is said; yields the lines of the service."""
    few = Random(f"few {seed}").choice((2, leading.FEW))
    limit = Random(f"frames {seed}").choice((SMALL_FRAME_BYTES, MAX_FRAME_BYTES))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    try:
        with (
            patch.object(rebuilding, "time", _Ticks()),
            patch.object(leading, "own_name", lambda: ""),
            patch.object(read_model, "KEEP_STATE_EVERY", KEEP_STATE_EVERY),
            patch.object(leading, "FEW", few),
            patch.object(leadership, "cut_into_frames", partial(cut_into_frames, limit=limit)),
            capture_logs() as said,
        ):
            yield said
    finally:
        structlog.reset_defaults()


def run(seed: int, kind: type[Story] = Story) -> Outcome:
    """Tell the story of a seed, of this kind.

    Raises:
        Found: It came to a standstill.
    """
    with TemporaryDirectory() as folder, still_world(seed) as said:
        try:
            return simulate(kind(seed, Path(folder), said).tell())
        except NothingEverHappens as error:
            raise Found("liveness", "everybody waits and no timer runs") from error

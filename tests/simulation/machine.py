"""A machine of the simulation: its clock, disk and line, and the process of the service that runs on it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random

from events.streams.leadership import Environment
from events.streams.protocols import Streams
from evsched.service.environment import BoundedClock
from evsched.service.leading import Pace
from evsched.service.member import Member
from evsched.service.rebuilding import Snapshots
from tests.service.virtual import START_MS
from tests.simulation.broker import Broker, Line, SimulatedInbox, SimulatedLog
from tests.simulation.disk import SimulatedDisk
from tests.simulation.group import Group, Membership
from tests.simulation.loop import Host, spawn

PACE = Pace(beat=0.5, lease=2.5, checkpoint_every=25, batch=6)
SNAPSHOT_EVERY = 30
KEPT_SNAPSHOTS = 16
"""So few that a story reaches it."""


class SimulatedClock:
    """The clock of a machine.

    Attributes:
        offset_ms: How far it is ahead.
        drift: What it gains in a second, seconds.
    """

    def __init__(self) -> None:
        self.offset_ms, self.drift = 0, 0.0

    def now(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return START_MS + round(self.elapsed() * 1000 * (1 + self.drift)) + self.offset_ms

    def elapsed(self) -> float:
        """Return seconds since the simulation began."""
        return asyncio.get_running_loop().time()


class Machine:
    """See the top of this module.

    Attributes:
        member: Of the process that runs, or ran last.
        ever_failed: Why a process of it gave up.
    """

    def __init__(
        self, number: int, broker: Broker, folder: Path, seed: int, group: Group | None = None
    ) -> None:
        """Start it; ``group`` says who goes first, None: whoever comes first does."""
        self._group, self._lives = group, 0
        self.number = number
        self.clock = SimulatedClock()
        self.dice = Random(f"machine {seed} {number}")
        self.disk = SimulatedDisk(self.dice)
        self.line = Line(self.dice)
        self.slow_disk_s = 0.0
        self.healthy_since: float | None = None
        self._broker, self._folder, self._gone = broker, folder, []
        self.start()

    def start(self) -> None:
        """Start the process."""
        self.line = Line(self.dice)
        self.host = Host()
        self.host.slow = self._slow
        streams = Streams(
            SimulatedLog(self._broker, self.line), SimulatedInbox(self._broker, self.line)
        )
        self._lives += 1
        membership = None
        if self._group is not None:
            name = f"machine {self.number}, life {self._lives}"
            membership = Membership(self._group, self.line, name)
        self.member = Member(
            streams,
            BoundedClock(self.clock),
            pace=PACE,
            assigned=lambda: membership is None or membership.own,
            snapshots=Snapshots(self._folder, SNAPSHOT_EVERY, disk=self.disk, kept=KEPT_SNAPSHOTS),
        )
        self.member._world = self._world()
        self.dead = False
        self.task = spawn(self.host, self.member.run())
        self._belongs = None
        if membership is not None:
            self._belongs = spawn(self.host, membership.run(self.member.resign))

    def _slow(self) -> float:
        return self.dice.uniform(0, self.slow_disk_s) if self.slow_disk_s else 0.0

    def _world(self) -> Environment:
        """Return a world in which chance repeats itself."""

        async def pause(lost: int) -> None:
            await asyncio.sleep(self.dice.uniform(0.02, 0.1) * lost)

        return Environment(
            now=self.member._clock.now,
            new_id=lambda: f"{self.dice.getrandbits(128):032x}",
            pause=pause,
            checkpoint_every=PACE.checkpoint_every,
        )

    @property
    def running(self) -> bool:
        """Whether the process lives and is not paused."""
        return not self.dead and not self.host.frozen

    @property
    def leads(self) -> bool:
        """Whether it leads and knows that its heartbeats arrive."""
        return self.running and self.member.role == "leading" and self.member.ready

    def kill(self, *, power: bool = False) -> None:
        """End the process where it is; a loss of power also costs what the disk had not made safe."""
        self.dead = self.host.frozen = True
        self._gone.append((self.host, self.line, self.task, self._belongs))
        if power:
            self.disk.lose_power()

    def pause(self) -> None:
        """Stop the process where it is."""
        self.host.frozen = True

    def resume(self) -> None:
        """Let a paused process go on."""
        if not self.dead:
            self.host.thaw()

    def heal(self) -> None:
        """Mend what is broken, and let the process run."""
        self.line.heal()
        self.disk.full = self.disk.lies = False
        self.slow_disk_s = 0.0
        if self.dead:
            self.start()
        elif self.host.frozen:
            self.resume()

    async def stop(self) -> None:
        """End the process in order."""
        self.member.stop()
        await self.task
        if self._belongs is not None:
            self._belongs.cancel()

    async def bury(self) -> None:
        """Clean up after the processes that were killed; nothing that they do arrives anywhere."""
        for host, line, *tasks in self._gone:
            line.cut = True
            running = [one for one in tasks if one is not None]
            for task in running:
                task.cancel()
            host.thaw()
            for task in running:
                with suppress(asyncio.CancelledError):
                    await task
        self._gone.clear()

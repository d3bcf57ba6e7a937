"""Stories that end with a damaged log: what must be noticed is noticed, and what was restored on purpose is led."""

from __future__ import annotations

import asyncio
import shutil

from tests.service.virtual import until
from tests.simulation.checkers.found import Found
from tests.simulation.story import Outcome, Story

SHORTEST = 4
"""Records that a log must have before it is damaged."""
NOTICED_S = 12.0
IN_FLIGHT_S = 2.0
REASON = b'"reason":"'
TIME = b'"time":1767258'


class TailLost(Story):
    """A replica that lagged behind becomes the leader of the log: records that a heartbeat knew are gone."""

    reads = False

    async def _ending(self) -> Outcome:
        await self._leader()
        broker = self.broker
        await until(
            lambda: (
                len(broker.log) >= SHORTEST
                and broker.beat is not None
                and broker.beat.head.position == len(broker.log) - 1
            )
        )
        broker.lose_tail(self.dice.randint(1, 3))
        if self.dice.random() < 0.5:
            self._restart(snapshots=True)
        return await self._given_up()

    def _restart(self, *, snapshots: bool) -> None:
        for machine in self.machines:
            machine.kill()
            if not snapshots:
                shutil.rmtree(self.folder / str(machine.number), ignore_errors=True)
            machine.clock.offset_ms = 0
            machine.start()

    async def _given_up(self) -> Outcome:
        """Look whether every machine gives up, and whether none acknowledges anything more."""
        await asyncio.sleep(IN_FLIGHT_S)
        said = len(self._steps())
        await self.traffic.probe()
        await asyncio.sleep(NOTICED_S)
        if len(self._steps()) > said:
            raise Found("damage", "steps are acknowledged behind what is damaged")
        for machine in self.machines:
            if machine.member.failure is None:
                raise Found("damage", f"machine {machine.number} goes on with a damaged log")
        return self._outcome(asyncio.get_running_loop().time(), None)

    def _steps(self) -> list[str]:
        return [line["hash"] for line in self._said if line["event"] == "step"]


class Edited(TailLost):
    """A byte of an old record is another one, and every machine reads the log from its beginning."""

    async def _ending(self) -> Outcome:
        await self._leader()
        broker = self.broker
        await until(lambda: len(broker.log) >= SHORTEST)
        # Not the last two: no hash stands behind those for sure.
        told = [one for one, data in enumerate(broker.log[:-2]) if REASON in data]
        place = self.dice.choice(told) if told else self.dice.randrange(1, len(broker.log) - 2)
        # A letter of what is told to people, which no state holds; else the last digit of a time.
        mark, behind = (REASON, 0) if told else (TIME, 6)
        data = bytearray(broker.log[place])
        at = broker.log[place].index(mark) + len(mark) + behind
        data[at] = ord("0") if data[at] != ord("0") else ord("1")
        broker.log[place] = bytes(data)
        self._restart(snapshots=False)
        return await self._given_up()


class Restored(TailLost):
    """The log comes from a backup of some moments ago, without a heartbeat; snapshots know more than it."""

    async def _ending(self) -> Outcome:
        await self._leader()
        await self._agree()
        broker = self.broker
        for machine in self.machines:
            if machine.member.engine is not None:
                await machine.member._snapshots.save(machine.member._warm)
        await asyncio.sleep(1)
        for machine in self.machines:
            machine.kill()
        broker.lose_tail(self.dice.randint(1, min(4, len(broker.log) - 1)))
        broker.beat = None
        for machine in self.machines:
            machine.heal()
        self._said.clear()
        return await super(TailLost, self)._ending()

"""The consumer group of the leaders: who goes first when nobody leads, as its members learn of it, late and cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from events.errors import LogUnreachable
from tests.simulation.broker import Line

SESSION_S = 6.0
"""After this long without a word the group gives the partition to another member."""
POLL_S = 1.0


class Group:
    """What the coordinator of a group of one partition knows."""

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}
        self._owner = ""

    def hear(self, member: str, now: float) -> bool:
        """Take note that a member lives, and tell whether the partition is its own."""
        self._heard[member] = now
        gone = [one for one, at in self._heard.items() if now - at > SESSION_S]
        for one in gone:
            del self._heard[one]
        if self._owner not in self._heard:
            self._owner = min(self._heard)
        return self._owner == member


class Membership:
    """What one process knows of the group.

    Attributes:
        own: Whether the partition is its own, as far as it knows.
    """

    def __init__(self, group: Group, line: Line, member: str) -> None:
        self.own = False
        self._group, self._line, self._member = group, line, member

    async def run(self, taken: Callable[[], object]) -> None:
        """Belong to the group; ``taken`` is called when the partition is given to another member."""
        loop = asyncio.get_running_loop()
        heard = loop.time()
        while True:
            try:
                own = await self._line.ask(lambda: self._group.hear(self._member, loop.time()))
                heard = loop.time()
            except LogUnreachable:
                # A member that is cut off for so long knows that it was given up.
                own = self.own and loop.time() - heard < SESSION_S
            if self.own and not own:
                taken()
            self.own = own
            await asyncio.sleep(POLL_S)

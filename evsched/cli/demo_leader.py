"""The process that leads in the demonstration: a leader whose clock is told to it.

It reads lines ``NOW`` (milliseconds) from its standard input. For each it takes turns as any leader
does (`evsched.service.leading`), at that time, until there is nothing to do; then it answers with
when it wants to be called again and the digest of its state. It rebuilds its state from the log,
opens a term of its own, and may be killed at any instant. Nobody looks whether it is alive, so it
gives no heartbeats.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from msgspec.structs import replace

from events.chain import Head
from events.streams import Leadership, Streams, open_streams
from events.streams.attachment import must_read
from evsched.service.containment import Containment
from evsched.service.environment import environment
from evsched.service.leading import LeaderTerm, Pace
from evsched.service.logs import configure
from evsched.service.rebuilding import Replica


class LeaderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the leader says after a step.

    Attributes:
        term: The term it leads in.
        frames: How many frames the log has.
        next_due: When it wants to be called again, milliseconds; None: never by itself.
        digest: Of its state.
    """

    term: int
    frames: int
    next_due: int | None
    digest: str


class ToldClock:
    """A clock that stands where it was set.

    Attributes:
        time: Milliseconds since the epoch.
    """

    def __init__(self, time: int) -> None:
        """Stand at this time."""
        self.time = time

    def now(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return self.time

    def elapsed(self) -> float:
        """Return the same in seconds."""
        return self.time / 1000

    def heed(self, other: int | None) -> None:
        """Stand where it was set."""


async def lead(streams: Streams, now: int) -> None:
    """Rebuild, take over at this time, then take turns at the time of each line until nothing is left to do."""
    replica, clock, pace = Replica(), ToldClock(now), Pace(idle=0.0)
    await replica.catch_up(streams.log)

    async def inbox(head: Head) -> str:
        return await must_read(streams.inbox, head, replica.engine.state.remembers)

    world = replace(environment(clock), rules=replica.rules, inbox=inbox)
    leadership = await Leadership.acquire(streams.log, replica.reader, replica.apply, world)
    term = LeaderTerm(streams, replica, leadership, clock, pace, Containment())
    _answer(replica, leadership)
    for line in sys.stdin:
        clock.time = int(line)
        while not await term.turn():
            pass
        _answer(replica, leadership)


def _answer(replica: Replica, leadership: Leadership) -> None:
    engine = replica.engine
    answer = LeaderAnswer(
        term=leadership.term,
        frames=leadership.head.frame,
        next_due=engine.next_due(),
        digest=engine.state.digest(),
    )
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()


async def _main(url: str, now: int) -> None:
    async with open_streams(url) as streams:
        await streams.log.create()
        await lead(streams, now)


if __name__ == "__main__":
    configure("console")  # the answers alone go to the standard output
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))

"""The process that leads in the demonstration: a leader whose clock is told to it.

It reads lines ``NOW`` (milliseconds) from its standard input. For each it reads the inbox, takes
one step at that time, writes it to the log, and answers with when it wants to be called again and
the digest of its state. Everything else is as in any leader: it rebuilds its state from the log,
opens a term of its own, and may be killed at any instant.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from msgspec.structs import replace

from events.chain import ChainReader, Head, RecordedStep
from events.streams import Leadership, Streams, open_streams
from events.streams.attachment import must_read
from evsched.core.engine import Engine
from evsched.service.environment import environment


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
    """A clock that stands where it was told to."""

    def __init__(self, now: int) -> None:
        """Stand at this time, milliseconds since the epoch."""
        self._now = now

    def now(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return self._now

    def elapsed(self) -> float:
        """Return the same in seconds."""
        return self._now / 1000


async def lead(streams: Streams, now: int) -> None:
    """Rebuild, take over at this time, then take a step for each line."""
    engine = Engine()

    def apply(step: RecordedStep) -> None:
        for event in step.events:
            engine.apply(event, step.time)

    async def inbox(head: Head) -> str:
        return await must_read(streams.inbox, head, engine.state.remembers)

    world = replace(environment(ToldClock(now)), inbox=inbox)
    leadership = await Leadership.acquire(streams.log, ChainReader(), apply, world)
    _answer(engine, leadership)
    for line in sys.stdin:
        time = leadership.stamp(int(line))
        proposals = await streams.inbox.read(leadership.head.inbox_next)
        inbox_next = proposals[-1].position + 1 if proposals else leadership.head.inbox_next
        events = engine.step(time, proposals)
        await leadership.append_step(events, time=time, decided=True, inbox_next=inbox_next)
        _answer(engine, leadership)


def _answer(engine: Engine, leadership: Leadership) -> None:
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
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))

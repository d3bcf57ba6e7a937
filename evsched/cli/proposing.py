"""What the commands that propose share: they send, wait, and remark when no answer comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from events.streams import Streams
from events.vocabulary import AnyInput
from evsched.cli.answers import CommandError, say
from evsched.cli.logs import Where, streams_of
from evsched.service.proposing import send, send_and_wait

UNANSWERED = "no answer yet; does `evsched run` run on this log? Ctrl-C ends the waiting, and what was proposed stays"
REMARK_S = 3.0
"""Seconds without an answer after which a person is told why that may be."""


async def propose(
    where: Where, inputs: Sequence[AnyInput], source: str, *, wait: bool
) -> list[tuple[int, str]]:
    """Send proposals and return the position of each, with its answer when it was waited for (else an empty text).

    Args:
        where: Which log.
        inputs: Each with its own id.
        source: Who proposes.
        wait: Whether to wait until a leader has answered all of them.
    """
    async with streams_of(where, create=True) as streams:
        await _must_be_there(where, streams)
        if not wait:
            return [(position, "") for position in await send(streams, inputs, source)]
        with remark(REMARK_S, UNANSWERED) as heard:
            return await send_and_wait(streams, inputs, source, heard)


async def _must_be_there(where: Where, streams: Streams) -> None:
    """Refuse a cluster partition of a file that no leader has begun: a proposal would wait there for ever.

    Partition 0 is every file's first one, so it may be proposed to before `run` begins it. Topics
    of a broker say themselves how many there are, and are asked when the proposal is sent.

    Raises:
        CommandError: There is no such cluster partition.
    """
    if where.partition == 0 or not where.url.startswith("sqlite:") or await streams.log.end():
        return
    raise CommandError(
        f"--partition: found {where.partition}, expected a cluster partition that has begun"
        f" (`evsched run --partitions {where.partition + 1}` begins it)"
    )


@contextmanager
def remark(seconds: float, sentence: str) -> Iterator[Callable[[], None]]:
    """Say something if what is done inside takes longer than this; what is given to the block keeps it from being said."""
    waiting = asyncio.get_running_loop().call_later(seconds, say, sentence)
    try:
        yield waiting.cancel
    finally:
        waiting.cancel()

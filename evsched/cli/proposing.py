"""Sending proposals, and waiting for what the scheduler makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from events.chain import ChainReader
from events.streams import EventLog
from events.streams.attachment import must_be_attached
from events.streams.reading import follow_steps, read_steps
from events.vocabulary import AnyEvent, AnyInput, InputRejected
from evsched.cli.answers import say
from evsched.cli.logs import Where, streams_of

ACCEPTED = "accepted"
BATCH = 500

UNANSWERED = "no answer yet; does `evsched run` run on this log? Ctrl-C ends the waiting, and what was proposed stays"
REMARK_S = 3.0
"""Seconds without an answer after which a person is told why that may be."""


async def propose(
    where: Where, inputs: Sequence[AnyInput], source: str, *, wait: bool
) -> list[tuple[int, str]]:
    """Send proposals and return the position of each, with its answer when it was waited for (else an empty text).

    What was answered before, because the same id was sent once already, has the answer that it got
    then: who tries again after a failure learns what came of it.

    Args:
        where: Which log.
        inputs: Each with its own id.
        source: Who proposes.
        wait: Whether to wait until a leader has answered all of them.
    """
    async with streams_of(where, create=True) as streams:
        await must_be_attached(streams)
        reader = ChainReader()
        missing = {proposed.proposal for proposed in inputs}
        before: dict[str, str] = {}
        if wait:
            async for steps in read_steps(streams.log, reader):
                for step in steps:
                    before = (
                        _answers(step.events, missing) | before
                    )  # the first answer is the one that counts
        positions: list[int] = []
        for begin in range(0, len(inputs), BATCH):
            positions += await streams.inbox.propose(inputs[begin : begin + BATCH], source)
        answers: dict[str, str] = {}
        if wait:
            with remark(REMARK_S, UNANSWERED) as heard:
                answers = await answered(streams.log, reader, inputs, heard) | before
    return [
        (position, answers.get(one.proposal, ""))
        for one, position in zip(inputs, positions, strict=True)
    ]


@contextmanager
def remark(seconds: float, sentence: str) -> Iterator[Callable[[], None]]:
    """Say something if what is done inside takes longer than this; what is given to the block keeps it from being said."""
    waiting = asyncio.get_running_loop().call_later(seconds, say, sentence)
    try:
        yield waiting.cancel
    finally:
        waiting.cancel()


async def answered(
    log: EventLog, reader: ChainReader, inputs: Iterable[AnyInput], heard: Callable[[], None]
) -> dict[str, str]:
    """Follow the log until it holds an answer to each input; return `ACCEPTED` or the reason of the refusal, by proposal id.

    ``heard`` is called when answers come: somebody is there, however long it takes.
    """
    missing = {proposed.proposal for proposed in inputs}
    answers: dict[str, str] = {}
    if not missing:
        return answers
    async for steps in follow_steps(log, reader):
        for step in steps:
            answers |= _answers(step.events, missing)
        if answers:
            heard()
        if missing <= answers.keys():
            break
    return answers


def _answers(events: Iterable[AnyEvent], wanted: Collection[str]) -> dict[str, str]:
    """Return what these events answer to the proposals that are wanted."""
    answers: dict[str, str] = {}
    for event in events:
        if isinstance(event, InputRejected):
            name, answer = event.proposal or _id_in(event), event.reason
        else:
            name, answer = getattr(event, "proposal", ""), ACCEPTED
        if name in wanted:
            answers[name] = answer
    return answers


def _id_in(event: InputRejected) -> str:
    """Return the id of a proposal that was refused because it had been answered before."""
    return "" if event.input is None else event.input.proposal

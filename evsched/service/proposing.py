"""Sending proposals, and waiting for what the scheduler makes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from events.chain import ChainReader
from events.streams import EventLog, Streams
from events.streams.attachment import must_be_attached
from events.streams.reading import follow_steps, read_steps
from events.vocabulary import AnyEvent, AnyInput, InputRejected

ACCEPTED = "accepted"
BATCH = 500


async def send(streams: Streams, inputs: Sequence[AnyInput], source: str) -> list[int]:
    """Send proposals, batch by batch, and return the position of each.

    Args:
        streams: Of a cluster partition.
        inputs: Each with its own id.
        source: The program that proposes.

    Raises:
        InboxDetached: The log reads another inbox.
    """
    await must_be_attached(streams)
    positions: list[int] = []
    for begin in range(0, len(inputs), BATCH):
        positions += await streams.inbox.propose(inputs[begin : begin + BATCH], source)
    return positions


async def send_and_wait(
    streams: Streams, inputs: Sequence[AnyInput], source: str, heard: Callable[[], None]
) -> list[tuple[int, str]]:
    """Send proposals and wait until a leader has answered all of them; return position and answer of each.

    What was answered before, because the same id was sent once already, has the answer that it got
    then: a client that tries again after a failure learns what came of it.

    Args:
        streams: Of a cluster partition.
        inputs: Each with its own id.
        source: The program that proposes.
        heard: Called when answers come: a leader is there, however long it takes.

    Returns:
        Answers are `ACCEPTED` or the reason of the refusal.
    """
    reader = ChainReader()
    missing = {proposed.proposal for proposed in inputs}
    before: dict[str, str] = {}
    async for steps in read_steps(streams.log, reader):
        for step in steps:
            # The first answer is the one that counts.
            before = _answers(step.events, missing) | before
    positions = await send(streams, inputs, source)
    answers = await _answered(streams.log, reader, missing, heard) | before
    return [
        (position, answers.get(one.proposal, ""))
        for one, position in zip(inputs, positions, strict=True)
    ]


async def _answered(
    log: EventLog, reader: ChainReader, missing: set[str], heard: Callable[[], None]
) -> dict[str, str]:
    """Follow the log until it holds an answer to each proposal id."""
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


def answer_in(events: Iterable[AnyEvent], proposal: str) -> AnyEvent | None:
    """Return the event that answers a proposal, taken or refused; None: none of these does."""
    return next((event for event in events if _answers((event,), (proposal,))), None)


def _id_in(event: InputRejected) -> str:
    """Return the id of a proposal that was refused because it had been answered before."""
    return "" if event.input is None else event.input.proposal

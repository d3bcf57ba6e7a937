"""Reading a log as steps, from its beginning or from a head that was kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from events.chain import ChainReader, Head, RecordedStep
from events.errors import PositionLost
from events.frame import UNREADABLE, decode_frame, frame_hash
from events.streams.protocols import EventLog, Record


async def resume(log: EventLog, head: Head) -> ChainReader:
    """Return a reader that goes on behind a head that was kept (in a snapshot), after comparing it with the log.

    Raises:
        PositionLost: The log does not hold that very frame at that position any more: its tail or
            head was lost, or it is another log; or the frame says otherwise than the head.
    """
    if head.position >= 0:
        found = await record_at(log, head.position)
        if found is None:
            raise PositionLost(
                head.position, f"frame {head.frame} is gone, the log ends at {await log.end()}"
            )
        if frame_hash(found.data) != head.hash:
            raise PositionLost(
                head.position, f"holds another frame than frame {head.frame} of hash {head.hash}"
            )
        _compare(head, found)
    return ChainReader(head)


def _compare(head: Head, found: Record) -> None:
    """Raise PositionLost unless a head says what the frame says: whoever kept it may have been made to lie."""
    try:
        frame = decode_frame(found.data)
    except UNREADABLE as error:
        raise PositionLost(head.position, f"no frame can be read: {error}") from error
    facts = ("log_id", "term", "leader", "frame", "time", "inbox_next")
    wrong = [name for name in facts if getattr(head, name) != getattr(frame, name)]
    # The last piece of an event in fragments does not say its `seq`.
    if frame.events and head.next_seq != frame.events[-1].seq + 1:
        wrong.append("next_seq")
    if not frame.last:
        wrong.append("last")
    if wrong:
        reason = f"frame {frame.frame} has another {', '.join(wrong)} than what was kept of it"
        raise PositionLost(head.position, reason)


async def read_steps(
    log: EventLog, reader: ChainReader
) -> AsyncGenerator[tuple[RecordedStep, ...], None]:
    """Yield the steps that the reader has not seen yet, in batches, up to the end of the log as it is now."""
    async with aclosing(log.read(after=reader.tip.position)) as batches:
        async for batch in batches:
            yield accept_all(reader, batch)


async def follow_steps(
    log: EventLog, reader: ChainReader
) -> AsyncGenerator[tuple[RecordedStep, ...], None]:
    """Yield the steps that the reader has not seen yet, and go on with those that are written later; never ends by itself.

    A batch may be empty: records came that complete no step.
    """
    async with aclosing(log.follow(after=reader.tip.position)) as batches:
        async for batch in batches:
            yield accept_all(reader, batch)


def accept_all(reader: ChainReader, batch: Sequence[Record]) -> tuple[RecordedStep, ...]:
    """Return the steps that these records complete."""
    steps = [reader.accept(data, position) for position, data in batch]
    return tuple(step for step in steps if step is not None)


async def record_at(log: EventLog, position: int) -> Record | None:
    """Return the record at a position, None when there is none (a hole, or the end)."""
    async with aclosing(log.read(after=position - 1)) as batches:
        async for batch in batches:
            for record in batch:
                return record if record.position == position else None
    return None

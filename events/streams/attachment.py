"""Which inbox a log reads, and how it comes to read another one.

The log says how far it has read (``inbox_next``), and that means something in one inbox only. So
every term names its inbox by the id that it got when it was made. Whoever wants to lead compares:
another inbox, or one that ends before ``inbox_next``, would make it pass over proposals that were
acknowledged. It does not lead then, until an administrator attaches the inbox that is there.

A log of release 0.1.0 does not name its inbox. Its next leader names the one that it finds, if that
one holds what the log has answered: the id of the last proposal that was read proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple

from events.chain import ChainReader, Head, RecordedStep
from events.errors import AccessDenied, InboxDetached, PositionLost
from events.streams.leadership import Environment, Leadership
from events.streams.protocols import EventLog, Inbox, Streams
from events.streams.reading import read_steps
from events.vocabulary import InboxAttached


async def must_read(inbox: Inbox, head: Head, answered: Callable[[str], bool]) -> str:
    """Return the id of the inbox that is there, after making sure that it is the one that the log reads.

    Args:
        inbox: The one that is there.
        head: Of the log.
        answered: Tells whether the log has answered a proposal of this id lately; asked only where
            the log does not name its inbox.

    Raises:
        InboxDetached: It is another one, it is shorter than what the log has read, or nothing
            proves that it is the one.
        StreamError: The inbox cannot be reached.
    """
    found = await inbox.identity()
    if head.inbox and found != head.inbox:
        raise _another(inbox, found, head.inbox)
    end = await inbox.end()
    if end < head.inbox_next:
        raise InboxDetached(
            inbox.name, f"ends at {end}, the log has read it up to {head.inbox_next}"
        )
    if (
        not head.inbox
        and head.inbox_next
        and not await _holds(inbox, head.inbox_next - 1, answered)
    ):
        raise InboxDetached(
            inbox.name,
            f"the log does not name its inbox, and did not answer the proposal at position {head.inbox_next - 1}",
        )
    return found


async def _holds(inbox: Inbox, position: int, answered: Callable[[str], bool]) -> bool:
    """Tell whether the proposal at a position is one that the log has answered."""
    try:
        found = await inbox.read(position, 1)
    except PositionLost:
        return False
    # A position without a record (a broker may leave some) proves nothing, nor does a record
    # without an id.
    return bool(found and found[0].position == position and found[0].id and answered(found[0].id))


async def must_be_attached(streams: Streams) -> None:
    """Make sure, before something is proposed, that this log is going to read this inbox.

    The last sign of life of its leader tells. Where there is none, the log was brought here, or its
    first leader has only just begun: then the log itself is read. A program without the right to
    read these streams may propose all the same: what it proposes is read once the inbox is
    attached.

    Raises:
        InboxDetached: The log reads another inbox.
        StreamError: The streams cannot be reached.
    """
    inbox = streams.inbox
    try:
        beat = await streams.log.last_heartbeat()
        if beat is None:
            answers = _Answers()
            head = await _read(streams.log, ChainReader(), answers.take)
            if head.frame:
                await must_read(inbox, head, answers.known.__contains__)
            return
        named = beat.head.inbox
        if named and (found := await inbox.identity()) != named:
            raise _another(inbox, found, named)
    except AccessDenied:
        return


class _Answers:
    """The ids of the proposals that the latest steps answered.

    Attributes:
        known: Those of the last step that answered any.
    """

    def __init__(self) -> None:
        self.known: frozenset[str] = frozenset()

    def take(self, step: RecordedStep) -> None:
        found = frozenset(getattr(event, "proposal", "") for event in step.events) - {""}
        self.known = found or self.known


async def _read(log: EventLog, reader: ChainReader, take: Callable[[RecordedStep], None]) -> Head:
    """Read a log to its end and return it."""
    async with aclosing(read_steps(log, reader)) as batches:
        async for steps in batches:
            for step in steps:
                take(step)
    return reader.head


def _another(inbox: Inbox, found: str, named: str) -> InboxDetached:
    reason = f"is inbox {found or 'without id'}, the log reads inbox {named}"
    return InboxDetached(inbox.name, reason)


class Attached(NamedTuple):
    """What attaching an inbox came to.

    Attributes:
        inbox: Its id.
        position: Of the next proposal to be read from it.
        replaces: Id of the inbox that was read before; empty when the log did not name it.
        changed: Whether anything was written; False: the log reads this inbox already.
    """

    inbox: str
    position: int
    replaces: str
    changed: bool


class _Readings:
    """How far a log has read each of its inboxes.

    Attributes:
        left_off: By the id of the inbox, where the log stopped reading it.
    """

    def __init__(self) -> None:
        self.left_off: dict[str, int] = {}

    def take(self, step: RecordedStep) -> None:
        self.left_off[step.head.inbox] = step.head.inbox_next


async def attach(streams: Streams, world: Environment, position: int | None = None) -> Attached:
    """Let a log read the inbox that is there, by an event of a term of its own; whoever leads is deposed by it.

    Args:
        streams: The log and the inbox.
        world: Clock, ids, pauses.
        position: Of the first proposal to be read. None: where the log left off in this inbox, and
            the first one when it never read it, so that nothing is passed over.

    Raises:
        InboxDetached: The log is empty, or there is no position at which nothing would be passed
            over or read twice; nothing was written.
        StreamError: The streams cannot be reached, or nobody knows whether it was written.
    """
    readings, reader = _Readings(), ChainReader()
    found, end = await streams.inbox.identity(), await streams.inbox.end()
    head = await _read(streams.log, reader, readings.take)
    if not head.frame:
        raise InboxDetached(
            streams.inbox.name, "the log is empty, and its first leader attaches it"
        )
    if position is None:
        if head.inbox == found and head.inbox_next <= end:
            return Attached(found, head.inbox_next, head.inbox, changed=False)
        position = await _safe_position(streams, readings, found)
    if not 0 <= position <= end:
        raise InboxDetached(
            streams.inbox.name,
            f"ends at {end}, position {position} of the first proposal to be read is not in it",
        )
    event = InboxAttached(inbox=found, position=position, replaces=head.inbox)
    await _write(streams, reader, world, event)
    return Attached(found, position, head.inbox, changed=True)


async def _safe_position(streams: Streams, readings: _Readings, found: str) -> int:
    """Return where reading can go on so that nothing is passed over and nothing is read twice."""
    if found in readings.left_off:
        return readings.left_off[found]
    led_here = await streams.log.last_heartbeat() is not None
    if led_here and "" in readings.left_off and readings.left_off[""]:
        # The log does not say which inbox it read, so it may have been this one.
        raise InboxDetached(
            streams.inbox.name,
            "the log does not name the inbox that it has read "
            f"up to position {readings.left_off['']}: say from which position on this one is to be read",
        )
    return 0


async def _write(
    streams: Streams, reader: ChainReader, world: Environment, event: InboxAttached
) -> None:
    """Write the event in a term of its own, which ends with it."""
    leadership = await Leadership.acquire(streams.log, reader, lambda _: None, world)
    head = leadership.head
    if head.inbox != event.replaces:
        raise InboxDetached(streams.inbox.name, "another inbox was attached meanwhile")
    numbered = InboxAttached(
        seq=head.next_seq, inbox=event.inbox, position=event.position, replaces=event.replaces
    )
    await leadership.append_step(
        (numbered,),
        time=leadership.stamp(world.now()),
        decided=False,
        inbox_next=event.position,
    )
    await leadership.heartbeat(world.now(), resigned=True)

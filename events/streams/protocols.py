"""What every log and every inbox can do.

A position is a place in one stream: an integer that grows from record to record and never moves.
The first is 0 and there may be holes. Positions are for reading on; the identity of what is in the
log is its ``seq`` and frame number.

All methods raise `events.errors.StreamError`s and nothing else. Every call has a deadline of its
own (``timeout`` seconds of the adapter); only `EventLog.follow` waits for ever.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import msgspec

from events.chain import Head
from events.cloudevents import InboxRecord
from events.vocabulary import AnyInput, Proposal

BEFORE_FIRST = -1
"""The position after which everything comes."""


class Record(NamedTuple):
    """One record of a log: a frame as it was written.

    Attributes:
        data: Its bytes; whether they can stand there is for `events.chain.ChainReader` to say.
    """

    position: int
    data: bytes


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A sign of life of a leader.

    It is no part of history, so it lives in a stream of its own of which only the latest counts. It
    carries the head of the log, so that a log whose tail was lost, or that was replaced by another,
    is noticed by the next leader.

    Attributes:
        leader: Who leads.
        term: Its term.
        time: When it was sent, by the sender's clock, milliseconds. Compare it with an earlier one,
            not with your own clock.
        number: 1, 2, 3, … within a term.
        head: The head of the log when it was sent; only what is definite.
        address: Where the leader can be reached, for people and clients; may be empty.
        process: Which process of which machine it is, for others on that machine; may be empty.
        resigned: This is its last one: whoever stands by need not wait.
        rules: The newest rules that it knows, for people.
        release: Of its evsched, for people; empty: one from before it was named.
    """

    leader: str
    term: int
    time: int
    number: int = 0
    head: Head = Head()
    address: str = ""
    process: str = ""
    resigned: bool = False
    rules: int = 1
    release: str = ""


class EventLog(Protocol):
    """The truth of one cluster partition: frames, one after the other.

    Attributes:
        name: For messages; holds no secret.
        partition: Number of the cluster partition.
    """

    name: str
    partition: int

    async def create(self) -> None:
        """Make the log (and its inbox and heartbeats) if it does not exist, set up so that nothing is ever lost; then `check`."""

    async def check(self) -> None:
        """Verify that the log exists and keeps everything for ever.

        Raises:
            StreamMissing: There is no such log.
            TopicMisconfigured: It is set up in a way that may lose history.
            AccessDenied: We have no right to it.
        """

    def read(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """Yield all records after a position up to the end as it is now, in batches.

        Raises:
            PositionLost: The record after that position was there once and is gone.
        """

    def follow(self, after: int = BEFORE_FIRST) -> AsyncGenerator[Sequence[Record], None]:
        """Yield all records after a position, and go on with those that are written later. Never ends by itself."""

    async def append(self, data: bytes) -> int:
        """Write one record and return its position, once it is as safe as the stream can make it.

        That it is written does not mean that it counts: a reader decides that by the chain.
        `events.streams.leadership` uses this method and is what a leader should use. Cancelling
        does not undo it.

        Raises:
            AppendRefused: It was definitely not written.
            OutcomeUnknown: It may have been written, or may yet be. Read the log before doing
                anything else.
        """

    async def end(self) -> int:
        """Return the position that the next record will have at least; 0 for an empty log."""

    async def heartbeat(self, beat: Heartbeat) -> int | None:
        """Send a sign of life; return, once it is kept, the time as `clock` does."""

    async def last_heartbeat(self) -> Heartbeat | None:
        """Return the latest sign of life, read from where it is kept; None when there never was one."""

    async def clock(self) -> int | None:
        """Return the time by the clock of where the log is kept, for one that may lead.

        Milliseconds since the epoch. None: it has no clock but that of this machine, or does not
        stamp by it.
        """

    async def close(self) -> None:
        """Let go of files and connections; may be called twice."""


class Inbox(Protocol):
    """What producers propose to one cluster partition."""

    name: str
    partition: int

    async def propose(self, inputs: Sequence[AnyInput], source: str = "") -> tuple[int, ...]:
        """Write a proposal for each input, in this order, and return their positions.

        Args:
            inputs: Each with its own id in ``proposal``: proposing the same again after an error is
                then harmless.
            source: Who proposes.

        Raises:
            ProposalTooLarge: Nothing was written.
            AppendRefused: Some may have been written, none later than the one that was refused.
            OutcomeUnknown: Any of them may have been written.
        """

    async def put(self, records: Sequence[InboxRecord]) -> tuple[int, ...]:
        """Write records as they are, readable or not; otherwise as `propose`."""

    async def read(
        self, position: int, limit: int = 1000, wait_s: float = 0.0
    ) -> tuple[Proposal, ...]:
        """Return the proposals from a position on.

        Args:
            position: Of the first one wanted; go on with the last one's position + 1.
            limit: Most of them.
            wait_s: Seconds to wait for the first when there is none; 0: do not wait.

        Raises:
            PositionLost: The position was there once and is gone.
        """

    async def end(self) -> int:
        """Return the position that the next proposal will have at least."""

    async def identity(self) -> str:
        """Return the id that this inbox got when it was made, and no other has.

        An inbox that was deleted and made again under its name has another one. Empty: it was made
        by a release that gave none, and `EventLog.create` gives it one.
        """

    async def close(self) -> None:
        """Let go of files and connections; may be called twice."""


class Streams:
    """The log and the inbox of one cluster partition, to be closed together; an asynchronous context manager."""

    def __init__(self, log: EventLog, inbox: Inbox) -> None:
        self.log = log
        self.inbox = inbox

    async def close(self) -> None:
        """Close both."""
        try:
            await self.inbox.close()
        finally:
            await self.log.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

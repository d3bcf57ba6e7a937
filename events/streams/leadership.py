"""Leading: being the one whose frames count.

Whoever wants to lead reads the log to its end, appends a fence with the next term and reads up to
it. If the fence counts by the rules of the chain, it leads until another fence does. Everything it
appends is checked the same way: a frame counts when nothing came between it and the frame before;
if something did, that is read first. So a leader never acknowledges what readers ignore, however
long it was paused, and no clock is asked.

After a failure, or a cancellation, in the middle of an append nobody knows what is in the log. The
leadership is over then; acquiring a new one reads the log and thereby tells.

Clock, randomness and pauses are the caller's: they are arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Self

import msgspec

from events.chain import ChainReader, Head, RecordedStep, Sealed, cut_into_frames, fence
from events.errors import LeadershipLost, LogDamaged, PositionLost, StepUnprovable
from events.frame import frame_hash
from events.streams.protocols import EventLog, Heartbeat
from events.streams.reading import accept_all, read_steps, record_at
from events.vocabulary import AnyEvent, InboxAttached, LeaderStarted

LAST_WRITE_S = 2.0
"""How long a leader that is cancelled in the middle of a write waits for its end."""


async def _as_named(head: Head) -> str:
    return head.inbox


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader needs of the world outside.

    Attributes:
        now: The time, milliseconds since the epoch.
        new_id: A random id that was never used before, for leaders and logs.
        pause: Waits for a random while; given how many races were lost so far.
        checkpoint_every: Written into LeaderStarted.
        attempts: After this many lost races `Leadership.acquire` gives up.
        rules: Tells the versions of rules and record in force after what was applied so far; written
            into LeaderStarted.
        release: Of this evsched, for people; written into LeaderStarted and heartbeats.
        observes: This leader decides nothing; written into LeaderStarted.
        knows: The newest rules that this process knows; written into heartbeats.
        inbox: Given the end of the log, returns the id of the inbox in which its ``inbox_next``
            counts, or raises (`events.streams.attachment.must_read`); the one that the log names
            for those who read none.
    """

    now: Callable[[], int]
    new_id: Callable[[], str]
    pause: Callable[[int], Awaitable[None]]
    checkpoint_every: int = 100_000
    attempts: int = 10
    rules: Callable[[], tuple[int, int]] = lambda: (1, 1)
    release: str = ""
    observes: bool = False
    knows: int = 1
    inbox: Callable[[Head], Awaitable[str]] = _as_named


class Leadership:
    """The right to write to a log, for as long as nobody else has taken it.

    Attributes:
        term: Number of our term.
        leader: Our id in it.
    """

    def __init__(self, log: EventLog, reader: ChainReader, leader: str) -> None:
        """For `acquire`, which knows that the reader's head is a frame of this leader."""
        self.log = log
        self.leader = leader
        self.term = reader.head.term
        self._reader = reader
        self._seen = reader.head.position
        self._beats = 0
        self._knows, self._release = 1, ""
        self._over = False
        self._busy = False

    @classmethod
    async def acquire(
        cls,
        log: EventLog,
        reader: ChainReader,
        apply: Callable[[RecordedStep], object],
        world: Environment,
    ) -> Self:
        """Open the next term and return the right to write in it.

        Args:
            log: Exists and is set up rightly (`EventLog.check`).
            reader: What was read so far; `ChainReader()` when nothing was.
            apply: Gets every step that the reader had not seen, in order, the fence's own last;
                also when this method raises in the end, so that calling it again goes on where it
                was (not after LogDamaged).
            world: Clock, ids, pauses.

        Raises:
            LeadershipLost: Others were faster each time, or lead now.
            OutcomeUnknown: The fence may have been written; call again, with the same reader.
            LogDamaged: The log does not hold together, or is shorter than the last leader knew it.
        """
        held = await log.last_heartbeat()
        for lost in range(world.attempts):
            if lost:
                await world.pause(lost)
            await _read(log, reader, apply)
            if held is not None:
                await _compare(log, reader, held)
                held = None
            leader = world.new_id()
            rules, record = world.rules()
            started = LeaderStarted(
                term=0,
                leader=leader,
                checkpoint_every=world.checkpoint_every,
                rules=rules,
                record=record,
                release=world.release,
                inbox=await world.inbox(reader.head),
                observes=world.observes,
            )
            sealed = fence(reader, started, log_id=world.new_id(), time=world.now())
            position = await _append(log, sealed)
            if position <= reader.tip.position:
                raise LogDamaged(
                    position,
                    f"a new frame came to stand there, though position {reader.tip.position} was read before",
                )
            await _read(log, reader, apply, until=position)
            if reader.head.leader == leader:
                led = cls(log, reader, leader)
                led._knows, led._release = world.knows, world.release
                return led
        raise LeadershipLost(0, reader.tip.term, reader.tip.leader)

    @property
    def alive(self) -> bool:
        """Whether the term goes on as far as we know; False once it is over, for whatever reason."""
        return not self._over

    @property
    def head(self) -> Head:
        """The head of the log after our last step."""
        return self._reader.head

    def stamp(self, now: int) -> int:
        """Return the time for a step that is taken now: never before that of the last one, whatever the clock did."""
        return max(now, self._reader.tip.time)

    async def append_step(
        self, events: tuple[AnyEvent, ...], *, time: int, decided: bool, inbox_next: int
    ) -> RecordedStep:
        """Write one step; when this returns, it is in the log for good and counts.

        One call at a time. Whatever it raises, a cancellation included, ends the leadership (but
        StepUnprovable), and with it the use of the reader given to `acquire` and of a state that has
        taken the step already: build both again from the log.

        Args:
            events: With their ``seq``, beginning at ``head.next_seq``; may be empty (the step then
                only moves ``inbox_next``).
            time: As `stamp` gives it.
            decided: Whether the engine decided in it.
            inbox_next: Position of the next proposal to read.

        Raises:
            LeadershipLost: Another leader's term is in force; nothing of this step counts.
            OutcomeUnknown: It may be in the log.
            StreamError: Any other one: it is definitely not in the log as a whole step.
            StepUnprovable: No reader could read the step; nothing was written, and the term goes on
                with a state that has not taken it.
            ValueError: The step does not follow the one before; nothing was written.
        """
        if self._over or self._busy:
            raise LeadershipLost(self.term, *self._successor())
        self._busy = True
        try:
            self._must_follow(events, time, inbox_next)
            for sealed in cut_into_frames(
                self._reader.head, events, time=time, decided=decided, inbox_next=inbox_next
            ):
                step = await self._write(sealed)
        except StepUnprovable:
            raise  # all frames are made before the first is written
        except BaseException:
            self._over = True
            raise
        finally:
            self._busy = False
        # The last frame of a step that was written whole completes it.
        assert step is not None
        return step

    def _must_follow(self, events: tuple[AnyEvent, ...], time: int, inbox_next: int) -> None:
        """Raise ValueError for a step that would damage the log: readers are not to find out."""
        head = self._reader.head
        if time < head.time:
            raise ValueError(f"step: time {time} is before {head.time} of the last one")
        if inbox_next < head.inbox_next and not any(
            isinstance(event, InboxAttached) for event in events
        ):
            raise ValueError(
                f"step: inbox_next {inbox_next} is before {head.inbox_next} of the last one"
            )
        for expected, event in enumerate(events, start=head.next_seq):
            if event.seq != expected:
                raise ValueError(f"step: event {event.seq} found, expected {expected}")

    async def _write(self, sealed: Sealed) -> RecordedStep | None:
        position = await _append(self.log, sealed)
        if position <= self._seen:
            raise LogDamaged(
                position,
                f"a new frame came to stand there, though position {self._seen} was written before",
            )
        if position > self._seen + 1:
            await self._read_between(position)
        self._seen = position
        step = self._reader.take(sealed.frame, sealed.hash, position)
        if self._reader.tip.hash != sealed.hash:
            raise LeadershipLost(self.term, *self._successor())
        return step

    async def _read_between(self, position: int) -> None:
        """Look at what came between our last frame and this one: holes and stale frames change nothing, a fence ends our term."""
        async with aclosing(self.log.read(after=self._seen)) as batches:
            async for batch in batches:
                accept_all(self._reader, [record for record in batch if record.position < position])
                if batch[-1].position >= position:
                    break
        if self._reader.tip.leader != self.leader:
            raise LeadershipLost(self.term, *self._successor())

    async def confirm(self) -> None:
        """Look whether the term is still in force; for a leader that has had nothing to write for a while.

        Call it between two steps. Whatever it raises ends the leadership, as with `append_step`.

        Raises:
            LeadershipLost: Another leader's term is in force.
            LogDamaged: The log has lost what was read or written before.
        """
        if self._over or self._busy:
            raise LeadershipLost(self.term, *self._successor())
        self._busy = True
        try:
            end = await self.log.end()
            self._must_be_there(end)
            if end > self._seen + 1:
                await self._read_between(end)
                self._seen = end - 1
        except BaseException:
            self._over = True
            raise
        finally:
            self._busy = False

    def _must_be_there(self, end: int) -> None:
        """Raise PositionLost when the log ends before what was read or written."""
        if end <= self._seen:
            raise PositionLost(self._seen, f"the log ends at {end}")

    async def heartbeat(
        self, now: int, address: str = "", *, process: str = "", resigned: bool = False
    ) -> tuple[Heartbeat, int | None]:
        """Send a sign of life that carries the head of the log, and return it and what `EventLog.heartbeat` does.

        Args:
            now: The time, milliseconds since the epoch.
            address: See `Heartbeat`.
            process: See `Heartbeat`.
            resigned: End the term by this: nothing is written in it any more, and nobody need wait
                for the lease.

        Raises:
            LeadershipLost: The term is over.
        """
        if self._over:
            raise LeadershipLost(self.term, *self._successor())
        self._over = resigned
        self._beats += 1
        beat = Heartbeat(
            leader=self.leader,
            term=self.term,
            time=now,
            number=self._beats,
            head=self._reader.head,
            address=address,
            process=process,
            resigned=resigned,
            rules=self._knows,
            release=self._release,
        )
        return beat, await self.log.heartbeat(beat)

    def _successor(self) -> tuple[int, str]:
        tip = self._reader.tip
        return (tip.term, tip.leader) if tip.leader != self.leader else (0, "")


async def _append(log: EventLog, sealed: Sealed) -> int:
    """Append in a task of its own, so that a cancellation of ours never cuts through a write."""
    task = asyncio.create_task(log.append(sealed.data))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # The write goes on. Its answer is no use to anybody, but what it holds open should not
        # outlive the log.
        task.add_done_callback(_drop)
        await asyncio.wait([task], timeout=LAST_WRITE_S)
        raise


def _drop(task: asyncio.Task[int]) -> None:
    if not task.cancelled():
        task.exception()


async def _read(
    log: EventLog,
    reader: ChainReader,
    apply: Callable[[RecordedStep], object],
    until: int | None = None,
) -> None:
    """Read to the end of the log, which must lie behind this position."""
    async with aclosing(read_steps(log, reader)) as batches:
        async for steps in batches:
            for step in steps:
                apply(step)
    if until is not None and await log.end() <= until:
        raise PositionLost(until, "was written just now and is not in the log")


async def _compare(log: EventLog, reader: ChainReader, held: Heartbeat) -> None:
    """Raise LogDamaged when the last leader knew a longer log, or another one."""
    known = held.head
    if known.position < 0:
        return
    who = f"leader {held.leader} had written frame {known.frame} of log {known.log_id} there"
    if await log.end() <= known.position:
        raise PositionLost(known.position, f"the log ends with frame {reader.tip.frame}, {who}")
    record = await record_at(log, known.position)
    if record is None or frame_hash(record.data) != known.hash:
        raise LogDamaged(known.position, f"holds another frame of log {reader.tip.log_id}, {who}")

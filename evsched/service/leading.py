"""One term: read the inbox, decide, write, and only then read on.

The leader sleeps until a proposal comes or something is due, whichever is first. What was in the
inbox when the term began is taken without deciding: nothing is decided on a picture that is known
to be stale. Whatever goes wrong in a write ends the term, because the state has taken a step that
may not be in the log; whoever called throws it away.

A step that may be long is taken by a thread. The event loop goes on meanwhile, so the signs of life
of this leader, and the other cluster partitions of this process, do not wait for its end. The turn
does wait, so nothing else touches the state while the thread has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import msgspec
import structlog
from msgspec import Struct

from events.errors import (
    EnvironmentFault,
    InboxDetached,
    LeadershipLost,
    PositionLost,
    StepUnprovable,
    StreamError,
)
from events.streams.leadership import Leadership
from events.streams.protocols import Streams
from events.vocabulary import AnyEvent, Proposal, RulesAdopted
from evsched.core.faults import StepFailed
from evsched.core.rules import FIRST
from evsched.service.companions import Companions, judged, nobody
from evsched.service.containment import (
    OF_QUEUES,
    Contained,
    Containment,
    Remedy,
    Uncontained,
    unwritable,
)
from evsched.service.culprits import queue_at_fault
from evsched.service.ending import ended
from evsched.service.environment import Clock, RecordTime
from evsched.service.process_identity import own_name
from evsched.service.rebuilding import Replica, Snapshots
from evsched.service.savepoint import Savepoint
from evsched.service.threads import is_large

LONG_STEP_S = 0.1
"""A step that takes longer is a reason to take fewer proposals at a time: while it is decided nobody gets an answer."""
FEWEST = 16
NEAR = 1_000
"""Events before a checkpoint from which on a step may reach it; the digest of a large state makes any step long."""
FEW = 100
"""A step with so few asks and proposals is short. A thread would cost it up to 5 ms of waiting for the interpreter."""

_log = structlog.get_logger(__name__)


class Pace(Struct, frozen=True, kw_only=True):
    """How a member behaves in time.

    Attributes:
        beat: Seconds between two heartbeats of a leader.
        lease: Seconds without a sign of life after which a leader counts as gone.
        idle: Seconds after which a leader without work looks whether it still leads, and whether it
            is asked to stop.
        retry: Seconds to wait after the log could not be reached, at first; it doubles up to
            ``retry_most``.
        retry_most: See ``retry``.
        batch: Most proposals of one step.
        checkpoint_every: Events between two digests in the log.
        address: Where this process can be reached, for people; may be empty.
        rules: Those that a log begins with when this process is its first leader; a log that has
            begun keeps its own.
        observes: Take what is proposed and decide nothing, while another scheduler runs the
            cluster; no timer fires either.
    """

    beat: float = 0.5
    lease: float = 2.5
    idle: float = 0.25
    retry: float = 0.25
    retry_most: float = 1.0
    batch: int = 1000
    checkpoint_every: int = 100_000
    address: str = ""
    rules: int = FIRST
    observes: bool = False


async def _say_nothing(failure: Contained) -> None:
    """Take no note of a failure."""


class LeaderTerm:
    """The time in which this process leads.

    Attributes:
        over: Set it to end the term after the step under way.
        torn: Whether the state may hold what the log does not, or the other way round: it is of no
            use then once the term is over.
        steps: How many were written.
        others: Tells which processes could lead, and what rules they know.
        contained: Called when a step raised and the term goes on, with the state before that step.
    """

    def __init__(
        self,
        streams: Streams,
        warm: Replica,
        leadership: Leadership,
        clock: Clock,
        pace: Pace,
        containment: Containment,
    ) -> None:
        """Begin with a fence that is in the log, the state behind it, and what earlier terms have learned from faults."""
        self._containment = containment
        self.others: Companions = nobody
        self.contained: Callable[[Contained], Awaitable[None]] = _say_nothing
        self._savepoint = Savepoint()
        self.over = asyncio.Event()
        self.torn = False
        self.steps = 0
        self._streams = streams
        self._warm = warm
        self._leadership = leadership
        self._clock = clock
        self._pace = pace
        self._time = RecordTime(clock, leadership.head.time)
        self._batch = pace.batch
        self._backlog_end = 0
        self._fresh = not pace.observes
        self._ahead = False
        self._confirmed = clock.elapsed()
        self._kept_at = -pace.lease

    @property
    def confirmed(self) -> bool:
        """Whether this leader's own heartbeat was seen where heartbeats are kept, not longer ago than the lease."""
        return self._clock.elapsed() - self._kept_at < self._pace.lease

    async def run(self, snapshots: Snapshots) -> None:
        """Lead until ``over`` is set, then resign; raises what ended the term otherwise."""
        self._backlog_end = await self._streams.inbox.end()
        beats = asyncio.create_task(self._beat())
        try:
            if self._containment.wary:
                await asyncio.to_thread(self._savepoint.keep, self._warm.engine.state)
            while not self.over.is_set():
                idle = await self.turn()
                overdue = snapshots.overdue(self._warm.engine)
                if overdue > 1 or (overdue and idle):
                    await snapshots.save(self._warm)
                if beats.done():
                    await beats
            # Not cancelled: a write that is cut off costs the connection that the last heartbeat
            # needs.
            await beats
            await self._give_beat(resigned=True)
        finally:
            with suppress(StreamError):
                await ended(beats)

    async def turn(self) -> bool:
        """Take one step, or wait for a reason to (at most `Pace.idle`); return whether there was none.

        Where it fails and the term can go on all the same, go back to the state before it.
        """
        try:
            return await self._turn()
        except Uncontained:
            raise
        except Contained as failure:
            if not self._savepoint.kept:
                raise
            engine = self._warm.engine
            engine.state = await asyncio.to_thread(self._savepoint.restored)
            self.torn, self._fresh = False, not self._pace.observes
            await self.contained(failure)
            return False

    async def _turn(self) -> bool:
        """Take one step, or wait for a reason to; return whether there was none."""
        if self._containment.remedy is not None:
            await self._set_aside(self._containment.remedy)
        head = self._leadership.head
        catching_up = head.inbox_next < self._backlog_end
        alone = self._containment.alone
        if alone and not self._containment.clear and not self._pace.observes:
            now = self._leadership.stamp(self._time.now())
            await self._step(now, (), head.inbox_next, decide=True)
            self._containment.clear = True
            return False
        proposals = self._containment.admit(
            await self._read_on(head.inbox_next, 0.0 if catching_up else self._wait())
        )
        if catching_up and not proposals:
            # Positions without a record: the backlog ends here.
            self._backlog_end = head.inbox_next
        inbox_next = proposals[-1].position + 1 if proposals else head.inbox_next
        proposals = await judged((*self._beginning(), *proposals), self.others)
        now = self._leadership.stamp(self._time.now())
        hold = self._containment.hold and bool(proposals)
        caught_up = inbox_next >= self._backlog_end
        decide = (caught_up or alone) and not hold and not self._pace.observes
        due = self._next_due()
        if not proposals and not self._fresh and (due is None or due > now):
            await self._look_around()
            self._look_ahead()
            return True
        self._fresh = (self._fresh or hold) and not decide and not self._pace.observes
        await self._step(now, proposals, inbox_next, decide=decide)
        self._look_ahead()  # a busy leader has no turn without a step
        return False

    def _look_ahead(self) -> None:
        """Do a little of what the next decision will need, and note whether more is left to do."""
        self._ahead = not self._pace.observes and self._warm.engine.look_ahead()

    async def _read_on(self, position: int, wait_s: float) -> tuple[Proposal, ...]:
        inbox = self._streams.inbox
        try:
            count = 1 if self._containment.alone else self._batch
            return await inbox.read(position, count, wait_s)
        except PositionLost as error:
            # Not the log is damaged: the inbox lost its tail, or is another one by now.
            raise InboxDetached(inbox.name, error.reason) from error

    def _beginning(self) -> tuple[Proposal, ...]:
        """Return what a new log begins with: the rules that it is to be decided by, unless they are the first."""
        state = self._warm.engine.state
        # Nothing but leaders has begun, each with one event.
        if state.seq != self._leadership.term or self._pace.rules <= state.rules_version:
            return ()
        return (Proposal(input=RulesAdopted(rules=self._pace.rules), source="evsched"),)

    async def _step(
        self, now: int, proposals: tuple[Proposal, ...], inbox_next: int, *, decide: bool
    ) -> None:
        self.torn = True
        begun = self._clock.elapsed()
        try:
            events = await self._decide(now, proposals, decide=decide)
        except StepFailed as fault:
            if fault.kind == "input":
                # Those before it are written first, so that none is decided on more than twice.
                self._batch = max(1, min(self._batch, int(fault.subject)))
            raise self._containment.learn(fault, proposals, now, decide=decide) from fault
        took = self._clock.elapsed() - begun
        self._batch = (
            max(FEWEST, self._batch // 2)
            if took > LONG_STEP_S
            else min(self._pace.batch, self._batch * 2)
        )
        if not events and not proposals:
            self.torn = False
            return
        try:
            step = await self._leadership.append_step(
                events, time=now, decided=decide, inbox_next=inbox_next
            )
        except StepUnprovable as error:
            unmade = unwritable(error, events)
            raise self._containment.learn(unmade, proposals, now, decide=decide) from error
        self._written(events, now)
        self.steps += 1
        self._containment.went_well(inbox_next, taken=len(proposals))
        self._confirmed = self._clock.elapsed()
        _log.debug(
            "step",
            log=self._streams.log.name,
            frame=step.head.frame,
            hash=step.head.hash,
            proposals=len(proposals),
            events=len(events),
            decided=decide,
            took_s=took,
        )

    def _written(self, events: tuple[AnyEvent, ...], now: int) -> None:
        """Take note that the state is that of the log again."""
        self.torn = False
        self._savepoint.written(events, now)
        self._savepoint.renew(self._warm.engine.state)

    async def _set_aside(self, remedy: Remedy) -> None:
        """Write that something is set aside."""
        engine, state, head = self._warm.engine, self._warm.engine.state, self._leadership.head
        if remedy.kind in OF_QUEUES:
            now = self._leadership.stamp(self._time.now())
            queue = await asyncio.to_thread(queue_at_fault, state, now)
            remedy = self._containment.narrow(queue) if queue else remedy
        known = (
            remedy.subject in state.asks
            if remedy.kind == "ask"
            else remedy.kind != "timer" or remedy.subject in state.timers.armed
        )
        if known:
            now = self._leadership.stamp(self._time.now())
            self.torn = True
            try:
                events = engine.suspend(
                    now, remedy.kind, remedy.subject, (remedy.place, remedy.reason)
                )
            except StepFailed as fault:
                raise self._containment.learn(fault, (), now, decide=False) from fault
            await self._leadership.append_step(
                events, time=now, decided=False, inbox_next=head.inbox_next
            )
            self._written(events, now)
            _log.critical(
                "decision suspended",
                log=self._streams.log.name,
                seq=events[0].seq,
                **msgspec.structs.asdict(remedy),
            )
        self._containment.remedied(found=known)

    async def _decide(
        self, now: int, proposals: tuple[Proposal, ...], *, decide: bool
    ) -> tuple[AnyEvent, ...]:
        """Take the step: here when it is short, else by a thread, and wait for that."""
        engine = self._warm.engine
        work = partial(engine.step, now, proposals, decide=decide)
        short = len(engine.state.asks) + len(proposals) <= FEW
        if short and not (engine.near_checkpoint(NEAR) and is_large(engine.state)):
            return work()
        return await asyncio.to_thread(work)

    def _wait(self) -> float:
        """Return how long to wait for proposals, seconds."""
        if self._fresh or self._ahead:
            return 0.0
        due = self._next_due()
        idle = self._pace.idle
        return idle if due is None else min(idle, max(0.0, (due - self._time.now()) / 1000))

    def _next_due(self) -> int | None:
        """Return when there is something to decide; None: there is not, unless something is proposed."""
        return None if self._pace.observes else self._warm.engine.next_due()

    async def _look_around(self) -> None:
        """Make sure, now and then, that the term of a leader that writes nothing is still in force."""
        if self._clock.elapsed() - self._confirmed >= self._pace.beat:
            self.torn = True
            await self._leadership.confirm()
            self.torn = False
            self._confirmed = self._clock.elapsed()

    async def _beat(self) -> None:
        """Give signs of life, and believe in them when they are seen to be kept.

        A leader in the middle of a long step does not read the log. The heartbeats of its successor
        tell it that its own must end, or they would hide those.
        """
        while not self.over.is_set():
            last = await self._streams.log.last_heartbeat()
            if last is not None and last.term > self._leadership.term:
                raise LeadershipLost(self._leadership.term, last.term, last.leader)
            number = await self._give_beat()
            asked = self._clock.elapsed()
            kept = await self._streams.log.last_heartbeat()
            if (
                kept is not None
                and kept.leader == self._leadership.leader
                and kept.number >= number
            ):
                self._kept_at = asked
            await self._must_be_the_same_inbox()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.beat):
                    await self.over.wait()

    async def _must_be_the_same_inbox(self) -> None:
        """Raise InboxDetached when the inbox was deleted and made again: its positions mean something else then."""
        inbox, named = self._streams.inbox, self._leadership.head.inbox
        try:
            found = await inbox.identity()
        except EnvironmentFault:
            # Reading the inbox tells soon enough whether it is there.
            return
        if found != named:
            raise InboxDetached(inbox.name, f"is inbox {found}, the log reads inbox {named}")

    async def _give_beat(self, *, resigned: bool = False) -> int:
        beat, kept = await self._leadership.heartbeat(
            self._clock.now(), self._pace.address, process=own_name(), resigned=resigned
        )
        self._clock.heed(kept)
        return beat.number

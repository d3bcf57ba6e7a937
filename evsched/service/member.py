"""One process's part in one cluster partition: follow its log, and lead it when nobody else does.

A *standby* follows the log, so that its state is warm. It opens a term when nobody leads: at once
when it is assigned to this partition (see `evsched.service.assignment`), otherwise when nobody who
is did so for the lease. Whatever goes wrong ends in the same place: it stands by again, and where
the state may hold a step that the log does not, it is thrown away first and built anew. There is no
other error handling, because there needs to be none. A damaged log is not tried again: the member
stops and says where. So does a fault of our own that comes back each time. Neither touches another
cluster partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Literal

import structlog
from msgspec.structs import replace

from events.chain import START, Head
from events.errors import (
    InboxDetached,
    LogDamaged,
    NotLeading,
    StateDiffers,
    StreamError,
    WrittenByNewer,
)
from events.streams.attachment import must_read
from events.streams.leadership import Leadership
from events.streams.protocols import Streams
from evsched.core.engine import Engine
from evsched.core.faults import place_of
from evsched.core.rules import RULES
from evsched.service.companions import Companions, nobody
from evsched.service.containment import Contained, Containment, Uncontained, in_short
from evsched.service.ending import ended
from evsched.service.environment import AHEAD_MS, Clock, environment
from evsched.service.evidence import keep
from evsched.service.leading import LeaderTerm, Pace
from evsched.service.rebuilding import Replica, Snapshots
from evsched.service.watching import Watch

Role = Literal["starting", "standby", "leading", "stopped", "failed"]

FAULTS = 5
"""How often in a row a fault of our own is met before a member stops; a written step ends the row."""

LOOKS = 10
"""How often a standby looks whether its leader's process is there, between two looks at the heartbeats."""

GOING_ON = "decision failed, going on without it"

_log = structlog.get_logger(__name__)


class Member:
    """One process's part in one cluster partition.

    Attributes:
        partition: Number of the cluster partition.
        role: What it does at present.
        failure: Why it gave up: `LogDamaged`, `WrittenByNewer`, or the exception of a fault of our own; None while it
            goes on.
    """

    def __init__(  # noqa: PLR0913 - the parts of a process
        self,
        streams: Streams,
        clock: Clock,
        *,
        pace: Pace | None = None,
        snapshots: Snapshots | None = None,
        assigned: Callable[[], bool] = lambda: True,
        on_built: Callable[[], object] = lambda: None,
        others: Companions = nobody,
    ) -> None:
        """Prepare; `run` does everything.

        Args:
            streams: Log and inbox of the cluster partition, there and set up rightly.
            clock: Of this process.
            pace: How often and how long.
            snapshots: Where to begin and what to leave; None: keep none.
            assigned: Tells whether this process goes first when nobody leads.
            on_built: Called when a state has been built.
            others: Tells which processes could lead, and what rules they know.
        """
        self._others = others
        self.partition = streams.log.partition
        self.role: Role = "starting"
        self.failure: Exception | None = None
        self._streams = streams
        self._clock = clock
        self._pace = pace or Pace()
        self._snapshots = snapshots or Snapshots()
        self._assigned = assigned
        self._on_built = on_built
        self._world = environment(clock, self._pace.checkpoint_every, observes=self._pace.observes)
        self._watch = Watch(streams.log, clock, self._pace.lease)
        self._warm: Replica | None = None
        self._term: LeaderTerm | None = None
        self._led_by_other = False
        self._stopping = asyncio.Event()
        self._retries = 0
        self._faults = 0
        self._head = START
        self._containment = Containment()
        self._compared = False
        self._told_outdated = False
        self._log = _log.bind(log=streams.log.name, partition=self.partition)

    # -------------------------------------------------------------------------------------- outside

    @property
    def engine(self) -> Engine | None:
        """The state as far as this process knows it; None while it is being built.

        While this process leads, a thread may be in the middle of a step.
        """
        return None if self._warm is None else self._warm.engine

    @property
    def term(self) -> int:
        """The term of the last frame that was read; 0 when there is none."""
        return 0 if self._warm is None else self._warm.reader.head.term

    @property
    def frame(self) -> int:
        """The last frame that was read; 0 when there is none."""
        return 0 if self._warm is None else self._warm.reader.head.frame

    @property
    def ready(self) -> bool:
        """Whether it leads and has seen its own heartbeat come back, or follows a leader that is alive."""
        if self.role == "leading":
            return self._term is not None and self._term.confirmed
        return self.role == "standby" and self._led_by_other and not self.outdated

    @property
    def outdated(self) -> str:
        """Why this process is too old for the log, so that it can only stand by or has stopped; empty: it is not."""
        if isinstance(self.failure, WrittenByNewer):
            return str(self.failure)
        if self._warm is None or self._warm.engine.state.rules_version in RULES:
            return ""
        try:
            self._warm.rules()
        except WrittenByNewer as error:
            return str(error)
        return ""

    def stop(self) -> None:
        """Ask for a graceful end: the step under way is finished, and the next leader need not wait for the lease."""
        self._stopping.set()
        self.resign()

    def resign(self) -> None:
        """Ask it to give its term up and to stand by; one that does not lead is not concerned."""
        if self._term is not None:
            self._term.over.set()

    async def run(self) -> None:
        """Follow and lead until stopped. Returns then, or when it gave up (`failure`); raises nothing but a cancellation."""
        try:
            while not self._stopping.is_set():
                await self._attempt()
                if self.failure is not None:
                    return
        finally:
            self.role = "failed" if self.failure is not None else "stopped"
            await self._snapshots.close()

    async def _attempt(self) -> None:
        """Follow and lead as long as nothing goes wrong."""
        try:
            warm = await self._follow()
            if not self._stopping.is_set():
                await self._lead(warm)
        except StateDiffers as error:
            # Only who began at the beginning of the log can say that the log is wrong.
            if self._warm is None or not self._warm.began:
                self._fail(error)
                return
            self._log.error(
                "snapshot does not fit the log", seq=self._warm.began, reason=error.reason
            )
            self._snapshots.distrust()
            self._warm, self.role = None, "starting"
        except LogDamaged as error:
            self._fail(error)
        except WrittenByNewer as error:
            self.failure = error
            self._log.critical("log is newer than this process", reason=str(error))
        except NotLeading as error:
            self._log.warning("term over", reason=str(error))
        except InboxDetached as error:
            # It stands by meanwhile: an administrator attaches the inbox, and this process sees it
            # in the log.
            self._log.error("inbox not attached", reason=str(error))
            self.role = "starting"
            await self._pause(self._pace.retry_most)
        except StreamError as error:
            self._retries += 1
            seconds = self._patience(self._retries)
            self._log.warning(
                "log not reached", error=type(error).__name__, reason=str(error), again_in_s=seconds
            )
            self.role = "starting"
            await self._pause(seconds)
        except Uncontained as error:
            self._warm, self.failure = None, error
            self._log.critical("partition given up", **self._facts(error))
            await self._keep_last_evidence()
        except Contained as error:
            self._warm, self.role = None, "starting"  # the state may have taken a part of the step
            self._log.critical(GOING_ON, **self._facts(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, other partitions go on
            await self._after_fault(error)

    async def _after_fault(self, error: Exception) -> None:
        """Throw the state away and try again later; give up when that did not help several times."""
        self._faults += 1
        self._warm = None
        facts = self._facts(error)
        if self._faults >= FAULTS:
            self.failure = error
            self._log.critical("partition given up", **facts)
            return
        seconds = self._patience(self._faults)
        self._log.error("fault, trying again", **facts, again_in_s=seconds)
        self.role = "starting"
        await self._pause(seconds)

    async def _contained(self, failure: Contained) -> None:
        """Say that a step failed and the term goes on, and leave a file about it."""
        warm = self._warm
        assert warm is not None
        self._head = warm.reader.head
        self._log.critical(GOING_ON, **self._facts(failure))
        await self._keep_evidence(warm)

    def _facts(self, error: Exception) -> dict[str, object]:
        """Return what there is to say of a fault."""
        head = self._head
        facts: dict[str, object] = {
            "frame": head.frame,
            "position": head.position,
            "inbox_next": head.inbox_next,
            "seq": head.next_seq - 1,
        }
        if isinstance(error, Contained):
            fault = error.fault
            return {
                **facts,
                "kind": fault.kind,
                "subject": fault.subject,
                "cause": in_short(fault.reason),
                "place": fault.place,
            }
        cause = in_short(f"{type(error).__name__}: {error}")
        return {**facts, "cause": cause, "place": place_of(error)}

    def _patience(self, attempt: int) -> float:
        """Return how long to wait before another attempt, seconds; ``attempt`` counts from 1."""
        # After an hour without a log there were so many attempts that no float holds the power.
        return min(self._pace.retry * 2.0 ** min(attempt - 1, 30), self._pace.retry_most)

    def _fail(self, error: LogDamaged) -> None:
        """Give up: the log is damaged."""
        self.failure = error
        self._log.critical("log damaged", position=error.position, reason=error.reason)

    async def _pause(self, seconds: float) -> None:
        """Return after this many seconds, or when stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _unless_stopped(self, work: Coroutine[None, None, None]) -> bool:
        """Do some work, which may be cancelled anywhere, and return True; False when this process was stopped first."""
        working, stopping = (
            asyncio.ensure_future(work),
            asyncio.ensure_future(self._stopping.wait()),
        )
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            return working.done()
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    # -------------------------------------------------------------------------------------- standby

    async def _follow(self) -> Replica:
        """Keep the state warm until this process should lead, or stop."""
        log = self._streams.log
        await log.check()
        if self._warm is None:
            self._warm = await self._snapshots.begin(log)
        warm = self._warm
        if not await self._unless_stopped(warm.catch_up(log)):
            return warm
        self._on_built()
        self.role = "standby"
        self._log.info("following", frame=warm.reader.head.frame, events=warm.engine.state.seq)
        follower = asyncio.create_task(warm.keep_up(log))
        try:
            while not self._stopping.is_set() and not await self._should_lead(warm):
                if self._snapshots.overdue(warm.engine):
                    await self._snapshots.save(warm)
                await self._rest()
                if follower.done():
                    await follower
        finally:
            await ended(follower)
        return warm

    async def _rest(self) -> None:
        """Wait before the next look at the heartbeats, or until the leader's process is gone from this machine."""
        seconds = self._pace.beat / 2
        beat = self._watch.beat
        looks = LOOKS if beat is not None and beat.process else 1
        for _ in range(looks):
            await self._pause(seconds / looks)
            if self._stopping.is_set() or self._watch.gone:
                return

    async def _should_lead(self, warm: Replica) -> bool:
        """Tell whether nobody leads and it is for this process to do so."""
        if self.outdated:
            if not self._told_outdated:
                self._told_outdated = True
                self._log.critical("standing by", reason=self.outdated)
            return False
        sight = await self._watch.look(warm.reader.tip)
        self._led_by_other = sight == "led"
        if sight == "led":
            return False
        if self._assigned():
            return True
        # Those who are assigned go first, and when nothing was ever led they may still be on their
        # way; the others come in when nobody did. The one that is surely gone was most likely the
        # assigned one.
        beat, lease = self._pace.beat, self._pace.lease
        never = sight == "open" and self._watch.beat is None
        patience = (
            lease + beat
            if never or sight == "silent"
            else beat / 2
            if sight == "dead"
            else 2 * beat
        )
        return self._watch.age >= patience

    # --------------------------------------------------------------------------------------- leader

    def _inbox_of(self, warm: Replica) -> Callable[[Head], Awaitable[str]]:
        """Return what names the inbox of the log for a new term, or refuses to lead with the one that is there."""

        async def named(head: Head) -> str:
            return await must_read(self._streams.inbox, head, warm.engine.state.remembers)

        return named

    async def _compare_clocks(self) -> None:
        """Hold the clock of this machine against that of the log before anything is stamped by it.

        Once for a process: from then on it knows how much time has passed, and each heartbeat of a
        leader tells.
        """
        if not self._compared:
            self._clock.heed(await self._streams.log.clock())
            self._compared = True

    def _tell_if_ahead(self, head: Head) -> None:
        """Say that the log was led by a clock that was ahead: its time goes on from there, at the pace of a right one."""
        ahead = head.time - self._clock.now()
        if ahead > AHEAD_MS:
            self._log.error("log ahead", frame=head.frame, by_ms=ahead)

    async def _keep_evidence(self, warm: Replica) -> None:
        """Leave a file about the failure that ended the term before, now that the state before it is there again."""
        evidence, self._containment.evidence = self._containment.evidence, None
        if evidence is not None and self._snapshots.folder is not None:
            head = warm.reader.head
            await asyncio.to_thread(keep, self._snapshots.folder, head, warm.engine, evidence)

    async def _keep_last_evidence(self) -> None:
        """Leave a file about the failure for which the partition was given up: no next term will."""
        if self._snapshots.folder is None:
            return
        log = self._streams.log
        try:
            warm = await self._snapshots.begin(log)
            await warm.catch_up(log)
        except Exception as error:  # noqa: BLE001 - the failure that matters was told already
            self._log.warning("bundle not written", reason=in_short(f"{error}"))
        else:
            await self._keep_evidence(warm)

    async def _lead(self, warm: Replica) -> None:
        """Open a term and lead until stopped, asked to resign, or overtaken."""
        self._led_by_other = False
        await self._compare_clocks()
        world = replace(self._world, rules=warm.rules, inbox=self._inbox_of(warm))
        leadership = await Leadership.acquire(self._streams.log, warm.reader, warm.apply, world)
        self._retries = 0
        self._term = term = LeaderTerm(
            self._streams, warm, leadership, self._clock, self._pace, self._containment
        )
        term.others, term.contained = self._others, self._contained
        self.role = "leading"
        self._tell_if_ahead(leadership.head)
        await self._keep_evidence(warm)
        self._log.info(
            "leading", term=leadership.term, leader=leadership.leader, frame=leadership.head.frame
        )
        try:
            if self._stopping.is_set():
                term.over.set()
            await term.run(self._snapshots)
        finally:
            self._term, self.role = None, "starting"
            self._watch.given_up(leadership.leader)
            self._head = leadership.head
            if term.torn:
                self._warm = None
            if term.steps:
                self._faults = 0
        self._log.info("resigned", term=leadership.term, frame=leadership.head.frame)
        await self._snapshots.save(warm)

"""Following the log: the read model and the state at its end, kept in a room of their own.

The read model is folded with the reducer of the scheduler, so its state is the one that `latest`
is answered from. Steps are handed to the server's thread as they are read (`evsched.api.tail`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from events.chain import ChainReader, Head, RecordedStep
from events.errors import StreamError
from events.streams.private_files import make_folder
from events.streams.protocols import EventLog
from events.streams.reading import read_steps
from evsched.api.heads import Heads
from evsched.api.metrics.fold import MetricsFold
from evsched.api.problems import what_failed
from evsched.api.told import ToldStep
from evsched.core import snapshot
from evsched.core.state import State
from evsched.snapshots.store import Header, SnapshotStore
from evsched.snapshots.subjects import SubjectIndex
from projections.following import Follower
from projections.read_model import Overtaken, ReadModel, Rebuild, RebuildNeeded, remove
from replays.history.about import about
from replays.history.rebuild import History

AGAIN_S = 2.0
"""After how long reading begins again when the log could not be read."""

SNAPSHOT_EVERY = 20_000
"""Events between two snapshots of this server, where whoever leads leaves none."""

_log = structlog.get_logger(__name__)


class Beside(NamedTuple):
    """What is kept beside a log.

    Attributes:
        model: File of its read model.
        snapshots: None: there are none, and none are made.
        subjects: Where the log speaks of whom; None: all of it is read to find out.
    """

    model: Path
    snapshots: SnapshotStore | None
    subjects: SubjectIndex | None = None


class Keeper:
    """Keeps the read model of a log, and tells of every step.

    Attributes:
        model: None before there is one: the log is empty, or is being read for the first time.
        path: Of the file; None before the log's id is known.
        fold: What is counted of the log, kept in the read model.
    """

    def __init__(
        self,
        log: EventLog,
        beside: Callable[[str], Beside],
        tell: Callable[[Head, list[ToldStep]], None],
        say: Callable[[bool, str], None],
        heads: Heads,
    ) -> None:
        """Prepare.

        Args:
            log: Opened in the room in which this is used.
            beside: From the log's id to what is kept beside it.
            tell: Hears of the head and of the steps before it, some at a time, each step once.
            say: Hears whether all is read that was there at the start, and what is wrong.
            heads: Hears of the heads of the steps that are read.
        """
        self.model: ReadModel | None = None
        self.path: Path | None = None
        self.log_id = ""
        self.fold = MetricsFold()
        self._store: SnapshotStore | None = None
        self._log = log
        self._beside = beside
        self._tell = tell
        self._say = say
        self._heads = heads
        self._fresh: list[ToldStep] = []
        self._follower: Follower | None = None
        self._told = 0
        self._saved = 0
        self._anew = False

    @property
    def state(self) -> State:
        """The state after the last step that was read."""
        return self.model.state if self.model is not None else State()

    async def run(self) -> None:
        """Follow the log until it is cancelled; what goes wrong is said, and tried again."""
        while True:
            try:
                await self._follow()
            except Overtaken as error:
                _log.warning("read model opened again", reason=what_failed(error))
            except RebuildNeeded as error:
                self._anew = True
                _log.warning("read model made anew", reason=what_failed(error))
            except (StreamError, OSError) as error:
                _log.warning("log read again", reason=what_failed(error))
                self._say(False, what_failed(error))
                await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        await self._begun()
        model = self.model = await self._opened()
        try:
            follower = self._follower = Follower(self, self._log)
            reader = await follower.reader()
            await follower.catch_up(reader)
            self._hand_over()
            self._tell(model.at, [])
            self._say(True, "")
            await follower.keep_up(reader)
        finally:
            self._follower = None
            model.close()

    def write_down(self, seq: int) -> None:
        """Have the file of the read model hold everything up to an event that was read."""
        follower, model = self._follower, self.model
        if follower is not None and model is not None and model.committed.next_seq <= seq:
            follower.commit()

    async def _begun(self) -> None:
        """Return when the log has a first frame, and with it an id."""
        if self.log_id:
            return
        history = History(self._log)
        self.log_id = await history.log_id()
        if self.log_id:
            return
        self._say(True, "")
        async with aclosing(self._log.follow()) as batches:
            async for _ in batches:
                self.log_id = await history.log_id()
                if self.log_id:
                    return

    async def _opened(self) -> ReadModel:
        """Return the read model, made anew where it does not fit."""
        beside = self._beside(self.log_id)
        path = self.path = beside.model
        self._store = beside.snapshots
        await asyncio.to_thread(make_folder, path.parent)
        if path.exists() and not self._anew:
            return ReadModel(path, self.log_id, fold=self.fold)
        rebuild = Rebuild(path, self.log_id, self.fold)
        try:
            async with aclosing(read_steps(self._log, ChainReader())) as batches:
                async for steps in batches:
                    for step in steps:
                        rebuild.take(step)
                        self._heads.note(step.head)
                        self._leave_snapshot(rebuild)
            rebuild.finish()
            self._anew = False
        except BaseException:
            remove(Rebuild.draft_of(path))
            raise
        finally:
            rebuild.close()
        return ReadModel(path, self.log_id, fold=self.fold)

    # ------------------------------------------------------------------ what a `Follower` keeps up

    @property
    def at(self) -> Head:
        """See `projections.following.Projection`."""
        assert self.model is not None
        return self.model.at

    @property
    def resume_at(self) -> Head:
        """See `projections.following.Projection`."""
        assert self.model is not None
        return self.model.resume_at

    def take(self, step: RecordedStep) -> None:
        """Take a complete step, and tell of it soon."""
        assert self.model is not None
        self._heads.note(step.head)
        if step.head.frame <= self._told:
            self.model.take(step)  # told before the file was opened again
            return
        # What ends is known before the step, what begins behind it.
        before = {event.seq: about(event, (self._belongs,)) for event in step.events}
        self.model.take(step)
        self._told = step.head.frame
        told = ToldStep(
            step,
            [before[event.seq].and_also(about(event, (self._belongs,))) for event in step.events],
        )
        if not self._fresh:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._fresh.append(told)

    def _belongs(self, name: str) -> tuple[str, str] | None:
        """Return application and queue of an ask or allocation of the state as it is now."""
        state = self.state
        found = state.asks.get(name) or state.allocations.get(name)
        return (found.application, found.queue) if found is not None else None

    def commit(self) -> None:
        """See `projections.following.Projection`."""
        assert self.model is not None
        self.model.commit()
        self._leave_snapshot(self.model)

    def _hand_over(self) -> None:
        fresh, self._fresh = self._fresh, []
        if fresh:
            self._tell(self.at, fresh)

    def _leave_snapshot(self, model: ReadModel) -> None:
        """Leave a snapshot now and then, so that moments between two of them are soon found."""
        state, head = model.state, model.at
        if self._store is None or state.seq - self._saved < SNAPSHOT_EVERY:
            return
        self._saved = state.seq
        data = snapshot.encode(state)
        with suppress(OSError):  # no snapshot is worth an answer
            self._store.save(Header(head=head), data)

"""The past of a log: its state at any moment, and the steps on the way.

A `History` reads a log from the newest usable snapshot before the moment that is asked for, else
from the beginning. Every digest that the log carries is compared with the state as it passes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING

from events.chain import ChainReader, RecordedStep
from events.errors import PositionLost
from events.streams.reading import resume
from evsched.core.engine import Engine
from evsched.core.recorded import apply_recorded
from evsched.core.tallies import uncounted
from replays.history.moments import END, Moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from events.streams.protocols import EventLog
    from evsched.snapshots.store import SnapshotStore
    from evsched.snapshots.subjects import SubjectIndex


NEAR = 20_000
"""Over so many events tallies and indices are kept rather than made anew: that costs as much at 50,000 allocations."""


def apply_step(engine: Engine, step: RecordedStep, until_seq: int | None = None) -> None:
    """Apply the events of a step, those after ``until_seq`` not; compare the digests it carries.

    Where no event is applied, no time passes either.

    Raises:
        LogDamaged: See `apply_recorded`.
    """
    whole = until_seq is None or step.head.next_seq - 1 <= until_seq
    events = (
        step.events
        if whole
        else [event for event in step.events if until_seq is not None and event.seq <= until_seq]
    )
    if events:
        apply_recorded(engine, events, step.time, step.head.position)
    if whole:
        engine.state.time = step.time


def _is_later(step: RecordedStep, seq: int | None, time: int | None) -> bool:
    """Tell whether a step ends after a ``seq`` or a time; None: no bound."""
    return (time is not None and step.time > time) or (
        seq is not None and step.head.next_seq - 1 > seq
    )


def _counting(engine: Engine, until_seq: int | None) -> AbstractContextManager[None]:
    """Return the block in which to go on to a ``seq``: with tallies, where they are there and it is near."""
    state = engine.state
    near = until_seq is not None and until_seq - state.seq <= NEAR
    return nullcontext() if state.counting and state.seq and near else uncounted(state)


class History:
    """The past of one log.

    Attributes:
        log: To be read.
        subjects: Where it speaks of whom; None: all of it is read to find out.
    """

    def __init__(
        self,
        log: EventLog,
        store: SnapshotStore | None = None,
        warn: Callable[[str], None] | None = None,
        subjects: SubjectIndex | None = None,
    ) -> None:
        """Take a log as it is.

        Args:
            log: To be read.
            store: Snapshots to start from; None: there are none.
            warn: Hears of snapshots that do not fit.
            subjects: Where the log speaks of whom; None: all of it is read to find out.
        """
        self.log = log
        self.subjects = subjects
        self._store = store
        self._warn = warn or (lambda _: None)

    async def start(
        self, before_seq: int | None = None, before_time: int | None = None
    ) -> tuple[Engine, ChainReader]:
        """Return an engine and the reader that goes on behind its state: from a snapshot not after the moment, else new ones.

        The state may come without tallies: go on in a block of `evsched.core.tallies.uncounted`.
        """
        if self._store is None or not self._store.paths():
            return Engine(), ChainReader()
        log_id = await self.log_id()
        for header, state in self._store.usable(log_id, before_seq, before_time):
            try:
                reader = await resume(self.log, header.head)
            except PositionLost as error:
                self._warn(f"snapshot of frame {header.head.frame}: {error.reason}")
                continue
            return Engine(state), reader
        return Engine(), ChainReader()

    def use(self, store: SnapshotStore, subjects: SubjectIndex | None = None) -> None:
        """Start from the snapshots in ``store`` from now on, and find subjects through an index."""
        self._store, self.subjects = store, subjects

    async def log_id(self) -> str:
        """Return the id of the log, from its first frame; empty when it has none."""
        reader = ChainReader()
        async with aclosing(self.log.read()) as batches:
            async for batch in batches:
                for record in batch:
                    reader.accept(record.data, record.position)
                    if reader.tip.log_id:
                        return reader.tip.log_id
        return ""

    async def steps(
        self, reader: ChainReader | None = None, until: Moment = END
    ) -> AsyncIterator[RecordedStep]:
        """Yield the steps behind a reader (all of them for a new one), up to the end of the log as it is now.

        Records are decoded one by one, so that all steps before a damaged record come out, and none
        after the last one wanted is read.

        Args:
            reader: It is moved on.
            until: Steps that end after this moment are left out.
        """
        reader = reader or ChainReader()
        seq, time = await self._bounds(until)
        async with aclosing(self.log.read(after=reader.tip.position)) as batches:
            async for batch in batches:
                for record in batch:
                    step = reader.accept(record.data, record.position)
                    if step is not None:
                        if _is_later(step, seq, time):
                            return
                        yield step
                    del step  # its memory serves the next one, where whoever took it let it go, too

    async def end_time(self) -> int:
        """Return the time of the last frame, 0 for an empty log."""
        _, reader = await self.start()
        time = reader.tip.time
        async for step in self.steps(reader):
            time = step.time
        return time

    async def at(self, moment: Moment) -> Engine:
        """Return an engine with the state at a moment; the end of the log when the moment is later."""
        engine, _ = await self.before_step(moment)
        return engine

    async def boundary(
        self, moment: Moment, behind: tuple[Engine, ChainReader] | None = None
    ) -> tuple[Engine, ChainReader]:
        """Return the state after the last complete step that ended by a moment, and the reader that goes on behind it.

        Args:
            moment: Of the log.
            behind: An earlier answer, to a moment that is not later; it is moved on, where no
                snapshot is nearer. None: there is none.
        """
        seq, time = await self._bounds(moment)
        engine, reader = await self._nearest(seq, time, behind)
        head, ignored = reader.head, reader.ignored
        with _counting(engine, seq):
            if seq == reader.head.next_seq - 1:
                return engine, reader
            async for step in self.steps(reader):
                if _is_later(step, seq, time):
                    break
                apply_step(engine, step)
                head, ignored = step.head, reader.ignored
                del step
        after = ChainReader(head)
        after.ignored = ignored
        return engine, after

    async def _nearest(
        self, seq: int | None, time: int | None, behind: tuple[Engine, ChainReader] | None
    ) -> tuple[Engine, ChainReader]:
        """Return where to start from: what is ``behind``, unless a snapshot lies between it and the bounds."""
        if behind is None:
            return await self.start(seq, time)
        newest = None if self._store is None else self._store.newest(seq, time)
        return (
            behind
            if newest is None or newest <= behind[0].state.seq
            else await self.start(seq, time)
        )

    async def absolute(self, moment: Moment) -> Moment:
        """Return a moment that does not depend on where the log ends: its time, where it lies before the end."""
        if moment.before_end_ms is None:
            return moment
        return Moment(time=await self.end_time() - moment.before_end_ms)

    async def _bounds(self, moment: Moment) -> tuple[int | None, int | None]:
        """Return the last ``seq`` and the last time that belong to a moment; None: no bound."""
        found = await self.absolute(moment)
        return found.seq, found.time

    async def before_step(
        self, moment: Moment, behind: tuple[Engine, ChainReader] | None = None
    ) -> tuple[Engine, ChainReader]:
        """Return the state at a moment and the reader that stands behind the last step that was applied to it.

        ``behind`` is as of `boundary`.
        """
        seq, time = await self._bounds(moment)
        engine, reader = await self._nearest(seq, time, behind)
        with _counting(engine, seq):
            if seq == reader.head.next_seq - 1:
                return engine, reader
            async for step in self.steps(reader):
                if time is not None and step.time > time:
                    break
                apply_step(engine, step, seq)
                if seq is not None and step.head.next_seq > seq:
                    break
                del step
        return engine, reader

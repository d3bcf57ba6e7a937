"""A warm state: the engine and the reader that goes on behind it, kept together.

Every step goes into the engine in the same breath in which the reader accepts it, so wherever the
work is interrupted the two agree, and going on is just reading on. Long work gives the event loop
back every few milliseconds, because other cluster partitions of this process may be led from the
same loop.

Every digest that the log carries is compared as it passes; a state that has another one stops
there.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import structlog

from events.chain import ChainReader, Head, RecordedStep
from events.errors import LogDamaged, PositionLost
from events.frame import UNREADABLE, decode_frame
from events.streams.private_files import plain_name
from events.streams.protocols import EventLog, Record
from events.streams.reading import resume
from events.vocabulary import CheckpointRecorded
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.recorded import apply_recorded
from evsched.core.tallies import uncounted
from evsched.service.ending import ended
from evsched.service.threads import by_thread, is_large
from evsched.snapshots.disk import Disk
from evsched.snapshots.store import KEPT, Header, SnapshotStore
from evsched.snapshots.subjects import SubjectIndex
from replays.history.finding import lengthen
from replays.history.rebuild import History

SNAPSHOT_EVERY = 50_000
"""Events between two snapshots: so few that any moment between them is soon found."""
SLICE_S = 0.02
"""How long a rebuild works before it lets others work."""
COLLECT_AFTER = 50_000
"""Objects made between two runs of the garbage collector; the state itself is no garbage and is left out of them."""

_log = structlog.get_logger(__name__)


class Replica:
    """A state that is as new as what was read of the log.

    Attributes:
        engine: With the state after the last complete step.
        reader: Stands behind that step.
        began: After which event: that of the snapshot; 0: at the beginning of the log.
    """

    def __init__(self, engine: Engine | None = None, reader: ChainReader | None = None) -> None:
        """Begin with what a snapshot holds, or before the first frame."""
        self.engine = engine or Engine()
        self.reader = reader or ChainReader()
        self.began = self.engine.state.seq
        self._still = asyncio.Lock()

    def apply(self, step: RecordedStep) -> None:
        """Apply a step that the reader has accepted.

        Raises:
            StateDiffers: See `apply_recorded`.
        """
        apply_recorded(self.engine, step.events, step.time, step.head.position)
        self.engine.state.time = step.time

    def rules(self) -> tuple[int, int]:
        """Return the versions of the rules in force and of the record that digests cover.

        Raises:
            WrittenByNewer: This release does not know these rules.
        """
        rules = self.engine.state.rules
        return rules.version, rules.record

    async def catch_up(self, log: EventLog) -> None:
        """Read up to the end of the log as it is now. Tallies are there when this is done or was interrupted, not before."""
        with uncounted(self.engine.state):
            await self._take(log.read(after=self.reader.tip.position))

    async def keep_up(self, log: EventLog) -> None:
        """Read what is written from now on; never ends by itself."""
        await self._take(log.follow(after=self.reader.tip.position))

    async def _take(self, records: AsyncGenerator[Sequence[Record], None]) -> None:
        begun = time.monotonic()
        async with aclosing(records) as batches:
            async for batch in batches:
                async with self._still:
                    for position, data in batch:
                        step = self.reader.accept(data, position)
                        if step is not None:
                            await self._apply(step)
                        del step  # its memory serves the next one
                        if time.monotonic() - begun > SLICE_S:
                            await asyncio.sleep(0)
                            begun = time.monotonic()

    async def _apply(self, step: RecordedStep) -> None:
        """Apply a step, by a thread where a digest of a large state is compared; a checkpoint is the last event of its step."""
        ends = type(step.events[-1]) if step.events else None
        if ends is CheckpointRecorded and is_large(self.engine.state):
            await by_thread(partial(self.apply, step))
        else:
            self.apply(step)

    async def encoded(self) -> tuple[Head, bytes]:
        """Return the bytes of the state for a snapshot, and the head that it belongs to; nothing is applied meanwhile."""
        async with self._still:
            state = self.engine.state
            work = partial(snapshot.encode, state)
            data = await by_thread(work) if is_large(state) else work()
            return self.reader.head, data


class Snapshots:
    """Where a member begins, and where it leaves a mark for the next one."""

    def __init__(
        self,
        folder: Path | None = None,
        every: int = SNAPSHOT_EVERY,
        disk: Disk | None = None,
        kept: int = KEPT,
    ) -> None:
        """Keep a snapshot about every ``every`` events, in a folder of its own for each log.

        Args:
            folder: Holds those folders; None: keep none.
            every: Events.
            disk: What is written to; None: the real one.
            kept: How many of a log stay at most.
        """
        self.folder = folder
        self._kept = kept
        self._disk = disk
        self._every = every
        self._last = 0
        self._trusted = True
        self._log: EventLog | None = None
        self._writing: asyncio.Task[None] | None = None
        self._indexing: asyncio.Task[None] | None = None

    def distrust(self) -> None:
        """Begin at the beginning of the log from now on: a state from a snapshot did not fit the log."""
        self._trusted = False

    async def begin(self, log: EventLog) -> Replica:
        """Return a state from the newest snapshot that fits the log, or an empty one; `Replica.catch_up` comes next."""
        self._log = log
        store = self._store(await _log_id(log)) if self.folder is not None else None
        if store is not None and self._trusted:
            for header, state in store.usable(store.folder.name):
                try:
                    reader = await resume(log, header.head)
                except PositionLost as error:
                    _log.warning(
                        "snapshot passed over", frame=header.head.frame, reason=error.reason
                    )
                    continue
                self._last = header.seq
                return Replica(Engine(state), reader)
        self._last = 0
        return Replica()

    def overdue(self, engine: Engine) -> int:
        """Return how many times over a snapshot is due; 0: not yet."""
        return (engine.state.seq - self._last) // self._every if self.folder is not None else 0

    async def save(self, warm: Replica) -> None:
        """Write a snapshot of a state that is at the end of a complete step.

        Returns when the state was encoded, until when nothing may change it; a thread writes the
        file.
        """
        store = self._store(warm.reader.head.log_id)
        if (
            store is None
            or warm.engine.state.seq == self._last
            or (self._writing is not None and not self._writing.done())
        ):
            return
        self._last = warm.engine.state.seq
        head, data = await warm.encoded()
        self._writing = asyncio.create_task(asyncio.to_thread(_write, store, head, data))
        if self._log is not None and (self._indexing is None or self._indexing.done()):
            self._indexing = asyncio.create_task(_index(store.folder, self._log))

    async def close(self) -> None:
        """Wait until no snapshot is being written; the index of subjects goes on another time."""
        if self._indexing is not None:
            await ended(self._indexing)
        if self._writing is not None:
            await self._writing

    def _store(self, log_id: str) -> SnapshotStore | None:
        name = plain_name(log_id)
        if self.folder is None or name is None:
            return None
        return SnapshotStore(
            self.folder / name,
            lambda text: _log.warning("snapshot passed over", reason=text),
            self._disk,
            self._kept,
        )


def _write(store: SnapshotStore, head: Head, data: bytes) -> None:
    """Write a snapshot; when that fails, an older one or the log serves."""
    try:
        store.save(Header(head=head), data)
    except Exception as error:  # noqa: BLE001 - no snapshot is worth a leader
        _log.warning("snapshot not written", frame=head.frame, reason=str(error))


async def _index(folder: Path, log: EventLog) -> None:
    """Bring the index of subjects up to the end of the log; when that fails, questions read the log itself."""
    index = SubjectIndex(folder, lambda text: _log.warning("index passed over", reason=text))
    try:
        await lengthen(History(log, subjects=index))
    except Exception as error:  # noqa: BLE001 - no index is worth a leader
        _log.warning("index not written", reason=str(error))


async def _log_id(log: EventLog) -> str:
    """Return the id of a log from its first frame; empty when it has none."""
    async with aclosing(log.read()) as batches:
        async for batch in batches:
            try:
                return decode_frame(batch[0].data).log_id
            except UNREADABLE as error:
                raise LogDamaged(batch[0].position, f"no frame can be read: {error}") from error
    return ""


def settle() -> None:
    """Tell the garbage collector that what was just built stays: it need not look through a large state again and again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)

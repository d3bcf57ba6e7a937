"""A follower that keeps a projection as new as its log, committing in batches.

What is taken is committed when there is much of it, or a moment after it came. Everything is taken
a whole step at a time in one thread, so wherever the follower is stopped what it commits is
complete.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from events.errors import PositionLost
from events.streams.reading import resume
from projections.read_model import RebuildNeeded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from events.chain import ChainReader, Head, RecordedStep
    from events.streams.protocols import EventLog, Record

COMMIT_AFTER_EVENTS = 20_000
COMMIT_AFTER_S = 0.1
"""So much, or so long after the first of it, is committed together."""


class Projection(Protocol):
    """What is made of a log."""

    @property
    def at(self) -> Head:
        """The place up to which steps were taken."""

    @property
    def resume_at(self) -> Head:
        """The place after which the log must be read when it was opened."""

    def take(self, step: RecordedStep) -> None:
        """Take a complete step."""

    def commit(self) -> None:
        """Keep all that was taken, and the place."""


class Follower:
    """Keeps one projection up to date with one log."""

    def __init__(
        self, projection: Projection, log: EventLog, progress: Callable[[int], None] | None = None
    ) -> None:
        """Begin where the projection stands; ``progress`` is told the position of every record."""
        self._projection = projection
        self._log = log
        self._progress = progress
        self._committed = projection.at.next_seq
        self._waiting: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._failure: Exception | None = None

    async def reader(self) -> ChainReader:
        """Return the reader that goes on behind the projection.

        Raises:
            RebuildNeeded: The log has another frame there, or none.
        """
        try:
            return await resume(self._log, self._projection.resume_at)
        except PositionLost as error:
            message = f"projection: frame {self._projection.resume_at.frame} is not in this log: {error.reason}"
            raise RebuildNeeded(message) from error

    async def catch_up(self, reader: ChainReader) -> None:
        """Take all that is in the log now and commit it."""
        await self._take(reader, self._log.read(after=reader.tip.position))
        self.commit()

    async def keep_up(self, reader: ChainReader) -> None:
        """Take what is written from now on; never ends by itself.

        When it is cancelled, what was taken is committed: that happens between two steps. When it
        fails it may be within one, and nothing more is committed: what was taken may be half
        written, and a second attempt would leave out that half.
        """
        self._task = asyncio.current_task()
        try:
            await self._take(reader, self._log.follow(after=reader.tip.position), soon=True)
        except asyncio.CancelledError:
            if self._failure is not None:
                raise self._failure from None
            self.commit()
            raise
        finally:
            if self._waiting is not None:
                self._waiting.cancel()

    async def _take(
        self,
        reader: ChainReader,
        records: AsyncGenerator[Sequence[Record], None],
        *,
        soon: bool = False,
    ) -> None:
        projection = self._projection
        async with aclosing(records) as batches:
            async for batch in batches:
                for record in batch:
                    step = reader.accept(record.data, record.position)
                    if step is not None:
                        projection.take(step)
                    if self._progress is not None:
                        self._progress(record.position)
                if soon and projection.at.next_seq - self._committed >= COMMIT_AFTER_EVENTS:
                    self.commit()
                elif soon and self._waiting is None and projection.at.next_seq > self._committed:
                    self._waiting = asyncio.get_running_loop().call_later(
                        COMMIT_AFTER_S, self._commit_or_end
                    )

    def _commit_or_end(self) -> None:
        """Commit what was taken; nobody calls a timer, so what goes wrong has to end the following."""
        try:
            self.commit()
        except Exception as error:  # noqa: BLE001 - whatever it is, `keep_up` raises it
            self._failure = error
            if self._task is not None:
                self._task.cancel()

    def commit(self) -> None:
        """Commit what was taken."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._projection.at.next_seq > self._committed:
            self._projection.commit()
            self._committed = self._projection.at.next_seq

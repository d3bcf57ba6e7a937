"""Steps into records: a log written anew, frame by frame, as a leader would have written it.

What is sealed here is a log of its own (another ``log_id``): an anonymised one, a recording of a
simulation. The frames are made by `events.chain`, and every one is read back before the next one is
made, so that nothing comes out that a reader would refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.chain import ChainReader, Sealed, cut_into_frames, fence
from events.streams.protocols import Record
from events.vocabulary import LeaderStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from events.vocabulary import AnyEvent


class Sealer:
    """Writes one log.

    Attributes:
        reader: Has read what was sealed so far.
    """

    def __init__(self, log_id: str) -> None:
        """Begin an empty log with this id."""
        self.reader = ChainReader()
        self._log_id = log_id

    def seal(
        self, time: int, events: tuple[AnyEvent, ...], *, decided: bool = True, inbox_next: int = 0
    ) -> Iterator[Record]:
        """Yield the records of one step.

        Args:
            time: When it was taken, milliseconds.
            events: With their ``seq``; those of a fence are one LeaderStarted, which must be of the
                next term.
            decided: Whether the step decided.
            inbox_next: Position of the next proposal to read after it; it goes back only with an
                InboxAttached.
        """
        first = events[0] if events else None
        frames: tuple[Sealed, ...]
        if isinstance(first, LeaderStarted):
            opened = fence(self.reader, first, log_id=self._log_id, time=time)
            frames = (opened,)
        else:
            frames = cut_into_frames(
                self.reader.head, events, time=time, decided=decided, inbox_next=inbox_next
            )
        for sealed in frames:
            record = Record(self.reader.tip.position + 1, sealed.data)
            self.reader.accept(record.data, record.position)
            yield record

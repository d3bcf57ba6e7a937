"""What a leader's sign of life, or a hash that somebody kept, proves about a log.

The hash in every frame covers what stands before it, so nothing covers the last one, and a log
whose tail was cut off still holds together. The heartbeat lies elsewhere and carries the head of
the log as its leader last knew it: the log must contain that frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events.errors import LogDamaged
from events.streams.protocols import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.chain import Head


class KnownEnds(Struct, frozen=True):
    """What is known of the ends that a log had before.

    Attributes:
        beat: The latest heartbeat; None: there is none.
        hashes: Of ends of steps that the log must contain.
    """

    beat: Heartbeat | None
    hashes: tuple[str, ...] = ()

    def not_in(self, parts: Iterable[tuple[str, ...]]) -> KnownEnds:
        """Return the same without the hashes that some part of a log contains; each part names those it does not."""
        missing = set(self.hashes).intersection(*parts)
        return KnownEnds(self.beat, tuple(one for one in self.hashes if one in missing))


class TailCheck:
    """Compares a log, as it is read, with what was known of it before."""

    def __init__(self, known: KnownEnds) -> None:
        """Begin before the first step."""
        beat = known.beat
        self._head = beat.head if beat is not None and beat.head.frame else None
        self._hashes = dict.fromkeys(known.hashes)

    @property
    def missing(self) -> tuple[str, ...]:
        """The hashes that were not seen yet."""
        return tuple(self._hashes)

    def see(self, head: Head) -> None:
        """Compare the end of a step.

        Raises:
            LogDamaged: The frame that the leader named is another one.
        """
        self._hashes.pop(head.hash, None)
        known = self._head
        if known is None or head.frame < known.frame:
            return
        self._head = None
        if head.frame == known.frame and head.hash != known.hash:
            raise LogDamaged(
                head.position,
                f"frame {head.frame} has hash {head.hash}, its leader knew it as {known.hash}",
            )

    def end(self, head: Head) -> None:
        """Compare the end of the log.

        Raises:
            LogDamaged: It lost frames that its leader had written.
        """
        known = self._head
        if known is not None and head.frame < known.frame:
            reason = f"the log ends with frame {head.frame}, its leader had written frame {known.frame}: the tail is gone"
            raise LogDamaged(head.position + 1, reason)
        for missing in self._hashes:
            raise LogDamaged(
                -1,
                f"no step ends with a frame of hash {missing}: this is not the log that it was kept of",
            )

"""Where in the log to begin to read: heads of steps that were passed, some events apart."""

from __future__ import annotations

from bisect import bisect_right

from events.chain import START, Head

APART = 4_000
"""Events between two heads that are kept."""


class Heads:
    """Heads of one log, in the order of their seq; they cost little, so none is forgotten."""

    def __init__(self) -> None:
        self._heads = [START]
        self._seqs = [0]

    def note(self, head: Head) -> None:
        """Keep the head of a step that was read, where there is none near before it."""
        seq = head.next_seq - 1
        at = bisect_right(self._seqs, seq)
        if seq - self._seqs[at - 1] >= APART:
            self._seqs.insert(at, seq)
            self._heads.insert(at, head)

    def before(self, seq: int) -> Head:
        """Return the last one of a step that ended by a seq."""
        return self._heads[bisect_right(self._seqs, seq) - 1]

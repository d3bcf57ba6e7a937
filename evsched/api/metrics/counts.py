"""Counters and histograms that can be kept and taken up again.

Each remembers the event that moved it last, which is shown as its exemplar. The number of label
values is bounded: what comes later than that many is counted together, under `OTHER`.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec
from msgspec import Struct

VERSION = 1
"""Of what is kept; another one is counted anew from the log."""

OTHER = "other"
MOST_SERIES = 2000
"""How many combinations of labels one counter has."""

SPANS_MS = (
    100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 14_400_000, 86_400_000,
)  # fmt: skip
"""Upper bounds of the buckets of histograms."""

Labels = tuple[str, ...]


class Tally(Struct, gc=False):
    """A counter; ``seq`` and ``time`` (milliseconds) are of the event that moved it last."""

    value: int = 0
    seq: int = 0
    time: int = 0


class Spread(Struct):
    """A histogram of spans.

    Attributes:
        buckets: How many in each, one more than there are bounds.
        last: For each bucket the ``seq`` and span of the last one in it.
        sum_ms: Of all.
    """

    buckets: list[int]
    last: list[tuple[int, int]]
    sum_ms: int = 0


class Counts(Struct):
    """All that is kept.

    Attributes:
        tallies, spreads: By name, then labels.
        unmet: Queue and resource to amount-milliseconds of its guarantee that were not met, up to
            when its shortage last changed.
        deadlines: Queue to when its quota is enforced, milliseconds.
        compared: The last checkpoint whose digest was that of the state.
    """

    version: int = VERSION
    tallies: dict[str, dict[Labels, Tally]] = {}
    spreads: dict[str, dict[Labels, Spread]] = {}
    unmet: dict[tuple[str, str], int] = {}
    deadlines: dict[str, int] = {}
    compared: int = 0

    def add(self, name: str, labels: Labels, seq: int, time: int, by: int = 1) -> None:
        """Count something that an event did."""
        series = self.tallies.setdefault(name, {})
        tally = series.get(labels)
        if tally is None:
            if len(series) >= MOST_SERIES:
                labels = (OTHER,) * len(labels)
            tally = series.setdefault(labels, Tally())
        tally.value += by
        tally.seq, tally.time = seq, time

    def observe(self, name: str, labels: Labels, seq: int, span_ms: int) -> None:
        """Count a span; one below nothing counts as nothing."""
        series = self.spreads.setdefault(name, {})
        spread = series.get(labels)
        if spread is None:
            if len(series) >= MOST_SERIES:
                labels = (OTHER,) * len(labels)
            empty = Spread([0] * (len(SPANS_MS) + 1), [(0, 0)] * (len(SPANS_MS) + 1))
            spread = series.setdefault(labels, empty)
        span = max(span_ms, 0)
        at = bisect_left(SPANS_MS, span)
        spread.buckets[at] += 1
        spread.last[at] = (seq, span)
        spread.sum_ms += span

    def series(self, name: str) -> dict[Labels, Tally]:
        """Return the counters of a name, by their labels."""
        return self.tallies.get(name, {})


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Counts)


def encode(counts: Counts) -> bytes:
    """Return what is kept as bytes."""
    return _encoder.encode(counts)


def decode(data: bytes) -> Counts | None:
    """Return what was kept; None where another version wrote it, or nobody did."""
    try:
        found = _decoder.decode(data)
    except msgspec.MsgspecError:
        return None
    return found if found.version == VERSION else None

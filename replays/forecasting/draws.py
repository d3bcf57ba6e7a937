"""Chance for forecasts: a number for each seed, run and subject, the same on every machine.

What is drawn for one subject does not depend on what was drawn before it. So two runs of one number
that differ in the configuration they try have the same lives and the same arrivals, and what they
differ by comes from the configuration.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

_BITS = 64


class Draws(NamedTuple):
    """The draws of one run.

    Attributes:
        seed: Of the forecast.
        run: From 0.
    """

    seed: int
    run: int

    def below(self, bound: int, subject: str) -> int:
        """Return a number from 0 to below ``bound``, which is at least 1; all are as likely but for one part in 2**64."""
        text = f"{self.seed}/{self.run}/{subject}".encode()
        drawn = int.from_bytes(blake2b(text, digest_size=_BITS // 8).digest())
        return drawn * bound >> _BITS


def ranked(values: list[int], count: int, percent: int) -> int | None:
    """Return the percentile of ``count`` outcomes of which these have a value and the others are later than all.

    Ranks are parts of ``count`` + 1, rounded away from the middle: what comes out at last is as
    likely to be one outcome more as any, so that the band from the 10th to the 90th percentile
    holds it with a chance of at least 80 %, as long as there are 9 outcomes or more.

    Returns:
        None: one of the others, or there are no outcomes.
    """
    scaled = (count + 1) * percent
    rank = scaled // 100 if percent <= 50 else -(-scaled // 100)  # noqa: PLR2004 - the middle
    rank = min(max(1, rank), count)
    return sorted(values)[rank - 1] if 0 < rank <= len(values) else None

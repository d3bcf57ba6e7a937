"""How much each principal may ask: a bucket that fills steadily, and that each request takes from."""

from __future__ import annotations

import time
from collections import OrderedDict

from evsched.api.identity import RateSettings
from evsched.api.problems import ApiProblem

MOST_BUCKETS = 10_000


class Rates:
    """The buckets of those who asked last."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, subject: str, settings: RateSettings, now: float | None = None) -> None:
        """Count one request; raise `ApiProblem` for one too many. ``now`` is in seconds, None: the clock's."""
        now = time.monotonic() if now is None else now
        left, since = self._buckets.pop(subject, (float(settings.burst), now))
        left = min(float(settings.burst), left + (now - since) * settings.per_second)
        allowed = left >= 1
        self._buckets[subject] = (left - 1 if allowed else left, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise ApiProblem(
                "too-many-requests",
                f"{subject}: {settings.per_second} requests a second are taken",
                headers={"retry-after": "1"},
            )

"""One scrape: what is looked at, and the text that comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from evsched.api.metrics import kueue, own, yunikorn
from evsched.core.registry import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from evsched.api.metrics.fold import MetricsFold
    from evsched.core.state import State


Verification = Literal["none", "equal", "different", "damaged"]
"""What verifying the log came to; ``none``: it was not done."""


class Vitals(Struct, frozen=True, kw_only=True):
    """What this process knows that is not in the log.

    Attributes:
        heartbeat_age_ms: Since the last sign of life of a leader was seen; None: there never was one.
        resigned: The leader said that it no longer leads.
        lag_frames: How many frames of the log this process has yet to read; None: it cannot be seen.
        ready: Whether all is read that was there at its start.
        verification: What the last one came to that was run here.
    """

    heartbeat_age_ms: int | None = None
    resigned: bool = False
    lag_frames: int | None = None
    ready: bool = True
    verification: Verification = "none"


class Scrape(Struct, frozen=True):
    """What one scrape looks at; only read."""

    state: State
    fold: MetricsFold
    vitals: Vitals


class _Found(Collector):
    """The metrics of one scrape, for the library that writes them down."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        return iter(self._found)


FAMILIES: dict[str, Callable[[Scrape], Iterator[Metric]]] = {
    "yunikorn": yunikorn.metrics,
    "kueue": kueue.metrics,
}
"""The names of a family of policies, beside our own, by the format of the configuration."""


def metrics(scrape: Scrape) -> list[Metric]:
    """Return everything that is to be shown.

    While the log is still being read that is what this process knows of itself: counters that have not
    caught up would look like ones that began anew.
    """
    if not scrape.vitals.ready:
        return list(own.process(scrape))
    configuration = scrape.state.configuration
    also = None if configuration is None else FAMILIES.get(format_of(configuration))
    return [*own.metrics(scrape), *(also(scrape) if also is not None else ())]


def written(found: list[Metric], accepted: str) -> tuple[bytes, str]:
    """Return metrics as text, and its media type.

    Args:
        found: What is to be shown.
        accepted: The header ``Accept``; with OpenMetrics in it the text has the ``seq`` of what
            moved each counter last as its exemplar.
    """
    shown = _Found(found)
    if "application/openmetrics-text" in accepted:
        return generate_openmetrics(shown), OPENMETRICS  # type: ignore[no-untyped-call]
    return generate_latest(shown), CONTENT_TYPE_LATEST

"""From what was counted to metrics of Prometheus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    Exemplar,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from evsched.api.metrics.counts import SPANS_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evsched.api.metrics.counts import Counts, Labels
    from evsched.core.queues import Queue
    from evsched.core.state import State

MOST_QUEUES = 500
"""How many queues have series of their own, in the order of their paths; the others are counted, not shown."""

_BAD = re.compile(r"[^A-Za-z0-9_]")


def seconds(ms: int) -> float:
    """Return milliseconds as Prometheus counts time."""
    return ms / 1000


def shown_queues(state: State) -> list[Queue]:
    """Return the queues that have series of their own: those of the configuration before dynamic ones."""
    found = sorted(state.queues.values(), key=lambda queue: (queue.dynamic, queue.path))
    return found[:MOST_QUEUES]


def part_of_name(text: str) -> str:
    """Return a text with everything replaced that cannot stand in the name of a metric."""
    return _BAD.sub("_", text)


def counter(
    name: str,
    help_: str,
    labels: Sequence[str],
    counts: Counts,
    source: str,
    pick: Callable[[Labels], Labels | None] | None = None,
) -> CounterMetricFamily:
    """Return a counter, each of its values with the ``seq`` of the event that moved it last.

    Args:
        name: Without ``_total``.
        help_: A sentence.
        labels: Their names.
        counts: All counters.
        source: The one that is shown.
        pick: From the labels it is counted by to those that are shown, None to leave it out; several
            that come out the same are added up. None: as they are.
    """
    sums: dict[Labels, list[int]] = {}
    for found, tally in counts.series(source).items():
        shown = found if pick is None else pick(found)
        if shown is None:
            continue
        into = sums.setdefault(shown, [0, 0, 0])
        into[0] += tally.value
        if tally.seq >= into[1]:
            into[1:] = [tally.seq, tally.time]
    family = CounterMetricFamily(name, help_, labels=list(labels))
    for values, (value, seq, time) in sorted(sums.items()):
        family.add_metric(
            list(values), value, exemplar=Exemplar({"seq": str(seq)}, 1, seconds(time))
        )
    return family


def histogram(
    name: str,
    help_: str,
    labels: Sequence[str],
    counts: Counts,
    source: str,
    also: Labels = (),
) -> HistogramMetricFamily:
    """Return a histogram of spans in seconds, each bucket with the ``seq`` of the last one in it; ``also`` as last labels."""
    family = HistogramMetricFamily(name, help_, labels=list(labels))
    bounds = [*(str(seconds(bound)) for bound in SPANS_MS), "+Inf"]
    for values, spread in sorted(counts.spreads.get(source, {}).items()):
        total = 0
        buckets: list[tuple[str, float, Exemplar | None]] = []
        for bound, number, (seq, span) in zip(bounds, spread.buckets, spread.last, strict=True):
            total += number
            last = Exemplar({"seq": str(seq)}, seconds(span)) if number else None
            buckets.append((bound, total, last))
        family.add_metric([*values, *also], buckets, seconds(spread.sum_ms))  # type: ignore[arg-type]
    return family


def gauge(
    name: str, help_: str, labels: Sequence[str], values: Iterable[tuple[Labels, float]]
) -> GaugeMetricFamily:
    """Return what is there now."""
    family = GaugeMetricFamily(name, help_, labels=list(labels))
    for found, value in values:
        family.add_metric(list(found), value)
    return family


def by_resource(
    names: Sequence[str], amounts: Mapping[int, int] | Sequence[int]
) -> list[tuple[str, int]]:
    """Return amounts with the names of their resources: of a vector those above 0, of limits all."""
    if isinstance(amounts, dict):
        return sorted((names[index], amount) for index, amount in amounts.items())
    return sorted((names[index], amount) for index, amount in enumerate(amounts) if amount)

"""What a benchmark returns: rows, each a figure beside its target and beside a limit measured in the same run.

A module of this folder takes part when it has ``BENCHMARKS``, a mapping of names to functions that
yield rows. Times are CPU time of this process wherever the work is computation, so that a busy
machine disturbs them less; a module that measures waiting says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Literal

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure.

    Attributes:
        name: What was measured, with its size.
        target: What it is to reach, in the same unit; None when nothing is promised.
        better: Whether more is better, or less.
        limit: What bounds it, measured in the same run, in the same unit; None when there is
            nothing to hold it against.
        limit_name: What that bound is.
        note: What a reader must know, in a few words.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    better: Literal["more", "less"] = "more"
    limit: float | None = None
    limit_name: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The figure as a part of its limit (of a time or size: the limit as a part of the figure); None without a limit."""
        if not self.limit or not self.value:
            return None
        return self.value / self.limit if self.better == "more" else self.limit / self.value

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.better == "more" else self.value <= self.target


Benchmark = Callable[[], Iterable[Row]]


class Stopwatch:
    """CPU seconds of a block.

    Attributes:
        seconds: Set when the block is left.
    """

    def __init__(self) -> None:
        """Start at nothing."""
        self.seconds = 0.0


@contextmanager
def measured() -> Iterator[Stopwatch]:
    """Measure the CPU time of a block, with the garbage collector set as the service sets it."""
    watch = Stopwatch()
    with calm():
        started = process_time()
        yield watch
        watch.seconds = process_time() - started


@contextmanager
def calm() -> Iterator[None]:
    """Keep the garbage collector from walking what is there already, as a service does that holds a large state."""
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()

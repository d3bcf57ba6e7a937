"""How long allocations live: the Kaplan-Meier estimate of what a log says of them.

An allocation that still runs, or had to go, lived at least as long as it was seen to: it counts
among those that could have ended by an age until it was last seen (it is censored). One that was
running already when the past that is looked at begins counts from the age that it had then (its
entry is delayed). Shares are integers, parts of `WHOLE`; no floating point is involved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from operator import neg
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

WHOLE = 2**60
"""The share of all."""

ENOUGH = 20
"""So many ends behind an age are enough to draw from; with fewer, allocations less alike count too."""

AskedFor = tuple[tuple[str, int], ...]
"""What was asked for: resource names and amounts, sorted."""


class SeenLife(NamedTuple):
    """What was seen of one allocation, in milliseconds of its age.

    Attributes:
        entered: Its age when it was first seen; 0 where its begin was.
        left: Its age when it ended, or when it was last seen.
        ended: Whether it ended by itself then.
    """

    entered: int
    left: int
    ended: bool


class Survival:
    """How many of some allocations reach an age.

    Attributes:
        ends: Ages at which some ended, ascending, milliseconds.
        shares: Of all, the share that lives longer than each of these; parts of `WHOLE`.
    """

    def __init__(self, lives: Sequence[SeenLife]) -> None:
        """Estimate it (Kaplan and Meier 1958, with delayed entry)."""
        entered = sorted(life.entered for life in lives)
        left = sorted(life.left for life in lives)
        ended = Counter(life.left for life in lives if life.ended)
        self.ends = sorted(ended)
        self.shares: list[int] = []
        self._counted: list[int] = []  # how many ended up to each age
        share, count = WHOLE, 0
        for age in self.ends:
            # Those that entered at this very age were not seen to be alive before it.
            at_risk = (len(left) - bisect_left(left, age)) - (
                len(entered) - bisect_left(entered, max(age, 1))
            )
            gone = min(ended[age], at_risk)
            if at_risk:
                share = share * (at_risk - gone) // at_risk
            count += ended[age]
            self.shares.append(share)
            self._counted.append(count)

    def ends_behind(self, age: int) -> int:
        """Return how many ended at a greater age."""
        at = bisect_right(self.ends, age)
        total = self._counted[-1] if self._counted else 0
        return total - (self._counted[at - 1] if at else 0)

    def draw(self, below: Callable[[int], int], age: int = 0) -> int | None:
        """Return the age at which an allocation that has this age ends; greater than it.

        Args:
            below: Draws a number from 0 to below its argument.
            age: Milliseconds; a new allocation has age -1, as it may end at once.

        Returns:
            None: later than any that was seen to end.
        """
        first = bisect_right(self.ends, age)
        alive = self.shares[first - 1] if first else WHOLE
        if not alive:
            return None
        drawn = below(alive)
        at = bisect_left(self.shares, -drawn, lo=first, key=neg)
        return self.ends[at] if at < len(self.ends) else None


class Lifetimes:
    """Lifetimes by queue and kind, which give way to those of the queue, and these to all where too few ended."""

    def __init__(self, lives: Mapping[tuple[str, AskedFor], Iterable[SeenLife]]) -> None:
        """Keep what was seen, by queue and kind; estimates are made when they are first needed."""
        self._lives: dict[tuple[str, AskedFor] | str | None, list[SeenLife]] = {None: []}
        self._made: dict[tuple[str, AskedFor] | str | None, Survival] = {}
        for (queue, kind), found in lives.items():
            own = self._lives[queue, kind] = list(found)
            self._lives.setdefault(queue, []).extend(own)
            self._lives[None].extend(own)

    def draw(
        self, queue: str, kind: AskedFor, below: Callable[[int], int], age: int = -1
    ) -> int | None:
        """Return the age at which an allocation ends, as of `Survival.draw`; -1: it is new."""
        for key in ((queue, kind), queue, None):
            found = self._survival(key)
            if found is not None and (key is None or found.ends_behind(age) >= ENOUGH):
                return found.draw(below, age)
        return None

    def _survival(self, key: tuple[str, AskedFor] | str | None) -> Survival | None:
        made = self._made.get(key)
        if made is None and key in self._lives:
            made = self._made[key] = Survival(self._lives[key])
        return made

"""Who goes first in a leaf whose quota is enforced (quota_enforcement, "How are victims selected and processed?").

A leaf's candidates are sorted once, in the seed's order. They are then taken in *runs* of neighbours that ask for the same
amounts: how many of a run are needed, and how many the guarantees on the path allow, are two divisions, so that a leaf of
thousands of equal tasks costs no more than one of a few. A guarantee anywhere on the path of the leaf is as good as one of
its own: what has left the leaf has left all queues above it, so the least room of all of them is the room of the leaf.
"""

from __future__ import annotations

from itertools import compress, groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evsched.core.queues import Queue
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation

FEW = 48
"""Up to so many candidates a plain sort is quicker than columns."""

_COLUMNS = tuple(map(attrgetter, ("originator", "priority", "allow_preemption", "created")))


def candidate_order(allocation: Allocation) -> tuple[bool, int, bool, int, str]:
    """Return the sort key of a victim: the one that costs least to lose comes first.

    Those that are no originators first, then lower priority, then those that agreed to be preempted, then the youngest. The id
    makes it total.
    """
    return (
        allocation.originator,
        allocation.priority,
        not allocation.allow_preemption,
        -allocation.created,
        allocation.id,
    )


def eligible(allocation: Allocation) -> bool:
    """Tell whether an allocation may be considered: it is not bound to its node (DaemonSet) and was not told to go already."""
    return allocation.required_node is None and not allocation.told


def ordered(allocations: Sequence[Allocation]) -> list[Allocation]:
    """Sort by `candidate_order`, quickly when there are many."""
    count = len(allocations)
    if count <= FEW:
        return sorted(allocations, key=candidate_order)
    originator, priority, agreed, created = (np.fromiter(map(of, allocations), np.int64, count) for of in _COLUMNS)
    places = np.lexsort((-created, -agreed, priority, originator))
    same = np.ones(count - 1, dtype=bool)
    for column in (originator, priority, agreed, created):
        in_order = column[places]
        same &= in_order[1:] == in_order[:-1]
    found = [allocations[place] for place in places.tolist()]
    for start, stop in _stretches(same):
        found[start:stop] = sorted(found[start:stop], key=attrgetter("id"))
    return found


def _stretches(same: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield start and end of every stretch of more than one element that are the same as their neighbour."""
    if not same.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for start, stop in edges.reshape(-1, 2).tolist():
        yield start, stop + 1


class Run:
    """Neighbours in the order that ask for the same amounts.

    Attributes:
        start, stop: Their places.
        chosen: How many of them go.
    """

    __slots__ = ("chosen", "pairs", "start", "stop")

    def __init__(self, start: int, stop: int, pairs: Pairs) -> None:
        """Make a run of which nobody goes."""
        self.start, self.stop, self.pairs = start, stop, pairs
        self.chosen = 0


class Leaf:
    """The candidates of one leaf and which of them go.

    Attributes:
        queue: The leaf.
        candidates: In the order in which they go.
        chosen: For each of them whether it goes, as 0 or 1.
    """

    __slots__ = ("_runs", "candidates", "chosen", "queue")

    def __init__(self, state: State, queue: Queue) -> None:
        """Sort the candidates of a leaf; nobody goes yet."""
        self.queue = queue
        found: list[Allocation] = []
        for application in queue.applications.values():
            found.extend([one for one in application.allocations.values() if one.required_node is None and not one.told])
        self.candidates = ordered(found)
        self.chosen = bytearray(len(found))
        self._runs = _runs(state, self.candidates)

    def take(self, want: Mapping[int, int], room: dict[int, int]) -> dict[int, int]:
        """Choose further candidates, in their order, until as much as is wanted has gone or nobody may go any more.

        A candidate goes when it has something of a type of which more is wanted, and when no guarantee on the path would be
        broken. The last one may hold more than what was still wanted.

        Args:
            want: What is to go, by type index, positive.
            room: What may go before a guarantee is broken, for each type that is guaranteed on the path; is lowered by what goes.

        Returns:
            What goes because of this call, by type index, of all types.
        """
        short = dict(want)
        gone: dict[int, int] = {}
        for run in self._runs:
            if not short:
                break
            count = min(run.stop - run.start - run.chosen, _needed(run.pairs, short), _allowed(run.pairs, room))
            if count > 0:
                self._choose(run, count)
                for index, amount in run.pairs:
                    gone[index] = gone.get(index, 0) + count * amount
                    if index in room:
                        room[index] -= count * amount
                    if index in short:
                        short[index] -= count * amount
                        if short[index] <= 0:
                            del short[index]
        return gone

    def _choose(self, run: Run, count: int) -> None:
        """Let the first so many of a run go that do not go yet."""
        run.chosen += count
        if run.chosen == count:
            self.chosen[run.start : run.start + count] = b"\1" * count
            return
        place = run.start
        for _ in range(count):
            place = self.chosen.index(0, place)
            self.chosen[place] = 1

    def spare(self, place: int) -> None:
        """Let one stay that was chosen to go."""
        self.chosen[place] = 0
        for run in self._runs:
            if run.start <= place < run.stop:
                run.chosen -= 1
                # Whoever is chosen next must be found from the beginning of the run.
                return

    def going(self) -> Iterator[tuple[int, Allocation]]:
        """Yield those that go, with their places, in their order."""
        return compress(enumerate(self.candidates), self.chosen)

    def victims(self) -> Iterator[Allocation]:
        """Yield those that go, in their order."""
        return compress(self.candidates, self.chosen)


def _runs(state: State, candidates: Sequence[Allocation]) -> list[Run]:
    """Return the runs of candidates, in their order."""
    shapes = state.types.shapes
    runs: list[Run] = []
    start = 0
    for shape, same in groupby(map(attrgetter("shape"), candidates)):
        stop = start + len(tuple(same))
        runs.append(Run(start, stop, shapes[shape].pairs))
        start = stop
    return runs


def _needed(pairs: Pairs, short: Mapping[int, int]) -> int:
    """Return how many equal tasks it takes until nothing that they hold is wanted any more; 0 when they hold nothing wanted."""
    return max((-(-short[index] // amount) for index, amount in pairs if index in short), default=0)


def _allowed(pairs: Pairs, room: Mapping[int, int]) -> int:
    """Return how many equal tasks may go before a guarantee is broken."""
    return min((room[index] // amount for index, amount in pairs if index in room), default=2**62)

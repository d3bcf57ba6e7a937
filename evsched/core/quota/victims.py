"""Which victims go first in a leaf whose quota is enforced (quota_enforcement, "How are victims selected and processed?").

A leaf's candidates are sorted once, in the seed's order, and then taken from the front: each
that holds something of a type of which more is wanted, and that no guarantee on the path protects. A
guarantee anywhere on the path of the leaf is as good as one of its own: what has left the leaf has
left all queues above it, so the least room of all of them is the room of the leaf.

What is wanted and the room both only shrink while candidates are taken, so what is passed over
once would be passed over later as well, and with it all that ask for the same amounts. So the
front up to the first that is passed over is found with a few running sums over columns; all of its
size are dropped, and the rest is looked at in the same way: as many passes as there are
different sizes, not as many as there are tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evsched.core.queues import Queue
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation

FEW = 48
"""Up to so many candidates plain loops are quicker than columns."""

MOST_FRONTS = 64
"""With more different sizes than this in the way, the rest is looked at one by one."""


def candidate_order(allocation: Allocation) -> tuple[bool, int, bool, int, str]:
    """Return the sort key of a victim: the one that costs least to lose comes first.

    Those that are no originators first, then lower priority, then those that agreed to be
    preempted, then the youngest. The id makes it total.
    """
    return (
        allocation.originator,
        allocation.priority,
        not allocation.allow_preemption,
        -allocation.created,
        allocation.id,
    )


def in_order(allocations: Sequence[Allocation]) -> NDArray[np.int64]:
    """Return the places of allocations sorted by `candidate_order`, quickly when there are many.

    The key is packed into one int64 where the ranges of priority and age permit it. Only stretches
    of equal keys are sorted by id, in plain Python.

    Args:
        allocations: In any order.
    """
    count = len(allocations)
    if count <= FEW:
        return np.array(
            sorted(range(count), key=lambda place: candidate_order(allocations[place])), np.int64
        )
    created = np.fromiter([one.created for one in allocations], np.int64, count)
    # One number for all that comes before the age; a column in which all are the same is a plain
    # number.
    priority = _column([one.priority for one in allocations])
    lowest, highest = int(np.min(priority)), int(np.max(priority))
    levels = highest - lowest + 1
    cost = priority - lowest
    if [None for one in allocations if one.originator or not one.allow_preemption]:
        cost = cost + _column([one.originator for one in allocations]) * levels
        cost = cost * 2 + _column([not one.allow_preemption for one in allocations])
    youngest = int(created.max())
    span = youngest - int(created.min()) + 1
    if 4 * levels * span < 2**62:
        key = cost * span + (youngest - created)
        places = np.argsort(key)
        same = np.diff(key[places]) == 0
    else:
        costs = np.broadcast_to(cost, count)
        places = np.lexsort((np.negative(created), costs))
        same = (np.diff(costs[places]) == 0) & (np.diff(created[places]) == 0)
    for start, stop in _stretches(same):
        places[start:stop] = sorted(
            places[start:stop].tolist(), key=lambda place: allocations[place].id
        )
    return places


def _column(values: Sequence[int]) -> NDArray[np.int64] | int:
    """Return values as a column, or the one value of all; there is at least one value."""
    first = values[0]
    return (
        int(first)
        if values.count(first) == len(values)
        else np.fromiter(values, np.int64, len(values))
    )


def _stretches(same: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield start and end of every stretch of more than one element that are the same.

    Args:
        same: For each element but the last, whether it is the same as the next.
    """
    if not same.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for start, stop in edges.reshape(-1, 2).tolist():
        yield start, stop + 1


class Leaf:
    """The candidates of one leaf, numbered in the order in which they go, and which of them do.

    Attributes:
        queue: The leaf.
        chosen: For each of them whether it goes, as 0 or 1.
    """

    __slots__ = ("_columns", "_found", "_kinds", "_numbers", "_order", "_sizes", "chosen", "queue")

    def __init__(self, state: State, queue: Queue) -> None:
        """Sort the candidates of a leaf; none goes yet."""
        self.queue = queue
        self._found: list[Allocation] = []
        # Where nothing is preempted no candidate can be leaving; what holds nothing is never taken.
        some_leave = any(queue.preempting) or queue.quota is not None
        for application in queue.applications.values():
            there = application.allocations.values()
            # A DaemonSet's task belongs to its node; what is being evicted leaves anyway.
            if some_leave:
                self._found += [
                    one
                    for one in there
                    if one.required_node is None and not one.eviction_requested and not one.evicted
                ]
            else:
                self._found += [one for one in there if one.required_node is None]
        self._order = in_order(self._found)
        self.chosen = bytearray(len(self._found))
        shapes = [one.shape for one in self._found]
        self._kinds = {shape: number for number, shape in enumerate(dict.fromkeys(shapes))}
        self._numbers = np.zeros(len(shapes), np.int64)
        if len(self._kinds) > 1:
            self._numbers = np.fromiter(
                map(self._kinds.__getitem__, shapes), np.int64, len(shapes)
            )[self._order]
        self._sizes = [state.types.shapes[shape].pairs for shape in self._kinds]
        self._columns: dict[int, NDArray[np.int64]] = {}

    def take(self, want: Mapping[int, int], room: dict[int, int]) -> dict[int, int]:
        """Choose further candidates, in their order, until enough goes or no more may.

        A candidate goes when it has something of a type of which more is wanted, and when no
        guarantee on the path would be broken. The last one may hold more than what was still
        wanted.

        Args:
            want: What is to go, by type index, positive.
            room: What may go before a guarantee is broken, for each type that is guaranteed on the
                path; is lowered by what goes.

        Returns:
            What goes because of this call, by type index, of all types.
        """
        taking = _Taking(dict(want), room, [0] * len(self._sizes))
        start = self._take_fronts(taking) if len(self.chosen) > FEW else 0
        if taking.short and start < len(self.chosen):
            self._take_singly(taking, start)
        return taking.total(self._sizes)

    def _take_fronts(self, taking: _Taking) -> int:
        """Take front by front, at most `MOST_FRONTS` of them.

        Each front ends at the first candidate that is passed over, and all of its size are dropped
        with it.

        Returns:
            The place where to go on singly; the end unless there are very many different sizes.
        """
        chosen = np.frombuffer(self.chosen, np.uint8)
        rest = np.flatnonzero(chosen == 0)
        for _ in range(MOST_FRONTS):
            if not taking.short or not len(rest):
                return len(self.chosen)
            fits = self._fits(taking, rest)
            stop = len(rest) if fits.all() else int(fits.argmin())
            numbers = self._numbers[rest[:stop]]
            chosen[rest[:stop]] = 1
            for number, count in enumerate(
                np.bincount(numbers, minlength=len(self._sizes)).tolist()
            ):
                if count:
                    taking.add(number, self._sizes[number], count)
            if stop == len(rest):
                return len(self.chosen)
            passed = self._numbers[rest[stop]]
            taking.passed[int(passed)] = None
            rest = rest[stop + 1 :]
            rest = rest[self._numbers[rest] != passed]
        return int(rest[0]) if len(rest) else len(self.chosen)

    def _fits(self, taking: _Taking, rest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each place of the rest whether it would be taken if all before it were."""
        useful = np.zeros(len(rest), np.bool_)
        for index, amount in taking.short.items():
            column = self._column(index)[rest]
            useful |= (column > 0) & (np.cumsum(column) - column < amount)
        for index, left in taking.room.items():
            column = self._column(index)[rest]
            useful &= (column == 0) | (np.cumsum(column) <= left)
        return useful

    def _column(self, index: int) -> NDArray[np.int64]:
        """Return what each candidate holds of a type, in their order.

        No sum of them passes int64, since no usage does.
        """
        column = self._columns.get(index)
        if column is None:
            held = np.array([dict(pairs).get(index, 0) for pairs in self._sizes], np.int64)
            column = self._columns[index] = held[self._numbers]
        return column

    def _take_singly(self, taking: _Taking, start: int) -> None:
        """Look at candidates one by one.

        Sizes that were passed over are skipped, so this gives what the fronts would have given.
        """
        chosen, sizes = self.chosen, self._sizes
        for place, number in enumerate(self._numbers[start:].tolist(), start):
            if chosen[place] or number in taking.passed:
                continue
            pairs = sizes[number]
            if not taking.fits(pairs):
                taking.passed[number] = None
                continue
            chosen[place] = 1
            taking.add(number, pairs, 1)
            if not taking.short:
                return

    def going(self) -> list[Allocation]:
        """Return those that go, in their order."""
        found = self._found
        return [
            found[place] for place in self._order[np.frombuffer(self.chosen, np.bool_)].tolist()
        ]

    def costliest_first(self, shapes: Container[int]) -> Iterator[tuple[Allocation, Leaf, int]]:
        """Yield victims of some shapes, from the end of the order, with leaf and place.

        Args:
            shapes: Indices of the shapes that count.
        """
        wanted = [number for shape, number in self._kinds.items() if shape in shapes]
        places = np.flatnonzero(np.frombuffer(self.chosen, np.uint8))
        places = places[np.isin(self._numbers[places], wanted)]
        for place in places[::-1].tolist():
            yield self._found[self._order[place]], self, place

    def shapes_going(self) -> list[int]:
        """Return the different amounts of those that go, by the index of their shape."""
        numbers = self._numbers[np.frombuffer(self.chosen, np.uint8) == 1]
        counts = np.bincount(numbers, minlength=len(self._sizes)).tolist()
        return [shape for shape, number in self._kinds.items() if counts[number]]


class _Taking:
    """One call of `Leaf.take` while it runs.

    Attributes:
        short: What is still wanted, by type; a type of which enough goes is taken out.
        room: What may still go of a guaranteed type.
        counts: How many go, by number of their size.
        passed: Sizes that are passed over from here on.
    """

    __slots__ = ("counts", "passed", "room", "short")

    def __init__(self, short: dict[int, int], room: dict[int, int], counts: list[int]) -> None:
        """Begin with nothing taken."""
        self.short, self.room, self.counts = short, room, counts
        self.passed: dict[int, None] = {}

    def fits(self, pairs: Pairs) -> bool:
        """Tell whether a candidate of this size goes if it is its turn now.

        It must leave every guarantee whole, and hold at least one type that is still wanted.
        """
        short, room = self.short, self.room
        useful = False
        for index, amount in pairs:
            if index in room and amount > room[index]:
                return False
            useful = useful or index in short
        return useful

    def add(self, number: int, pairs: Pairs, count: int) -> None:
        """Let so many candidates of a size go.

        Args:
            number: Of the size, within the leaf.
            pairs: What each of them holds.
            count: How many go.
        """
        self.counts[number] += count
        short, room = self.short, self.room
        for index, amount in pairs:
            if index in room:
                room[index] -= count * amount
            if index in short:
                short[index] -= count * amount
                if short[index] <= 0:
                    del short[index]

    def total(self, sizes: Sequence[Pairs]) -> dict[int, int]:
        """Return what goes, by type."""
        gone: dict[int, int] = {}
        for pairs, count in zip(sizes, self.counts, strict=True):
            if count:
                for index, amount in pairs:
                    gone[index] = gone.get(index, 0) + count * amount
        return gone

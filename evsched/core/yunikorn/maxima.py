"""What an ask would exceed of the maxima on its path: for allocation, for preemption, and for those who explain them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from evsched.core.queues import Queue
    from evsched.core.resources import Pairs


class Shortage(NamedTuple):
    """A queue on a path whose maximum would be exceeded, and by how much of which type."""

    queue: Queue
    kind: int
    amount: int


def exceeded(
    queue: Queue, pairs: Pairs, *, nominated: bool = True, leaving: bool = True
) -> list[Shortage]:
    """Return by what more usage of these amounts would exceed the maximum of one queue, type by type.

    Args:
        queue: Of the path; those above are not looked at.
        pairs: The amounts.
        nominated: What asks in flight were promised counts as used.
        leaving: What is on its way out still counts as used.
    """
    maximum = queue.maximum
    if not maximum:
        return []
    found = []
    for index, amount in pairs:
        limit = maximum.get(index)
        if limit is not None:
            used = queue.usage[index] + (queue.claimed[index] if nominated else 0)
            over = used + amount - limit - (0 if leaving else queue.preempting[index])
            if over > 0:
                found.append(Shortage(queue, index, over))
    return found


def first_exceeded(leaf: Queue, pairs: Pairs, *, nominated: bool = True) -> Queue | None:
    """Return the lowest queue on a path whose maximum would be exceeded now, None when the amounts fit everywhere.

    Args:
        leaf: Where the path begins.
        pairs: The amounts.
        nominated: As for `exceeded`. For an ask in flight it is False: the promises were made
            together, so that they all fit once the victims are gone, and the ask whose victims go
            first is bound first.
    """
    for queue in leaf.lineage:
        if queue.maximum and exceeded(queue, pairs, nominated=nominated):
            return queue
    return None


def shortages(
    leaf: Queue, pairs: Pairs, moved: Callable[[Queue, int], int] | None = None
) -> list[Shortage]:
    """Return by what each maximum on a path would be exceeded once every victim is gone.

    Args:
        leaf: Where the path begins.
        pairs: The amounts.
        moved: Returns what else will be used in a queue of a type, negative for less; None: nothing.
    """
    if moved is None:
        return [short for queue in leaf.lineage for short in exceeded(queue, pairs, leaving=False)]
    return [
        short
        for queue in leaf.lineage
        for index, amount in pairs
        for short in exceeded(queue, ((index, amount + moved(queue, index)),), leaving=False)
    ]

"""How much of a quota target each child of a queue has to give (quota_enforcement, "Queue selection and ordering").

What lies above a child's guarantee is *releasable*, type by type; of a type without a guarantee
everything that is used. The target is shared out in proportion to that. The seed leaves the
rounding open; here it is the method of largest remainders on exact integers: every child gets the
whole part of its share, and the units that are then missing go one each to the largest remainders,
among equal ones to the child that stands first in the configuration. So the parts add up to the
smaller of the target and all that is releasable, and no child is asked for more than it can
release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evsched.core.queues import Queue


def over(queue: Queue, maximum: Mapping[int, int]) -> dict[int, int]:
    """Return what a queue uses above a maximum, by type index.

    What is being evicted already counts as gone. Only types that the maximum limits count, and
    only positive amounts are kept (quota_enforcement, "Preemptable Resource calculation").
    """
    usage, preempting = queue.usage, queue.preempting
    found = {index: usage[index] - preempting[index] - amount for index, amount in maximum.items()}
    return {index: amount for index, amount in found.items() if amount > 0}


def releasable(queue: Queue, index: int, taken: int) -> int:
    """Return what a queue uses of a type above its guarantee, 0 when nothing.

    What is being evicted, and what is ``taken`` by the plan so far, is not used any more.
    """
    return max(
        0, queue.usage[index] - queue.preempting[index] - taken - queue.guaranteed.get(index, 0)
    )


def shares(target: int, weights: Sequence[int]) -> list[int]:
    """Share a target out in proportion to weights by largest remainders, exactly; none gets more than its weight.

    Args:
        target: What is to be shared, not negative.
        weights: What each can give, not negative, in the order that breaks ties.
    """
    total = sum(weights)
    if total <= target:
        return list(weights)
    parts = [target * weight // total for weight in weights]
    missing = target - sum(parts)
    if missing:
        # Fewer units are missing than there are remainders above 0, so none gets one beyond its
        # weight.
        by_remainder = sorted(
            range(len(weights)), key=lambda place: (-(target * weights[place] % total), place)
        )
        for place in by_remainder[:missing]:
            parts[place] += 1
    return parts

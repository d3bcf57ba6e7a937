"""Fair sharing values, exact (seed kueue_preemption "ClusterQueue share value"; reference section 5).

The share of a node is what it uses above its own quota, as a part of what could be lent to it,
divided by its weight; of all its resources the largest one counts. The real scheduler computes it
in float64; here it is an integer that orders exactly as the rational number does: the fraction
times 2**256, rounded down. Amounts, lendable amounts and weights are below 2**63, so denominators
are below 2**126, two different fractions differ by more than 2**-252, and their integers differ
too.

A share says two things: whether the node borrows at all, and how much. A node can borrow and yet
have share 0 when nothing could be lent to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import KueueSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.kueue.model import Quota
    from evsched.core.state import State

SCALE_BITS = 256
"""Fractions are multiplied by 2 to this power: enough to tell any two different ones apart."""

WEIGHTLESS = 1 << 400
"""Added to the share of a node that borrows with weight 0: more than any finite share; among themselves the ratio decides."""

NOT_BORROWING = -1
"""The share of a node that uses nothing above its quota; for comparisons it counts as 0."""

NANO = 1_000_000_000
PER_MILLE = 1000
UNREPRESENTABLE = 2**63 - 1
"""The share of a node that borrows with weight 0, as the status shows it: infinite."""


def share_of(node: Quota, usage: Mapping[int, int]) -> int:
    """Return the share of a node with this usage.

    It is an integer that orders as the share does, or `NOT_BORROWING`. With weight 0 it is above
    all shares of nodes with a weight, unless nothing could be lent.
    """
    found = dominant(node, usage)
    if found is None:
        return NOT_BORROWING
    excess, lendable = found
    weight = node.weight_nano
    if weight:
        return (excess << SCALE_BITS) // (lendable * weight)
    return WEIGHTLESS + (excess << SCALE_BITS) // lendable if excess else 0


def dominant(node: Quota, usage: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the largest ratio of what a node borrows to what could be lent to it, as a fraction.

    It is 0/1 when nothing could be lent. The node at the top of a tree, and a queue without
    cohort, never borrows.

    Returns:
        Numerator and denominator; None when the node does not borrow.
    """
    parent = node.parent
    if parent is None:
        return None
    quota, resource_of = node.subtree, node.resource_of
    over: dict[str, int] = {}
    for index, used in usage.items():
        excess = used - quota.get(index, 0)
        if excess > 0:
            resource = resource_of.get(index, "")
            over[resource] = over.get(resource, 0) + excess
    if not over:
        return None
    best = (0, 1)
    for resource, excess in over.items():
        lendable = parent.lendable(resource)
        if lendable > 0 and excess * best[1] > best[0] * lendable:
            best = (excess, lendable)
    return best


def are_shared(state: State) -> bool:
    """Tell whether a partition shares fairly, so that shares decide and are shown."""
    spec = state.configuration
    return isinstance(spec, KueueSpec) and spec.fair_sharing


def order_of(share: int) -> int:
    """Return a share for comparison with others: one that does not borrow counts as 0."""
    return max(share, 0)


def status(node: Quota, usage: Mapping[int, int]) -> int:
    """Return a share as the status shows it.

    It is per mille of the lendable amount by weight, rounded up, and 2**63 - 1 for infinite.
    Nothing is decided by it: rounding would make different shares equal.
    """
    found = dominant(node, usage)
    if found is None or not found[0]:
        return 0
    excess, lendable = found
    if not node.weight_nano:
        return UNREPRESENTABLE
    return min(-(-(excess * PER_MILLE * NANO) // (lendable * node.weight_nano)), UNREPRESENTABLE)

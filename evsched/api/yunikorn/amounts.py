"""Amounts of a state by resource name, and percentages as YuniKorn rounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from events.configuration import Amounts

FULL = 2**63 - 1
"""The percentage of something that is used where there is nothing: YuniKorn's largest number."""


def vector(names: Sequence[str], amounts: Sequence[int]) -> Amounts:
    """Return the amounts of a vector by name, zeros left out."""
    return dict(sorted((names[index], amount) for index, amount in enumerate(amounts) if amount))


def limits(names: Sequence[str], amounts: Mapping[int, int]) -> Amounts:
    """Return limits by name; a limit of 0 stays."""
    return dict(sorted((names[index], amount) for index, amount in amounts.items()))


def percent(used: Mapping[str, int], capacity: Mapping[str, int]) -> Amounts:
    """Return how much of each resource is used, in percent, rounded towards zero."""
    return {name: _part(used.get(name, 0), amount) for name, amount in sorted(capacity.items())}


def _part(used: int, capacity: int) -> int:
    if capacity:
        return used * 100 // capacity
    return FULL if used else 0

"""What a plan costs: the total order among lawful plans, and the named functions that can be put in its place.

Every cost begins the same way, as the seed wants it (preemption_design): fewer opted-out victims
(law 1: a single one costs more than anything else), fewer originators, fewer victims. What follows
can be chosen by name (``preemption.cost`` of the partition; seed cross_queue_preemption, answer 3):

============  ============================================================================
``default``   lower priorities (their sum), then younger (the sum of ages), then less waste
``youngest``  younger, then lower priorities, then less waste
``smallest``  less waste, then lower priorities, then younger
============  ============================================================================

*Waste* is what the victims give up of the types that the ask requests, beyond what it lacks; type
by type.

The order has two levels. *On a node* ages count to the millisecond, and last comes the place in the
order of candidates: the same parts, and of two that are equal in everything the one that started
last. *Between the best plans of the nodes* ages count in whole hours by default, as a few minutes
of life are no reason to prefer another node; last comes the name of the node.

A cost is a sum of vectors, one a victim, compared from the left, and every victim adds 1 to the
number of victims. So taking a victim off a plan makes it cheaper, and the cheapest plan is minimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from evsched.core.rules import Rules
from evsched.core.workloads import Allocation

FIELD_BITS = 80
"""Room for the sum of one component in a packed weight; sums of amounts stay below 2**63, of times below 2**70."""


class Part(NamedTuple):
    """One component of a cost.

    Attributes:
        of: Its value for an allocation: the smaller, the sooner it goes.
        unit: Between nodes the sum is compared in whole multiples of this.
        ages: The value is a creation time, negated; between nodes the age itself is compared.
    """

    name: str
    of: Callable[[Allocation], int]
    unit: int = 1
    ages: bool = False


def _priority(allocation: Allocation) -> int:
    return allocation.priority


def _youth(allocation: Allocation) -> int:
    return -allocation.created


PRIORITY = Part("priority", _priority)
AGE = Part("age", _youth, ages=True)


class Cost(NamedTuple):
    """A named cost function.

    Attributes:
        parts: What follows the number of victims.
        waste_first: Waste comes before the parts instead of after them.
    """

    name: str
    parts: tuple[Part, ...]
    waste_first: bool = False

    def candidate_key(self, allocation: Allocation) -> tuple[int, ...]:
        """Return the sort key of a victim: the one that costs least to lose comes first, waste aside; it ends in its ``seq``."""
        return (
            not allocation.allow_preemption,
            allocation.originator,
            *(part.of(allocation) for part in self.parts),
            -allocation.seq,
        )

    def weight(self, allocation: Allocation, given: Sequence[int]) -> int:
        """Return the cost of one victim packed into an integer: the sum over a plan compares as the plans' costs on a node do.

        Args:
            allocation: The victim.
            given: What it gives up of each type that the ask requests.
        """
        parts = [part.of(allocation) for part in self.parts]
        ordered = (*given, *parts) if self.waste_first else (*parts, *given)
        weight = (
            (int(not allocation.allow_preemption) << 16) + int(allocation.originator) << 16
        ) + 1
        for value in ordered:
            weight = (weight << FIELD_BITS) + value
        return weight

    def between_nodes(
        self, victims: Sequence[Allocation], waste: Sequence[int], time: int
    ) -> tuple[int, ...]:
        """Return the cost by which the best plans of the nodes are compared; the name of the node makes it total."""
        sums = [
            (len(victims) * time + total if part.ages else total) // part.unit
            for part, total in ((part, sum(map(part.of, victims))) for part in self.parts)
        ]
        return (
            sum(not victim.allow_preemption for victim in victims),
            sum(victim.originator for victim in victims),
            len(victims),
            *((*waste, *sums) if self.waste_first else (*sums, *waste)),
        )


NAMES = ("default", "youngest", "smallest")
"""By what a configuration may choose."""


@cache
def costs(age_unit_ms: int) -> dict[str, Cost]:
    """Return all cost functions by name; ages are compared between nodes in whole units of milliseconds."""
    aged = Part("age", _youth, age_unit_ms, ages=True)
    return {
        cost.name: cost
        for cost in (
            Cost("default", (PRIORITY, aged)),
            Cost("youngest", (AGE, PRIORITY)),
            Cost("smallest", (PRIORITY, aged), waste_first=True),
        )
    }


def named(name: str, rules: Rules) -> Cost:
    """Return a cost function; one that is not known (a log of a later version) is the default."""
    known = costs(rules.age_unit_ms)
    return known.get(name, known["default"])

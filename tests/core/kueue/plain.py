"""Short words for small Kueue partitions in tests: one flavor ``f``, amounts in plain units."""

from __future__ import annotations

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    KueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from evsched.core.engine import Engine
from replays.scenarios.kueue import OrderedKueue

NOW = 1_767_225_600_000


def groups(flavors: dict[str, dict[str, int | tuple]]) -> tuple[ResourceGroupSpec, ...]:
    """Return one resource group: flavor to resource to nominal quota, or (nominal, borrowing limit, lending limit)."""
    found = []
    for flavor, amounts in flavors.items():
        quotas = {}
        for name, amount in amounts.items():
            nominal, borrowing, lending = (
                amount if isinstance(amount, tuple) else (amount, None, None)
            )
            quotas[name] = QuotaSpec(
                nominal=nominal, borrowing_limit=borrowing, lending_limit=lending
            )
        found.append(FlavorQuotaSpec(flavor=flavor, quotas=quotas))
    return (
        (ResourceGroupSpec(resources=tuple(next(iter(flavors.values()))), flavors=tuple(found)),)
        if found
        else ()
    )


def queue(
    name: str, cohort: str | None = None, *, flavors: dict | None = None, **more
) -> ClusterQueueSpec:
    """Return a ClusterQueue; keywords that are no field of it are nominal quotas in flavor ``f``."""
    fields = {
        key: value for key, value in more.items() if key in ClusterQueueSpec.__struct_fields__
    }
    amounts = {key: value for key, value in more.items() if key not in fields}
    return ClusterQueueSpec(
        name=name, cohort=cohort, groups=groups(flavors or {"f": amounts}), **fields
    )


def cohort(name: str, parent: str | None = None, **more) -> CohortSpec:
    """Return a Cohort; keywords that are no field of it are nominal quotas in flavor ``f``."""
    fields = {key: value for key, value in more.items() if key in CohortSpec.__struct_fields__}
    amounts = {key: value for key, value in more.items() if key not in fields}
    return CohortSpec(
        name=name, parent=parent, groups=groups({"f": amounts} if amounts else {}), **fields
    )


def runs(
    name: str, where: str, priority: int = 0, *, flavor: str = "f", age: int = 0, **amounts: int
) -> v.AllocationRestored:
    """Return a workload that runs since ``age`` seconds."""
    then = NOW - age * 1000
    flavors = dict.fromkeys(amounts, flavor)
    return v.AllocationRestored(
        allocation=name,
        queue=where,
        resources=amounts,
        flavors=flavors,
        priority=priority,
        created=then,
        admitted=then,
    )


def asks(
    name: str, where: str, priority: int = 0, *, age: int = 0, **amounts: int
) -> v.AskSubmitted:
    """Return a workload that waits since ``age`` seconds."""
    return v.AskSubmitted(
        ask=name, queue=where, resources=amounts, priority=priority, created=NOW - age * 1000
    )


class Partition:
    """An engine with a clock that the test moves; what is written is kept by type."""

    def __init__(
        self, *queues: ClusterQueueSpec, cohorts: tuple[CohortSpec, ...] = (), **settings
    ) -> None:
        """Apply a configuration."""
        self.spec = KueueSpec(cluster_queues=queues, cohorts=cohorts, **settings)
        self.engine = Engine()
        self.now = NOW
        self.does(v.ConfigurationApplied(configuration=self.spec))

    def does(self, *inputs: v.AnyInput, decide: bool = True) -> list[v.AnyEvent]:
        """Take a step with these inputs now; return what the scheduler added."""
        events = self.engine.step(
            self.now, [v.Proposal(input=one) for one in inputs], decide=decide
        )
        return [event for event in events if not isinstance(event, v.Input)]

    def after(self, seconds: int, *inputs: v.AnyInput) -> list[v.AnyEvent]:
        """Move the clock and take a step."""
        self.now += seconds * 1000
        return self.does(*inputs)

    def cycle(self) -> list[v.AnyEvent]:
        """Run exactly one cycle."""
        step = self.engine.begin(self.now)
        OrderedKueue().cycle_once(step)
        return list(step.events)


def bound(events: list[v.AnyEvent]) -> list[str]:
    """Return the asks that were admitted, in order."""
    return [event.ask for event in events if isinstance(event, v.AllocationBound)]


def told(events: list[v.AnyEvent]) -> dict[str, list[str]]:
    """Return the victims by ask, in order."""
    return {
        event.ask: [one.id for one in event.victims]
        for event in events
        if isinstance(event, v.PreemptionDecided)
    }

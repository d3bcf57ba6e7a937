"""What came of a stretch of a log, queue by queue: the figures that a what-if compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events import vocabulary as v
from evsched.core.kueue.model import quota_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evsched.core.queues import Queue
    from evsched.core.state import State


class QueueFigures(Struct, kw_only=True):
    """One leaf's figures over a stretch of time.

    Attributes:
        bound: Asks that were bound.
        waited_ms: Time that asks of this queue spent waiting, bound or not, together.
        preemptions: Decisions in favour of its asks.
        victims: Its allocations that are being evicted, by preemption or quota enforcement.
        unmet: By resource, amount times milliseconds by which the queue stayed below its guarantee
            (Kueue: its nominal quota, all flavors together) although its asks wanted it.
    """

    bound: int = 0
    waited_ms: int = 0
    preemptions: int = 0
    victims: int = 0
    unmet: dict[str, int] = {}


class Decided(Struct, frozen=True, kw_only=True):
    """What was decided about an ask or allocation, and when.

    Attributes:
        node: Where it was bound; None for Kueue, and for an eviction.
        flavors: (Kueue) Of a binding: resource to flavor by podset; an ask without podsets has one
            without a name.
        ask: For which it was evicted; empty: for a quota, or it was bound.
        queue: For whose quota it was evicted; empty otherwise.
    """

    time: int
    node: str | None = None
    flavors: dict[str, dict[str, str]] = {}
    ask: str = ""
    queue: str = ""


def _missing(state: State, queue: Queue) -> Iterator[tuple[str, int]]:
    """Yield what a queue lacks of what it is entitled to and asks for, by resource; what is not positive is nothing."""
    names, quota = state.types.names, quota_in(queue)
    if quota is None:
        for index, guaranteed in queue.guaranteed.items():
            yield names[index], min(guaranteed - queue.usage[index], queue.pending[index])
        return
    # What waits has no flavor yet.
    free: dict[str, int] = {}
    for index, nominal in quota.nominal.items():
        resource = quota.resource_of[index]
        free[resource] = free.get(resource, 0) + nominal - quota.usage.get(index, 0)
    for index, amount in enumerate(queue.pending):
        if amount and names[index] in free:
            yield names[index], min(free[names[index]], amount)


class Ledger:
    """Collects the figures of one world, real or supposed.

    Attributes:
        queues: By path, in order of first appearance.
        bindings: Ask to its binding, the last one.
        evictions: Allocation to its eviction, the first one.
    """

    def __init__(self, state: State) -> None:
        """Begin at the present moment of a state, which the caller moves on."""
        self._state = state
        self._time = state.time
        self.queues: dict[str, QueueFigures] = {}
        self.bindings: dict[str, Decided] = {}
        self.evictions: dict[str, Decided] = {}
        self._preemptors: set[str] = set()
        """Asks for which the cluster evicts, one eviction after the other."""

    def _figures(self, queue: str) -> QueueFigures:
        return self.queues.setdefault(queue, QueueFigures())

    def pass_time(self, until: int) -> None:
        """Account for the time up to ``until``, in which nothing happens."""
        state, elapsed = self._state, until - self._time
        if elapsed <= 0:
            return
        self._time = until
        for queue in state.queues.values():
            if not queue.leaf or not queue.pending_asks:
                continue
            figures = self._figures(queue.path)
            figures.waited_ms += queue.pending_asks * elapsed
            for name, missing in _missing(state, queue):
                if missing > 0:
                    figures.unmet[name] = figures.unmet.get(name, 0) + missing * elapsed

    def take(self, events: Iterable[v.AnyEvent]) -> None:
        """Count the decisions among events that were applied just now."""
        state = self._state
        for event in events:
            if isinstance(event, v.AllocationBound | v.BindingObserved):
                self._binding(event)
            elif type(event) is v.EvictionObserved:
                self._observed(event)
            elif type(event) is v.PreemptionDecided:
                ask = state.asks.get(event.ask) or state.allocations.get(event.ask)
                if ask is not None:
                    self._figures(ask.queue).preemptions += 1
                self._victims(event.victims, Decided(time=state.time, ask=event.ask))
            elif type(event) is v.QuotaPreemptionDecided:
                self._victims(event.victims, Decided(time=state.time, queue=event.queue))

    def _binding(self, event: v.AllocationBound | v.BindingObserved) -> None:
        """Count a binding, unless it is one that the cluster confirms."""
        allocation = self._state.allocations.get(event.ask)
        known = self.bindings.get(event.ask)
        if (
            isinstance(event, v.BindingObserved)
            and allocation is not None
            and known is not None
            and known.time == allocation.bound
        ):
            return
        if allocation is not None:
            self._figures(allocation.queue).bound += 1
        podsets = {one.name: one.flavors or {} for one in event.podsets}
        chosen = podsets or ({"": event.flavors} if event.flavors else {})
        self.bindings[event.ask] = Decided(time=self._state.time, node=event.node, flavors=chosen)

    def _observed(self, event: v.EvictionObserved) -> None:
        """Count an eviction by the cluster, unless it is one that was counted already."""
        allocation = self._state.allocations.get(event.allocation)
        if allocation is None or event.allocation in self.evictions:
            return
        self._figures(allocation.queue).victims += 1
        ask = self._state.asks.get(event.preemptor)
        if ask is not None and ask.id not in self._preemptors:
            self._preemptors.add(ask.id)
            self._figures(ask.queue).preemptions += 1
        self.evictions[event.allocation] = Decided(time=self._state.time, ask=event.preemptor)

    def _victims(self, victims: tuple[v.Victim, ...], eviction: Decided) -> None:
        for victim in victims:
            self._figures(victim.queue).victims += 1
            self.evictions.setdefault(victim.id, eviction)

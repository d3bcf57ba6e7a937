"""A deliberately naive second implementation of preemption: all sets of victims of every node, judged rule by rule.

It shares nothing with the algorithm but the state it reads, of which it takes the plain facts alone
(who runs where, who waits, what was told, reserved and decided) and counts the rest anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from tests.core.pods import takes

HOUR = 3_600_000


@dataclass(frozen=True)
class Plan:
    """Victims on a node."""

    node: str
    victims: tuple[str, ...]


class World:
    """The facts of a state."""

    def __init__(self, state):
        """Copy them."""
        self.time = state.time
        types = state.types
        self.parent = {
            path: queue.parent.path if queue.parent is not None else None
            for path, queue in state.queues.items()
        }
        self.type_order = tuple(types.names)
        self.guaranteed = {
            path: self._named(queue.guaranteed) for path, queue in state.queues.items()
        }
        self.maximum = {path: self._named(queue.maximum) for path, queue in state.queues.items()}
        self.settings = {path: queue.settings for path, queue in state.queues.items()}
        self.nodes = {
            name: (dict(node.resources), node.schedulable) for name, node in state.nodes.items()
        }
        self.taking = {
            (ask.id, node.name): takes(state, ask, node)
            for ask in state.asks.values()
            for node in state.nodes.values()
        }
        self.allocations = dict(state.allocations)
        self.asks = dict(state.asks)
        here = {ask.shape for ask in self.asks.values()}
        here |= {one.shape for one in self.allocations.values()}
        self.amounts = {number: dict(types.shapes[number].resources) for number in here}
        self.reservations = dict(state.reservations)
        self.in_flight = set(state.preemptions)

    def _named(self, limits) -> dict[str, int]:
        return {self.type_order[index]: amount for index, amount in limits.items()}

    # ---------------------------------------------------------------------------------------- facts

    def path(self, queue: str) -> list[str]:
        """Return a queue and all above it."""
        found = [queue]
        while (above := self.parent[found[-1]]) is not None:
            found.append(above)
        return found

    def holds(self, thing) -> dict[str, int]:
        """Return what an ask or allocation holds, without zeros."""
        return {name: amount for name, amount in self.amounts[thing.shape].items() if amount}

    def usage(self, queue: str, without: Iterable[str] = ()) -> dict[str, int]:
        """Return what is used below a queue when everything told and these are gone."""
        gone, total = set(without), {}
        for allocation in self.allocations.values():
            if (
                not allocation.eviction_requested
                and allocation.id not in gone
                and queue in self.path(allocation.queue)
            ):
                for name, amount in self.holds(allocation).items():
                    total[name] = total.get(name, 0) + amount
        return total

    def promised(self, queue: str, ask: str) -> dict[str, int]:
        """Return what other asks in flight below a queue will use."""
        total: dict[str, int] = {}
        for other in self.in_flight - {ask}:
            if queue in self.path(self.asks[other].queue):
                for name, amount in self.holds(self.asks[other]).items():
                    total[name] = total.get(name, 0) + amount
        return total

    def common(self, one: str, other: str) -> str:
        """Return the lowest queue that contains both."""
        return next(queue for queue in self.path(one) if queue in self.path(other))

    def below(self, queue: str, asker: str) -> list[str]:
        """Return the queues of a path that do not contain the asker's leaf."""
        return [one for one in self.path(queue) if one not in self.path(asker)]

    def seen(self, queue: str, priority: int, point: str) -> int:
        """Return a priority as seen from a queue above."""
        for one in self.path(queue):
            if one == point:
                break
            settings = self.settings[one]
            priority = (
                settings.priority_offset
                if settings.priority_fence
                else priority + settings.priority_offset
            )
        return priority

    def guarantor(self, queue: str) -> str | None:
        """Return the closest queue with a guarantee."""
        return next((one for one in self.path(queue) if self.guaranteed[one]), None)

    # ---------------------------------------------------------------------------------------- rules

    def triggers(self, ask) -> bool:
        """Law 4."""
        queue = self.guarantor(ask.queue)
        if queue is None:
            return False
        usage, promised = self.usage(queue), self.promised(queue, ask.id)
        return any(
            usage.get(name, 0) + promised.get(name, 0) < self.guaranteed[queue][name]
            for name in self.holds(ask)
            if name in self.guaranteed[queue]
        )

    def spared(self, ask, victim) -> str | None:
        """Return the rule that spares a victim taken alone, law 2 aside."""
        point = self.common(ask.queue, victim.queue)
        guarantor = self.guarantor(ask.queue)
        fences = [
            one
            for one in self.path(ask.queue)
            if self.settings[one].preemption_policy == "fence" and self.parent[one]
        ]
        fence = fences[0] if fences else None
        if victim.eviction_requested:
            return "leaving"
        if victim.required_node is not None:
            return "required-node"
        if victim.queue == ask.queue:
            return "own-leaf"
        if victim.application == ask.application:
            return "law3"
        if self.settings[victim.queue].preemption_policy == "disabled":
            return "disabled"
        if not self.holds(victim).keys() & self.holds(ask).keys():
            return "no-shared-type"
        if guarantor in self.path(victim.queue):
            return "law4"
        for queue in self.below(victim.queue, ask.queue):
            usage, guaranteed = self.usage(queue), self.guaranteed[queue]
            if guaranteed and not any(
                usage.get(name, 0) > amount for name, amount in guaranteed.items()
            ):
                return "law5"
        if self.seen(victim.queue, victim.priority, point) > self.seen(
            ask.queue, ask.priority, point
        ):
            return "law6"
        if fence is not None and fence not in self.path(victim.queue):
            return "law7"
        return None

    def undercuts(self, ask, victims: Iterable) -> bool:
        """Law 2, for all victims together."""
        victims = list(victims)
        for queue in {queue for victim in victims for queue in self.below(victim.queue, ask.queue)}:
            left = self.usage(queue, [victim.id for victim in victims])
            given = {
                name
                for victim in victims
                if queue in self.path(victim.queue)
                for name in self.holds(victim)
            }
            if any(
                name in given and left.get(name, 0) < amount
                for name, amount in self.guaranteed[queue].items()
            ):
                return True
        return False

    def room(
        self, node: str, ask, victims: Iterable = (), *, told_go: bool = True
    ) -> dict[str, int]:
        """Return what an ask may use of a node when these victims are gone, and everything told as well."""
        gone = {victim.id for victim in victims}
        room = dict(self.nodes[node][0])
        for allocation in self.allocations.values():
            going = allocation.eviction_requested and told_go
            if allocation.node == node and not going and allocation.id not in gone:
                for name, amount in self.holds(allocation).items():
                    room[name] = room.get(name, 0) - amount
        for other, reserved in self.reservations.items():
            if reserved == node and other != ask.id:
                for name, amount in self.holds(self.asks[other]).items():
                    room[name] = room.get(name, 0) - amount
        return room

    def fits(self, node: str, ask, victims: Iterable = (), *, told_go: bool = True) -> bool:
        """Tell whether an ask fits a node and every maximum when these victims are gone."""
        victims = list(victims)
        room = self.room(node, ask, victims, told_go=told_go)
        if any(room.get(name, 0) < amount for name, amount in self.holds(ask).items()):
            return False
        for queue in self.path(ask.queue):
            usage, promised = (
                self.usage(queue, [victim.id for victim in victims]),
                self.promised(queue, ask.id),
            )
            for name, limit in self.maximum[queue].items():
                wanted = self.holds(ask).get(name, 0)
                if wanted and usage.get(name, 0) + promised.get(name, 0) + wanted > limit:
                    return False
        return True

    # ---------------------------------------------------------------------------------------- plans

    def broken(self, ask, node: str, victims: Iterable) -> list[str]:
        """Return every rule that a plan breaks, law 1 aside."""
        victims = list(victims)
        found = [] if self.triggers(ask) else ["law4"]
        found += [rule for victim in victims if (rule := self.spared(ask, victim)) is not None]
        found += ["law2"] if self.undercuts(ask, victims) else []
        found += ["other-node" for victim in victims if victim.node != node]
        found += [] if self.taking[ask.id, node] else ["unschedulable"]
        found += [] if self.fits(node, ask, victims) else ["does-not-fit"]
        for victim in victims:
            if self.fits(node, ask, [other for other in victims if other is not victim]):
                found.append("superfluous")
        return found

    def waits_for_free_room(self, ask) -> bool:
        """Tell whether an ask needs no victim: there is room, or, as long as it is patient, will be when those told are gone."""
        patient = not 0 < ask.patient_until <= self.time
        return any(
            self.taking[ask.id, node] and self.fits(node, ask, told_go=patient)
            for node in self.nodes
        )

    def plans(self, ask) -> Iterator[tuple[str, tuple]]:
        """Yield every lawful, minimal plan for an ask; none when it needs no victim."""
        if not self.triggers(ask) or self.waits_for_free_room(ask):
            return
        for node in sorted(self.nodes):
            if not self.taking[ask.id, node]:
                continue
            here = [
                one
                for one in self.allocations.values()
                if one.node == node and self.spared(ask, one) is None
            ]
            fitting: list[set[str]] = []
            for count in range(1, len(here) + 1):
                for victims in combinations(here, count):
                    ids = {victim.id for victim in victims}
                    if any(smaller <= ids for smaller in fitting) or self.undercuts(ask, victims):
                        continue
                    if self.fits(node, ask, victims):
                        fitting.append(ids)
                        yield node, victims

    def best(self, ask) -> Plan | None:
        """Return the cheapest plan by the default cost."""
        by_node: dict[str, list[tuple]] = {}
        for node, victims in self.plans(ask):
            by_node.setdefault(node, []).append(victims)
        chosen = [
            (node, min(plans, key=lambda plan: self.cost_here(ask, plan)))
            for node, plans in by_node.items()
        ]
        if not chosen:
            return None
        node, victims = min(chosen, key=lambda one: (*self.cost_between(ask, *one), one[0]))
        return Plan(node, tuple(sorted(victim.id for victim in victims)))

    # ------------------------------------------------------------------------------- required nodes

    def spared_required(self, ask, victim) -> str | None:
        """Return the rule that spares a victim from an ask that may run on this node only."""
        if victim.eviction_requested:
            return "leaving"
        if victim.required_node is not None:
            return "required-node"
        if not self.holds(victim).keys() & self.holds(ask).keys():
            return "no-shared-type"
        return "law6" if victim.priority > ask.priority else None

    def fits_required(self, ask, victims: Iterable = ()) -> bool:
        """Tell whether an ask fits its node when reservations without victims told for them do not count."""
        kept = self.reservations
        self.reservations = {
            other: node
            for other, node in kept.items()
            if other in self.in_flight or self.asks[other].required_node == node
        }
        try:
            return self.fits(ask.required_node, ask, victims)
        finally:
            self.reservations = kept

    def required_plans(self, ask) -> list[tuple]:
        """Return every minimal plan for an ask with a required node; none when it needs no victim."""
        node = ask.required_node
        if node not in self.nodes or not self.nodes[node][1] or self.fits_required(ask):
            return []
        here = [
            one
            for one in self.allocations.values()
            if one.node == node and self.spared_required(ask, one) is None
        ]
        found: list[tuple] = []
        for count in range(1, len(here) + 1):
            for victims in combinations(here, count):
                ids = {victim.id for victim in victims}
                if not any(
                    {victim.id for victim in smaller} <= ids for smaller in found
                ) and self.fits_required(ask, victims):
                    found.append(victims)
        return found

    def broken_required(self, ask, node: str, victims: Iterable[str]) -> list[str]:
        """Return what is wrong with a plan for an ask with a required node."""
        chosen = [self.allocations[name] for name in victims]
        found = [
            rule for victim in chosen if (rule := self.spared_required(ask, victim)) is not None
        ]
        found += [] if node == ask.required_node else ["other-node"]
        plans = self.required_plans(ask)
        if {victim.id for victim in chosen} not in [
            {victim.id for victim in plan} for plan in plans
        ]:
            found.append("no such plan")
        elif self.cost_here(ask, chosen) != min(self.cost_here(ask, plan) for plan in plans):
            found.append("not the cheapest")
        return found

    # ----------------------------------------------------------------------------------------- cost

    def cost_here(self, ask, victims) -> tuple:
        """Return the cost of a plan among those of its node."""
        ranked = sorted(victims, key=lambda one: (self.cost_one(ask, one), -one.seq))
        sums = [
            sum(column)
            for column in zip(*(self.cost_one(ask, victim) for victim in victims), strict=True)
        ]
        return (*sums, [(self.cost_one(ask, victim), -victim.seq) for victim in ranked])

    def cost_one(self, ask, victim) -> tuple:
        """Return the cost of one victim."""
        given = [
            self.holds(victim).get(name, 0)
            for name in sorted(self.holds(ask), key=self.type_order.index)
        ]
        return (
            not victim.allow_preemption,
            victim.originator,
            1,
            victim.priority,
            -victim.created,
            *given,
        )

    def cost_between(self, ask, node: str, victims) -> tuple:
        """Return the cost of a plan against those of other nodes."""
        ages = sum(self.time - victim.created for victim in victims) // HOUR
        waste = []
        for name in sorted(self.holds(ask), key=self.type_order.index):
            lacking = max(self.holds(ask)[name] - self.room(node, ask).get(name, 0), 0)
            waste.append(sum(self.holds(victim).get(name, 0) for victim in victims) - lacking)
        opted_out = sum(not victim.allow_preemption for victim in victims)
        originators = sum(victim.originator for victim in victims)
        return (
            opted_out,
            originators,
            len(victims),
            sum(victim.priority for victim in victims),
            ages,
            *waste,
        )

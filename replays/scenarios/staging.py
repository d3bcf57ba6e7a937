"""Turns the items of a scenario file into the inputs that a real cluster would have proposed.

A file names applications only in passing, on its asks and allocations. In policy language
``yunikorn`` an application is something of its own, so it is submitted before the first item that
names it, and is as old as the oldest item that came with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from events.vocabulary import (
    AllocationRestored,
    AnyInput,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
    NodeUpdated,
    ReservationRestored,
)
from evsched.config import ConfigurationError, from_mapping
from replays.scenarios.scenario import (
    ConfigDocument,
    Item,
    NodeItem,
    PendingItem,
    RunningItem,
    Scenario,
    ScenarioError,
    seconds_to_ms,
)


class Staging:
    """Makes the inputs of one scenario; it remembers which applications it has submitted."""

    def __init__(self, scenario: Scenario) -> None:
        """Start before second 0."""
        self._scenario = scenario
        self._applications: dict[str, None] = {}

    def beginning(self) -> list[AnyInput]:
        """Return the inputs of second 0, in an order in which each finds what it needs."""
        scenario = self._scenario
        inputs: list[AnyInput] = [self.configured(scenario.config)]
        inputs += [self.node(node) for node in scenario.nodes]
        inputs += self._new_applications((*scenario.running, *scenario.pending))
        inputs += [self._running(item) for item in scenario.running]
        inputs += [self._pending(item) for item in scenario.pending]
        inputs += [ReservationRestored(ask=one.ask, node=one.node) for one in scenario.reserved]
        return inputs

    def configured(self, config: ConfigDocument, place: str = "config") -> AnyInput:
        """Return what applies a configuration; ``place`` says where in the file it stands.

        Raises:
            ScenarioError: It is not valid in its own language, or not one of exactly one cluster
                partition.
        """
        try:
            found = from_mapping(config.format, config.document, place)
        except ConfigurationError as error:
            raise ScenarioError(self._scenario.name, str(error)) from error
        if len(found) != 1:
            names = ", ".join(one.partition for one in found)
            raise ScenarioError(
                self._scenario.name, f"{place}: found the partitions {names}, expected one"
            )
        return ConfigurationApplied(configuration=found[0])

    def submitted(self, items: tuple[PendingItem, ...]) -> list[AnyInput]:
        """Return what submits these asks, and their applications where they are new."""
        return [*self._new_applications(items), *(self._pending(item) for item in items)]

    def node(self, node: NodeItem, *, known: bool = False) -> AnyInput:
        """Return what adds a node, or replaces all of it when it is known."""
        kind = NodeUpdated if known else NodeRegistered
        return kind(
            node=node.name,
            capacity=node.capacity,
            labels=node.labels,
            schedulable=node.schedulable,
            taints=node.taints,
            ready=node.ready,
        )

    def _new_applications(self, items: Iterable[Item]) -> list[AnyInput]:
        if self._scenario.config.format == "kueue":
            return []
        first: dict[str, Item] = {}
        created: dict[str, int] = {}
        for item in items:
            if item.application and item.application not in self._applications:
                first.setdefault(item.application, item)
                created[item.application] = min(
                    self._at(item), created.get(item.application, self._at(item))
                )
        self._applications.update(dict.fromkeys(first))
        return [
            ApplicationSubmitted(
                application=name,
                queue=item.queue,
                user=item.user,
                groups=item.groups,
                created=created[name],
            )
            for name, item in first.items()
        ]

    def _at(self, item: Item) -> int:
        return self._scenario.start_ms + seconds_to_ms(item.created)

    def _shared(self, item: Item) -> dict[str, Any]:
        """Return the fields that asks and allocations have in common."""
        return {
            "application": item.application,
            "queue": item.queue,
            "user": item.user,
            "groups": item.groups,
            "resources": item.resources,
            "priority": item.priority,
            "allow_preemption": item.allow_preemption,
            "originator": item.originator,
            "required_node": item.required_node,
            "created": self._at(item),
            "uid": item.uid,
            "podsets": item.podsets,
            "flavors": item.flavors,
            "pod": item.pod,
        }

    def _running(self, item: RunningItem) -> AllocationRestored:
        admitted = (
            None
            if item.admitted is None
            else self._scenario.start_ms + seconds_to_ms(item.admitted)
        )
        return AllocationRestored(
            allocation=item.id,
            node=item.node,
            admitted=admitted,
            preempting=item.preempting,
            evicted=item.evicted,
            **self._shared(item),
        )

    def _pending(self, item: PendingItem) -> AskSubmitted:
        return AskSubmitted(
            ask=item.id,
            preemption_policy=item.preemption_policy,
            preempt_resources=item.preempt_resources,
            **self._shared(item),
        )

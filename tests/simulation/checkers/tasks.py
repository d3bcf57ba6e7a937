"""What happens to asks and allocations is possible, and a node holds no more than it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.truth import Step


class Ledger:
    """Who waits and who runs, kept as a clerk would.

    Attributes:
        waiting: Asks by id: the event, and the time of its step.
        running: Allocations by id: queue, node, amounts.
        nodes: Capacities.
    """

    def __init__(self, *, rooms: bool) -> None:
        """``rooms``: whether nodes count, which they do not where admission is by quota alone."""
        self.waiting: dict[str, tuple[dict[str, Any], int]] = {}
        self.running: dict[str, tuple[str, str | None, dict[str, int]]] = {}
        self.nodes: dict[str, dict[str, int]] = {}
        self._rooms = rooms
        self._takes: dict[str, Callable[[dict[str, Any], int], None]] = {
            "AskSubmitted": self._submitted,
            "AskWithdrawn": self._withdrawn,
            "AllocationBound": self._bound,
            "BindingObserved": self._observed,
            "AllocationRestored": self._restored,
            "AllocationReleased": self._released,
            "NodeRegistered": self._joined,
            "NodeUpdated": self._joined,
            "NodeRemoved": self._left,
            "PreemptionDecided": self._told,
            "QuotaPreemptionDecided": self._told,
        }

    def take(self, steps: list[Step]) -> None:
        """Take all events of the log."""
        for step in steps:
            for event in step.events:
                take = self._takes.get(event["type"])
                if take is not None:
                    take(event, step.time)

    def _submitted(self, event, time):
        name = event["ask"]
        if name in self.waiting or name in self.running:
            raise Found("tasks", f"event {event['seq']}: ask {name} is there already")
        self.waiting[name] = (event, time)

    def _withdrawn(self, event, time):
        if self.waiting.pop(event["ask"], None) is None:
            raise Found("tasks", f"event {event['seq']}: ask {event['ask']} does not wait")

    def _bound(self, event, time):
        self._begins(event)
        if self._rooms:
            self._must_have_room(event, event.get("node"))

    def _observed(self, event, time):
        """The cluster bound it by itself, so no room is checked; what runs may be seen again."""
        if event["ask"] not in self.running:
            self._begins(event)

    def _begins(self, event):
        name, node = event["ask"], event.get("node")
        if name not in self.waiting:
            raise Found("tasks", f"event {event['seq']}: ask {name} is bound and does not wait")
        wanted = self.waiting.pop(name)[0]
        amounts = wanted.get("resources", {})
        self.running[name] = (wanted.get("queue", ""), node, amounts)
        if node is not None and node not in self.nodes:
            raise Found("tasks", f"event {event['seq']}: node {node} is not there")

    def _must_have_room(self, event, node):
        used = sum(amounts["vcore"] for _, at, amounts in self.running.values() if at == node)
        if used > self.nodes.get(node, {}).get("vcore", 0):
            raise Found("tasks", f"event {event['seq']}: node {node} has no room for {used}")

    def _restored(self, event, time):
        name = event["allocation"]
        if name in self.waiting or name in self.running:
            raise Found("tasks", f"event {event['seq']}: task {name} is there already")
        self.running[name] = (event["queue"], event.get("node"), event.get("resources", {}))

    def _released(self, event, time):
        if self.running.pop(event["allocation"], None) is None:
            raise Found("tasks", f"event {event['seq']}: {event['allocation']} does not run")

    def _joined(self, event, time):
        if event.get("capacity") is not None:
            self.nodes[event["node"]] = event["capacity"]

    def _left(self, event, time):
        self.nodes.pop(event["node"], None)

    def _told(self, event, time):
        for victim in event["victims"]:
            if victim["id"] not in self.running:
                raise Found("tasks", f"event {event['seq']}: victim {victim['id']} does not run")

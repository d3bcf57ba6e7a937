"""What the reducer tells the indices that serve decisions alone.

Each index is built from the state when a decision first needs it and is told of every change from
then on. It must never hold anything that could not be built anew from the state: dropping it
(setting the attribute of `evsched.core.state.State` to None) is always allowed and changes no
decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.workloads import Allocation, Ask, Node


class Columns(Protocol):
    """Free space of nodes as columns."""

    def node_changed(self, node: Node) -> None:
        """Usage, capacity, reservations or schedulability of a node changed."""


class Order(Protocol):
    """Who is next among the asks that wait."""

    def asked(self, ask: Ask) -> None:
        """An ask started to wait."""

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits (it is already gone from the state)."""

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again."""

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended."""

    def used(self, application: Application) -> None:
        """Usage grew along the path of an application."""

    def freed(self, application: Application) -> None:
        """Usage, or what was promised to an ask in flight, shrank along the path of an application."""

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""


class Limits(Protocol):
    """What users and groups use."""

    def used(self, application: Application, pairs: Pairs) -> None:
        """An application got an allocation of these amounts."""

    def released(self, application: Application, pairs: Pairs) -> None:
        """An application lost an allocation of these amounts."""


class Victims(Protocol):
    """Who could be told to go."""

    def added(self, allocation: Allocation) -> None:
        """An allocation runs now."""

    def removed(self, allocation: Allocation) -> None:
        """An allocation is gone."""

    def changed(self, allocation: Allocation) -> None:
        """An allocation was told to go, or that was withdrawn."""

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed."""

    def nodes_changed(self) -> None:
        """A node came or went."""

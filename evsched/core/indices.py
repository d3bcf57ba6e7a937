"""What the reducer tells the index of the family in force (`evsched.core.state.State.index`).

An index serves decisions alone. A family builds it from the state when a decision first needs it,
and it is told of every change from then on. It must never hold anything that could not be built
anew from the state: dropping it (setting `State.index` to None) is always allowed and changes no
decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.workloads import Allocation, Ask, Node


class Index:
    """Nothing looks anything up in this one; a family overrides what it wants to be told of."""

    __slots__ = ()

    def asked(self, ask: Ask) -> None:
        """An ask started to wait."""

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits (it is already gone from the state)."""

    def tried(self, asks: tuple[str, ...]) -> None:
        """A cycle looked at these asks (they wait on)."""

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again."""

    def patient(self, ask: Ask) -> None:
        """An ask waits for a while for room that is being freed for others."""

    def claimed(self, application: Application, pairs: Pairs, sign: int) -> None:
        """An ask of an application is in flight now (``sign`` 1), or no longer (-1), and will use these amounts."""

    def freed(self, application: Application) -> None:
        """What was promised to an ask in flight of an application is promised no longer."""

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended."""

    def started(
        self, application: Application, allocation: Allocation, node: Node | None, pairs: Pairs
    ) -> None:
        """An allocation of these amounts runs now, on a node where it has one."""

    def ended(
        self, application: Application, allocation: Allocation, node: Node | None, pairs: Pairs
    ) -> None:
        """An allocation of these amounts is gone."""

    def changed(self, allocation: Allocation) -> None:
        """The eviction of an allocation was requested, or withdrawn."""

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed."""

    def node_joined(self, node: Node) -> None:
        """A node came."""

    def node_left(self, node: Node) -> None:
        """A node went (it is already gone from the state)."""

"""The index of YuniKorn's decisions: five parts, each built when a decision first needs it.

`columns` (free space of nodes), `order` (which ask is next), `victims` (which allocations could be
preempted), `limits` (what users and groups use) and `agenda` (which ask may preempt when).

The reducer reports each change to the index after the state has it, and the index passes it on to
the parts that are there. A part that is not there costs nothing: it will read the state when it is
built. A state that only follows a log has no index, and nothing is reported there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

from evsched.core.indices import Index
from evsched.core.yunikorn.agenda import Agenda

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask, Node


class Columns(Protocol):
    """Free space of nodes as columns."""

    def node_changed(self, node: Node) -> None:
        """Usage, capacity, reservations or schedulability of a node changed."""

    def node_joined(self, node: Node) -> None:
        """A node came."""

    def node_left(self, node: Node) -> None:
        """A node went (it is already gone from the state)."""

    def started(self, allocation: Allocation) -> None:
        """An allocation with a pod runs now."""

    def ended(self, allocation: Allocation) -> None:
        """An allocation with a pod is gone."""


class Order(Protocol):
    """Which of the asks that wait is next."""

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

    def claimed(self, application: Application, pairs: Pairs, sign: int) -> None:
        """An ask of an application is in flight now, or no longer."""


class Victims(Protocol):
    """Which allocations could be preempted."""

    def added(self, allocation: Allocation) -> None:
        """An allocation runs now."""

    def removed(self, allocation: Allocation) -> None:
        """An allocation is gone."""

    def changed(self, allocation: Allocation) -> None:
        """The eviction of an allocation was requested, or withdrawn."""

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed."""

    def node_joined(self, node: Node) -> None:
        """A node came."""

    def node_left(self, node: Node) -> None:
        """A node went (it is already gone from the state)."""


class YunikornIndex(Index):
    """The five parts; None for one that no decision has needed yet."""

    __slots__ = ("_state", "agenda", "columns", "limits", "order", "victims")

    def __init__(self, state: State) -> None:
        """Start with nothing built."""
        self._state = state
        self.agenda = Agenda(state)
        self.columns: Columns | None = None
        self.order: Order | None = None
        self.victims: Victims | None = None
        self.limits: Limits | None = None

    def asked(self, ask: Ask) -> None:
        """An ask started to wait."""
        self.agenda.add(ask)
        if self.order is not None:
            self.order.asked(ask)

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits."""
        if self.order is not None:
            self.order.unasked(ask)

    def returned(self, ask: Ask) -> None:
        """An ask that was in flight waits like any other again."""
        self.agenda.add(ask)
        self.agenda.wait(ask)
        if self.order is not None:
            self.order.returned(ask)

    def patient(self, ask: Ask) -> None:
        """An ask waits for a while for room that is being freed for others."""
        self.agenda.wait(ask)

    def claimed(self, application: Application, pairs: Pairs, sign: int) -> None:
        """An ask is in flight now, or no longer."""
        if self.limits is not None:
            self.limits.claimed(application, pairs, sign)

    def freed(self, application: Application) -> None:
        """What was promised to an ask in flight is promised no longer."""
        if self.order is not None:
            self.order.freed(application)

    def paused(self, application: Application) -> None:
        """An application was paused, or its pause ended, which gives its asks their turns back."""
        if application.id not in self._state.paused:
            for ask in application.asks.values():
                self.agenda.add(ask)
        if self.order is not None:
            self.order.paused(application)

    def started(
        self, application: Application, allocation: Allocation, node: Node | None, pairs: Pairs
    ) -> None:
        """An allocation runs now."""
        if self.columns is not None and node is not None:
            self.columns.node_changed(node)
            if allocation.pod is not UNSET:
                self.columns.started(allocation)
        if self.order is not None:
            self.order.used(application)
        if self.limits is not None:
            self.limits.used(application, pairs)
        if self.victims is not None:
            self.victims.added(allocation)

    def ended(
        self, application: Application, allocation: Allocation, node: Node | None, pairs: Pairs
    ) -> None:
        """An allocation is gone."""
        if self.columns is not None and node is not None:
            self.columns.node_changed(node)
            if allocation.pod is not UNSET:
                self.columns.ended(allocation)
        if self.order is not None:
            self.order.freed(application)
        if self.limits is not None:
            self.limits.released(application, pairs)
        if self.victims is not None:
            self.victims.removed(allocation)

    def changed(self, allocation: Allocation) -> None:
        """The eviction of an allocation was requested, or withdrawn."""
        if self.victims is not None:
            self.victims.changed(allocation)

    def queue_removed(self, path: str) -> None:
        """A queue in which nothing waits is gone."""
        if self.order is not None:
            self.order.queue_removed(path)

    def node_changed(self, node: Node) -> None:
        """Capacity, reservations or schedulability of a node changed."""
        if self.columns is not None:
            self.columns.node_changed(node)
        if self.victims is not None:
            self.victims.node_changed(node)

    def node_joined(self, node: Node) -> None:
        """A node came."""
        if self.columns is not None:
            self.columns.node_joined(node)
        if self.victims is not None:
            self.victims.node_joined(node)

    def node_left(self, node: Node) -> None:
        """A node went."""
        if self.columns is not None:
            self.columns.node_left(node)
        if self.victims is not None:
            self.victims.node_left(node)


def index_of(state: State) -> YunikornIndex:
    """Return the index of a state, a new one when there is none.

    One of another family of schedulers is replaced: its parts answer other questions.
    """
    index = state.index
    if not isinstance(index, YunikornIndex):
        index = state.index = YunikornIndex(state)
    return index

"""The index of Kueue's decisions: who waits in each ClusterQueue, and which workloads could be preempted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.indices import Index
from evsched.core.kueue.candidates import Candidates
from evsched.core.kueue.waiting import Waiting

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask, Node


class KueueIndex(Index):
    """Two parts; None for one that no decision has needed yet."""

    __slots__ = ("candidates", "waiting")

    def __init__(self) -> None:
        """Start with nothing built."""
        self.waiting: Waiting | None = None
        self.candidates: Candidates | None = None

    def asked(self, ask: Ask) -> None:
        """A workload started to wait."""
        if self.waiting is not None:
            self.waiting.asked(ask)

    def unasked(self, ask: Ask) -> None:
        """A workload no longer waits."""
        if self.waiting is not None:
            self.waiting.unasked(ask)

    def started(
        self,
        application: Application,  # noqa: ARG002 - the protocol's
        allocation: Allocation,
        node: Node | None,  # noqa: ARG002
        pairs: Pairs,  # noqa: ARG002
    ) -> None:
        """A workload was admitted."""
        if self.candidates is not None:
            self.candidates.added(allocation)

    def ended(
        self,
        application: Application,  # noqa: ARG002 - the protocol's
        allocation: Allocation,
        node: Node | None,  # noqa: ARG002
        pairs: Pairs,  # noqa: ARG002
    ) -> None:
        """A workload is gone."""
        if self.candidates is not None:
            self.candidates.removed(allocation)

    def changed(self, allocation: Allocation) -> None:
        """The eviction of a workload was requested, or withdrawn."""
        if self.candidates is not None:
            self.candidates.changed(allocation)


def index_of(state: State) -> KueueIndex:
    """Return the index of a state, a new one when there is none."""
    index = state.index
    if not isinstance(index, KueueIndex):
        index = state.index = KueueIndex()
    return index


def waiting_of(state: State) -> Waiting:
    """Return the index of a Kueue partition, built if this is its first use."""
    index = index_of(state)
    found = index.waiting
    if found is None:
        found = index.waiting = Waiting(state)
    return found


def candidates_of(state: State) -> Candidates:
    """Return the index of a Kueue partition, built if this is its first use."""
    index = index_of(state)
    found = index.candidates
    if found is None:
        found = index.candidates = Candidates(state)
    return found

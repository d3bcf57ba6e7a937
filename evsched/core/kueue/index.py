"""The index of Kueue's decisions: what waits, what could be preempted, and what a cycle could help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.indices import Index
from evsched.core.kueue.candidates import Candidates
from evsched.core.kueue.prospects import Prospects
from evsched.core.kueue.waiting import Waiting

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.resources import Pairs
    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask, Node


class KueueIndex(Index):
    """Three parts, each built when a decision first needs it.

    A part hears of a change by the method of its name. One that is not built yet hears of nothing:
    it is read from the state as a whole later. The state is the truth; an index may be dropped at
    any time.

    Attributes:
        waiting: The asks by ClusterQueue; None until a decision needs it, as for the others.
        candidates: Possible victims.
        prospects: What the asks could get at best (rules 2).
    """

    __slots__ = ("candidates", "prospects", "waiting")

    def __init__(self) -> None:
        """Start with nothing built."""
        self.waiting: Waiting | None = None
        self.candidates: Candidates | None = None
        self.prospects: Prospects | None = None

    def asked(self, ask: Ask) -> None:
        """A workload started to wait; candidates are those that run, and are not concerned."""
        for part in (self.waiting, self.prospects):
            if part is not None:
                part.asked(ask)

    def unasked(self, ask: Ask) -> None:
        """A workload no longer waits."""
        for part in (self.waiting, self.prospects):
            if part is not None:
                part.unasked(ask)

    def tried(self, asks: tuple[str, ...]) -> None:
        """A cycle looked at these workloads; they still wait."""
        for part in (self.waiting, self.prospects):
            if part is not None:
                part.tried(asks)

    def started(
        self,
        application: Application,  # noqa: ARG002 - the protocol's
        allocation: Allocation,
        node: Node | None,  # noqa: ARG002
        pairs: Pairs,
    ) -> None:
        """A workload was admitted; that it no longer waits is told by `unasked`."""
        for part in (self.candidates, self.prospects):
            if part is not None:
                part.started(allocation, pairs)

    def ended(
        self,
        application: Application,  # noqa: ARG002 - the protocol's
        allocation: Allocation,
        node: Node | None,  # noqa: ARG002
        pairs: Pairs,
    ) -> None:
        """A workload is gone."""
        for part in (self.candidates, self.prospects):
            if part is not None:
                part.ended(allocation, pairs)

    def changed(self, allocation: Allocation) -> None:
        """The eviction of a workload was requested, or withdrawn.

        Its usage counts until it is gone, so this concerns the order of candidates alone.
        """
        if self.candidates is not None:
            self.candidates.changed(allocation)


def index_of(state: State) -> KueueIndex:
    """Return the index of a state, a new one when there is none.

    A state that was read from a snapshot has none, and one of another family is replaced.
    """
    index = state.index
    if not isinstance(index, KueueIndex):
        index = state.index = KueueIndex()
    return index


def waiting_of(state: State) -> Waiting:
    """Return the asks of a Kueue partition by ClusterQueue, built if this is the first use."""
    index = index_of(state)
    if index.waiting is None:
        index.waiting = Waiting(state)
    return index.waiting


def candidates_of(state: State) -> Candidates:
    """Return the possible victims of a Kueue partition, built if this is the first use."""
    index = index_of(state)
    if index.candidates is None:
        index.candidates = Candidates(state)
    return index.candidates


def prospects_of(state: State) -> Prospects:
    """Return what asks of a Kueue partition could get at best, built if this is the first use."""
    index = index_of(state)
    if index.prospects is None:
        index.prospects = Prospects(state)
    return index.prospects

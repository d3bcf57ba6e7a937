"""The asks that wait in each ClusterQueue, best first: priority, then creation, then uid, then id (section 7).

Built when a cycle first needs it and told of every change (`evsched.core.kueue.index`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from evsched.core.kueue.model import quota_in
from evsched.core.kueue.stopping import held_local_queues

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.workloads import Ask

    Place = tuple[int, int, str, str]


def place_of(ask: Ask) -> Place:
    """Return the place of an ask in its queue: smaller is considered first."""
    return (-ask.priority, ask.created, ask.uid, ask.id)


class Waiting:
    """The asks of a Kueue partition by ClusterQueue.

    Attributes:
        queues: Path of a ClusterQueue to the places of its asks, sorted; queues without
            any are not there.
        trees: Path of the top of a cohort tree to the paths of its ClusterQueues that are in
            ``queues``.
        held: LocalQueues on hold; asks that came through them are not considered.
        new: Ids of asks that no cycle has looked at yet.
        strict: Path of the top of a tree to the paths of its ClusterQueues in ``queues`` that are
            ``StrictFIFO``.
    """

    def __init__(self, state: State) -> None:
        """Build the index from the asks that wait."""
        self.queues: dict[str, list[Place]] = {}
        self.trees: dict[str, dict[str, None]] = {}
        self.strict: dict[str, dict[str, None]] = {}
        self._all = state.queues
        self.new: dict[str, None] = {}
        self.held = held_local_queues(state)
        for ask in state.asks.values():
            self._places(ask.queue).append(place_of(ask))
            if ask.id not in state.unschedulable_since:
                self.new[ask.id] = None
        for places in self.queues.values():
            places.sort()

    def asked(self, ask: Ask) -> None:
        """An ask started to wait."""
        insort(self._places(ask.queue), place_of(ask))
        self.new[ask.id] = None

    def unasked(self, ask: Ask) -> None:
        """An ask no longer waits."""
        places = self.queues[ask.queue]
        del places[bisect_left(places, place_of(ask))]
        if not places:
            del self.queues[ask.queue]
            top = self._top(ask.queue)
            self.trees[top].pop(ask.queue)
            self.strict.get(top, {}).pop(ask.queue, None)
        self.new.pop(ask.id, None)

    def tried(self, names: tuple[str, ...]) -> None:
        """A cycle looked at these asks."""
        for name in names:
            self.new.pop(name, None)

    def _places(self, path: str) -> list[Place]:
        """Return the places of a queue, noted in its tree when its first ask comes."""
        places = self.queues.get(path)
        if places is None:
            places = self.queues[path] = []
            top, quota = self._top(path), quota_in(self._all[path])
            self.trees.setdefault(top, {})[path] = None
            if quota is not None and quota.spec is not None and quota.spec.strict_fifo:
                self.strict.setdefault(top, {})[path] = None
        return places

    def _top(self, path: str) -> str:
        """Return the path of the top of a queue's tree; a draining queue is a tree of its own."""
        quota = quota_in(self._all[path])
        return path if quota is None else quota.top.path

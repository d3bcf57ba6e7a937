"""Which workload is the head of its ClusterQueue, and which heads a round looks at (reference section 7).

The head is the best workload that is not *parked*. A workload is parked when a cycle looked at it in
vain, until something ends in its cohort tree; only ``BestEffortFIFO`` parks, under ``StrictFIFO``
the head stays the head and keeps those behind it waiting. A workload that preempted stays the head
too, so that what its victims free is kept for it, until a cycle finds that it does not help it any
more. Workloads of one queue and priority that want the same fare the same: once one was parked,
those behind it are parked with it.

Under rules 2 a workload that a cycle looked at before and could do nothing for counts as parked as
well (`evsched.core.kueue.prospects`). So a round after an end is about those that the end may help,
and about the heads that keep room; where there is none of the former there is no round. A
``StrictFIFO`` head that is passed over still holds those behind it back, and still keeps its room
where no reclaim could give it back (`evsched.core.kueue.cycle`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evsched.core.kueue.index import prospects_of
from evsched.core.kueue.model import quota_in, quota_of
from evsched.core.kueue.waiting import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.waiting import Waiting
    from evsched.core.state import State
    from evsched.core.workloads import Ask


def by_order(state: State, paths: Iterable[str]) -> list[str]:
    """Return paths of queues in the order of the configuration."""
    queues = state.queues
    return sorted(paths, key=lambda path: queues[path].order)


def is_open(state: State, path: str) -> bool:
    """Tell whether a ClusterQueue admits: it is in the configuration and not on hold."""
    quota = quota_in(state.queues[path])
    return quota is not None and quota.spec is not None and quota.spec.stop_policy == "None"


class QueueHeads:
    """The heads of all rounds of one step.

    Attributes:
        skips: Rules 2: workloads for which nothing can be done now are passed over.
        done: Workloads that had their turn in this step.
        reserving: Heads of this round for which nothing can be done and that keep room.
    """

    def __init__(self, state: State, waiting: Waiting) -> None:
        """Start with no workload looked at."""
        self._state = state
        self._waiting = waiting
        self.skips = state.rules.skips_hopeless
        self.done: dict[str, None] = {}
        self.reserving: dict[str, None] = {}
        self._vain: dict[tuple[str, int, int, bool], None] = {}
        self._hopeless: dict[str, None] = {}
        self._passed: dict[str, int] = {}
        self._paths: dict[Quota, list[str]] = {}

    def of(self, top: Quota, most: int | None) -> list[Ask]:
        """Return the heads of the next round in a tree; none when a round could bring nothing new.

        Args:
            top: Of the tree.
            most: So many at most that need not be in this round; None: all. Rules 1 have no limit.
        """
        if self.skips:
            return self._with_prospects(top, most)
        paths = self._paths.get(top)
        if paths is None:
            waiting = self._waiting.trees[top.path]
            paths = by_order(self._state, (one for one in waiting if is_open(self._state, one)))
            self._paths[top] = paths
        heads = [self._head(path, top) for path in paths]
        found = [head for head in heads if head is not None]
        return found if any(self._is_fresh(head, top) for head in found) else []

    def in_vain(self, ask: Ask) -> None:
        """Note that a cycle looked at a workload in vain.

        For the rest of the step others of its kind are parked with it, and its own victims, if it
        has any, no longer keep it at the head.
        """
        self._vain[_kind(ask)] = None
        self._hopeless[ask.id] = None

    def turn(self, ask: Ask) -> tuple[bool, int, int, tuple[int, int, str, str]]:
        """Return the sort key of a head in a round that the budget may cut.

        Those that keep room come first, as they are considered whatever they cost. Then higher
        priority, then those that no cycle looked at for longest, so that none is passed over for
        ever. The place of an ask ends in its id, which makes the order total.
        """
        keeps = not self.is_cuttable(ask)
        return (
            not keeps,
            -ask.priority,
            self._state.unschedulable_since.get(ask.id, 0),
            place_of(ask),
        )

    def is_cuttable(self, ask: Ask) -> bool:
        """Tell whether a head may wait for the next step.

        It may not while it is in flight, nor when it stays the head although nothing can be done
        for it: others would take the room that it keeps.
        """
        preemption = self._state.preemptions.get(ask.id)
        if preemption is not None and (preemption.waiting_for or not self.skips):
            return False
        if ask.id in self.reserving:
            return False
        return self._is_fresh(ask, quota_of(self._state.queues[ask.queue]).top)

    # ------------------------------------------------------------------------------------- all heads

    def _head(self, path: str, top: Quota) -> Ask | None:
        """Return the best workload of a queue that is not parked; None when all are.

        Rules 1. How far the search came is remembered, as what is parked stays so until the step
        ends.
        """
        state = self._state
        places = self._waiting.queues.get(path)
        if places is None:
            return None
        spec = quota_of(state.queues[path]).spec
        strict = spec is not None and spec.strict_fifo
        for number in range(self._passed.get(path, 0), len(places)):
            ask = state.asks[places[number][3]]
            if ask.local_queue and ask.local_queue in self._waiting.held:
                continue
            if strict or self._is_waited_for(ask, top) or not self._is_parked(ask, top):
                # Those before it stay parked for the rest of the run; no workload
                # joins them while it lasts.
                self._passed[path] = number
                return ask
        self._passed[path] = len(places)
        return None

    def _is_waited_for(self, ask: Ask, top: Quota) -> bool:
        """Tell whether a workload is in flight and its victims help it, as far as is known.

        Rules 2: one whose victims are all gone, and whose room is taken, is a head like any other.
        """
        preemption = self._state.preemptions.get(ask.id)
        if preemption is None or (self.skips and not preemption.waiting_for):
            return False
        return not self._is_hopeless(ask, top)

    def _is_parked(self, ask: Ask, top: Quota) -> bool:
        """Tell whether a workload is passed over until something ends in its tree.

        One like another that was looked at in vain is parked unseen. That needs the same shape;
        podsets and fixed flavors are not part of a shape, so such workloads are looked at
        themselves.
        """
        if not self._is_fresh(ask, top):
            return True
        if _kind(ask) in self._vain and not ask.podsets and ask.flavors is None:
            self.done[ask.id] = None
            return True
        return False

    def _is_fresh(self, ask: Ask, top: Quota) -> bool:
        """Tell whether looking at a workload may bring something new.

        It may when no cycle looked at it, or none since something ended in its tree; once in a
        step. In a tree that the budget cut, those that the earlier part of the pass looked at have
        had their turn.
        """
        if ask.id in self.done:
            return False
        tried = self._state.unschedulable_since.get(ask.id)
        since = self._since(top)
        return tried is None or since is None or tried <= since

    def _since(self, top: Quota) -> int | None:
        """Return the last cycle after which something ended in a tree.

        None: something did after all cycles. -1: nothing that was not looked into, as no cycle is
        that old.
        """
        if top.path in self._state.dirty_cohorts:
            return None
        return self._state.unfinished.get(top.path, -1)

    def _is_hopeless(self, ask: Ask, top: Quota) -> bool:
        """Tell whether a cycle found that the victims of an ask in flight do not help it any more.

        An earlier cycle of a pass that the budget cut has left that in the ask.
        """
        if ask.id in self._hopeless:
            return True
        return bool(self._state.rules.cycle_budget and ask.failed) and not self._is_fresh(ask, top)

    # ------------------------------------------------------------------------- heads with prospects

    def _with_prospects(self, top: Quota, most: int | None) -> list[Ask]:
        """Return the heads that a cycle could do something for, and those that keep room meanwhile.

        Queues with an ask in flight come first, then those of workloads with prospects until there
        are enough, then ``StrictFIFO`` queues, which keep room. Without a single head worth a
        round none are returned.

        Args:
            top: Of the tree.
            most: So many heads worth a round are enough; None: all.
        """
        state = self._state
        self.reserving = {}
        found: dict[str, Ask | None] = {}
        for name, preemption in state.preemptions.items():
            if not preemption.waiting_for:
                continue
            path = state.asks[name].queue
            quota = quota_in(state.queues[path])
            if quota is not None and quota.top is top and path not in found:
                found[path] = self._likely_head(path, top)
        more = 0
        for name in prospects_of(state).tree(top).order(self._since(top)):
            if most is not None and more >= most:
                break
            path = state.asks[name].queue
            if path not in found:
                found[path] = head = self._likely_head(path, top)
                more += self._is_live(top, head)
        if not any(map(partial(self._is_live, top), found.values())):
            return []
        for path in self._waiting.strict.get(top.path, ()):
            if path not in found:
                found[path] = self._likely_head(path, top)
        return [head for path in by_order(state, found) if (head := found[path]) is not None]

    def _is_live(self, top: Quota, head: Ask | None) -> bool:
        """Tell whether a head is worth a round: it is fresh, and does more than to keep room."""
        return head is not None and head.id not in self.reserving and self._is_fresh(head, top)

    def _likely_head(self, path: str, top: Quota) -> Ask | None:
        """Return the best workload of a queue that is in flight, or that a cycle could do something for.

        Of a ``StrictFIFO`` queue only the first one counts; where nothing can be done for it, it is
        returned if it keeps room.
        """
        state, likely = self._state, prospects_of(self._state).tree(top)
        spec = quota_of(state.queues[path]).spec
        if spec is None or not is_open(state, path):
            return None
        for place in self._waiting.queues[path]:
            ask = state.asks[place[3]]
            if ask.local_queue and ask.local_queue in self._waiting.held:
                continue
            if self._is_waited_for(ask, top):
                return ask
            if not self._is_parked(ask, top) and (
                ask.id not in state.unschedulable_since or likely.passes(ask.id)
            ):
                return ask
            if spec.strict_fifo:
                if spec.reclaim_within_cohort == "Any":
                    return None
                self.reserving[ask.id] = None
                return ask
        return None


def _kind(ask: Ask) -> tuple[str, int, int, bool]:
    """Return what those workloads have in common that fare the same.

    It is the queue, the amounts, the priority, and whether they may preempt.
    """
    return (ask.queue, ask.shape, ask.priority, ask.may_preempt)

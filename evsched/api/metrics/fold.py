"""Counting as the log is followed: what each event did, and what waits, runs and lacks after it.

An event is looked at twice, before the state takes it and after: what it ends is known before, what
it begins is known after. Beside the counters there is kept, by queue, how its applications
stand, which ask waits longest, and what of its guarantee is not met. None of it is ever looked for
among all asks, but for once when a state is taken up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from events import vocabulary as v
from evsched.api.metrics.counts import Counts, Tally, decode, encode
from evsched.core.lazy_heap import LazyHeap
from evsched.core.record import RECORDS
from evsched.core.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.chain import RecordedStep
    from evsched.core.queues import Application, Queue

RUNNING, ACCEPTED, NEW = "running", "accepted", "new"
"""How an application stands: something of it runs; it waits; it has nothing."""

_ENDED = frozenset({"completed", "preempted", "failed", "node removed", "application removed"})
"""The reasons for which an allocation ends; producers may write any, which are counted as `completed`."""


class MetricsFold:
    """What is counted of one log (protocol `projections.read_model.Fold`).

    Attributes:
        counts: What is kept.
        standing: Queue and how its applications stand to their number, those below included.
    """

    def __init__(self) -> None:
        """Begin at the beginning of a log."""
        self.counts = Counts()
        self.standing: dict[tuple[str, str], int] = {}
        self._state = State()
        self._known: dict[str, tuple[Queue, str]] = {}
        self._oldest: dict[str, LazyHeap[tuple[int, str]]] = {}
        self._lacking: dict[tuple[str, str], tuple[int, int]] = {}
        self._events: dict[type, Tally] = {}
        self._left: list[str] = []
        self._running: dict[str, int] = {}
        self._touched: dict[str, None] = {}

    # --------------------------------------------------------------------- what a read model calls

    def begin(self, state: State, kept: bytes | None) -> bool:
        """Take up what was kept with a state; see `projections.read_model.Fold`."""
        found = Counts() if kept is None else decode(kept)
        if found is None:
            return False
        self.counts = found
        self._events = {}
        self._take_up(state)
        return True

    def kept(self) -> bytes:
        """Return what is to be kept with the state."""
        self._settle_all()
        return encode(self.counts)

    def before(self, event: v.AnyEvent, state: State) -> None:
        """See `projections.read_model.Fold`."""
        look = _BEFORE.get(type(event))
        if look is not None:
            look(self, event, state)

    def after(self, event: v.AnyEvent, state: State) -> None:
        """See `projections.read_model.Fold`."""
        kind = type(event)
        tally = self._events.get(kind)
        if tally is None:
            self.counts.add("events", (kind.__name__,), event.seq, state.time)
            self._events[kind] = self.counts.series("events")[kind.__name__,]
        else:
            tally.value += 1
            tally.seq, tally.time = event.seq, state.time
        count = _AFTER.get(kind)
        if count is not None:
            count(self, event, state, state.time)

    def end(self, step: RecordedStep, state: State) -> None:
        """See `projections.read_model.Fold`."""
        if step.events:
            self.counts.add("steps", (), step.events[-1].seq, step.time)
        self._settle(state)

    # -------------------------------------------------------------------------------- what is shown

    def oldest(self) -> dict[str, int]:
        """Return by leaf when the ask that waits longest was created, milliseconds."""
        found = {path: heap.first() for path, heap in self._oldest.items()}
        return {path: first[0] for path, first in found.items() if first is not None}

    def unmet(self, until: int) -> dict[tuple[str, str], int]:
        """Return by queue and resource the amount-milliseconds of its guarantee that were not met, up to a time."""
        found = dict(self.counts.unmet)
        for key, (amount, since) in self._lacking.items():
            found[key] = found.get(key, 0) + amount * (until - since)
        return found

    def shown_unmet(self, queues: Iterable[str]) -> Counts:
        """Return what was not met of the guarantees of some queues as a counter ``unmet``, in whole amount-seconds."""
        shown = Counts()
        wanted = frozenset(queues)
        seq, time = self._state.seq, self._state.time
        for key, amount_ms in sorted(self.unmet(time).items()):
            if key[0] in wanted:
                shown.add("unmet", key, seq, time, amount_ms // 1000)
        return shown

    def admitted(self, queue: str) -> int:
        """Return how many allocations of a leaf there are."""
        return self._running.get(queue, 0)

    def lacking(self) -> dict[tuple[str, str], int]:
        """Return by queue and resource what is lacking of its guarantee now, where as much waits."""
        return {key: amount for key, (amount, _) in self._lacking.items()}

    # ------------------------------------------------------------------------------------- the past

    def _take_up(self, state: State) -> None:
        """Look through a state once."""
        self._state = state
        self.standing, self._known, self._oldest = {}, {}, {}
        self._lacking, self._running = {}, {}
        self._left, self._touched = [], {}
        for application in state.applications.values():
            self._stand(application)
            leaf = application.leaf.path
            self._running[leaf] = self._running.get(leaf, 0) + application.running
        for ask in state.asks.values():
            self._wait(state, ask.queue, ask.created, ask.id)
        for queue in state.queues.values():
            self._lack(state, queue)

    def _settle(self, state: State) -> None:
        """Bring what is kept by queue up to date where the step touched it."""
        names, self._left = self._left, []
        for name in dict.fromkeys(names):
            application = state.applications.get(name)
            if application is None or self._known.get(name, (None, ""))[0] is not application.leaf:
                self._forget(name)
            if application is not None:
                self._stand(application)
        touched, self._touched = self._touched, {}
        queues: dict[str, Queue] = {}
        for path in touched:
            leaf = state.queues.get(path)
            for queue in leaf.lineage if leaf is not None else ():
                queues[queue.path] = queue
        for queue in queues.values():
            self._lack(state, queue)

    def _settle_all(self) -> None:
        """Count what is lacking up to now, so that nothing but the counters need be kept."""
        now = self._state.time
        for key, (amount, since) in self._lacking.items():
            self.counts.unmet[key] = self.counts.unmet.get(key, 0) + amount * (now - since)
            self._lacking[key] = (amount, now)

    def _lack(self, state: State, queue: Queue) -> None:
        """Note what is lacking of a queue's guarantee: no more than waits in it."""
        names = state.types.names
        for index, guaranteed in queue.guaranteed.items():
            key = (queue.path, names[index])
            short = min(guaranteed - queue.usage[index], queue.pending[index])
            amount, since = self._lacking.get(key, (0, state.time))
            if amount:
                self.counts.unmet[key] = self.counts.unmet.get(key, 0) + amount * (
                    state.time - since
                )
            if short > 0:
                self._lacking[key] = (short, state.time)
            else:
                self._lacking.pop(key, None)

    def _lack_anew(self, state: State) -> None:
        """Note what is lacking under another configuration."""
        self._settle_all()
        self._lacking = {}
        for queue in state.queues.values():
            self._lack(state, queue)

    def _wait(self, state: State, leaf: str, created: int, name: str) -> None:
        heap = self._oldest.get(leaf)
        if heap is None:

            def waits(entry: tuple[int, str]) -> bool:
                ask = state.asks.get(entry[1])
                return ask is not None and ask.queue == leaf and ask.created == entry[0]

            heap = self._oldest[leaf] = LazyHeap(waits)
        heap.push((created, name), state.queues[leaf].pending_asks)

    def _stand(self, application: Application) -> None:
        how = RUNNING if application.allocations else ACCEPTED if application.asks else NEW
        known = self._known.get(application.id)
        if known == (application.leaf, how):
            return
        self._forget(application.id)
        self._known[application.id] = (application.leaf, how)
        for queue in application.leaf.lineage:
            key = (queue.path, how)
            self.standing[key] = self.standing.get(key, 0) + 1

    def _forget(self, name: str) -> None:
        leaf, how = self._known.pop(name, (None, ""))
        for queue in leaf.lineage if leaf is not None else ():
            left = self.standing[queue.path, how] - 1
            if left:
                self.standing[queue.path, how] = left
            else:
                del self.standing[queue.path, how]

    # ------------------------------------------------------------------------- events, before a step

    def _ends(self, event: v.AllocationReleased, state: State) -> None:
        one, counts, time = state.allocations[event.allocation], self.counts, state.time
        self._touch(one.queue, one.application)
        self._running[one.queue] -= 1
        reason = event.reason if event.reason in _ENDED else "completed"
        counts.add("released", (one.queue, reason), event.seq, time)
        if one.eviction_requested:
            span = time - one.eviction_requested
            kind = ("quota" if one.quota_of else "preemption",)
            counts.observe("gone", kind, event.seq, span)
            counts.observe("gone_by_queue", (one.queue,), event.seq, span)

    def _withdrawn(self, event: v.AskWithdrawn, state: State) -> None:
        ask = state.asks.get(event.ask)
        if ask is not None:
            self._touch(ask.queue, ask.application)

    def _removed(self, event: v.ApplicationRemoved, _: State) -> None:
        self._left.append(event.application)

    def _touch(self, leaf: str, application: str) -> None:
        self._touched[leaf] = None
        self._left.append(application)

    # -------------------------------------------------------------------------- events, after a step

    def _asked(self, event: v.AskSubmitted, state: State, time: int) -> None:
        ask = state.asks[event.ask]
        self._touch(ask.queue, ask.application)
        self._came(state, ask.application, event.seq, time)
        self._wait(state, ask.queue, ask.created, ask.id)

    def _bound(self, event: v.AllocationBound, state: State, time: int) -> None:
        one = state.allocations[event.ask]
        self._touch(one.queue, one.application)
        self._running[one.queue] = self._running.get(one.queue, 0) + 1
        self.counts.add("bound", (one.queue,), event.seq, time)
        self.counts.observe("waited", (one.queue,), event.seq, time - one.created)

    def _observed(self, event: v.BindingObserved, state: State, time: int) -> None:
        """Count an ask that the cluster bound; none where evsched had bound it, or where it ended meanwhile."""
        one = state.allocations.get(event.ask)
        if one is not None and one.seq == event.seq:
            self._touch(one.queue, one.application)
            self._running[one.queue] = self._running.get(one.queue, 0) + 1
            self.counts.observe("waited", (one.queue,), event.seq, time - one.created)

    def _restored(self, event: v.AllocationRestored, state: State, time: int) -> None:
        one = state.allocations[event.allocation]
        self._touch(one.queue, one.application)
        self._running[one.queue] = self._running.get(one.queue, 0) + 1
        self._came(state, one.application, event.seq, time)

    def _came(self, state: State, name: str, seq: int, time: int) -> None:
        """Count an application that came unsubmitted, with its first ask or allocation."""
        application = state.applications.get(name)
        if application is not None and application.seq == seq:
            self.counts.add("applications", (application.leaf.path, "accepted"), seq, time)

    def _placed(self, event: v.ApplicationPlaced, _: State, time: int) -> None:
        self.counts.add("applications", (event.queue, "accepted"), event.seq, time)
        self._left.append(event.application)

    def _rejected(self, event: v.InputRejected, state: State, time: int) -> None:
        self.counts.add("rejected", (event.code,), event.seq, time)
        asked = event.input
        if isinstance(asked, v.ApplicationSubmitted):
            queue = asked.queue if asked.queue in state.queues else ""
            self.counts.add("applications", (queue, "rejected"), event.seq, time)
        elif isinstance(asked, v.AskSubmitted):
            self.counts.add("asks_rejected", (), event.seq, time)

    def _preempted(self, event: v.PreemptionDecided, state: State, time: int) -> None:
        queue = state.asks[event.ask].queue
        for victim in event.victims:
            # Kueue's reasons are words; YuniKorn's are sentences, of which the algorithm is the rule.
            rule = victim.reason if victim.reason.isalnum() else event.algorithm
            self.counts.add("preemptions", (queue, victim.queue, rule), event.seq, time)

    def _enforced(self, event: v.QuotaPreemptionDecided, _: State, time: int) -> None:
        self.counts.deadlines.pop(event.queue, None)
        for victim in event.victims:
            self.counts.add("preemptions", ("", victim.queue, "quota"), event.seq, time)

    def _scheduled(self, event: v.QuotaPreemptionScheduled, _: State, __: int) -> None:
        self.counts.deadlines[event.queue] = event.at

    def _not_due(
        self, event: v.QuotaPreemptionCancelled | v.QuotaPreemptionUnhelpful, _: State, __: int
    ) -> None:
        self.counts.deadlines.pop(event.queue, None)

    def _suspended(self, event: v.DecisionSuspended, _: State, time: int) -> None:
        self.counts.add("suspended", (event.kind,), event.seq, time)

    def _failed(self, event: v.PreemptionFailed, _: State, time: int) -> None:
        self.counts.add("preemptions_failed", (), event.seq, time)

    def _repeated(self, event: v.EvictionRepeated, _: State, time: int) -> None:
        self.counts.add("evictions_repeated", (), event.seq, time)

    def _checked(self, event: v.CheckpointRecorded, _: State, time: int) -> None:
        """Count a checkpoint; a digest that were not that of the state would have ended the following."""
        known = event.record in RECORDS
        self.counts.add("checkpoints", ("equal" if known else "unknown",), event.seq, time)
        if known:
            self.counts.compared = event.seq

    def _configured(self, _: v.ConfigurationApplied, state: State, __: int) -> None:
        self._lack_anew(state)

    def _queue_removed(self, event: v.QueueRemoved, _: State, __: int) -> None:
        self._oldest.pop(event.queue, None)
        self.counts.deadlines.pop(event.queue, None)


_BEFORE: dict[type, Callable[[MetricsFold, Any, State], None]] = {
    v.AllocationReleased: MetricsFold._ends,  # noqa: SLF001 - the dispatch table of the class above
    v.AskWithdrawn: MetricsFold._withdrawn,  # noqa: SLF001
    v.ApplicationRemoved: MetricsFold._removed,  # noqa: SLF001
}

_AFTER: dict[type, Callable[[MetricsFold, Any, State, int], None]] = {
    v.AskSubmitted: MetricsFold._asked,  # noqa: SLF001
    v.AllocationBound: MetricsFold._bound,  # noqa: SLF001
    v.BindingObserved: MetricsFold._observed,  # noqa: SLF001
    v.AllocationRestored: MetricsFold._restored,  # noqa: SLF001
    v.ApplicationPlaced: MetricsFold._placed,  # noqa: SLF001
    v.InputRejected: MetricsFold._rejected,  # noqa: SLF001
    v.PreemptionDecided: MetricsFold._preempted,  # noqa: SLF001
    v.QuotaPreemptionDecided: MetricsFold._enforced,  # noqa: SLF001
    v.QuotaPreemptionScheduled: MetricsFold._scheduled,  # noqa: SLF001
    v.QuotaPreemptionCancelled: MetricsFold._not_due,  # noqa: SLF001
    v.QuotaPreemptionUnhelpful: MetricsFold._not_due,  # noqa: SLF001
    v.DecisionSuspended: MetricsFold._suspended,  # noqa: SLF001
    v.PreemptionFailed: MetricsFold._failed,  # noqa: SLF001
    v.EvictionRepeated: MetricsFold._repeated,  # noqa: SLF001
    v.CheckpointRecorded: MetricsFold._checked,  # noqa: SLF001
    v.ConfigurationApplied: MetricsFold._configured,  # noqa: SLF001
    v.QueueRemoved: MetricsFold._queue_removed,  # noqa: SLF001
}

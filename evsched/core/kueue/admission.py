"""Cycles until nothing more can be done, and what of them goes into the log (reference section 7; seed kueue_preemption).

A cycle looks at one head per ClusterQueue. Which ask is the head: the best one that is not
*parked*. An ask is parked when a cycle looked at it in vain, until something ends in its cohort
tree; only ``BestEffortFIFO`` parks, under ``StrictFIFO`` the head stays the head and keeps those
behind it waiting. An ask that has told victims to go stays the head too, so that what they free is
kept for it, until a cycle finds that it does not help it any more.

Trees are independent of each other and are worked through one by one. A round that admits, preempts
and parks nobody ends with all its heads done, so that a run always ends; where it parks a head,
those who only had no room beside that one have another turn. Asks of the same queue and priority
that want the same fare the same: once one has been parked, those behind it are parked with it.

**A run has a budget** (`evsched.core.rules.Rules.cycle_budget`), counted in work and not in time, so
that a step in a large tree does not hold everything else up. What is left is due in the next
millisecond, after the inputs that came meanwhile: the log names the trees that are unfinished and
the asks that had their turn, and the next run goes on behind them. A round that the budget cuts
considers the heads whose room it must keep (asks in flight, and under ``StrictFIFO`` those that were
looked at before), and of the other heads the first by priority,
then those that were not looked at for longest, so that every head has its turn. Where something
ends in an unfinished tree, all of its asks are looked at again, as ever.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.kueue import messages
from evsched.core.kueue.candidates import is_leaving
from evsched.core.kueue.cycle import Cycle, Nominee
from evsched.core.kueue.index import waiting_of
from evsched.core.kueue.model import Quota, quota_in, quota_of
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.shares import are_shared
from evsched.core.kueue.turns import turns
from evsched.core.kueue.waiting import Waiting, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.workloads import Ask

VAIN = ("no-fit", "no-victims")
"""Outcomes that only an end of something can better."""


def is_due(state: State) -> bool:
    """Tell whether a cycle could do anything: an ask is new, or something ended where somebody waits."""
    if len(state.asks) > len(state.unschedulable_since):
        return True
    queues = state.queues
    return any(
        path in queues and queues[path].pending_asks
        for path in (*state.dirty_cohorts, *state.unfinished)
    )


class Run:
    """All cycles of one step."""

    def __init__(self, step: Step) -> None:
        """Start with nobody looked at."""
        self.step = step
        self.state = step.state
        self.waiting: Waiting = waiting_of(step.state)
        # Who was noted as tried meanwhile is not new, if it was another who decided so and this one
        # followed.
        for name in [name for name in self.waiting.new if name in step.state.unschedulable_since]:
            del self.waiting.new[name]
        self.order: list[list[str]] = []
        self._done: dict[str, None] = {}
        self._vain: dict[tuple[str, int, int, bool], None] = {}
        self._hopeless: dict[str, None] = {}
        self._passed: dict[str, int] = {}
        self._budget = step.state.rules.cycle_budget
        self._work = 0

    # --------------------------------------------------------------------------------------- rounds

    def until_quiet(self) -> None:
        """Run cycles in every tree where somebody is new or something ended, and note who was looked at in vain."""
        unfinished = []
        for top, paths in self._trees():
            while (heads := self._heads(paths, top)) and any(
                self._is_fresh(head, top) for head in heads
            ):
                if self._budget and self._work >= self._budget:
                    unfinished.append(top.path)
                    break
                self._round(heads)
        self.close(tuple(unfinished))

    def once(self) -> None:
        """Run exactly one cycle over all trees, whoever was looked at before."""
        asks, held = self.state.asks, self.waiting.held
        heads: list[Ask] = []
        for path in self._by_order(self.waiting.queues):
            if self._is_open(path):
                waiting = (asks[place[3]] for place in self.waiting.queues[path])
                heads += islice((ask for ask in waiting if ask.local_queue not in held), 1)
        self._round(heads)
        self._end(
            tuple(
                head.id
                for head in heads
                if head.id in asks and head.id not in self.state.unschedulable_since
            )
        )

    def close(self, unfinished: tuple[str, ...] = ()) -> None:
        """Write that a cycle ran, where that has to be known: somebody new waits on, or something that ended was looked into."""
        state = self.state
        if unfinished:
            # The others are still new, or are looked at again: their turn is in the next step.
            self.waiting.new = {name: None for name in self.waiting.new if name not in self._done}
            self._end(tuple(name for name in self._done if name in state.asks), unfinished)
            return
        new = {
            **self.waiting.new,
            **self._done,
        }  # who has told victims to go counts as new again until this is written
        tried = tuple(
            name for name in new if name in state.asks and name not in state.unschedulable_since
        )
        if len(tried) + len(state.unschedulable_since) < len(state.asks):
            tried = tuple(name for name in state.asks if name not in state.unschedulable_since)
        self.waiting.new.clear()
        if tried or is_due(state):
            self._end(tried)

    def _end(self, tried: tuple[str, ...], unfinished: tuple[str, ...] = ()) -> None:
        self.step.emit(
            v.CycleStarted,
            cause=self.state.seq,
            kind="admission",
            tried=tried,
            again=bool(unfinished),
            unfinished=unfinished,
        )

    def _by_order(self, paths: Iterable[str]) -> list[str]:
        queues = self.state.queues
        return sorted(paths, key=lambda path: queues[path].order)

    def _trees(self) -> list[tuple[Quota, list[str]]]:
        """Return the trees that have something to do, with their queues in which somebody waits."""
        state = self.state
        busy = dict.fromkeys((*state.dirty_cohorts, *state.unfinished))
        for name in self.waiting.new:
            if name in state.asks:
                quota = quota_in(state.queues[state.asks[name].queue])
                if quota is not None:
                    busy[quota.top.path] = None
        found = []
        for top in self._by_order(path for path in busy if path in self.waiting.trees):
            paths = [path for path in self.waiting.trees[top] if self._is_open(path)]
            if paths:
                found.append((quota_of(state.queues[top]), self._by_order(paths)))
        return found

    def _is_open(self, path: str) -> bool:
        """Tell whether a ClusterQueue admits: it is in the configuration and not on hold."""
        quota = quota_in(self.state.queues[path])
        return quota is not None and quota.spec is not None and quota.spec.stop_policy == "None"

    # ---------------------------------------------------------------------------------------- heads

    def _heads(self, paths: list[str], top: Quota) -> list[Ask]:
        found = (self._head(path, top) for path in paths)
        return [head for head in found if head is not None]

    def _head(self, path: str, top: Quota) -> Ask | None:
        """Return the best ask of a queue that is not parked."""
        state = self.state
        places = self.waiting.queues.get(path)
        if places is None:
            return None
        spec = quota_of(state.queues[path]).spec
        strict = spec is not None and spec.strict_fifo
        start = self._passed.get(path, 0)
        for number in range(start, len(places)):
            ask = state.asks[places[number][3]]
            if ask.local_queue and ask.local_queue in self.waiting.held:
                continue
            kept = strict or (ask.id in state.preemptions and not self._is_hopeless(ask, top))
            if kept or not self._is_parked(ask, top):
                # Those before it stay parked for the rest of the run; nobody joins them while it
                # lasts.
                self._passed[path] = number
                return ask
        self._passed[path] = len(places)
        return None

    def _is_parked(self, ask: Ask, top: Quota) -> bool:
        if not self._is_fresh(ask, top):
            return True
        if _kind(ask) in self._vain and not ask.podsets and ask.flavors is None:
            self._done[ask.id] = None
            return True
        return False

    def _is_fresh(self, ask: Ask, top: Quota) -> bool:
        """Tell whether looking at an ask may bring something new."""
        state = self.state
        if ask.id in self._done:
            return False
        tried = state.unschedulable_since.get(ask.id)
        if tried is None or top.path in state.dirty_cohorts:
            return True
        return tried <= state.unfinished.get(top.path, -1)

    def _is_hopeless(self, ask: Ask, top: Quota) -> bool:
        """Tell whether a cycle found that the victims of an ask in flight do not help it any more.

        An earlier cycle of a pass that the budget cut has left that in the ask.
        """
        if ask.id in self._hopeless:
            return True
        return bool(self._budget and ask.failed) and not self._is_fresh(ask, top)

    def _turn(self, ask: Ask) -> tuple[bool, int, int, tuple[int, int, str, str]]:
        """Return the sort key of a head in a round that the budget may cut: those that keep room are first."""
        keeps = not self._is_cuttable(ask)
        return (
            not keeps,
            -ask.priority,
            self.state.unschedulable_since.get(ask.id, 0),
            place_of(ask),
        )

    def _is_cuttable(self, ask: Ask) -> bool:
        """Tell whether a head may wait for the next step: it is not in flight, nor a head that stays one (StrictFIFO)."""
        top = quota_of(self.state.queues[ask.queue]).top
        return ask.id not in self.state.preemptions and self._is_fresh(ask, top)

    # --------------------------------------------------------------------------------------- events

    def _round(self, heads: list[Ask]) -> None:
        """Run one cycle over these heads and write what it decides."""
        state = self.state
        searcher = Searcher(state, self.step.tracer)
        cycle = Cycle(state, searcher)
        kept = len(heads)
        if self._budget:
            heads = sorted(heads, key=self._turn)
            kept -= sum(map(self._is_cuttable, heads))
        left = max(1, self._budget - self._work)
        nominees = cycle.nominate(self._each(heads), kept, left)
        for nominee in turns(searcher.kueue, cycle.trial, nominees):
            self.step.ask = nominee.ask.id
            cycle.handle(nominee)
            self.step.ask = ""
        self._work += searcher.work
        self._note_order(cycle.order)
        moved = False
        for nominee in cycle.order:
            self.step.ask = nominee.ask.id
            moved = self._write(nominee) or moved
        self.step.ask = ""
        vain = [nominee for nominee in cycle.order if nominee.outcome in VAIN]
        for nominee in vain:
            self._vain[_kind(nominee.ask)] = None
            self._hopeless[nominee.ask.id] = None
        moved = moved or any(
            nominee.queue.spec is not None and not nominee.queue.spec.strict_fifo
            for nominee in vain
        )
        for nominee in cycle.order:
            if nominee.outcome in VAIN or nominee.outcome == "preempt" or not moved:
                self._done[nominee.ask.id] = None

    def _each(self, heads: list[Ask]) -> Iterator[Ask]:
        """Yield the heads, and note which one is being decided on."""
        for head in heads:
            self.step.ask = head.id
            yield head
        self.step.ask = ""

    def _write(self, nominee: Nominee) -> bool:
        """Write the events of a nominee; tell whether anything is different now."""
        ask, assignment = nominee.ask, nominee.assignment
        if nominee.outcome == "admit":
            self.step.emit(
                v.AllocationBound, cause=ask.seq, ask=ask.id, **bound(ask, assignment.flavors)
            )
            return True
        if nominee.outcome == "preempt":
            if ask.id in self.state.preemptions and all(
                is_leaving(target.allocation) for target in nominee.targets
            ):
                return False
            decide(self.step, nominee)
            return True
        if nominee.outcome in VAIN and ask.failed != assignment.reason:
            self.step.emit(v.PreemptionFailed, cause=ask.seq, ask=ask.id, reason=assignment.reason)
        return False

    def _note_order(self, order: list[Nominee]) -> None:
        """Keep the order of consideration, one list a tree, over all rounds of the run."""
        trees: dict[Quota, list[str]] = {}
        for nominee in order:
            trees.setdefault(nominee.queue.top, []).append(nominee.ask.id)
        self.order.extend(trees.values())


def decide(step: Step, nominee: Nominee) -> None:
    """Write that victims are being evicted for a nominee."""
    step.emit(
        v.PreemptionDecided,
        cause=nominee.ask.seq,
        ask=nominee.ask.id,
        node=None,
        victims=messages.victims(nominee.ask, nominee.queue, nominee.targets),
        algorithm="fair" if are_shared(step.state) else "classic",
    )


def _kind(ask: Ask) -> tuple[str, int, int, bool]:
    return (ask.queue, ask.shape, ask.priority, ask.may_preempt)


def bound(ask: Ask, flavors: tuple[dict[str, str], ...]) -> dict[str, object]:
    """Return the flavors of an admission as the event carries them."""
    if not ask.podsets:
        return {"flavors": flavors[0]}
    podsets = tuple(
        v.PodSet(name=podset.name, resources=podset.resources, flavors=chosen)
        for podset, chosen in zip(ask.podsets, flavors, strict=True)
    )
    return {"podsets": podsets}

"""Cycles until nothing more can be done, and what of them goes into the log (reference section 7; seed kueue_preemption).

A cycle looks at one head per ClusterQueue (`evsched.core.kueue.heads`).

Trees are independent of each other and are worked through one by one. A round without
an admission, a preemption or a parked head ends with all its heads done, so that a run always ends.
Where it parks a head, those that only had no room beside that one have another turn. Asks of the
same queue and priority that want the same fare the same: once one has been parked, those behind it
are parked with it.

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
from evsched.core.kueue.heads import QueueHeads, by_order, is_open
from evsched.core.kueue.index import waiting_of
from evsched.core.kueue.model import Quota, quota_in
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.shares import are_shared
from evsched.core.kueue.turns import turns
from evsched.core.kueue.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evsched.core.state import State
    from evsched.core.step import Step
    from evsched.core.workloads import Ask

VAIN = ("no-fit", "no-victims")
"""Outcomes that only an end of something can better."""

AWAITING = (*VAIN, "preempt", "overlap", "deferred")
"""The same, and those that wait for victims to leave: their own, or those of others."""


def is_due(state: State) -> bool:
    """Tell whether a cycle could do anything: an ask is new, or something ended where asks wait.

    It is asked whenever a cycle might be due, so it only counts: asks that no cycle tried are
    those that are missing among the tried ones. Trees that the budget cut are due as well.
    """
    if len(state.asks) > len(state.unschedulable_since):
        return True
    queues = state.queues
    return any(
        path in queues and queues[path].pending_asks
        for path in (*state.dirty_cohorts, *state.unfinished)
    )


class Run:
    """All cycles of one step.

    Attributes:
        step: Which takes the events; their order is that of the decisions.
        state: Of the step; every event that is written changes it at once.
        waiting: The asks that wait, by ClusterQueue.
        order: Ids of asks in the order of consideration, one list a round and tree.
    """

    def __init__(self, step: Step) -> None:
        """Start with no ask looked at, and with all of the budget left."""
        self.step = step
        self.state = step.state
        self.waiting: Waiting = waiting_of(step.state)
        self.order: list[list[str]] = []
        self._heads = QueueHeads(step.state, self.waiting)
        self._budget = step.state.rules.cycle_budget
        self._work = 0

    # --------------------------------------------------------------------------------------- rounds

    def until_quiet(self) -> None:
        """Run cycles in every tree that has something to do, and note which asks had their turn.

        The budget is asked before each round, so the first round of a run always takes place, and
        a round considers at least one head: a run never ends without progress. Once the budget is
        spent, every further tree that still has heads is left unfinished.
        """
        unfinished = []
        for top in self._trees():
            while heads := self._heads.of(top, self._most()):
                if self._budget and self._work >= self._budget:
                    unfinished.append(top.path)
                    break
                self._round(heads)
        self.close(tuple(unfinished))

    def _most(self) -> int | None:
        """Return how many heads the rest of the budget could consider at most; None: any number.

        Each look costs ``look_cost``, whatever comes of it. One more than fits is asked for, as
        the look that exceeds the budget is still made.
        """
        if not self._budget:
            return None
        return 1 + max(0, self._budget - self._work) // self.state.rules.look_cost

    def once(self) -> None:
        """Run exactly one cycle over all trees, whatever was looked at before; it is whole.

        The head of a queue is its first ask that came through no LocalQueue on hold: parked or
        not, it has its turn. No budget cuts the cycle. Heads that still wait afterwards count as
        tried, those that an earlier cycle tried keep its number.
        """
        asks, held = self.state.asks, self.waiting.held
        heads: list[Ask] = []
        for path in by_order(self.state, self.waiting.queues):
            if is_open(self.state, path):
                waiting = (asks[place[3]] for place in self.waiting.queues[path])
                heads += islice((ask for ask in waiting if ask.local_queue not in held), 1)
        self._budget = 0
        self._round(heads)
        self._end(
            tuple(
                head.id
                for head in heads
                if head.id in asks and head.id not in self.state.unschedulable_since
            )
        )

    def close(self, unfinished: tuple[str, ...] = ()) -> None:
        """Write that a cycle ran, where that has to be known.

        It has to be known where a new ask waits on, or where something that ended was looked into:
        a replay has no other way to learn which asks had their turn. Without either nothing is
        written, so that an idle scheduler leaves no trace in the log.

        Args:
            unfinished: Tops of the trees that the budget cut. With any, asks that had their turn
                count as tried, and the rest of the new ones stays new for the next step.
        """
        state = self.state
        if unfinished:
            # The others are still new, or are looked at again: their turn is in the next step.
            self.waiting.new = {
                name: None for name in self.waiting.new if name not in self._heads.done
            }
            self._end(tuple(name for name in self._heads.done if name in state.asks), unfinished)
            return
        new = {
            **self.waiting.new,
            **self._heads.done,
        }  # a preemptor counts as new again until this is written
        tried = tuple(
            name for name in new if name in state.asks and name not in state.unschedulable_since
        )
        if len(tried) + len(state.unschedulable_since) < len(state.asks):
            tried = tuple(name for name in state.asks if name not in state.unschedulable_since)
        self.waiting.new.clear()
        if tried or is_due(state):
            self._end(tried)

    def _end(self, tried: tuple[str, ...], unfinished: tuple[str, ...] = ()) -> None:
        """Write the event that ends the run.

        Args:
            tried: Ids of the asks that a cycle could do nothing for; they wait in the state.
            unfinished: Tops of the trees that were cut; with any, another cycle has to come.
        """
        self.step.emit(
            v.CycleStarted,
            cause=self.state.seq,
            kind="admission",
            tried=tried,
            again=bool(unfinished),
            unfinished=unfinished,
        )

    def _trees(self) -> list[Quota]:
        """Return the trees that have something to do, in the order of the configuration.

        Something ended there, the budget cut them, or a new ask waits. A tree in which no ask
        waits is left out; so is a draining queue, as it has no quota to admit into.
        """
        state = self.state
        busy = dict.fromkeys((*state.dirty_cohorts, *state.unfinished))
        for name in self.waiting.new:
            if name in state.asks:
                quota = quota_in(state.queues[state.asks[name].queue])
                if quota is not None:
                    busy[quota.top.path] = None
        waiting = (path for path in busy if path in self.waiting.trees)
        found = [quota_in(state.queues[path]) for path in by_order(state, waiting)]
        return [top for top in found if top is not None]

    # --------------------------------------------------------------------------------------- events

    def _round(self, heads: list[Ask]) -> None:
        """Run one cycle over these heads and write what it decides.

        All is decided on one picture before the first event is written, as events change the
        state. Under a budget the heads that keep room come first and are never cut; the others
        share what is left.

        The round moved if it admitted, preempted, or parked a head of a ``BestEffortFIFO`` queue,
        whose place the next one takes. When it did not, all its heads are done, which is what ends
        a run. When it did, heads in vain and those that preempt are done, under rules 2 also those
        that wait for the victims of others; a head that only lacked room beside others has another
        turn.
        """
        state = self.state
        searcher = Searcher(state, self.step.tracer)
        cycle = Cycle(state, searcher, self._heads.reserving)
        kept = len(heads)
        if self._budget:
            heads = sorted(heads, key=self._heads.turn)
            kept -= sum(map(self._heads.is_cuttable, heads))
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
            self._heads.in_vain(nominee.ask)
        moved = moved or any(
            nominee.queue.spec is not None and not nominee.queue.spec.strict_fifo
            for nominee in vain
        )
        had_turn = AWAITING if self._heads.skips else (*VAIN, "preempt")
        for nominee in cycle.order:
            if nominee.outcome in had_turn or not moved:
                self._heads.done[nominee.ask.id] = None

    def _each(self, heads: list[Ask]) -> Iterator[Ask]:
        """Yield the heads, and note which one is being decided on."""
        for head in heads:
            self.step.ask = head.id
            yield head
        self.step.ask = ""

    def _write(self, nominee: Nominee) -> bool:
        """Write the events of a nominee.

        A failure is written once for each reason, and not again at every cycle that finds the
        same.

        Returns:
            Whether anything is different now, so that another round may find something.
        """
        ask, assignment = nominee.ask, nominee.assignment
        if nominee.outcome == "admit":
            self.step.emit(
                v.AllocationBound, cause=ask.seq, ask=ask.id, **bound(ask, assignment.flavors)
            )
            return True
        if nominee.outcome == "preempt":
            # Where it waits for the victims of others alone, what they leave is not its own: it has
            # another turn when they are gone.
            kept = ask.id in self.state.preemptions
            gone = [target.allocation for target in nominee.targets]
            if kept and all(map(is_leaving, gone)):
                return False
            if self._heads.skips and all(one.victim_of for one in gone):
                return False
            decide(self.step, nominee)
            return True
        if nominee.outcome in VAIN and ask.failed != assignment.reason:
            self.step.emit(v.PreemptionFailed, cause=ask.seq, ask=ask.id, reason=assignment.reason)
        return False

    def _note_order(self, order: list[Nominee]) -> None:
        """Keep the order of consideration, one list a tree, over all rounds of the run.

        Trees do not affect each other, so an order between them would say nothing.
        """
        trees: dict[Quota, list[str]] = {}
        for nominee in order:
            trees.setdefault(nominee.queue.top, []).append(nominee.ask.id)
        self.order.extend(trees.values())


def decide(step: Step, nominee: Nominee) -> None:
    """Write that victims are being evicted for a nominee.

    No node is named, since quota alone decides here. The algorithm is that of the configuration
    now.
    """
    step.emit(
        v.PreemptionDecided,
        cause=nominee.ask.seq,
        ask=nominee.ask.id,
        node=None,
        victims=messages.victims(nominee.ask, nominee.queue, nominee.targets),
        algorithm="fair" if are_shared(step.state) else "classic",
    )


def bound(ask: Ask, flavors: tuple[dict[str, str], ...]) -> dict[str, object]:
    """Return the flavors of an admission as the event carries them.

    An ask without podsets is one podset without a name, and its event is the shorter one.
    """
    if not ask.podsets:
        return {"flavors": flavors[0]}
    podsets = tuple(
        v.PodSet(name=podset.name, resources=podset.resources, flavors=chosen)
        for podset, chosen in zip(ask.podsets, flavors, strict=True)
    )
    return {"podsets": podsets}

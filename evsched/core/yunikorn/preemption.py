"""The preemption cycle: who may preempt, in which order, how much at a time (seed cross_queue_preemption).

A cycle looks at every ask that is old enough and has not preempted yet, in the order of scheduling.
Asks that fail are masked until something changes that could help them (`State.unschedulable_since`); what an
earlier decision of the same cycle may have made possible is tried again in it. The pace of the
partition limits how many victims, and how much of each resource, one cycle may take; whoever has no
turn because of that has it in the next cycle.

An ask preempts once. Only when its node was lost to it does it get a second turn; see
`evsched.core.evictions`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from events import vocabulary as v
from events.configuration import PaceSpec, YunikornSpec
from evsched.core.resources import Pairs
from evsched.core.state import State
from evsched.core.step import Step
from evsched.core.workloads import Allocation, Ask
from evsched.core.yunikorn import guarantee, limits, nomination, passed_over, required_node
from evsched.core.yunikorn import victims as index_module
from evsched.core.yunikorn.cost import Cost, named
from evsched.core.yunikorn.eligible import Eligible, Similar
from evsched.core.yunikorn.guarantee import GOING, HOPELESS, Failure, Plan
from evsched.core.yunikorn.index import index_of
from evsched.core.yunikorn.laws import above_its_guarantee
from evsched.core.yunikorn.turns import AskKind, EqualAsks, PreemptionQueue

SLICE = 256
"""So many nodes are read at a time."""


def cycle(step: Step) -> None:
    """Run a preemption cycle and write down that it ran."""
    state = step.state
    spec = state.configuration
    assert isinstance(spec, YunikornSpec)
    tried, again = _Cycle(step, spec).run()
    step.emit(v.CycleStarted, cause=state.seq, kind="preemption", tried=tried, again=again)


def look_ahead(state: State) -> bool:
    """Read a slice of the index of victims when a preemption cycle is to come; tell whether more is left.

    So that no step has to read all of it: a leader does this between steps. Clusters of no more
    nodes than a slice are read when the cycle comes.
    """
    spec = state.configuration
    assert isinstance(spec, YunikornSpec)
    return (
        spec.preemption_enabled
        and len(state.nodes) > SLICE
        and index_of(state).agenda.next_cycle(spec.pace.interval_ms) is not None
        and index_module.prepare(state, named(spec.cost, state.rules), SLICE)
    )


def may_have_turn(state: State) -> Iterator[Ask]:
    """Yield the asks that may preempt now: allowed to, old enough, not in flight, not paused, and for the first time."""
    time, queues, preemptions, paused = state.time, state.queues, state.preemptions, state.paused
    for ask in state.asks.values():
        if (
            ask.may_preempt
            and not ask.preempted
            and ask.id not in preemptions
            and ask.application not in paused
            and (
                ask.required_node is not None
                or ask.created + queues[ask.queue].settings.preemption_delay_ms <= time
            )
        ):
            yield ask


class _Cycle:
    """One cycle while it runs.

    What was found out is kept until something is decided, since a decision may change any of it:
    failures of equal asks (`_failed`), failures that hold for whoever wants more (`_hopeless`),
    and eligible victims of similar asks (`_known`).

    Attributes:
        tried: Asks that failed in this cycle and are not yet known to have failed, in order.
    """

    def __init__(self, step: Step, spec: YunikornSpec) -> None:
        """Begin a cycle: nothing was tried, and all of the pace is left.

        The cost is looked up once, as the victim index belongs to one cost.
        """
        self.step = step
        self.state = step.state
        self.cost: Cost = named(spec.cost, step.state.rules)
        self.pace = _Pace(spec.pace, step.state)
        self.tried: dict[str, None] = {}
        self._failed: dict[tuple[str, AskKind], Failure] = {}
        self._hopeless: dict[tuple[str, int, bytes | UnsetType], list[tuple[Pairs, Failure]]] = {}
        self._known: dict[Similar, Eligible] = {}

    def run(self) -> tuple[tuple[str, ...], bool]:
        """Give every ask a turn, and again to those left while there are decisions.

        Returns:
            The asks that were tried in vain, and whether the next cycle must come even if nothing
            changes until then: the pace ended this one before every ask had its turn.
        """
        waiting = list(may_have_turn(self.state))
        while True:
            decided = self._round(waiting)
            if decided is None:
                return tuple(self.tried), True
            if not decided or len(decided) == len(waiting):
                return tuple(self.tried), False
            waiting = [ask for ask in waiting if ask.id not in decided]

    def _round(self, waiting: list[Ask]) -> dict[str, None] | None:
        """Give every ask a turn once.

        Equal asks fail together: where the first of a line has no plan, the rest of the line is
        not tried. Where it has one, the decision is written at once, so that the next plan is made
        on what is left.

        Returns:
            The asks that preempt or were nominated; None when the pace ended the round.
        """
        decided: dict[str, None] = {}
        turns = PreemptionQueue(self.state, waiting)
        while (line := turns.next()) is not None:
            self.step.ask = line.first.id
            failure = self._held_back(line.first)
            if failure is None:
                self._note(line)
                failure = self._failed.get(line.kind) or self._beyond_hope(line.first)
            if failure is None:
                ask = line.first
                plan = self._plan(ask)
                if not isinstance(plan, Failure):
                    if not self.pace.allows(plan.victims):
                        return None
                    self._decide(ask, plan)
                    decided[ask.id] = None
                    self._forget()
                    turns.done(line)
                    continue
                if plan.node:
                    nomination.nominate(self.step, ask, plan.node, plan.until)
                    self.tried.pop(ask.id, None)
                    decided[ask.id] = None
                    self._forget()
                    turns.done(line)
                    continue
                failure = self._failed[line.kind] = plan
                self._learn(ask, failure)
            self._fail(line, failure)
            turns.drop(line)
        self.step.ask = ""
        # What waits behind another new application of a stateaware leaf was looked at, too.
        known = self.state.unschedulable_since
        self.tried.update(
            (ask.id, None) for ask in waiting if ask.id not in decided and ask.id not in known
        )
        return decided

    def _forget(self) -> None:
        """Forget what was found out before a decision."""
        self._failed.clear()
        self._hopeless.clear()
        self._known.clear()

    def _learn(self, ask: Ask, failure: Failure) -> None:
        """Keep a failure that holds for every ask of the leaf, with a pod like its own, that wants at least as much.

        Not one that ended at its budget, which says nothing; not one for an ask with a node of its
        own.
        """
        if (
            failure.code in HOPELESS
            and not failure.cut
            and ask.required_node is None
            and ask.id not in self.state.reservations
        ):
            pairs = self.state.types.shapes[ask.shape].pairs
            key = (ask.queue, ask.priority, ask.pod)
            self._hopeless.setdefault(key, []).append((pairs, failure))

    def _beyond_hope(self, ask: Ask) -> Failure | None:
        """Return the failure of an ask of the same leaf, priority and kind of pod that wanted no more of anything.

        Victims that make room for more make room for less, so where there is no plan for less there
        is none for more.
        """
        if ask.required_node is not None or ask.id in self.state.reservations:
            return None
        asked = dict(self.state.types.shapes[ask.shape].pairs)
        for pairs, failure in self._hopeless.get((ask.queue, ask.priority, ask.pod), ()):
            if all(asked.get(index, 0) >= amount for index, amount in pairs):
                return failure
        return None

    def _held_back(self, ask: Ask) -> Failure | None:
        """Return a failure for an ask that a limit of its user, group or application holds back.

        It could not be bound even if there were room, so nothing is evicted for it. The failure
        has no words: nothing is written to the log, and `explain` names the limit.
        """
        held = limits.blocks(
            self.state,
            self.state.applications[ask.application],
            self.state.types.shapes[ask.shape].pairs,
        )
        return None if held is None else Failure("limit", "")

    def _note(self, line: EqualAsks) -> None:
        """Tell the tracer what there is to consider for each ask of a line.

        Equal asks are planned for together, but each of them may be asked about by itself.
        """
        tracer = self.step.tracer
        if tracer is not None:
            for ask in line.in_order():
                if tracer.wants(ask.id):
                    passed_over.note(self.state, ask, tracer)

    def _plan(self, ask: Ask) -> Plan | Failure:
        """Return what can be done for an ask: a plan, or the failure that says why there is none.

        An ask that requires a node stands outside the laws of queues, and has a search of its own.
        """
        if ask.required_node is not None:
            return required_node.find_plan(self.state, self.cost, ask)
        return guarantee.find_plan(self.state, self.cost, ask, self._known)

    def _decide(self, ask: Ask, plan: Plan) -> None:
        """Write a preemption down.

        A plan without victims is a reservation only, which `make_way` has written by then.
        """
        required = ask.required_node is not None
        if required:
            required_node.make_way(self.step, ask, plan)
        victims = tuple(
            v.Victim(id=victim.id, queue=victim.queue, reason=_reason(self.state, ask, victim))
            for victim in plan.victims
        )
        self.pace.take(plan.victims)
        self.tried.pop(ask.id, None)
        if not victims:
            return
        self.step.emit(
            v.PreemptionDecided,
            cause=ask.seq,
            ask=ask.id,
            node=plan.node,
            victims=victims,
            algorithm="required-node" if required else "guarantee",
            cut=plan.cut,
        )

    def _fail(self, line: EqualAsks, failure: Failure) -> None:
        """Write down why a line fails.

        The first time each of its asks gets an event, after that only the one at its head, when
        the reason is another one: a thousand equal asks would otherwise write a thousand events
        whenever something changes.
        """
        state = self.state
        known = state.unschedulable_since
        for ask in line.in_order():
            self.step.ask = ask.id
            if ask.id not in known:
                self.tried[ask.id] = None
            if failure.code == GOING:
                if not ask.patient_until:
                    until = failure.until or state.time + state.rules.patience_ms
                    self.step.emit(
                        v.PreemptionFailed,
                        cause=ask.seq,
                        ask=ask.id,
                        reason=failure.reason,
                        until=until,
                    )
            elif (
                failure.reason
                and failure.reason != ask.failed
                and (not ask.failed or ask is line.first)
            ):
                self.step.emit(
                    v.PreemptionFailed,
                    cause=ask.seq,
                    ask=ask.id,
                    reason=failure.reason,
                    cut=failure.cut,
                )


class _Pace:
    """What one cycle may take (``preemption.pace``).

    The first plan of a cycle is always allowed, or one that is larger than that would wait for
    ever.
    """

    def __init__(self, spec: PaceSpec, state: State) -> None:
        """Start with what the configuration allows one cycle; what it leaves out is not limited.

        Amounts are kept by index of the type.
        """
        self.victims_left = spec.max_victims
        # Looked up and not made known: no decision adds to the truth. What no event has named yet,
        # nobody holds.
        index = state.types.index
        self.left = {
            index[name]: amount
            for name, amount in (spec.max_resources or {}).items()
            if name in index
        }
        self.shapes = state.types.shapes
        self.begun = False

    def allows(self, victims: tuple[Allocation, ...]) -> bool:
        """Tell whether the cycle may take these victims, too."""
        if not self.begun:
            return True
        if self.victims_left is not None and len(victims) > self.victims_left:
            return False
        return all(amount <= self.left[index] for index, amount in self._held(victims).items())

    def take(self, victims: tuple[Allocation, ...]) -> None:
        """Count these victims.

        What is left may become negative, as the first plan is allowed whatever its size.
        """
        self.begun = self.begun or bool(victims)
        if self.victims_left is not None:
            self.victims_left -= len(victims)
        for index, amount in self._held(victims).items():
            self.left[index] -= amount

    def _held(self, victims: tuple[Allocation, ...]) -> dict[int, int]:
        """Return what victims hold of the types that the pace counts."""
        held: dict[int, int] = {}
        for victim in victims:
            for index, amount in self.shapes[victim.shape].pairs:
                if index in self.left:
                    held[index] = held.get(index, 0) + amount
        return held


def _reason(state: State, ask: Ask, victim: Allocation) -> str:
    """Return the rule that made a victim eligible, for people.

    It is written into the event. For a victim that opted out it adds that no other choice spares
    it.
    """
    if ask.required_node is not None:
        rule = f"node {ask.required_node} is the only one for {ask.id} (required node)"
        return rule if victim.allow_preemption else f"{rule}; no other choice spares it (law 1)"
    rule = above_its_guarantee(state.queues[victim.queue])
    return rule if victim.allow_preemption else f"{rule}; no plan on any node spares it (law 1)"

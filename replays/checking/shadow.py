"""Shadow: what a cluster's own scheduler did, beside what evsched would have done at the same point.

The history is applied as it was. Wherever the cluster bound or evicted, a copy of the state of right
before decides, with the time of that step, and what it decides is held against what happened. So
each decision is compared on the picture that the real scheduler had, whatever came before.

Observations that follow each other in one step are one *point*. What evsched would do at a point may
be done by the cluster later, in its own time; only what it never does by the end counts as
something that evsched alone would do.

A copy costs as much as a snapshot of the state, so a report over a day of a large cluster takes a
while. Nothing is written anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from events import vocabulary as v
from events.chain import ChainReader
from evsched.core.recorded import apply_recorded
from replays.checking.ledger import Ledger
from replays.explaining.explain import explain_ask
from replays.explaining.node_conditions import unmodelled
from replays.history.moments import END, Moment
from replays.history.steps import copy
from replays.observed_wording import SHADOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from events.chain import RecordedStep
    from evsched.core.engine import Engine
    from evsched.core.state import State
    from replays.history.rebuild import History

Verdict = Literal[
    "same", "other-node", "other-order", "other-victims", "only-theirs", "only-ours", "not-modelled"
]

STEPS_A_POINT = 16
"""How many steps a copy takes at most at one point, where a cycle is cut by its budget."""

Seen = v.BindingObserved | v.EvictionObserved


class ShadowQuestion(Struct, frozen=True, kw_only=True):
    """Where would evsched have decided otherwise than the scheduler of the cluster?

    Attributes:
        start: From when on.
        end: Up to which moment.
        rules: Version of the rules by which evsched decides; None: those in force at each place.
        explained: Of how many differences about an ask it is said what holds that ask here.
    """

    start: Moment = Moment(seq=0)
    end: Moment = END
    rules: int | None = None
    explained: int = 100


class ShadowRow(Struct, frozen=True, kw_only=True):
    """One decision of either side.

    Attributes:
        seq: Of the observation; of what evsched alone would do, the point of the log where it first
            would.
        subject: The ask that is bound, or for which others are evicted; the allocation where that ask is not known.
        kind: What is decided about it.
        theirs, ours: The node, the flavors or the victims; empty: nothing.
        scheduler: Who decided it in the cluster; empty: unknown, or nobody did.
        text: Why evsched decides otherwise; empty where it does not.
    """

    seq: int
    time: int
    subject: str
    kind: Literal["binding", "eviction"]
    verdict: Verdict
    theirs: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    scheduler: str = ""
    text: str = ""


class ShadowFigures(Struct, kw_only=True):
    """What one side did, or would have done.

    Attributes:
        bound: Asks.
        waited_ms: How long these waited, all together. For evsched up to the first point at which
            it would have bound them, or their real binding where there was none.
        preemptions: Asks, or allocations of unknown preemptors, for which others were evicted.
    """

    bound: int = 0
    waited_ms: int = 0
    preemptions: int = 0


class ShadowAnswer(Struct, frozen=True, kw_only=True):
    """A comparison with the scheduler of a cluster.

    Attributes:
        steps: How many of the log were read.
        compared: Decisions of either side; ``same`` of them agree.
        verdicts: How many rows have each verdict; those that no row has are left out.
        unmodelled: How many decisions concern pods that ask for what is not decided by, by its name.
        unmet: What queues lacked of their guarantees in the real history, by resource: amount times
            milliseconds.
        gaps: How often the observer lost its place.
    """

    steps: int
    compared: int
    same: int
    verdicts: dict[str, int]
    theirs: ShadowFigures
    ours: ShadowFigures
    unmodelled: dict[str, int]
    unmet: dict[str, int]
    gaps: int
    rows: tuple[ShadowRow, ...]


class Wish(NamedTuple):
    """What evsched would do for an ask, at the first point where it would."""

    seq: int
    time: int
    kind: Literal["binding", "eviction"]
    what: tuple[str, ...]


class Would(NamedTuple):
    """What evsched would do at one point: bindings by ask, victims by the ask that gets their room."""

    bindings: dict[str, tuple[str, ...]]
    evictions: dict[str, tuple[str, ...]]


async def shadow(
    history: History,
    question: ShadowQuestion,
    progress: Callable[[RecordedStep], None] | None = None,
) -> ShadowAnswer:
    """Compare what a cluster's own scheduler did with what evsched would have done at each point.

    Args:
        history: A log in which the cluster was recorded.
        question: Over which stretch, and by which rules.
        progress: Called after every step.
    """
    engine, reader = await history.boundary(question.start)
    run = Shadow(engine, question.rules, question.explained)
    async for step in history.steps(ChainReader(reader.head), question.end):
        run.take(step)
        if progress is not None:
            progress(step)
    return run.answer()


class Shadow:
    """A comparison while it runs over the steps of a log."""

    def __init__(self, engine: Engine, rules: int | None = None, explained: int = 100) -> None:
        """Begin with the state before the first step; it is moved on."""
        self._engine = engine
        self._rules = rules
        self._explain = explained
        self._ledger = Ledger(engine.state)
        self._steps = self._gaps = 0
        self._rows: list[ShadowRow] = []
        self._unmodelled: dict[str, int] = {}
        self._theirs, self._ours = ShadowFigures(), ShadowFigures()
        self._wishes: dict[str, Wish] = {}
        self._fulfilled: dict[str, None] = {}

    def take(self, step: RecordedStep) -> None:
        """Take the next step: compare at each point in it, and apply it."""
        self._steps += 1
        self._ledger.pass_time(step.time)
        for events in _runs(step.events):
            point = [one for one in events if isinstance(one, Seen)]
            effective = [one for one in point if _has_effect(self._engine.state, one)]
            if effective:
                self._compare(effective, step.time)
            self._gaps += sum(isinstance(one, v.ObservationGap) for one in events)
            apply_recorded(self._engine, events, step.time, step.head.position)
            self._ledger.take(events)
        self._engine.state.time = step.time

    def answer(self) -> ShadowAnswer:
        """Return the comparison; what evsched alone would have done comes last."""
        alone = [
            ShadowRow(
                seq=wish.seq, time=wish.time, subject=ask, kind=wish.kind, verdict="only-ours",
                ours=wish.what, text=SHADOW["only-ours", wish.kind].format(what=", ".join(wish.what)),
            )
            for ask, wish in self._wishes.items()
            if ask not in self._fulfilled
        ]  # fmt: skip
        rows = (*self._rows, *alone)
        verdicts: dict[str, int] = {}
        for row in rows:
            verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
        self._ours.preemptions += sum(row.kind == "eviction" for row in alone)
        unmet: dict[str, int] = {}
        for figures in self._ledger.queues.values():
            for name, amount in figures.unmet.items():
                unmet[name] = unmet.get(name, 0) + amount
        return ShadowAnswer(
            steps=self._steps, compared=len(rows), same=verdicts.get("same", 0), verdicts=verdicts,
            theirs=self._theirs, ours=self._ours, unmodelled=self._unmodelled, unmet=unmet, gaps=self._gaps, rows=rows,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------- one point

    def _compare(self, point: Sequence[Seen], time: int) -> None:
        """Hold what the cluster did at a point against what evsched would do there."""
        would = self._would(time)
        seq = self._engine.state.seq
        for ask, place in would.bindings.items():
            self._wishes.setdefault(ask, Wish(seq, time, "binding", place))
        for ask, victims in would.evictions.items():
            self._wishes.setdefault(ask, Wish(seq, time, "eviction", victims))
        bindings = {one.ask: one for one in point if isinstance(one, v.BindingObserved)}
        for binding in bindings.values():
            self._binding(binding, bindings, would, time)
        preemptors: dict[str, list[v.EvictionObserved]] = {}
        for one in point:
            if isinstance(one, v.EvictionObserved):
                preemptors.setdefault(one.preemptor or one.allocation, []).append(one)
        for subject, evicted in preemptors.items():
            self._eviction(subject, evicted, would, time)

    def _would(self, time: int) -> Would:
        """Return what a copy of the engine does now; it decides until nothing more is due."""
        world = copy(self._engine)
        state = world.state
        if self._rules is not None and state.rules_version < self._rules:
            adopted = v.Proposal(input=v.RulesAdopted(rules=self._rules))
            world.step(time, [adopted], decide=False)
        bindings: dict[str, tuple[str, ...]] = {}
        evictions: dict[str, tuple[str, ...]] = {}
        for _ in range(STEPS_A_POINT):
            for event in world.step(time, []):
                if type(event) is v.AllocationBound:
                    bindings[event.ask] = _place(event)
                elif type(event) is v.PreemptionDecided:
                    victims = tuple(sorted(one.id for one in event.victims))
                    evictions.setdefault(event.ask, victims)
            due = world.next_due()
            if due is None or due > time:
                break
        return Would(bindings, evictions)

    def _binding(
        self, seen: v.BindingObserved, point: dict[str, v.BindingObserved], would: Would, time: int
    ) -> None:
        """Judge one binding of the cluster."""
        ask = self._engine.state.asks[seen.ask]
        theirs, ours = _place(seen), would.bindings.get(seen.ask, ())
        verdict: Verdict = "only-theirs"
        if seen.ask in would.bindings:
            verdict = "same" if theirs == ours else "other-node"
        elif any(other not in point for other in would.bindings):
            verdict = "other-order"
        wish = self._wishes.get(seen.ask)
        first = wish.time if wish is not None and wish.kind == "binding" else time
        self._theirs.bound += 1
        self._theirs.waited_ms += time - ask.created
        self._ours.bound += 1
        self._ours.waited_ms += first - ask.created
        self._fulfilled[seen.ask] = None
        self._row(seen, time, seen.ask, "binding", verdict, theirs, ours)

    def _eviction(
        self, subject: str, seen: list[v.EvictionObserved], would: Would, time: int
    ) -> None:
        """Judge what the cluster evicts for one ask.

        Where the cluster reports its victims one by one, those of one point may be a part of what
        evsched chooses, which is the same choice. Victims of an unknown preemptor are compared with
        all that evsched would evict.
        """
        theirs = tuple(sorted(one.allocation for one in seen))
        known = bool(seen[0].preemptor)
        everybody = tuple(sorted(name for one in would.evictions.values() for name in one))
        ours = would.evictions.get(subject, ()) if known else everybody
        verdict: Verdict = "only-theirs"
        if ours:
            verdict = "same" if set(theirs) <= set(ours) else "other-victims"
        elif would.evictions:
            verdict = "other-order"
        self._theirs.preemptions += 1
        self._ours.preemptions += bool(ours)
        self._fulfilled[subject] = None
        if not known:
            for ask, victims in would.evictions.items():
                if set(victims) & set(theirs):
                    self._fulfilled[ask] = None
        self._row(seen[0], time, subject, "eviction", verdict, theirs, ours)

    def _row(  # noqa: PLR0913, PLR0917 - one value a field
        self,
        seen: Seen,
        time: int,
        subject: str,
        kind: Literal["binding", "eviction"],
        verdict: Verdict,
        theirs: tuple[str, ...],
        ours: tuple[str, ...],
    ) -> None:
        """Write a row; a difference about a pod that asks for more than is modelled is set apart."""
        ask = self._engine.state.asks.get(subject)
        beyond = () if ask is None else unmodelled(ask.pod)
        for name in beyond:
            self._unmodelled[name] = self._unmodelled.get(name, 0) + 1
        if beyond and verdict != "same":
            verdict = "not-modelled"
        self._rows.append(
            ShadowRow(
                seq=seen.seq, time=time, subject=subject, kind=kind, verdict=verdict, theirs=theirs, ours=ours,
                scheduler=seen.scheduler, text=self._why(subject, kind, verdict, ours, beyond),
            )
        )  # fmt: skip

    def _why(
        self,
        subject: str,
        kind: Literal["binding", "eviction"],
        verdict: Verdict,
        ours: tuple[str, ...],
        beyond: tuple[str, ...],
    ) -> str:
        """Return why evsched decides otherwise: what it does instead, or what holds the ask here."""
        if verdict == "same":
            return ""
        if verdict == "not-modelled":
            return SHADOW[verdict, kind].format(what=", ".join(beyond))
        if ours:
            return SHADOW[verdict, kind].format(what=", ".join(ours))
        if subject in self._engine.state.asks and self._explain > 0:
            self._explain -= 1
            return explain_ask(self._engine, subject).summary
        return SHADOW[verdict, kind].format(what="")


def _runs(events: Sequence[v.AnyEvent]) -> Iterator[list[v.AnyEvent]]:
    """Yield the events of a step in order, observations that follow each other together, and what lies between."""
    run: list[v.AnyEvent] = []
    for event in events:
        if run and isinstance(event, Seen) is not isinstance(run[-1], Seen):
            yield run
            run = []
        run.append(event)
    if run:
        yield run


def _has_effect(state: State, seen: Seen) -> bool:
    """Tell whether the cluster did something by itself, and not what evsched had decided before."""
    if isinstance(seen, v.BindingObserved):
        return seen.ask in state.asks
    return not state.allocations[seen.allocation].eviction_requested


def _place(binding: v.AllocationBound | v.BindingObserved) -> tuple[str, ...]:
    """Return where an ask was bound: the node, or with Kueue the flavors by resource and podset."""
    if binding.node is not None:
        return (binding.node,)
    podsets = {one.name: one.flavors or {} for one in binding.podsets} or {
        "": binding.flavors or {}
    }
    return tuple(
        sorted(
            f"{name}{'/' if name else ''}{resource}={flavor}"
            for name, flavors in podsets.items()
            for resource, flavor in flavors.items()
        )
    )

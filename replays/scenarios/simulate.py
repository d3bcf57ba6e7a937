"""Runs the scheduler over a scenario file on a virtual clock.

The clock stands still while something happens and then jumps to the next instant at which anything
is due: a timer of the engine, or a victim that leaves. Nothing else moves it, so that a simulation
of an hour takes as long as its decisions do. What comes out are the very events that a leader would
have written; ``restart`` takes them through their written form and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from msgspec import UNSET

from events.frame import Frame, decode_frame, encode_frame, frame_hash
from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    AnyEvent,
    AnyInput,
    AskWithdrawn,
    CycleStarted,
    EvictionRepeated,
    NodeRemoved,
    PreemptionDecided,
    PreemptionWithdrawn,
    Proposal,
    QuotaPreemptionDecided,
    RulesAdopted,
)
from evsched.core.duration import parse_duration_ms
from evsched.core.engine import Engine
from evsched.core.registry import FAMILIES
from evsched.core.rules import FIRST, NEWEST
from evsched.core.step import Step
from replays.scenarios.decisions import decision_document, is_decision, seconds
from replays.scenarios.kueue import OrderedKueue
from replays.scenarios.scenario import Scenario, ScenarioStep
from replays.scenarios.staging import Staging

MAX_STEPS_AT_ONE_INSTANT = 10_000
"""An engine that is due at the same instant more often than this goes round in circles, which is our own fault."""


class Simulation:
    """One run of one scenario.

    Attributes:
        engine: The scheduler, rebuilt by ``restart``.
        now: The virtual clock, milliseconds since the epoch.
        steps: All steps so far: their time and their events.
        decisions: What was decided so far, as documents.
    """

    def __init__(self, scenario: Scenario, rules: int = NEWEST) -> None:
        """Make a simulation that has not begun and decides by these rules; `run` runs it."""
        self._rules = rules
        self.scenario = scenario
        self._kueue = OrderedKueue()
        self.engine = self._listened(Engine())
        self.now = scenario.start_ms
        self.steps: list[tuple[int, tuple[AnyEvent, ...]]] = []
        self.decisions: list[dict[str, Any]] = []
        self._by_itself = not (scenario.has_cycle or scenario.search_only)
        self._confirm_after = (
            None if scenario.evictions == "hold" else scenario.evictions.confirm_after_ms
        )
        self._leaving: dict[str, int] = {}
        self._exits: list[tuple[int, str]] = []
        self._staging = Staging(scenario)

    def run(self) -> dict[str, Any]:
        """Run the whole scenario and return its document: name, decisions, pending asks, digest of the final state."""
        if self._rules != FIRST:
            adopted = [Proposal(input=RulesAdopted(rules=self._rules), source="scenario")]
            self._record(self.now, self.engine.step(self.now, adopted, decide=False))
        self._happen(self._staging.beginning())
        for step in self.scenario.steps:
            self._take(step)
        return {
            "name": self.scenario.name,
            "decisions": self.decisions,
            "pending": sorted(self.engine.state.asks),
            "digest": self.engine.state.digest(),
        }

    # --------------------------------------------------------------------------------- what happens

    def _take(self, step: ScenarioStep) -> None:
        """Do what one step of the file says."""
        scenario = self.scenario
        if step.advance is not UNSET:
            self._advance(self.now + parse_duration_ms(step.advance))
        elif step.config is not UNSET:
            self._happen([self._staging.configured(step.config, "steps.config")])
        elif step.submit is not UNSET:
            self._happen(self._staging.submitted(step.submit))
        elif step.withdraw is not UNSET:
            self._happen([AskWithdrawn(ask=ask) for ask in step.withdraw])
        elif step.release is not UNSET:
            self._happen([AllocationReleased(allocation=allocation) for allocation in step.release])
        elif step.node is not UNSET:
            self._happen(
                [self._staging.node(step.node, known=step.node.name in self.engine.state.nodes)]
            )
        elif step.remove_node is not UNSET:
            self._happen([NodeRemoved(node=step.remove_node)])
        elif step.restart is not UNSET:
            self.engine = self._listened(rebuilt(self.steps, scenario.name))
        elif step.cycle is not UNSET:
            self._by_hand(self._kueue.cycle_once)

    def _happen(self, inputs: list[AnyInput]) -> None:
        """Give these inputs to the scheduler now, and let it do all that is due at this instant."""
        proposals = [Proposal(input=one, source="scenario") for one in inputs]
        self._record(self.now, self.engine.step(self.now, proposals, decide=self._by_itself))
        if self.scenario.search_only:
            self._by_hand(self._kueue.search_once)
        self._advance(self.now)

    def _listened(self, engine: Engine) -> Engine:
        """Return an engine whose Kueue cycles are listened to."""
        engine.families = {**FAMILIES, "kueue": self._kueue}
        return engine

    def _by_hand(self, decide: Callable[[Step], None]) -> None:
        """Take a step of which a scenario says itself what it decides."""
        step = self.engine.begin(self.now)
        decide(step)
        self._record(self.now, tuple(step.events))

    def _advance(self, to: int) -> None:
        """Move the clock, stopping at every instant at which something is due."""
        standing = 0
        while (due := self._next_due()) is not None and due <= to:
            standing = standing + 1 if due <= self.now else 0
            if standing > MAX_STEPS_AT_ONE_INSTANT:
                raise RuntimeError(
                    f"simulation {self.scenario.name}: the engine is due at {self.now} again and again"
                )
            self.now = max(self.now, due)
            gone = [
                AllocationReleased(allocation=victim, reason="preempted")
                for victim in self._exits_until(self.now)
            ]
            proposals = [Proposal(input=one, source="scenario") for one in gone]
            self._record(self.now, self.engine.step(self.now, proposals, decide=self._by_itself))
            if self.scenario.search_only:
                self._by_hand(self._kueue.search_once)
        self.now = to

    def _next_due(self) -> int | None:
        """Return the next instant at which the engine or a victim does something."""
        while self._exits and self._leaving.get(self._exits[0][1]) != self._exits[0][0]:
            heappop(self._exits)
        exits = self._exits[0][0] if self._exits else None
        due = self.engine.next_due() if self._by_itself else None
        return (
            min(exits, due)
            if exits is not None and due is not None
            else due
            if exits is None
            else exits
        )

    # -------------------------------------------------------------------------------------- victims

    def _exits_until(self, now: int) -> Iterator[str]:
        """Yield the victims that leave by now, by the time they were told and then by id."""
        while self._exits and self._exits[0][0] <= now:
            at, victim = heappop(self._exits)
            if self._leaving.get(victim) == at:
                del self._leaving[victim]
                yield victim

    def _told(self, victim: str, time: int) -> None:
        """Note that a victim is being evicted; the first time counts."""
        if self._confirm_after is not None and victim not in self._leaving:
            self._leaving[victim] = time + self._confirm_after
            heappush(self._exits, (time + self._confirm_after, victim))

    def _watch(self, event: AnyEvent, time: int) -> None:
        """Keep the list of those that are on their way out."""
        match event:
            case PreemptionDecided() | QuotaPreemptionDecided():
                for victim in event.victims:
                    self._told(victim.id, time)
            case EvictionRepeated():
                self._told(event.allocation, time)
            case AllocationRestored() if event.preempting or event.evicted:
                self._told(event.allocation, time)
            case AllocationReleased():
                self._leaving.pop(event.allocation, None)
            case PreemptionWithdrawn():
                for stays in event.victims:
                    self._leaving.pop(stays, None)

    # ----------------------------------------------------------------------------------- the record

    def _record(self, time: int, events: tuple[AnyEvent, ...]) -> None:
        """Keep the events of one step and describe the decisions among them."""
        if not events:
            return
        self.steps.append((time, events))
        start_ms = self.scenario.start_ms
        for event in events:
            self._watch(event, time)
            if is_decision(event):
                self.decisions.append(decision_document(event, time, start_ms))
            elif isinstance(event, CycleStarted) and event.kind == "admission":
                at = seconds(time - start_ms)
                self.decisions.append(
                    {"at": at, "type": "CycleStarted", "order": self._kueue.order}
                )


def simulate(scenario: Scenario, rules: int = NEWEST) -> dict[str, Any]:
    """Return the document of one scenario: ``name``, ``decisions`` with their seconds, ``pending`` ids, ``digest`` of the end.

    Args:
        scenario: What happens.
        rules: The version that decides; one that this release knows.

    Raises:
        ScenarioError: Its configuration is not a valid one.
    """
    return Simulation(scenario, rules).run()


def rebuilt(steps: Iterable[tuple[int, tuple[AnyEvent, ...]]], log_id: str) -> Engine:
    """Return a new engine that knows only what these steps left behind in written form, as after a restart."""
    written: list[bytes] = []
    for number, (time, events) in enumerate(steps, start=1):
        prev = frame_hash(written[-1]) if written else ""
        frame = Frame(
            log_id=log_id,
            term=1,
            leader="simulation",
            frame=number,
            prev=prev,
            time=time,
            events=events,
        )
        written.append(encode_frame(frame))
    engine = Engine()
    for data in written:
        frame = decode_frame(data)
        for event in frame.events:
            engine.apply(event, frame.time)
    return engine

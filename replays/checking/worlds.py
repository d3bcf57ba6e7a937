"""Two worlds side by side: what was recorded, and the same inputs decided under something else.

Both run over the same log. The *recorded* one applies what happened; the
*supposed* one takes the same inputs and decides anew. As long as nothing differs the supposed world
steps exactly when the recorded one did, so that an unchanged configuration reproduces the log event
by event. From the first difference on it steps when its own timers want it, and the inputs that
depend on what was decided are translated:

- the end of an allocation that was preempted in the recorded world only is left out: it would not
  have been asked to go;
- an allocation that ended by itself lives as long as it was recorded to live, counted from when it
  is bound here;
- an eviction that happens only here is confirmed after the median of the recorded evictions;
- what no longer makes sense (the withdrawal of an ask that runs by now becomes its release) is
  translated or left out.

The report counts what was left out and what was supposed, so that a reader knows how far to trust
it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from events import vocabulary as v
from evsched.core.recorded import apply_recorded
from evsched.core.registry import format_of
from replays.checking.ledger import Decided, Ledger, QueueFigures
from replays.checking.tried import NotTried, TriedStretch
from replays.checking.verify import compare
from replays.history.steps import note, proposals_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.chain import RecordedStep
    from evsched.core.engine import Engine
    from replays.checking.tried import TriedConfiguration

DEFAULT_EVICTION_MS = 5_000
"""How long an eviction takes when the log holds none to learn from."""


class Changed(Struct, frozen=True, kw_only=True):
    """A decision that differs: where and when in either world, None where it did not happen."""

    subject: str
    kind: Literal["bound", "evicted"]
    recorded: Decided | None
    supposed: Decided | None


class WhatIfAnswer(Struct, frozen=True, kw_only=True):
    """What another configuration would have changed.

    Attributes:
        identical: The supposed world gave every recorded event again.
        first_difference: ``seq`` of the first recorded event that came out differently; None when
            identical.
        recorded, supposed: Figures of every leaf, by path.
        changes: Decisions that differ.
        left_out: Recorded inputs that were left out because they followed from a decision that did
            not happen.
        confirmed: Evictions that happened only in the supposed world and were confirmed after
            ``eviction_ms``.
        moved: Ends of allocations that were moved because they were bound at another time.
        refused: Recorded inputs that the supposed world refused although the recorded one took
            them.
        format: Of the configuration in force at the end: ``yunikorn``, ``kueue``, or
            ``custom/NAME``.
        stretch: Over which the configuration to try was in force; None: only rules were tried.
    """

    identical: bool
    first_difference: int | None
    recorded: dict[str, QueueFigures]
    supposed: dict[str, QueueFigures]
    changes: tuple[Changed, ...]
    left_out: int = 0
    confirmed: int = 0
    moved: int = 0
    refused: int = 0
    eviction_ms: int = DEFAULT_EVICTION_MS
    steps: int = 0
    format: str = "yunikorn"
    stretch: TriedStretch | None = None


class WhatIf:
    """Runs the two worlds. Give both engines the same state: that before the first step.

    Attributes:
        ledgers: What came of the recorded world, and of the supposed one.
    """

    def __init__(
        self,
        recorded: Engine,
        supposed: Engine,
        candidate: TriedConfiguration | None,
        eviction_ms: int,
        rules: int | None = None,
        *,
        decides: bool = False,
    ) -> None:
        """Prepare to try a configuration from the first step on, and ``rules``; None: as recorded.

        With ``decides`` the supposed world decides in every step and hears nothing of what the
        cluster's own scheduler bound and evicted, so the worlds part at once.

        Raises:
            WrittenByNewer: This release does not know these rules.
        """
        self._rules = rules
        if rules is not None:
            supposed.suppose(rules)
        self._recorded = recorded
        self._supposed = supposed
        self._candidate = candidate
        self._eviction_ms = eviction_ms
        self.ledgers = Ledger(recorded.state), Ledger(supposed.state)
        self._decides = decides
        self._agree = not decides
        self._first: int | None = None
        self._owed: list[tuple[int, int, v.AllocationReleased]] = []
        self._number = 0
        self._lives: dict[str, int] = {}
        self._left_out = self._confirmed = self._moved = self._refused = self._steps = 0

    def answer(self) -> WhatIfAnswer:
        """Report on the steps taken.

        Raises:
            NotTried: The configuration never came into force: the report would say nothing of it.
        """
        if self._candidate is not None and self._candidate.stretch is None:
            message = (
                "no configuration is in force whose place it could take"
                if self._steps
                else "nothing happens"
            )
            raise NotTried(message)
        return self._report()

    # --------------------------------------------------------------------------------------- a step

    def take(self, step: RecordedStep) -> None:
        """Take the next step in both worlds.

        Raises:
            ConfigurationRefused: The configuration cannot be applied.
        """
        self._steps += 1
        proposals = proposals_of(step)
        if self._candidate is not None and self._candidate.enter(step, proposals, self._supposed):
            self._differ(step.events[0].seq if step.events else step.head.next_seq)
        if not self._agree:
            self._catch_up(step.time)
            proposals = [
                found
                for proposal in proposals
                if (found := self._translate(proposal, step.time)) is not None
            ]
        recorded_ledger, supposed_ledger = self.ledgers
        recorded_ledger.pass_time(step.time)
        supposed_ledger.pass_time(step.time)
        events = self._supposed_step(step, proposals)
        if self._candidate is not None:
            self._candidate.follow(step, events)
        self._follow(events, step)
        apply_recorded(self._recorded, step.events, step.time, step.head.position)
        recorded_ledger.take(step.events)
        supposed_ledger.take(events)

    def _supposed_step(
        self, step: RecordedStep, proposals: list[v.Proposal]
    ) -> tuple[v.AnyEvent, ...]:
        """Take a step in the supposed world and return its events."""
        supposed = self._supposed
        adopts = any(type(event) is v.RulesAdopted for event in step.events)
        if adopts and self._rules is not None:
            # The adoption itself is as recorded, so that it is taken; what follows is tried again.
            supposed.suppose(self._recorded.state.rules_version)
        events = note(supposed, step)
        if events is None:
            events = supposed.step(step.time, proposals, decide=step.decided or self._decides)
        if adopts and self._rules is not None:
            supposed.suppose(self._rules)
        return events

    def _differ(self, seq: int) -> None:
        if self._agree:
            self._agree, self._first = False, seq

    def _follow(self, events: tuple[v.AnyEvent, ...], step: RecordedStep) -> None:
        """Compare what came out, and owe the confirmations of evictions that only happen here."""
        if self._agree:
            found = (
                compare(step, events)
                if self._rules is None
                else compare(step._replace(events=_decisions(step.events)), _decisions(events))
            )
            if found is None:
                return
            self._differ(found.seq)
        for event in events:
            if isinstance(event, v.InputRejected) and event.reason not in {
                e.reason for e in step.events if isinstance(e, v.InputRejected)
            }:
                self._refused += 1
        recorded = {
            victim.id
            for event in step.events
            if isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided)
            for victim in event.victims
        }
        self._owe_ends(events, recorded)

    def _owe_ends(self, events: tuple[v.AnyEvent, ...], recorded: set[str]) -> None:
        """Owe the ends of allocations that only this world evicts, and of those that it binds after their recorded end."""
        for event in events:
            if type(event) is v.AllocationBound and event.ask in self._lives:
                self._owe(
                    self._supposed.state.time + self._lives.pop(event.ask), event.ask, "completed"
                )
            elif isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
                for victim in event.victims:
                    if victim.id not in recorded:
                        self._confirmed += 1
                        self._owe(
                            self._supposed.state.time + self._eviction_ms, victim.id, "preempted"
                        )

    def _owe(self, due: int, allocation: str, reason: str) -> None:
        self._number += 1
        heappush(
            self._owed,
            (due, self._number, v.AllocationReleased(allocation=allocation, reason=reason)),
        )

    def _catch_up(self, until: int) -> None:
        """Let the supposed world do what is due before ``until``: its own timers, and the ends that are owed to it."""
        engine, ledger = self._supposed, self.ledgers[1]
        while True:
            due = engine.next_due()
            owed = self._owed[0][0] if self._owed else None
            times = [time for time in (due, owed) if time is not None]
            if not times or min(times) >= until:
                return
            time = max(min(times), engine.state.time)
            proposals = []
            while self._owed and self._owed[0][0] <= time:
                released = heappop(self._owed)[2]
                if released.allocation in engine.state.allocations:
                    proposals.append(v.Proposal(input=released))
            ledger.pass_time(time)
            events = engine.step(time, proposals)
            ledger.take(events)
            self._owe_ends(events, set())

    # --------------------------------------------------------------------------------------- inputs

    def _translate(self, proposal: v.Proposal, time: int) -> v.Proposal | None:
        """Return what a recorded proposal means in the supposed world; None when it means nothing there."""
        proposed = proposal.input
        if isinstance(proposed, v.AllocationReleased):
            return self._release(proposal, proposed, time)
        if self._decides and isinstance(proposed, v.BindingObserved | v.EvictionObserved):
            return None
        state = self._supposed.state
        if isinstance(proposed, v.AskWithdrawn) and proposed.ask in state.allocations:
            return v.Proposal(
                input=v.AllocationReleased(allocation=proposed.ask, reason="withdrawn")
            )
        if isinstance(proposed, v.EvictionRefused):
            running = state.allocations.get(proposed.allocation)
            if running is None or not running.eviction_requested:
                self._left_out += 1
                return None
        return proposal

    def _release(
        self, proposal: v.Proposal, released: v.AllocationReleased, time: int
    ) -> v.Proposal | None:
        name = released.allocation
        theirs = self._recorded.state.allocations.get(name)
        ours = self._supposed.state.allocations.get(name)
        if theirs is None:
            return proposal  # refused there, and so it may be here
        if theirs.eviction_requested and (ours is None or not ours.eviction_requested):
            self._left_out += 1
            return None
        if theirs.eviction_requested or (ours is not None and ours.bound == theirs.bound):
            return proposal
        life = time - theirs.bound
        self._moved += 1
        if ours is None:
            if name in self._supposed.state.asks:
                self._lives[name] = life
            return None
        self._owe(max(ours.bound + life, time), name, released.reason)
        return None

    # --------------------------------------------------------------------------------------- report

    def _report(self) -> WhatIfAnswer:
        recorded, supposed = self.ledgers
        spec = self._supposed.state.configuration
        stretch = None if self._candidate is None else self._candidate.stretch
        return WhatIfAnswer(
            identical=self._agree,
            first_difference=self._first,
            recorded=recorded.queues,
            supposed=supposed.queues,
            changes=tuple(_changes(recorded, supposed)),
            left_out=self._left_out,
            confirmed=self._confirmed,
            moved=self._moved,
            refused=self._refused,
            eviction_ms=self._eviction_ms,
            steps=self._steps,
            format="yunikorn" if spec is None else format_of(spec),
            stretch=stretch,
        )


def _decisions(events: tuple[v.AnyEvent, ...]) -> tuple[v.AnyEvent, ...]:
    """Return events without what names rules or covers them: that differs under other rules, whatever they decide."""
    return tuple(
        replace(event, rules=1, record=1, digest="")
        if type(event) is v.CheckpointRecorded
        else replace(event, rules=1, record=1)
        if type(event) is v.LeaderStarted
        else event
        for event in events
    )


def _changes(recorded: Ledger, supposed: Ledger) -> Iterable[Changed]:
    """Yield the decisions that differ, in the order of the recorded world, then those of the supposed one."""
    sides: tuple[
        tuple[Literal["bound", "evicted"], dict[str, Decided], dict[str, Decided]], ...
    ] = (
        ("bound", recorded.bindings, supposed.bindings),
        ("evicted", recorded.evictions, supposed.evictions),
    )
    for kind, theirs, ours in sides:
        for subject in dict.fromkeys((*theirs, *ours)):
            before, after = theirs.get(subject), ours.get(subject)
            if before != after:
                yield Changed(subject=subject, kind=kind, recorded=before, supposed=after)

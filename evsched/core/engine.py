"""The engine: one pure function from a state, a time and proposals to the events to append.

A step validates and applies its proposals, fires the timers that are due, and decides. It reads no
clock, draws nothing, does no I/O; two engines that take the same steps give the same events, and an
engine rebuilt from those events goes on as if it had never been away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from events import vocabulary as v
from events.bounds import MAX_ID, id_problem
from events.errors import WrittenByNewer
from events.frame import encode_event
from evsched.core import evictions, suspension, validation
from evsched.core.reducer import apply, apply_all
from evsched.core.refusals import Rejection
from evsched.core.registry import FAMILIES, format_of
from evsched.core.rules import rules_of
from evsched.core.state import State
from evsched.core.step import Step
from evsched.core.tallies import uncounted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from events.decisions import Suspended
    from events.frame import Frame
    from evsched.core.family import Family
    from evsched.core.step import Tracer
    from evsched.core.workloads import Suspension


class Engine:
    """The scheduler of one cluster partition.

    Attributes:
        state: What it knows. Read it; only events change it.
        tracer: Listens to why candidates were passed over; None in production.
        families: By format; a simulation may put one in place that listens.
    """

    def __init__(self, state: State | None = None) -> None:
        """Start with an empty state, or go on with one from a snapshot."""
        self.state = State() if state is None else state
        self.tracer: Tracer | None = None
        self.families: Mapping[str, Family] = FAMILIES
        self._chosen: tuple[object, object, Family | None] = (None, None, None)

    @property
    def family(self) -> Family | None:
        """The policies in force; None before the first configuration."""
        spec, families = self.state.configuration, self.families
        chosen = self._chosen  # asked many times a step, and nearly always the same
        if chosen[0] is not spec or chosen[1] is not families:
            found = None if spec is None else families[format_of(spec)]
            chosen = self._chosen = (spec, families, found)
        return chosen[2]

    # --------------------------------------------------------------------------------------- replay

    def apply(self, event: v.AnyEvent, time: int) -> None:
        """Apply one recorded event of a frame with this time."""
        self.state.time = time
        apply(self.state, event)

    def apply_frames(self, frames: Iterable[Frame]) -> None:
        """Apply the events of complete steps, in order."""
        state = self.state
        with uncounted(state):
            for frame in frames:
                state.time = frame.time
                apply_all(state, frame.events)
                del (
                    frame
                )  # its memory serves the next one, which is made before this name is bound anew

    def suppose(self, rules: int) -> None:
        """Decide by these rules from here on though no event says so, to try them on a recorded past.

        Raises:
            WrittenByNewer: This release does not know them.
        """
        rules_of(rules)
        self.state.rules_version = rules
        self.state.index = None  # it may hold a reading of the former ones

    # ----------------------------------------------------------------------------------------- step

    def next_due(self) -> int | None:
        """Return when the next step is needed even if no proposal comes, milliseconds; None: never."""
        timer = suspension.first_timer(self.state)
        cycle = self._next_cycle(self.family) if self.family is not None else None
        dues = [due for due in (timer.due if timer is not None else None, cycle) if due is not None]
        return min(dues) if dues else None

    def look_ahead(self) -> bool:
        """Do a little of what the next decision will need, between steps; tell whether more is left to do.

        It changes neither the state nor any decision: whether it is called shows in the time alone
        that a later step takes.
        """
        return self.family is not None and self.family.look_ahead(self.state)

    def begin(self, time: int) -> Step:
        """Begin a step at this time, for whoever emits its events."""
        return Step(self.state, time, apply, self.tracer)

    def _next_cycle(self, family: Family) -> int | None:
        """Return when the next cycle is due; None: never, or cycles are set aside."""
        return None if suspension.is_off(self.state, "cycle") else family.next_cycle(self.state)

    def lead(
        self, time: int, term: int, leader: str, checkpoint_every: int = 100_000
    ) -> tuple[v.AnyEvent, ...]:
        """Begin a term: return the events of its fence frame."""
        started = v.LeaderStarted(term=term, leader=leader, checkpoint_every=checkpoint_every)
        return self.begin_term(time, started)

    def begin_term(self, time: int, started: v.LeaderStarted) -> tuple[v.AnyEvent, ...]:
        """Begin a term and return the events of its fence frame.

        Args:
            time: Milliseconds since the epoch.
            started: What the shell knows of the term. Its number in the log and the versions in
                force are given here.
        """
        step = self.begin(time)
        rules = self.state.rules
        step.emit(
            v.LeaderStarted,
            cause=0,
            term=started.term,
            leader=started.leader,
            checkpoint_every=started.checkpoint_every,
            rules=rules.version,
            record=rules.record,
            release=started.release,
            inbox=started.inbox,
            observes=started.observes,
        )
        return tuple(step.events)

    def attach(self, time: int, attached: v.InboxAttached) -> tuple[v.AnyEvent, ...]:
        """Take note of another inbox and return the events of its frame. The state stays as it is."""
        step = self.begin(time)
        step.emit(
            v.InboxAttached,
            cause=0,
            inbox=attached.inbox,
            position=attached.position,
            replaces=attached.replaces,
        )
        return tuple(step.events)

    def step(
        self, time: int, proposals: Sequence[v.Proposal] = (), *, decide: bool = True
    ) -> tuple[v.AnyEvent, ...]:
        """Take one step and return its events, already applied.

        Args:
            time: Milliseconds since the epoch; an earlier time than the last step's counts as that
                one.
            proposals: In the order of the inbox.
            decide: False: only validate and apply, while a new leader catches up.

        Raises:
            WrittenByNewer: This release does not know the rules in force, before or after the
                proposals; the state is of no use then.
        """
        rules_of(self.state.rules_version)
        step = self.begin(time)
        try:
            for number, proposal in enumerate(proposals):
                step.begin("input", str(number))
                self._take(step, proposal)
            rules_of(self.state.rules_version)
            if decide and self.family is not None:
                self._fire(step)
                step.begin("allocation")
                if not suspension.is_off(self.state, "allocation"):
                    self.family.allocate(step)
            self._checkpoint(step)
        except (MemoryError, WrittenByNewer):
            raise  # no fault of what is decided here: another process may do it
        except Exception as error:
            raise step.failed(error) from error
        return tuple(step.events)

    def suspend(
        self, time: int, kind: Suspended, subject: str, fault: tuple[str, str]
    ) -> tuple[v.AnyEvent, ...]:
        """Set aside what a step failed at, and return the events of the step that does so.

        Args:
            time: As for `step`.
            kind: As in DecisionSuspended.
            subject: An ask that waits, a timer that is armed, or the path of a leaf, whose asks are
                set aside; where it is none of them, nothing but the mark is set. Empty for the
                other kinds.
            fault: Place and reason, as in DecisionSuspended.

        Raises:
            StepFailed: It cannot be set aside either.
        """
        step = self.begin(time)
        step.begin("suspension", subject)
        place, reason = fault
        try:
            found = step.emit(
                v.DecisionSuspended, cause=0, kind=kind, subject=subject, place=place, reason=reason
            )
            if kind == "ask" and subject in self.state.asks:
                self._withdraw(step, found)
            for ask in suspension.asks_of(self.state, subject) if kind == "queue" else ():
                self._set_aside(step, ask, found)
        except Exception as error:
            raise step.failed(error) from error
        return tuple(step.events)

    def _set_aside(self, step: Step, ask: str, queue: v.DecisionSuspended | Suspension) -> None:
        """Set an ask aside because its queue is."""
        found = step.emit(
            v.DecisionSuspended,
            cause=queue.seq,
            kind="ask",
            subject=ask,
            place=queue.place,
            reason=f"its queue {queue.subject} is set aside",
        )
        self._withdraw(step, found)

    def _withdraw(self, step: Step, aside: v.DecisionSuspended) -> None:
        """Withdraw an ask that is set aside, so that policies do not see it."""
        seq = self.state.seq + 1
        self._accept(step, v.AskWithdrawn(seq=seq, cause=aside.seq, ask=aside.subject))

    def _take(self, step: Step, proposal: v.Proposal) -> None:
        proposal = _named(proposal)
        proposed = proposal.input
        source, actor = proposal.source, proposal.actor
        if proposed is not None:
            source, actor = source or proposed.source, actor or proposed.actor
        refused = self._refusal(proposal)
        if refused is not None:
            raw = proposal.raw
            if isinstance(proposed, v.RulesAdopted):
                # A process of 0.1.0 does not know the type, and must be able to read on: what is
                # refused to spare it may not stand in the log in a form that stops it.
                raw, proposed = encode_event(proposed).decode(), None
            step.emit(
                v.InputRejected,
                cause=0,
                code=refused.code,
                reason=refused.reason,
                proposal=proposal.id,
                source=source,
                position=proposal.position,
                input=proposed,
                raw=raw[: self.state.rules.raw_kept],
                actor=actor,
            )
            return
        assert proposed is not None
        seq = self.state.seq + 1
        event = replace(proposed, seq=seq, proposal=proposal.id, source=source, actor=actor)
        if self.family is not None:
            event = self.family.completed(self.state, event)
        self._accept(step, event)

    def _accept(self, step: Step, event: v.AnyInput) -> None:
        """Apply an input, and emit what it leads to.

        What the family has to know of the state before is worked out first (``prepare``), as the
        input may replace what it would look at. A configuration may change the family; what the
        former one prepared means nothing to the next. Decisions that were set aside are taken up
        again under a new configuration or new rules, which may be what they lacked.
        """
        before = self.family
        prepared = None
        if before is not None:
            prepared = before.prepare(self.state, event)
        apply(self.state, event)
        step.events.append(event)
        self._follow(step, event)
        if self.family is not None:
            self.family.follow(step, event, prepared if self.family is before else None)
        if self.state.suspended and isinstance(event, v.ConfigurationApplied | v.RulesAdopted):
            suspension.resume_all(step, event.seq, self._invalid)
        elif self.state.suspended and isinstance(event, v.AskSubmitted):
            aside = suspension.of_its_queue(self.state, event.ask)
            if aside is not None:
                self._set_aside(step, event.ask, aside)

    def _refusal(self, proposal: v.Proposal) -> Rejection | None:
        """Return why this proposal may not be applied; None when it may.

        One that cannot be read comes with the problem that was found. A repeated id is the rest of
        a retry: its first copy was answered, so this one is not applied again.
        """
        proposed = proposal.input
        if proposed is None:
            reason = proposal.problem or "proposal: cannot be read"
            return Rejection(proposal.code or "malformed", reason)
        if proposal.id and self.state.remembers(proposal.id):
            return Rejection("duplicate", f"proposal {proposal.id}: was answered before")
        return self._invalid(proposed)

    def _invalid(self, proposed: v.AnyInput) -> Rejection | None:
        """Return why an input cannot be applied now."""
        refused = validation.check(self.state, proposed)
        if refused is None and self.family is not None:
            refused = self.family.refuse(self.state, proposed)
        return refused

    def _follow(self, step: Step, event: v.AnyInput) -> None:
        """Emit what an accepted input leads to, whatever the policies.

        These events are decisions of no policy. A task ends with its node and its application, and
        the log says so for each, with the input as cause.
        """
        state = step.state
        if isinstance(event, v.NodeRemoved):
            evictions.node_lost(step, event)
        elif isinstance(event, v.NodeUpdated):
            evictions.node_changed(step, event)
        elif isinstance(event, v.ApplicationRemoved) and event.application in state.applications:
            application = state.applications[event.application]
            for name in tuple(application.asks):
                step.emit(v.AskWithdrawn, cause=event.seq, ask=name)
            for name in tuple(application.allocations):
                step.emit(
                    v.AllocationReleased,
                    cause=event.seq,
                    allocation=name,
                    reason="application removed",
                )

    def _fire(self, step: Step) -> None:
        """Fire what is due, by due time and then id.

        A preemption cycle counts as a timer with the id ``cycle``. So the order does not depend on
        what caused what, and two readers agree on it. Each firing must write an event that takes
        its timer off: one that stays due would be fired for ever, so it is a fault of the policy
        and is said to be one.
        """
        state = step.state
        while (family := self.family) is not None:
            timer, cycle = suspension.first_timer(state), self._next_cycle(family)
            if (
                timer is not None
                and timer.due <= step.time
                and (cycle is None or (timer.due, timer.id) < (cycle, "cycle"))
            ):
                step.due = timer.due
                step.begin("timer", timer.id)
                if timer.kind == "evict":
                    evictions.overdue(step, timer)
                else:
                    family.fire(step, timer)
                if state.timers.armed.get(timer.id) is timer:
                    message = f"timer {timer.id}: still armed after it fired; its policy wrote no event for it"
                    raise AssertionError(message)
            elif cycle is not None and cycle <= step.time:
                step.due = cycle
                step.begin("cycle")
                before = state.seq
                family.cycle(step)
                if state.seq == before:
                    message = f"cycle due at {cycle}: wrote no event, so it would be due for ever"
                    raise AssertionError(message)
            else:
                break
        step.due = None

    def near_checkpoint(self, events: int) -> bool:
        """Tell whether a step of so many events would write a digest of the state."""
        state = self.state
        written = state.seq - state.last_checkpoint
        return bool(state.checkpoint_every) and written + events >= state.checkpoint_every

    def _checkpoint(self, step: Step) -> None:
        """Write a digest of the state when so many events were written since the last one.

        The cadence is the term's, so it is in the log. The event counts itself out: the digest is
        of the state right before it.
        """
        state = step.state
        step.begin("checkpoint")
        if suspension.is_off(state, "checkpoint"):
            return
        if state.checkpoint_every and state.seq - state.last_checkpoint >= state.checkpoint_every:
            rules = state.rules
            step.emit(
                v.CheckpointRecorded,
                cause=state.seq,
                digest=state.digest(rules.record),
                rules=rules.version,
                record=rules.record,
            )


def _named(proposal: v.Proposal) -> v.Proposal:
    """Return a proposal with the id that counts: the record's, else that of the input.

    Where that id may not be, the proposal comes without its input and counts as one that cannot be
    read: what is recorded is judged again by verify, and has to come out the same.
    """
    proposed = proposal.input
    if proposed is None:
        return proposal
    name = proposal.id or proposed.proposal
    wrong = id_problem(name)
    if not wrong:
        return replace(proposal, id=name)
    return replace(proposal, id=name[:MAX_ID], input=None, problem=f"proposal: {wrong}")

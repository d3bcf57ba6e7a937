"""What a leader does about a step that raised: the one that is at fault pays, not the cluster.

The term ends, as after any failure, and with it the use of the state. What was learned stays with
the member and serves its next term, which begins at once and keeps a state to go back to
(`evsched.service.savepoint`): a step that raises in it costs no further term.

1. A proposal at which the engine raised is answered by InputRejected with the code
   ``internal-error``.
2. An ask or timer that was being decided on is set aside by DecisionSuspended. An ask that came with
   a proposal of that very step is answered as in 1. What is not in the log yet for another reason
   is brought there first, by a step that does not decide.
3. When that goes on, or when there was neither, the proposals of that step are taken one at a time,
   and before each the step is taken without any. A step that fails with a proposal and not without
   it is that proposal's fault, whatever it failed at. Each of these steps decides, also when there
   is more in the inbox: else it could not be told which of them is at fault.
4. What fails without proposals is a queue's fault where it does not fail without that queue's asks
   and with those of another (`evsched.service.culprits`): its asks are set aside, and each that is
   submitted to it later. Else it is set aside as a whole: cycles, allocation, checkpoints.
5. Where nothing can be set aside, the cluster partition is given up.

Each failure moves down this list or on in the inbox, so there is an end to them.
"""

from __future__ import annotations

from typing import get_args

import msgspec
from msgspec import Struct

from events.decisions import Suspended
from events.errors import StepUnprovable
from events.vocabulary import AnyEvent, AskSubmitted, Proposal
from evsched.core.faults import StepFailed

TRIES = 3
"""How many asks and timers are set aside in a row before something else is taken to be at fault."""
REASON_KEPT = 300
RAW_KEPT = 1024
CODE = "internal-error"

_WHOLE = frozenset(get_args(Suspended)) - {"ask", "timer", "queue"}
OF_QUEUES = frozenset({"cycle", "allocation"})
"""Kinds of decisions that may fail for the fault of one queue."""


class Remedy(Struct, frozen=True):
    """What to set aside next; fields as in DecisionSuspended."""

    kind: Suspended
    subject: str
    place: str
    reason: str


class Contained(Exception):
    """A step raised, and what is at fault is known or will be: the next term goes on without it."""

    def __init__(self, fault: StepFailed) -> None:
        """Wrap what the step raised."""
        self.fault = fault
        super().__init__(str(fault))


class Uncontained(Contained):
    """A step raised, and nothing can be set aside so that the next one does not."""


class Evidence(Struct, frozen=True, kw_only=True):
    """A step that raised, for whoever is to mend it: what the engine was given, and what it raised."""

    fault: StepFailed
    proposals: tuple[Proposal, ...]
    time: int
    decide: bool


class Containment:
    """What a member has learned from steps that raised.

    Attributes:
        remedy: What is to be set aside before anything else is done; None: nothing.
        evidence: Of the last failure, until it is written down.
        alone: Whether proposals are taken one at a time now.
        hold: Whether the next proposals are to be taken without deciding.
        clear: Whether, at this place in the inbox, a step without proposals went well.
    """

    def __init__(self) -> None:
        """Start without a failure."""
        self.remedy: Remedy | None = None
        self.evidence: Evidence | None = None
        self.alone = False
        self.clear = False
        self.hold = False
        self._alone_until = 0
        self._refused: dict[int, Proposal] = {}
        self._suspended = 0
        self._off: set[str] = set()

    @property
    def wary(self) -> bool:
        """Whether a step raised not long ago, so that the next one may."""
        return self.alone or self.hold or self.remedy is not None or bool(self._refused)

    def admit(self, proposals: tuple[Proposal, ...]) -> tuple[Proposal, ...]:
        """Return the proposals as they are to be taken: those that the engine failed at as refused."""
        if not self._refused:
            return proposals
        return tuple(self._refused.get(one.position, one) for one in proposals)

    def went_well(self, inbox_next: int, *, taken: int) -> None:
        """Note a step that is in the log.

        Args:
            inbox_next: Of that step.
            taken: How many proposals it took.
        """
        self.hold = self.hold and not taken
        if self.alone and not taken:
            return  # what went well is what went well before this place, too
        self.clear = False
        self._suspended = 0
        self._refused = {place: one for place, one in self._refused.items() if place >= inbox_next}
        self.alone = self.alone and inbox_next < self._alone_until

    def narrow(self, queue: str) -> Remedy:
        """Set a queue aside instead of all decisions of a kind, and return that remedy."""
        assert self.remedy is not None
        self._off.discard(self.remedy.kind)
        self.remedy = msgspec.structs.replace(self.remedy, kind="queue", subject=queue)
        return self.remedy

    def remedied(self, *, found: bool = True) -> None:
        """Note that what was to be set aside is; or that it was not ``found`` in the state of the log.

        Then a proposal brings it (a configuration that takes an ask up again, say), and must be in
        the log first.
        """
        self.remedy = None
        self.hold = not found

    def learn(
        self, fault: StepFailed, proposals: tuple[Proposal, ...], time: int, *, decide: bool
    ) -> Contained | Uncontained:
        """Draw the conclusion from a step that raised; return what ends the term.

        Args:
            fault: What it raised.
            proposals: Those of the step, as they were taken.
            time: As the step was given it.
            decide: As the step was given it.
        """
        self.evidence = Evidence(fault=fault, proposals=proposals, time=time, decide=decide)
        concluded = self._conclude(fault, proposals)
        return Contained(fault) if concluded else Uncontained(fault)

    def _conclude(self, fault: StepFailed, proposals: tuple[Proposal, ...]) -> bool:
        clear, self.clear = self.clear, False
        if fault.kind == "input":
            return self._refuse(proposals[int(fault.subject)], fault)
        if fault.kind == "ask":
            brought = [one for one in proposals if _brings(one, fault.subject)]
            if brought:  # it waits in no state that is in the log
                return self._refuse(brought[0], fault)
        if fault.kind in {"ask", "timer"} and self._suspended < TRIES:
            self._suspended += 1
            self.remedy = _remedy(fault.kind, fault.subject, fault)
            return True
        self._suspended = 0
        if len(proposals) > 1 or (proposals and not clear):
            self.alone = True
            self._alone_until = proposals[-1].position + 1
            return True
        if proposals and proposals[0].code != CODE:
            return self._refuse(proposals[0], fault)
        # What cannot be set aside alone is so with all decisions that touch it.
        parts = ("cycle", "allocation") if fault.part == "suspension" else (fault.part,)
        part = next((one for one in parts if one in _WHOLE and one not in self._off), None)
        if part is None:
            return False
        self._off.add(part)
        self.remedy = _remedy(part, "", fault)
        return True

    def _refuse(self, proposal: Proposal, fault: StepFailed) -> bool:
        """Have a proposal answered as refused; False when that was tried before."""
        if proposal.code == CODE:
            return False
        kind = type(proposal.input).__name__ if proposal.input is not None else "proposal"
        self._refused[proposal.position] = Proposal(
            position=proposal.position,
            id=proposal.id or (proposal.input.proposal if proposal.input is not None else ""),
            source=proposal.source,
            problem=f"{kind}: evsched failed at it, at {fault.place}: {in_short(fault.reason)}",
            raw=_raw(proposal),
            code=CODE,
            actor=proposal.actor or (proposal.input.actor if proposal.input is not None else ""),
        )
        return True


def unwritable(error: StepUnprovable, events: tuple[AnyEvent, ...]) -> StepFailed:
    """Return the failure of a step of which no frame can be made: that of an ask where its event is at fault."""
    found = next((one for one in events if one.seq == error.seq), None)
    ask = getattr(found, "ask", None) or ""
    return StepFailed("ask" if ask else "frame", ask, "frame", error)


def _brings(proposal: Proposal, ask: str) -> bool:
    return isinstance(proposal.input, AskSubmitted) and proposal.input.ask == ask


def in_short(text: str) -> str:
    """Return a text that may hold anything as one printable line of bounded length."""
    plain = "".join(one if one.isprintable() else "?" for one in text[: REASON_KEPT + 1])
    return plain if len(plain) <= REASON_KEPT else f"{plain[:REASON_KEPT]}…"


def _remedy(kind: str, subject: str, fault: StepFailed) -> Remedy:
    return Remedy(msgspec.convert(kind, Suspended), subject, fault.place, in_short(fault.reason))


def _raw(proposal: Proposal) -> str:
    """Return the beginning of a proposal as JSON; empty when not even that can be made of it."""
    if proposal.input is None:
        return proposal.raw[:RAW_KEPT]
    try:
        return msgspec.json.encode(proposal.input).decode()[:RAW_KEPT]
    except (ValueError, TypeError, RecursionError, OverflowError):
        return ""

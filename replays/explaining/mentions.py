"""The history of one ask or allocation: every event of a log that has to do with it, as a code with facts, and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from events import vocabulary as v
from evsched.core.kueue import messages
from replays.wording import HISTORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.chain import RecordedStep

PREEMPTS, EVICTED = "preempts", "eviction-requested"
DECISIONS = frozenset({PREEMPTS, EVICTED})
"""Codes of decisions, which can be decided again."""

_PLAIN: dict[type[v.AnyEvent], str] = {
    v.AskSubmitted: "submitted",
    v.AskWithdrawn: "withdrawn",
    v.AllocationRestored: "restored",
    v.NodeReserved: "node-reserved",
    v.AskNominated: "nominated",
    v.ReservationReleased: "reservation-released",
    v.EvictionRepeated: "eviction-repeated",
    v.EvictionRefused: "eviction-refused",
    v.ReservationRestored: "reservation-restored",
}
"""Codes of events that say nothing but that they happened."""


_NO_LONGER_WAITS = v.AllocationBound | v.BindingObserved | v.AskWithdrawn


class Mention(Struct, frozen=True, kw_only=True):
    """An event of the log that has to do with the subject.

    Attributes:
        code: What it says of the subject, a key of `HISTORY`.
        facts: What the sentence is made of.
        text: The sentence.
    """

    seq: int
    time: int
    text: str
    code: str
    facts: dict[str, Any] = {}


def mentions(subject: str, steps: Iterable[RecordedStep]) -> list[Mention]:
    """Return the events of these steps that have to do with an ask or allocation."""
    found = []
    application = ""
    for step in steps:
        for event in step.events:
            application = waits_in(subject, event, application)
            one = mention(subject, event, step.time, application)
            if one is not None:
                found.append(one)
    return found


def waits_in(subject: str, event: v.AnyEvent, before: str) -> str:
    """Return the application in which an ask waits after an event; empty when it does not wait."""
    if isinstance(event, v.AskSubmitted) and event.ask == subject:
        return event.application or event.queue.lower()
    ends = isinstance(event, _NO_LONGER_WAITS) and event.ask == subject
    return "" if ends else before


def mention(subject: str, event: v.AnyEvent, time: int, application: str = "") -> Mention | None:
    """Return what an event says of an ask or allocation; None when it says nothing.

    Args:
        subject: The ask or allocation.
        event: Any event.
        time: Of its frame, milliseconds.
        application: The one in which the ask waits, as `waits_in` gives it: what is said of that
            concerns the ask.
    """
    said = _decision(subject, event) or _of_application(event, application) or _own(subject, event)
    if said is None:
        return None
    code, facts = said
    return Mention(seq=event.seq, time=time, text=HISTORY[code](facts), code=code, facts=facts)


def _decision(subject: str, event: v.AnyEvent) -> tuple[str, dict[str, Any]] | None:
    """Return what a decision about preemption says of a preemptor or victim."""
    if isinstance(event, v.PreemptionWithdrawn):
        concerns = event.ask == subject or subject in event.victims
        return ("preemption-withdrawn", {"reason": event.reason}) if concerns else None
    if isinstance(event, v.PreemptionDecided) and event.ask == subject:
        return PREEMPTS, {"victims": tuple(one.id for one in event.victims), "node": event.node}
    if not isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
        return None
    victim = next((one for one in event.victims if one.id == subject), None)
    if victim is None:
        return None
    if isinstance(event, v.PreemptionDecided):
        return EVICTED, {"ask": event.ask, "queue": "", "reason": victim.reason}
    # A queue that is stopped says so; its quota is not needed by others.
    queue = "" if victim.reason in messages.TEXTS else event.queue
    return EVICTED, {"ask": "", "queue": queue, "reason": victim.reason}


def _of_application(event: v.AnyEvent, application: str) -> tuple[str, dict[str, Any]] | None:
    """Return what an event says of the application in which the subject waits."""
    if isinstance(event, v.ApplicationPaused) and event.application == application:
        return "paused", {"until": event.until, "asks": event.asks}
    if isinstance(event, v.ApplicationResumed) and event.application == application:
        return "resumed", {}
    return None


def _own(subject: str, event: v.AnyEvent) -> tuple[str, dict[str, Any]] | None:
    """Return what an event that names the subject says of it."""
    if isinstance(event, v.DecisionSuspended | v.DecisionResumed):
        if (event.kind, event.subject) != ("ask", subject):
            return None
        if isinstance(event, v.DecisionSuspended):
            return "suspended", {"place": event.place, "reason": event.reason}
        return "taken-up", {"reason": event.reason}
    if isinstance(event, v.InputRejected):
        named = (getattr(event.input, "ask", None), getattr(event.input, "allocation", None))
        return ("refused", {"reason": event.reason}) if subject in named else None
    if subject not in (getattr(event, "ask", None), getattr(event, "allocation", None)):
        return None
    if isinstance(event, v.AllocationBound):
        podsets = {one.name: one.flavors or {} for one in event.podsets}
        chosen = podsets or ({"": event.flavors} if event.flavors else {})
        return "bound", {"node": event.node, "flavors": chosen}
    if isinstance(event, v.BindingObserved):
        return "binding-observed", {"node": event.node, "scheduler": event.scheduler}
    if isinstance(event, v.EvictionObserved):
        facts = {"reason": event.reason, "scheduler": event.scheduler, "ask": event.preemptor}
        return "eviction-observed", facts
    if isinstance(event, v.PreemptionFailed):
        return "preemption-failed", {"reason": event.reason}
    if isinstance(event, v.AllocationReleased):
        return "ended", {"reason": event.reason}
    code = _PLAIN.get(type(event))
    return None if code is None else (code, {})

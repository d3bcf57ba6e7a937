"""The history of one ask or allocation: every event of a log that has to do with it, in a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events import vocabulary as v
from evsched.core.kueue import messages
from replays.history.moments import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.chain import Step


class Mention(Struct, frozen=True, kw_only=True):
    """An event of the log that has to do with the subject."""

    seq: int
    time: int
    text: str


def mentions(subject: str, steps: Iterable[Step]) -> list[Mention]:
    """Return the events of these steps that have to do with an ask or allocation."""
    found = []
    application = ""
    for step in steps:
        for event in step.events:
            application = waits_in(subject, event, application)
            text = mention_in(subject, event, application)
            if text:
                found.append(Mention(seq=event.seq, time=step.time, text=text))
    return found


def waits_in(subject: str, event: v.AnyEvent, before: str) -> str:
    """Return the application in which an ask waits after an event; empty when it does not wait."""
    if isinstance(event, v.AskSubmitted) and event.ask == subject:
        return event.application or event.queue.lower()
    ends = isinstance(event, v.AllocationBound | v.AskWithdrawn) and event.ask == subject
    return "" if ends else before


def mention_in(subject: str, event: v.AnyEvent, application: str = "") -> str:
    """Return what an event says of an ask or allocation; empty when it says nothing.

    Args:
        subject: The ask or allocation.
        event: Any event.
        application: The one in which the ask waits, as `waits_in` gives it: what is said of that
            concerns the ask.
    """
    if isinstance(event, v.ApplicationPaused) and event.application == application:
        return f"its application is paused until {format_time(event.until)}: {event.asks} of its asks fit on no node"
    if isinstance(event, v.ApplicationResumed) and event.application == application:
        return "the pause of its application is over"
    if isinstance(event, v.PreemptionDecided):
        if event.ask == subject:
            victims = ", ".join(victim.id for victim in event.victims)
            return f"preempts {victims}" + (f" on {event.node}" if event.node else "")
        return next(
            (
                f"told to go for ask {event.ask}: {one.reason}"
                for one in event.victims
                if one.id == subject
            ),
            "",
        )
    if isinstance(event, v.QuotaPreemptionDecided):
        reason = next((one.reason for one in event.victims if one.id == subject), "")
        # A queue that is stopped says so; nobody needs its quota.
        whom = "" if reason in messages.TEXTS else f" for the quota of {event.queue}"
        return f"told to go{whom}: {reason}" if reason else ""
    if isinstance(event, v.PreemptionWithdrawn):
        if event.ask == subject or subject in event.victims:
            return f"preemption withdrawn: {event.reason}"
        return ""
    if subject not in (getattr(event, "ask", None), getattr(event, "allocation", None)):
        rejected = event.input if isinstance(event, v.InputRejected) else None
        if rejected is not None and subject in (
            getattr(rejected, "ask", None),
            getattr(rejected, "allocation", None),
        ):
            return f"refused: {event.reason}"  # type: ignore[union-attr]
        return ""
    if isinstance(event, v.AllocationBound):
        flavors = flavors_of(event)
        return (
            f"bound to {event.node}"
            if event.node
            else f"admitted{f' ({flavors})' if flavors else ''}"
        )
    if isinstance(event, v.PreemptionFailed):
        return f"could not preempt: {event.reason}"
    if isinstance(event, v.AllocationReleased):
        return f"ended: {event.reason}"
    words = {
        v.AskSubmitted: "submitted",
        v.AskWithdrawn: "withdrawn",
        v.AllocationRestored: "found running",
        v.NodeReserved: "a node is reserved for it",
        v.ReservationReleased: "its reservation ended",
        v.EvictionRepeated: "told to go again",
        v.EvictionRefused: "its eviction was refused",
        v.ReservationRestored: "found with a node reserved for it",
    }
    return words.get(type(event), "")


def flavors_of(event: v.AllocationBound) -> str:
    """Return which flavor each resource of an admission is from, podset by podset; empty when it has none."""
    chosen = [
        ("", event.flavors or {}),
        *((f"{one.name}: ", one.flavors or {}) for one in event.podsets),
    ]
    return ", ".join(
        f"{podset}{name} from {flavor}"
        for podset, named in chosen
        for name, flavor in named.items()
    )

"""Whom an event speaks of: the names under which the index of subjects keeps its place.

Some things are looked for that have no name of their own; they have one here that begins with a
letter no name of a cluster is likely to begin with. It would do no harm: what is found by a name is
read from the log again, and what does not belong to the subject is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from events import vocabulary as v

if TYPE_CHECKING:
    from collections.abc import Callable

    Namer = Callable[[Any], tuple[str, ...]]

DECIDED = "\0decided"
"""Decisions that evict somebody."""
CONFIGURED = "\0configured"
"""Configurations that were applied."""


def names_of(event: v.AnyEvent) -> tuple[str, ...]:
    """Return the asks, allocations and paused applications of which an event speaks; the order means nothing."""
    namer = _NAMERS.get(type(event))
    return () if namer is None else namer(event)


def _ask(event: Any) -> tuple[str, ...]:
    return (event.ask,)


def _allocation(event: Any) -> tuple[str, ...]:
    return (event.allocation,)


def _application(event: v.ApplicationPaused | v.ApplicationResumed) -> tuple[str, ...]:
    return (event.application,)


def _preempts(event: v.PreemptionDecided) -> tuple[str, ...]:
    return (DECIDED, event.ask, *(victim.id for victim in event.victims))


def _enforces(event: v.QuotaPreemptionDecided) -> tuple[str, ...]:
    return (DECIDED, *(victim.id for victim in event.victims))


def _withdraws(event: v.PreemptionWithdrawn) -> tuple[str, ...]:
    return (*event.victims, event.ask) if event.ask else event.victims


def _suspends(event: v.DecisionSuspended | v.DecisionResumed) -> tuple[str, ...]:
    return (event.subject,)


def _refuses(event: v.InputRejected) -> tuple[str, ...]:
    named = (getattr(event.input, "ask", None), getattr(event.input, "allocation", None))
    return tuple(name for name in named if name)


def _configures(_: v.ConfigurationApplied) -> tuple[str, ...]:
    return (CONFIGURED,)


def _by_field(kind: type[v.AnyEvent]) -> Namer | None:
    """Return what names the subject of an event type by its field, None when it has none."""
    fields = kind.__struct_fields__
    return _ask if "ask" in fields else _allocation if "allocation" in fields else None


_NAMERS: dict[type, Namer] = {
    kind: namer for kind in v.AnyEvent.__args__ if (namer := _by_field(kind)) is not None
}
_NAMERS |= {
    v.ApplicationPaused: _application,
    v.ApplicationResumed: _application,
    v.PreemptionDecided: _preempts,
    v.QuotaPreemptionDecided: _enforces,
    v.PreemptionWithdrawn: _withdraws,
    v.DecisionSuspended: _suspends,
    v.DecisionResumed: _suspends,
    v.InputRejected: _refuses,
    v.ConfigurationApplied: _configures,
}

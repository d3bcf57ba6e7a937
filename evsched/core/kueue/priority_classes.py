"""Workloads that name a WorkloadPriorityClass instead of a number."""

from __future__ import annotations

from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import KueueSpec
from evsched.core.refusals import Rejection
from evsched.core.state import State

MAX_SHOWN = 8
"""So many classes are named in a refusal."""


def class_problem(state: State, proposed: v.AskSubmitted) -> Rejection | None:
    """Refuse a class that is not in the configuration; None when there is nothing to refuse.

    The refusal names classes that exist, at most `MAX_SHOWN`, so that a misspelt name is found.
    """
    name, classes = proposed.priority_class, _classes(state)
    if not name or name in classes:
        return None
    known = sorted(classes)
    more = f" and {len(known) - MAX_SHOWN} more" if len(known) > MAX_SHOWN else ""
    expected = (
        f"one of {', '.join(known[:MAX_SHOWN])}{more}" if known else "none, as there are none"
    )
    return Rejection(
        "unknown", f"ask {proposed.ask}: found priority class {name}, expected {expected}"
    )


def with_priority(state: State, event: v.AskSubmitted) -> v.AskSubmitted:
    """Return an accepted ask with the value of its class as its priority.

    The value is that of the class now. As in Kueue, a class that changes later changes no ask that
    was taken in before; and a reader of the log needs no class to know the priority.
    """
    if not event.priority_class:
        return event
    return replace(event, priority=_classes(state)[event.priority_class])


def _classes(state: State) -> dict[str, int]:
    """Return the value of each class by its name; none with another family."""
    spec = state.configuration
    return spec.priority_classes if isinstance(spec, KueueSpec) else {}

"""Events as a person reads them, one a line: number, time, type, then the facts."""

from __future__ import annotations

from typing import Any

import msgspec

from events.cloudevents import rfc3339
from events.vocabulary import AnyEvent, ConfigurationApplied, InputRejected

MOMENTS = frozenset({"at", "created", "until"})
"""Facts that are moments: a person reads them like the times at the beginning of the lines."""

MOST_LETTERS = 300
"""What one fact may take of a line; more is cut, and `--json` shows all of it."""


def event_line(event: AnyEvent, time: int) -> str:
    """Return an event as one line.

    Args:
        event: Of a log.
        time: Of its frame, milliseconds.
    """
    kind, facts, cause = _facts(event, time)
    shown = " ".join(f"{name}={_value(value)}" for name, value in facts.items())
    return f"{event.seq:>8} {rfc3339(time)} {kind} {shown}{f' ← {cause}' if cause else ''}"


def _facts(event: AnyEvent, time: int) -> tuple[str, dict[str, Any], int | None]:
    """Return the type of an event, what it says, and the event that led to it."""
    facts: dict[str, Any] = msgspec.to_builtins(event)
    kind = facts.pop("type")
    facts.pop("seq", None)
    due = facts.pop("due", None)
    if due is not None and due != time:
        facts["due"] = rfc3339(due)
    facts |= {
        name: rfc3339(facts[name]) for name in facts.keys() & MOMENTS if facts[name] is not None
    }
    cause = facts.pop("cause", None)
    if isinstance(event, ConfigurationApplied):
        facts = _without_text(facts)
    if isinstance(event, InputRejected) and isinstance(event.input, ConfigurationApplied):
        facts["input"] = _without_text(facts["input"])
    return kind, facts, cause


def _without_text(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration by its partition: all of it is too much for a line; `evsched at SEQ config` shows it."""
    partition = facts["configuration"].get("partition", "default")
    named = {
        name: value for name, value in facts.items() if name not in ("configuration", "document")
    }
    return named | {"partition": partition}


def _value(value: Any) -> str:
    """Return a value on one line, cut where it is long.

    What was refused may hold letters that speak to a terminal, deep within.
    """
    text = (
        value
        if isinstance(value, str) and value.isprintable()
        else msgspec.json.encode(value).decode()
    )
    if len(text) <= MOST_LETTERS:
        return text
    return f"{text[:MOST_LETTERS]}… ({len(text)} letters, --json shows all)"

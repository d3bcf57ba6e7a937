"""Decisions as documents: what the log says was decided, with times in seconds from a start, for people and for comparisons."""

from __future__ import annotations

from typing import Any

import msgspec

from events.vocabulary import (
    AllocationBound,
    AnyEvent,
    ApplicationPaused,
    CheckpointRecorded,
    CycleStarted,
    InboxAttached,
    Input,
    LeaderStarted,
    PreemptionDecided,
    QuotaPreemptionScheduled,
)

_SILENT = (Input, LeaderStarted, InboxAttached, CheckpointRecorded, CycleStarted)
"""What is no decision that anybody waits for."""


def is_decision(event: AnyEvent) -> bool:
    """Tell whether an event decides about somebody: no input, and none of the log's own housekeeping."""
    return not isinstance(event, _SILENT)


def decision_document(event: AnyEvent, time: int, start_ms: int) -> dict[str, Any]:
    """Return a decision as a document, without its place in the log.

    Args:
        event: The decision.
        time: When it was taken, milliseconds since the epoch.
        start_ms: What counts as second 0. ``at``, ``due``, ``fires_at`` (of a scheduled quota
            enforcement) and ``until`` (of a pause) count from there.
    """
    fields: dict[str, Any] = msgspec.to_builtins(event)
    kind = fields.pop("type")
    for name in ("seq", "cause"):
        fields.pop(name, None)
    if "due" in fields:
        fields["due"] = seconds(fields["due"] - start_ms)
    if isinstance(event, ApplicationPaused):
        fields["until"] = seconds(fields["until"] - start_ms)
    if isinstance(event, QuotaPreemptionScheduled):
        fields["fires_at"] = seconds(fields.pop("at") - start_ms)
    if isinstance(event, AllocationBound | PreemptionDecided):
        fields.setdefault("node", None)
    return {"at": seconds(time - start_ms), "type": kind, **fields}


def seconds(ms: int) -> int | float:
    """Return milliseconds as seconds: a whole number where they are whole."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000

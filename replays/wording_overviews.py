"""Sentences about applications, queues, nodes and users: see `replays.wording`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replays.history.moments import format_time
from replays.wording import COHORT, amount, titled

if TYPE_CHECKING:
    from replays.explaining.overview import LimitUse, Overview


def overview(found: Overview, *, kueue: bool) -> str:
    """Return what an application, queue, node or user has, in two or three sentences."""
    return " ".join([f"{_subject(found, kueue=kueue)}: {_counts(found)}.", *_remarks(found)])


def limit(one: LimitUse) -> str:
    """Return a limit and what counts against it."""
    whom = f" for {one.whom}" if one.whom else ""
    if not one.resource:
        return f"Queue {one.queue}{whom}: {one.used} of {one.limit} applications run."
    used, most = amount(one.resource, one.used), amount(one.resource, one.limit)
    return f"Queue {one.queue}{whom}: {used} of {most} {one.resource} used."


def _subject(found: Overview, *, kueue: bool) -> str:
    match found.kind:
        case "queue":
            is_kueue = kueue or found.name.startswith(COHORT)
            return titled(found.name) if is_kueue else f"Queue {found.name}"
        case "application":
            (row,) = found.applications
            of = f" of user {row.user}" if row.user else ""
            return f"Application {found.name}{of} in queue {row.queue}"
        case "node":
            return f"Node {found.name}"
        case _:
            count = len(found.applications)
            return f"User {found.name} with {count} application{'' if count == 1 else 's'}"


def _counts(found: Overview) -> str:
    run = f"{found.running} allocation{' runs' if found.running == 1 else 's run'}"
    if found.leaving:
        run += f", {found.leaving} of them {'is' if found.leaving == 1 else 'are'} leaving"
    return f"{run}, {found.waiting} ask{' waits' if found.waiting == 1 else 's wait'}"


def _remarks(found: Overview) -> list[str]:
    said = []
    if found.kind == "queue" and found.queues and found.queues[0].draining:
        said.append("It is no longer in the configuration and is draining.")
    said += [
        f"{f'Application {one.application}' if found.kind == 'user' else 'It'} is paused until {format_time(one.paused_until)}."
        for one in found.applications
        if one.paused_until is not None
    ]
    if found.node is not None:
        if not found.node.schedulable:
            said.append("It is not schedulable.")
        if found.node.reserved_for:
            said.append(f"It is reserved for {', '.join(found.node.reserved_for)}.")
    return said

"""How an application, queue, node or user is shown to a person: the second half of `evsched explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evsched.cli.consoles import Paper
    from replays.explaining.overview import Overview

NAMES_SHOWN = 5


def print_overview(console: Paper, found: Overview) -> None:
    """Print what a thing has, what limits it, and what holds the asks that wait there."""
    from evsched.cli.cells import table  # noqa: PLC0415 - slow to load
    from replays.history.rows import document  # noqa: PLC0415
    from replays.wording_overviews import limit  # noqa: PLC0415

    rows = {
        "Queue path": [document(one) for one in found.queues],
        "Node": [] if found.node is None else [document(found.node)],
        "Applications": [document(one) for one in found.applications],
    }
    for title, shown in rows.items():
        if shown:
            console.heading(title)
            console.table(table(shown))
    if found.limits:
        console.heading("Limits")
    for one in found.limits:
        console.print(f"  {limit(one)}")
    if found.held:
        most = f" (the first {found.explained} of {found.waiting})"
        console.heading(f"What holds its asks{most if found.explained < found.waiting else ''}")
    for group in found.held:
        more = len(group.asks) - NAMES_SHOWN
        names = ", ".join(group.asks[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        console.print(f"  {names}: {group.summary}")
        for line in group.unblock:
            console.print(f"    {line.sentence}")

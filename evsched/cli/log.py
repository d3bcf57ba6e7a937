"""`evsched log`: what the log holds, and what is written to it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import aclosing
from difflib import get_close_matches
from typing import Annotated

from cyclopts import App, Parameter

from events.chain import ChainReader, RecordedStep
from events.streams.reading import follow_steps
from events.vocabulary import AnyEvent
from evsched.cli.answers import NO, CommandError, emit, say, tell
from evsched.cli.event_lines import event_line
from evsched.cli.logs import HERE, Where, log_of, steps_of
from evsched.cli.options import Json
from evsched.cli.past import MomentText, SnapshotFolder, history_of, moment_of

EVENT_TYPES = tuple(sorted(kind.__name__ for kind in AnyEvent.__args__))

app = App(name="log", help="Read the log, follow it, export it, check it.")

Types = Annotated[
    list[str] | None,
    Parameter(name="--type", negative=(), help="Only events of these types; may be repeated."),
]


@app.command
async def show(  # noqa: PLR0913 - the options of a command
    *,
    where: Where = HERE,
    first: Annotated[MomentText, Parameter(name="--from")] = "start",
    last: Annotated[MomentText, Parameter(name="--to")] = "end",
    types: Types = None,
    ask: Annotated[str | None, Parameter(name=["--ask", "--allocation"])] = None,
    queue: str | None = None,
    application: str | None = None,
    node: str | None = None,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Show the events of a log, one a line; exits 1 when there is none.

    What is asked for together has to hold together.

    **Examples**

    `evsched log show --type PreemptionDecided --type QuotaPreemptionDecided`

    `evsched log show --queue root.web --from -1h`

    `evsched log show --ask web-3 --json`

    `evsched log show --log kafka://localhost:9092/cluster --from 100 --to 200 --json`

    Args:
        where: Which log.
        first: The first event: its number (`seq`), a time, or time before the end of the log (-15m).
        last: The last event, in the same ways.
        types: Names of event types.
        ask: Only what is about this ask or allocation.
        queue: Only what is about this queue or one below it.
        application: Only what is about this application.
        node: Only what names this node.
        snapshots: Folder of snapshots, from which --queue and --application start.
        json: One event a line, with the time and number of its frame.
    """
    from replays.history.selecting import EventSelection, selected  # noqa: PLC0415 - slow to load

    _known(types)
    wanted = EventSelection(
        first=moment_of(first),
        last=moment_of(last),
        types=frozenset(types or ()),
        subject=ask,
        queue=queue,
        application=application,
        node=node,
    )
    shown = 0
    async with (
        history_of(where, snapshots) as history,
        aclosing(selected(history, wanted)) as found,  # type: ignore[type-var]
    ):
        async for step, events in found:
            shown += _print(step, events, None, json=json)
    if not shown:
        say("no event")
    return 0 if shown else NO


@app.command
async def tail(
    *,
    where: Where = HERE,
    lines: Annotated[int, Parameter(name=["--lines", "-n"])] = 10,
    types: Types = None,
    json: Json = False,
) -> None:
    """Show the last events of a log and then each new one, until Ctrl-C.

    **Example**

    `evsched log tail -n 0 --type AllocationBound --json`

    Args:
        where: Which log.
        lines: How many of the events that are there already are shown.
        types: Names of event types.
        json: One event a line, with the time and number of its frame.
    """
    _known(types)
    reader = ChainReader()
    async with log_of(where) as opened:
        kept: list[tuple[RecordedStep, AnyEvent]] = []
        async with aclosing(steps_of(opened, reader)) as steps:  # type: ignore[type-var]
            async for step in steps:
                kept += [
                    (step, event)
                    for event in step.events
                    if not types or type(event).__name__ in types
                ]
                kept = kept[-lines:] if lines > 0 else []
        for step, event in kept:
            _print(step, [event], types, json=json)
        sys.stdout.flush()  # whoever reads through a pipe is to see each event when it comes
        async with aclosing(follow_steps(opened, reader)) as batches:
            async for batch in batches:
                for step in batch:
                    _print(step, step.events, types, json=json)
                sys.stdout.flush()


def _known(types: list[str] | None) -> None:
    """Refuse the name of an event type that there is not, or nothing would ever be shown."""
    for name in types or ():
        if name not in EVENT_TYPES:
            near = get_close_matches(name, EVENT_TYPES, n=1)
            expected = (
                f"did you mean {near[0]}?" if near else f"expected one of {', '.join(EVENT_TYPES)}"
            )
            raise CommandError(f"--type {name}: no such event type; {expected}")


def _print(
    step: RecordedStep, events: Iterable[AnyEvent], types: list[str] | None, *, json: bool
) -> int:
    """Print events of a step and return how many."""
    count = 0
    for event in events:
        if types and type(event).__name__ not in types:
            continue
        count += 1
        if json:
            emit({"time": step.time, "frame": step.head.frame, "event": event})
        else:
            tell(event_line(event, step.time), flush=True)
    return count

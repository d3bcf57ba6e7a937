"""`evsched log`: what the log holds, and what is written to it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import aclosing
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from events.chain import ChainReader, RecordedStep
from events.cloudevents import rfc3339
from events.streams.reading import follow_steps
from events.vocabulary import AnyEvent, ConfigurationApplied
from evsched.cli.answers import NO, CommandError, emit, say, tell
from evsched.cli.logs import HERE, Where, log_of, steps_of
from evsched.cli.options import Json

EVENT_TYPES = tuple(sorted(kind.__name__ for kind in AnyEvent.__args__))

MOMENTS = frozenset({"at", "created", "until"})
"""Facts that are moments: a person reads them like the times at the beginning of the lines."""

app = App(name="log", help="Read the log, follow it, export it, check it.")

Types = Annotated[
    list[str] | None,
    Parameter(name="--type", negative=(), help="Only events of these types; may be repeated."),
]


@app.command
async def show(
    *,
    where: Where = HERE,
    first: Annotated[int, Parameter(name="--from")] = 1,
    last: Annotated[int | None, Parameter(name="--to")] = None,
    types: Types = None,
    json: Json = False,
) -> int:
    """Show the events of a log, one a line; exits 1 when there is none.

    **Examples**

    `evsched log show --type PreemptionDecided --type QuotaPreemptionDecided`

    `evsched log show --log kafka://localhost:9092/cluster --from 100 --to 200 --json`

    Args:
        where: Which log.
        first: Number (`seq`) of the first event.
        last: Number of the last event.
        types: Names of event types.
        json: One event a line, with the time and number of its frame.
    """
    _known(types)
    shown = 0
    async with log_of(where) as opened, aclosing(steps_of(opened)) as steps:  # type: ignore[type-var]
        async for step in steps:
            wanted = [
                one for one in step.events if one.seq >= first and (last is None or one.seq <= last)
            ]
            shown += _print(step, wanted, types, json=json)
            if last is not None and step.head.next_seq > last:
                break
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
            tell(_line(step, event), flush=True)
    return count


def _line(step: RecordedStep, event: AnyEvent) -> str:
    """Return an event as a person reads it: number, time, type, then its facts."""
    facts: dict[str, Any] = msgspec.to_builtins(event)
    kind = facts.pop("type")
    facts.pop("seq", None)
    due = facts.pop("due", None)
    if due is not None and due != step.time:
        facts["due"] = rfc3339(due)
    facts |= {
        name: rfc3339(facts[name]) for name in facts.keys() & MOMENTS if facts[name] is not None
    }
    cause = facts.pop("cause", None)
    if isinstance(event, ConfigurationApplied):
        # All of it is too much for a line; `evsched at SEQ config` shows it.
        facts = {
            name: value
            for name, value in facts.items()
            if name not in {"configuration", "document"}
        }
        facts |= {"partition": event.configuration.partition}
    shown = " ".join(f"{name}={_value(value)}" for name, value in facts.items())
    return f"{event.seq:>8} {rfc3339(step.time)} {kind} {shown}{f' ← {cause}' if cause else ''}"


def _value(value: Any) -> str:
    """Return a value on one line; what was refused may hold letters that speak to a terminal, deep within."""
    return (
        value
        if isinstance(value, str) and value.isprintable()
        else msgspec.json.encode(value).decode()
    )

"""`evsched bisect`: the first event at which something became true."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated

import msgspec
from cyclopts import Parameter

from evsched.cli.answers import DONE, NO, CommandError, emit, paper, say, tell
from evsched.cli.cells import table
from evsched.cli.event_lines import MOST_LETTERS, event_line
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, SnapshotFolder, end_of, history_of, meter, moment_of
from replays.history.bisect import BisectQuestion, Found, first_difference
from replays.history.bisect import bisect as answer
from replays.history.expressions import ExpressionInvalid
from replays.history.known import NeverThere
from replays.history.moments import format_time
from replays.history.rows import document


async def bisect(
    expression: Annotated[
        list[str], Parameter(name="EXPRESSION", negative=(), allow_leading_hyphen=False)
    ],
    /,
    *,
    where: Where = HERE,
    start: Annotated[MomentText, Parameter(name="--from")] = "start",
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Find the first event of the log after which something is true, and show the state around it; exits 1 when it never was.

    The log is read from its beginning: what becomes true may become false again, and the first time
    is wanted.

    **Examples**

    `evsched bisect 'queue root.web usage.vcore > max.vcore'`

    `evsched bisect ask web-1 gone`, `evsched bisect allocation web-1 leaving`, `evsched bisect 'timers
    > 0'`

    `evsched bisect 'node n1 free.memory < 4Gi and not queue root.web pending_asks == 0'`

    `evsched bisect 'digest != monday.jsonl.zst'`: where the states of two logs part

    Amounts of a queue: usage, pending, preempting, guaranteed, max (with a resource,
    `usage.vcore`), pending_asks. Of a node: capacity, used, free, allocations. An ask waits,
    failed, reserved, gone; an allocation runs, leaving, gone; application, node, queue and timer:
    exists, gone. Counts: queues, nodes, apps, asks, allocations, timers, preemptions. `event TYPE`:
    an event of this type. Joined by `and`, `or`, `not`.

    Args:
        expression: What is looked for; in quotes where it has `<` or `>` in it.
        where: Which log.
        start: Look only at what happened after this moment.
        snapshots: Folder of snapshots.
        json: One document.
    """
    words = " ".join(expression).split()
    match words:
        case ["digest", "!=", other]:
            found = await _other(where, other)
        case ["digest", *_]:
            raise CommandError(
                f"expression: found {' '.join(words)!r}, expected `digest != FILE` or the address of a log"
            )
        case _:
            found = await _first(where, " ".join(words), start, snapshots)
    if found is None:
        say("never")
        return NO
    if json:
        emit(found)
    else:
        _show(found)
    return DONE


async def _first(
    where: Where, expression: str, start: str, snapshots: SnapshotFolder
) -> Found | None:
    question = BisectQuestion(expression=expression, start=moment_of(start))
    async with history_of(where, snapshots) as history:
        with meter("looking", await end_of(history.log)) as advance:
            try:
                found = await answer(history, question, lambda step: advance(step.head.position))
            except ExpressionInvalid as error:
                raise CommandError(str(error)) from error
            except NeverThere as error:
                raise CommandError(str(error), NO) from error
    return found.first


async def _other(where: Where, address: str) -> Found | None:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(history_of(where))
        theirs = await stack.enter_async_context(history_of(replace(where, log=address)))
        with meter("comparing", await end_of(ours.log)) as advance:
            return await first_difference(ours, theirs, lambda step: advance(step.head.position))


def _show(found: Found) -> None:
    tell(f"event {found.seq} in frame {found.frame} at {format_time(found.time)}")
    if found.event is None:
        tell("  the log has ended")
    else:
        shown = msgspec.json.encode(found.event).decode()
        # A configuration may be as long as a book; the line says what it is.
        tell(f"  {shown}" if len(shown) <= MOST_LETTERS else event_line(found.event, found.time))
    console = paper()
    for kind, rows in found.around.by_view().items():
        console.print()
        console.table(table([document(row) for row in rows], f"{kind} after it"))

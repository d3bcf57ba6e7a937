"""`evsched log export`, `import` and `check`: logs as files, and whether a log holds together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from events.chain import Step
from events.streams.export import export_log, import_log
from evsched.cli.answers import DONE, NO, CommandError, emit, say
from evsched.cli.log import app
from evsched.cli.logs import HERE, Where, log_of, steps_of, streams_of
from evsched.cli.options import Json
from evsched.core.engine import Engine
from evsched.service.rebuilding import Warm
from replays.verify import verify


@app.command(name="export")
async def export(file: Path, /, *, where: Where = HERE) -> None:
    """Write a log to a new file that can be kept, sent, and read by every command that reads a log.

    **Example**

    `evsched log export monday.jsonl.zst`

    Args:
        file: Ends in .jsonl, or .jsonl.zst to be compressed.
        where: Which log.
    """
    if file.exists():  # noqa: ASYNC240 - before anything runs beside it
        raise CommandError(f"{file}: exists already, expected a new file")
    async with log_of(where) as log:
        count = await export_log(log, file)
    say(f"{file}: {count} records")


@app.command(name="import")
async def import_(file: Path, /, *, where: Where = HERE) -> None:
    """Write an exported log into an empty one.

    **Example**

    `evsched log import monday.jsonl.zst --log sqlite:///$PWD/again.db`

    Args:
        file: As `log export` wrote it.
        where: Which log; it must be empty.
    """
    async with streams_of(where, create=True) as streams:
        count = await import_log(file, streams.log)
    say(f"{streams.log.name}: {count} records")


@app.command
async def check(
    *,
    where: Where = HERE,
    decide: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Check that a log holds together: every hash, every number, and every digest that it carries. Exits 3 when it does not.

    **Example**

    `evsched log check --decide`

    Args:
        where: Which log.
        decide: Decide everything again as well, and compare event by event; exits 1 at the first difference.
        json: One document.
    """
    warm = Warm()
    steps: list[Step] = []
    async with log_of(where) as log:
        if decide:
            steps = [step async for step in steps_of(log)]
        await warm.catch_up(log)
    head = warm.reader.head
    difference = verify(Engine(), steps) if decide else None
    if json:
        emit(
            {
                "log_id": head.log_id,
                "frames": head.frame,
                "events": head.next_seq - 1,
                "ignored": warm.reader.ignored,
                "digest": warm.engine.state.digest(),
                "difference": None if difference is None else difference.seq,
            }
        )
    say(f"{head.frame} frames and {head.next_seq - 1} events hold together, {warm.reader.ignored} void frames were passed over")
    if difference is not None:
        again = difference.decided or difference.error or "nothing"
        say(f"event {difference.seq}: deciding again gives {again}, the log holds {difference.recorded}")
    return DONE if difference is None else NO

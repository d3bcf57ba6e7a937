"""`evsched at`: what the scheduler knew at any moment."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from events.streams.private_files import plain_name
from evsched.cli.answers import NO, CommandError, emit, paper, say
from evsched.cli.cells import counted, table
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, MostRows, SnapshotFolder, history_of, moment_of
from evsched.cli.project import Db, default_path
from replays.history.at import AtQuestion, at_tabled
from replays.history.at import at as answer
from replays.history.known import NeverThere
from replays.history.moments import format_time
from replays.history.rows import document
from replays.history.views import View


async def at(  # noqa: PLR0913 - the options of a command
    moment: MomentText,
    view: View = "queues",
    /,
    *,
    where: Where = HERE,
    queue: Annotated[str | None, Parameter(name="--queue")] = None,
    snapshots: SnapshotFolder = None,
    limit: MostRows = None,
    json: Json = False,
    db: Db = None,
) -> None:
    """Show the state at a moment of the log.

    The read model answers where it goes that far (`evsched project`); else the log is read.

    A moment is a `seq` (`1234`: after that event), a time (`2026-11-20T14:03:00Z`: after all that
    happened by then), time before the end of the log (`-15m`), `start` or `end`.

    **Examples**

    `evsched at -15m queues`

    `evsched at 2026-11-20T14:03:00Z allocations --queue root.web`

    `evsched at 1234 config --json --log monday.jsonl.zst`

    Args:
        moment: When.
        view: What.
        where: Which log.
        queue: Only what is in this queue or below it.
        snapshots: Folder of snapshots.
        limit: Most rows; all of them by default.
        json: One document a row, amounts in base units, times in milliseconds.
        db: The file of the read model.
    """
    wanted = moment_of(moment)
    question = AtQuestion(moment=wanted, view=view, queue=queue)
    async with history_of(where, snapshots) as history:
        try:
            log_id = await history.log_id()
            path = db or (default_path(log_id) if plain_name(log_id) else None)
            tabled = None if path is None else at_tabled(path, log_id, question)
            found = tabled or await answer(history, question)
        except NeverThere as error:
            raise CommandError(str(error), NO) from error
    if wanted.seq is not None and wanted.seq > found.seq:
        say(f"event {wanted.seq}: the log does not go that far yet")
    rows = found.rows.by_view()[view]
    shown = rows if limit is None else rows[:limit]
    if json:
        for row in shown:
            emit(document(row))
    elif shown:
        paper().table(table(lambda: map(document, shown)))
    more = f", {len(shown)} of them shown" if len(shown) < len(rows) else ""
    say(
        f"after event {found.seq}{f' of {format_time(found.time)}' if found.seq else ''}: {counted(len(rows), view)}{more}"
    )

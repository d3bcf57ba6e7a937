"""What the commands that look back share: which moment, from which snapshots, and how far they are."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import unquote, urlsplit

from cyclopts import Parameter

from events.streams import EventLog
from events.streams.export import SUFFIXES
from evsched.cli.answers import CommandError, say, talk
from evsched.cli.logs import Where, data_directory, log_of
from replays.history import History
from replays.moments import Moment, MomentInvalid, parse_moment
from replays.snapshots import SnapshotStore

MOMENTS = "a seq (1234), a time (2026-11-20T14:03:00Z), time before the end (-15m), `start` or `end`"

MomentText = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A moment as it is typed: ``-15m`` begins with a hyphen and is no option."""

Snapshots = Annotated[
    Path | None,
    Parameter(
        env_var="EVSCHED_SNAPSHOTS", help="Folder of snapshots to start from; by default where a follower of this log keeps them."
    ),
]

STEPS_BETWEEN_SIGNS = 200


class Meter(Protocol):
    """What a progress bar is told."""

    def __call__(self, position: int) -> None:
        """Note that the log was read up to this position."""


def moment_of(text: str) -> Moment:
    """Return the moment that was typed; raise `CommandError` when it is none."""
    try:
        return parse_moment(text)
    except MomentInvalid as error:
        raise CommandError(str(error)) from error


def snapshot_folder(where: Where, given: Path | None = None) -> Path | None:
    """Return the folder in which snapshots of a log lie: the one given, beside a SQLite file, else in your data directory.

    None for an exported file, of which nobody keeps any.
    """
    if given is not None:
        return given
    if where.url.endswith(SUFFIXES):
        return None
    parts = urlsplit(where.url)
    if parts.scheme == "sqlite":
        path = Path("/" + unquote(parts.path).lstrip("/"))
        return path.with_name(f"{path.name}.snapshots") / str(where.partition)
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{parts.netloc}{parts.path}")
    return data_directory() / "snapshots" / name / str(where.partition)


@asynccontextmanager
async def history_of(where: Where, snapshots: Path | None = None) -> AsyncIterator[History]:
    """Open the past of a log and close it afterwards; errors as of `log_of`."""
    folder = snapshot_folder(where, snapshots)
    async with log_of(where) as log:
        yield History(log, SnapshotStore(folder, say) if folder is not None else None, say)


@contextmanager
def meter(title: str, end: int) -> Iterator[Meter]:
    """Show a progress bar on the standard error while a log is read, where that is a terminal.

    Args:
        title: What is going on.
        end: Position at which the log ends.
    """
    console = talk()
    if not console.is_terminal:
        yield lambda position: None  # noqa: ARG005 - nobody looks
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - slow to load

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=end)
        shown = 0

        def advance(position: int) -> None:
            nonlocal shown
            if position - shown >= STEPS_BETWEEN_SIGNS or position + 1 >= end:
                shown = position
                progress.update(task, completed=position + 1)

        yield advance


async def end_of(log: EventLog) -> int:
    """Return the position at which a log ends, for a progress bar; 0 where nobody would see one."""
    return await log.end() if talk().is_terminal else 0

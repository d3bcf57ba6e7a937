"""What the commands that look back share: which moment, from which snapshots, and how far they are."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter, validators

from events.streams import EventLog
from events.streams.export import SUFFIXES
from events.streams.private_files import plain_name
from evsched.cli.answers import CommandError, say, talk
from evsched.cli.logs import Where, data_directory, log_of
from evsched.snapshots.store import SnapshotStore
from evsched.snapshots.subjects import SubjectIndex
from replays.history.moments import Moment, MomentInvalid, parse_moment
from replays.history.parts import AllCores, LogSource
from replays.history.rebuild import History

MOMENTS = (
    "a seq (1234), a time (2026-11-20T14:03:00Z), time before the end (-15m), `start` or `end`"
)

MomentText = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A moment as it is typed: ``-15m`` begins with a hyphen and is no option."""

SnapshotFolder = Annotated[
    Path | None,
    Parameter(
        env_var="EVSCHED_SNAPSHOTS",
        help="Folder of snapshots to start from; the one in your data directory by default, where `evsched run` leaves them.",
    ),
]

MostRows = Annotated[int | None, Parameter(validator=validators.Number(gte=1))]
"""Most rows of an answer."""

Known = Annotated[
    list[str] | None,
    Parameter(
        name="--known",
        negative=(),
        help="Hash of the end of this log, as it was once printed; may be repeated.",
    ),
]

STEPS_BETWEEN_SIGNS = 200
COLLECT_AFTER = 50_000


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


def snapshot_store(folder: Path | None, log_id: str) -> SnapshotStore | None:
    """Return the snapshots of a log, which lie in a folder of its own below ``folder`` (None: that of your data directory)."""
    name = plain_name(log_id)
    if name is None:
        return None
    return SnapshotStore((folder or data_directory() / "snapshots") / name, say)


@asynccontextmanager
async def history_of(where: Where, snapshots: Path | None = None) -> AsyncIterator[History]:
    """Open the past of a log and close it afterwards; errors as of `log_of`.

    Args:
        where: Which log.
        snapshots: Folder of snapshots of any logs; None: that of your data directory.
    """
    async with log_of(where) as log:
        # A large state is made of many objects that stay; looking through them for garbage again
        # and again would double the time.
        gc.set_threshold(COLLECT_AFTER)
        history = History(log, None, say)
        store = snapshot_store(snapshots, await history.log_id())
        if store is not None:
            # A file is read from its beginning whatever is wanted of it: an index would not help.
            seeks = not where.url.endswith(SUFFIXES)
            history.use(store, SubjectIndex(store.folder, say) if seeks else None)
        yield history


async def all_cores(
    where: Where, log: EventLog, advance: Meter, snapshots: Path | None = None
) -> AllCores | None:
    """Return how other processes read parts of a log; None where they cannot.

    A file is read from its beginning whatever part is wanted. Other arguments are as of `history_of`.
    """
    if where.url.endswith(SUFFIXES):
        return None
    store = snapshot_store(snapshots, await History(log).log_id())
    if store is None:
        return None
    source = LogSource(where.url, where.partition, where.security, store.folder)
    return AllCores(source, say, lambda read: advance(read - 1))


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
    from rich.progress import (  # noqa: PLC0415 - slow to load
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
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

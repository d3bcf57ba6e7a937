"""`evsched log export`, `import` and `check`: logs as files, and whether a log holds together."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from events.errors import AccessDenied, EnvironmentFault, OutcomeUnknown, StreamError
from events.streams.attachment import Attached
from events.streams.attachment import attach as attach_inbox
from events.streams.export import SUFFIXES, ExportedLog, export_log, import_log
from evsched.cli.answers import DONE, NO, UNREACHABLE, CommandError, emit, say, tell
from evsched.cli.log import app
from evsched.cli.logs import HERE, Where, as_command_error, inbox_fault, log_of, streams_of
from evsched.cli.options import Json
from evsched.cli.past import Known, SnapshotFolder, all_cores, end_of, meter
from evsched.service.environment import SystemClock, environment
from replays.checking.chain_check import ChainReport, check_log
from replays.checking.verify import verify_log
from replays.history.anonymise import CannotAnonymise, NamelessLog
from replays.history.moments import format_time
from replays.history.rebuild import History


@app.command(name="export")
async def export(
    file: Path,
    /,
    *,
    where: Where = HERE,
    anonymise: Annotated[bool, Parameter(name="--anonymise", negative=())] = False,
) -> None:
    """Write a log to a new file that can be kept, sent, and read by every command that reads a log.

    The file is enough to verify, explain and try what-ifs elsewhere.

    **Examples**

    `evsched log export monday.jsonl.zst`

    `evsched log export --anonymise to-show-others.jsonl.zst`

    Args:
        file: Ends in .jsonl, or .jsonl.zst to be compressed.
        where: Which log.
        anonymise: Replace all names, consistently, and leave out what people wrote; the decisions
            stay the same, and `verify` passes. Times and amounts stay.
    """
    if not file.name.endswith(SUFFIXES):
        raise CommandError(f"{file}: found another ending, expected {' or '.join(SUFFIXES)}")
    if file.exists():  # noqa: ASYNC240 - before anything runs beside it
        raise CommandError(f"{file}: exists already, expected a new file")
    if not file.parent.is_dir():
        raise CommandError(f"{file}: the folder does not exist, expected one that does")
    async with log_of(where) as log:
        if await log.end() == 0:
            raise CommandError("log: is empty, so nothing was exported", NO)
        nameless = NamelessLog(History(log), uuid.uuid4().hex)
        try:
            count = await export_log(nameless if anonymise else log, file)  # type: ignore[arg-type] # all it uses is there
        except CannotAnonymise as error:
            raise CommandError(f"--anonymise: {error}", NO) from error
        except AccessDenied as error:
            if error.name != str(file):
                raise
            raise CommandError(f"{file}: {error.reason}") from error
    say(f"{file}: {count} records")


@app.command(name="import")
async def import_(file: Path, /, *, where: Where = HERE, attach: bool = True) -> None:
    """Write an exported log into a new one, byte for byte, after checking that all of the file holds together.

    Run it again when it was interrupted: it compares the records that are there already with the
    file and goes on behind them. A log that holds anything else is refused, and nothing is written
    to it.

    The new log reads an inbox of its own from then on: an event says so, in a term of its own
    behind the records of the file.

    **Example**

    `evsched log import monday.jsonl.zst --log sqlite:///$PWD/again.db`

    Args:
        file: As `log export` wrote it.
        where: Which log; empty, or with a beginning of the file. Nobody else may write to it
            meanwhile.
        attach: Attach the inbox; without it the log is a mere copy, which nobody leads before
            `evsched log attach-inbox`.
    """
    if not file.exists():  # noqa: ASYNC240 - before anything runs beside it
        raise CommandError(f"{file}: No such file or directory")
    if not file.is_file():  # noqa: ASYNC240 - as above
        raise CommandError(
            f"{file}: can be read only once, expected a file: it is checked before anything of it is written"
        )
    try:
        report = await check_log(ExportedLog(file))
    except StreamError as error:
        raise as_command_error(error) from error
    if not report.frames:
        raise CommandError(f"{file}: holds no record, expected those of a log")
    async with streams_of(where, create=True) as streams:
        try:
            done = await import_log(file, streams.log)
            attached = await attach_inbox(streams, environment(SystemClock())) if attach else None
        except (EnvironmentFault, OutcomeUnknown) as error:
            raise CommandError(
                f"{error} (run it again and it goes on where it was)", UNREACHABLE
            ) from error
    if done.there:
        say(
            f"{'all ' if done.there == done.records else ''}{done.there} records were there already"
        )
    say(f"{streams.log.name}: {done.records} records, frame {report.frames}, hash {report.hash}")
    if attached is not None:
        _say_attached(streams.inbox.name, attached)


@app.command(name="attach-inbox")
async def attach_inbox_(
    *,
    where: Where = HERE,
    position: Annotated[int | None, Parameter(name="--from")] = None,
    json: Json = False,
) -> None:
    """Let a log read the inbox that is there, when it read another one before: after a restore, or when the topic was made again.

    An event in the log says so, and ends the term of whoever leads. Proposals in the old inbox
    that were not read yet are not in the new one: whoever proposed them has to do it again. A
    proposal that was answered before is recognised by its id.

    **Example**

    `evsched log attach-inbox --log kafka://localhost:9092/cluster`

    Args:
        where: Which log.
        position: Position of the first proposal to be read. By default nothing is passed over: from
            the first one on, or where the log stopped reading this inbox.
        json: One document: the inbox, the position, the inbox before, whether anything changed.
    """
    async with streams_of(where, create=where.url.startswith("sqlite:")) as streams:
        found = await attach_inbox(streams, environment(SystemClock()), position)
    if json:
        emit(found._asdict())
    else:
        _say_attached(streams.inbox.name, found)


def _say_attached(name: str, found: Attached) -> None:
    before = f", in place of inbox {found.replaces}" if found.replaces else ""
    say(
        f"inbox {name}: {found.inbox} is read from position {found.position} on"
        + (before if found.changed else ", as before")
    )


@app.command
async def check(
    *,
    where: Where = HERE,
    decide: Annotated[bool, Parameter(negative=())] = False,
    known: Known = None,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Check that a log holds together: hashes, numbers, terms, digests, and what its leader last knew of it.

    Exits 3 when it does not, and says where. It also tells when the inbox that is there is not the
    one that the log reads.

    **Example**

    `evsched log check --decide`

    Args:
        where: Which log.
        decide: Decide everything again as well, as `evsched verify` does; exits 1 at the first
            difference.
        known: Hashes that the log must contain.
        snapshots: Folder of snapshots, between which parts of the log are read on all cores.
        json: One document.
    """
    async with log_of(where) as log:
        with meter("checking", await end_of(log)) as advance:
            cores = await all_cores(where, log, advance, snapshots)
            report = await check_log(log, advance, known or (), cores)
        difference = None
        if decide:
            with meter("deciding again", await end_of(log)) as advance:
                cores = await all_cores(where, log, advance, snapshots)
                answer = await verify_log(
                    History(log), progress=lambda step: advance(step.head.position), cores=cores
                )
            difference = answer.difference
    if not report.frames:
        raise CommandError("log: is empty, so nothing was checked", NO)
    detached = await inbox_fault(where, report.inbox, report.inbox_next)
    if json:
        emit(
            msgspec.to_builtins(report)
            | {"difference": None if difference is None else difference.seq}
            | {"detached": detached}
        )
    else:
        _show(report)
    if difference is not None:
        say(f"event {difference.seq}: deciding again gives something else, see `evsched verify`")
    if detached:
        # The log is whole all the same; it is its leader that refuses to go on.
        say(detached)
    return DONE if difference is None else NO


def _show(report: ChainReport) -> None:
    tell(f"log {report.log_id}: {report.frames} frames and {report.events} events hold together")
    if report.terms:
        tell(f"from {format_time(report.first_time)} to {format_time(report.last_time)}")
    tell(
        f"{len(report.terms)} terms, {report.digests} digests compared, {report.holes} empty positions"
    )
    if report.uncompared:
        tell(f"{report.uncompared} digests not compared: a newer evsched made them")
    tell(
        f"{report.ignored} void frames passed over{', and an unfinished step at the end' if report.unfinished else ''}"
    )
    for void in report.voids:
        tell(f"  at position {void.position}: {void.reason}")
    for change in report.attachments:
        tell(
            f"inbox {change.inbox} is read from position {change.position} on since event {change.seq}"
        )
    tell(
        f"the next proposal is read at position {report.inbox_next} of inbox {report.inbox or 'without id'}"
    )
    tell(f"frame {report.frames} has hash {report.hash}, the state has digest {report.digest}")

"""`evsched import`: the past of the scheduler one has, as a log that can be asked."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import App, Parameter

from evsched.cli.answers import CommandError, refused, say

if TYPE_CHECKING:
    from events.configuration import Configuration, KueueSpec, YunikornSpec
    from replays.importing.observed import ObservedPast

app = App(name="import", help="Make a log of what another scheduler did.")

Events = Annotated[list[Path] | None, Parameter(name="--events", negative=())]

SHOWN = 10
"""How many refusals a person is shown."""


@app.command
async def yunikorn(
    dump: Path, log: Path, /, *, config: Path | None = None, events: Events = None
) -> None:
    """Make a log of what YuniKorn says of itself: a full state dump, and the stream of its events.

    The dump says what is there; what ended before it is told by the events alone. The log holds
    observations and no decisions, each at its time, and is read by every command: `at`, `explain`,
    `plan`, `audit`. What YuniKorn placed stays where it was placed.

    **Examples**

    `curl -s http://yunikorn:9080/ws/v1/fullstatedump > dump.json`

    `evsched import yunikorn dump.json week.jsonl.zst --events events.jsonl`

    Args:
        dump: The answer of `/ws/v1/fullstatedump`.
        log: A new file, ending in .jsonl or .jsonl.zst.
        config: The queues.yaml, where the one in the dump is not to be taken.
        events: What was read from `/ws/v1/events/stream` or `events/batch`; may be repeated.
    """
    from evsched.config import ConfigurationError  # noqa: PLC0415 - slow to load
    from replays.importing.yunikorn import DumpInvalid, observed, read_dump, read_records  # noqa: PLC0415

    try:
        read = read_dump(_text(dump))
    except DumpInvalid as error:
        raise CommandError(f"{dump}: {error}") from error
    records = []
    for file in events or ():
        try:
            records += read_records(_text(file).splitlines())
        except DumpInvalid as error:
            raise CommandError(f"{file}: {error}") from error
    spec = None if config is None else cast("YunikornSpec", _configuration(config, "yunikorn"))
    try:
        past = observed(read, records, spec)
    except DumpInvalid as error:
        raise CommandError(f"{dump}: {error}") from error
    except ConfigurationError as error:
        raise refused(error.faults) from error
    await _write(past, log)


@app.command
async def kueue(workloads: Path, log: Path, /, *, config: Path) -> None:
    """Make a log of Kueue's Workload objects: what was asked for, when quota was reserved, how it ended.

    The log holds observations and no decisions, each at its time, and is read by every command. A
    Workload keeps its last admission only.

    **Examples**

    `kubectl get workloads.kueue.x-k8s.io -A -o json > workloads.json`

    `evsched import kueue workloads.json week.jsonl.zst --config manifests`

    Args:
        workloads: Workload objects, as JSON or YAML.
        log: A new file, ending in .jsonl or .jsonl.zst.
        config: Manifests of ClusterQueues and so on: a file or a folder.
    """
    from replays.importing.kueue import WorkloadsInvalid, observed, read_workloads  # noqa: PLC0415

    spec = cast("KueueSpec", _configuration(config, "kueue"))
    try:
        past = observed(read_workloads(_text(workloads), str(workloads)), spec)
    except WorkloadsInvalid as error:
        raise CommandError(str(error)) from error
    await _write(past, log)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def _configuration(path: Path, form: str) -> Configuration:
    """Return the one configuration in a file or folder; raise `CommandError` where it is of another format."""
    from evsched.config import ConfigurationError, load  # noqa: PLC0415
    from evsched.core.registry import format_of  # noqa: PLC0415

    try:
        found = load([path]).configurations
    except ConfigurationError as error:
        raise refused(error.faults) from error
    if [format_of(one) for one in found] != [form]:
        formats = ", ".join(map(format_of, found))
        raise CommandError(f"{path}: found {formats}, expected one configuration of {form}")
    return found[0]


async def _write(past: ObservedPast, file: Path) -> None:
    """Write the log of a past to a new file, and say what is in it."""
    from events.streams.export import SUFFIXES, export_log  # noqa: PLC0415
    from events.streams.memory import open_memory  # noqa: PLC0415
    from replays.importing.observed import ImportedLog  # noqa: PLC0415

    if not file.name.endswith(SUFFIXES):
        raise CommandError(f"{file}: found another ending, expected {' or '.join(SUFFIXES)}")
    if file.exists():  # noqa: ASYNC240 - before anything runs beside it
        raise CommandError(f"{file}: exists already, expected a new file")
    imported = ImportedLog(uuid.uuid4().hex, "import")
    log = open_memory(f"import-{uuid.uuid4().hex}", 0).log
    await log.create()
    for record in imported.records(past.inputs):
        await log.append(record.data)
    await export_log(log, file)
    for remark in past.remarks:
        say(remark)
    for reason in imported.refused[:SHOWN]:
        say(f"refused: {reason}")
    if len(imported.refused) > SHOWN:
        say(f"… and {len(imported.refused) - SHOWN} more; `evsched audit rejected-inputs` has all")
    say(
        f"{file}: {len(past.inputs)} observations in {imported.steps} steps, {len(imported.refused)} refused"
    )

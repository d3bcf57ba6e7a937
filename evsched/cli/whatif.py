"""`evsched whatif` and `evsched plan`: what would happen, without anything being written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from evsched.cli.answers import NO, CommandError, emit, paper, refused, say
from evsched.cli.cells import amount_hours, amounts, counted
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import SnapshotFolder, end_of, history_of, meter, moment_of
from evsched.core.rules import FIRST, NEWEST, RULES
from replays.checking.ledger import QueueFigures
from replays.history.moments import END

if TYPE_CHECKING:
    from events.configuration import Configuration
    from events.vocabulary import AskSubmitted
    from evsched.cli.tables import PlainTable
    from replays.checking.tried import TriedStretch
    from replays.checking.worlds import WhatIfAnswer

CHANGES_SHOWN = 50
Time = Annotated[str | None, Parameter(allow_leading_hyphen=True)]


def _load(path: Path) -> tuple[Configuration, ...]:
    from evsched.config import ConfigurationError, load  # noqa: PLC0415

    try:
        loaded = load([path])
    except ConfigurationError as error:
        raise refused(error.faults) from error
    for fault in loaded.warnings:
        say(f"warning: {fault}")
    return tuple(loaded.configurations)


async def whatif(  # noqa: PLR0913 - the options of a command
    *,
    config: Path | None = None,
    rules: int | None = None,
    where: Where = HERE,
    first: Annotated[Time, Parameter(name="--from")] = None,
    last: Annotated[Time, Parameter(name="--to")] = None,
    throughout: Annotated[bool, Parameter(negative=())] = False,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Run the recorded inputs under another configuration, or other rules, and show what would have been different.

    Exits 1 when anything would.

    The configuration takes the place of the one in force at --from; without --from, of the one that
    was applied last. A configuration that was applied later on takes its place, as it did then;
    --throughout keeps the one to try in force instead. The answer says from where to where it was in
    force. With --rules alone the whole log is decided by these rules, or what lies behind --from.

    **Examples**

    `evsched whatif --config queues-new.yaml`

    `evsched whatif --config queues-new.yaml --from -24h --to -12h --json`

    `evsched whatif --config queues-new.yaml --from -7d --throughout`

    `evsched whatif --rules 2`

    Args:
        config: The configuration to try.
        rules: Version of the rules to try; see `evsched rules list`.
        where: Which log.
        first: Moment from which it holds.
        last: Moment up to which the log is taken.
        throughout: The configuration stays in force where others were applied later on.
        snapshots: Folder of snapshots.
        json: One document.
    """
    from replays.checking.tried import ConfigurationRefused, NotTried  # noqa: PLC0415
    from replays.checking.whatif import WhatIfQuestion, what_if  # noqa: PLC0415

    if config is None and rules is None:
        raise CommandError("nothing to try, expected --config or --rules")
    if config is None and throughout:
        raise CommandError("--throughout keeps a configuration in force, expected --config")
    if rules is not None and rules not in RULES:
        raise CommandError(f"--rules {rules}: not known, expected {FIRST} to {NEWEST}")
    question = WhatIfQuestion(
        configurations=() if config is None else _load(config),
        rules=rules,
        start=None if first is None else moment_of(first),
        end=END if last is None else moment_of(last),
        throughout=throughout,
    )
    async with history_of(where, snapshots) as history:
        try:
            with meter("taking the steps again", await end_of(history.log)) as advance:
                answer = await what_if(history, question, lambda step: advance(step.head.position))
        except ConfigurationRefused as error:
            raise CommandError(f"{config}: would be refused: {error}") from error
        except NotTried as error:
            raise CommandError(
                f"{config}: was not tried: in this part of the log {error}"
            ) from error
    if json:
        emit(answer)
    else:
        _print(answer)
    return 0 if answer.identical else NO


def _print(report: WhatIfAnswer) -> None:
    from rich.text import Text  # noqa: PLC0415

    from replays.wording import decided  # noqa: PLC0415

    console = paper()
    if report.stretch is not None:
        console.print(_stretch(report.stretch))
    if report.identical:
        console.print(f"Nothing would have been different in {report.steps} steps.")
        if not report.steps:
            say("no step of the log lies between --from and --to")
        return
    console.print(f"The first difference is at seq {report.first_difference}.")
    console.print(f"{len(report.changes)} decisions differ in {report.steps} steps.")
    console.table(_figures(report))
    for change in report.changes[:CHANGES_SHOWN]:
        console.print(
            Text(
                f"  {change.subject} {change.kind}: {decided(change.recorded)} → {decided(change.supposed)}"
            )
        )
    if len(report.changes) > CHANGES_SHOWN:
        say(f"{len(report.changes) - CHANGES_SHOWN} more differences; --json shows all")
    say(
        f"how far to trust it: {report.left_out} recorded inputs left out that followed from decisions that did not happen, "
        f"{report.confirmed} evictions supposed to take {report.eviction_ms} ms each, "
        f"{report.moved} ends moved with their beginnings, {report.refused} inputs refused"
    )


def _stretch(stretch: TriedStretch) -> str:
    """Return from where to where the configuration to try was in force."""
    from replays.history.moments import format_time  # noqa: PLC0415

    said = (
        f"The configuration was in force from event {stretch.first}, {format_time(stretch.begin)}, "
    )
    if stretch.last is None or stretch.end is None:
        said += "to the end of what was taken"
    else:
        said += f"until event {stretch.last}, {format_time(stretch.end)}, applied another (--throughout keeps it in force)"
    if stretch.replaced:
        said += f"; {counted(stretch.replaced, 'configurations')} applied later gave way to it"
    return f"{said}."


def _figures(report: WhatIfAnswer) -> PlainTable:
    """Return the table of both worlds, a line a queue."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415
    from evsched.core.duration import format_duration  # noqa: PLC0415

    entitled = "nominal quota" if report.format == "kueue" else "guarantee"
    table = PlainTable("queue")
    for name in ("bound", "waited", "preemptions", "victims", f"below {entitled} (amount x hours)"):
        table.add_column(name, justify="right")
    for queue in dict.fromkeys((*report.recorded, *report.supposed)):
        pair = [one.get(queue) or QueueFigures() for one in (report.recorded, report.supposed)]
        table.add_row(
            queue,
            _change(*(str(one.bound) for one in pair)),
            _change(*(format_duration(one.waited_ms // 1000 * 1000) for one in pair)),
            _change(*(str(one.preemptions) for one in pair)),
            _change(*(str(one.victims) for one in pair)),
            _change(*(amount_hours(one.unmet) for one in pair)),
        )
    return table


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


async def plan(
    ask: Path, /, *, where: Where = HERE, snapshots: SnapshotFolder = None, json: Json = False
) -> int:
    """Say what would become of an ask if it were submitted now: where it would run and at whose cost. Nothing is written.

    The file holds one ask in YAML or JSON, with the fields of AskSubmitted: `ask`, `queue`,
    `resources`, … Amounts are numbers in base units (millicores, bytes) or quantities as in
    queues.yaml (`"2"`, `"500m"`, `"4Gi"`). Exits 1 when it would wait. Its preemption delay counts
    as past.

    **Example**

    `evsched plan ask.yaml`

    Args:
        ask: File with the ask.
        where: Which log.
        snapshots: Folder of snapshots.
        json: One document.
    """
    from replays.explaining.plan import PlanQuestion  # noqa: PLC0415
    from replays.explaining.plan import plan as answer  # noqa: PLC0415

    asked, warnings = _ask(ask)
    for warning in warnings:
        say(f"warning: {warning}")
    question = PlanQuestion(ask=asked)
    async with history_of(where, snapshots) as history:
        found = await answer(history, question)
    if json:
        emit(found)
    else:
        console = paper()
        where_to = f" in {found.queue}" if found.queue else ""
        console.print(f"Ask {asked.ask}{where_to}: {amounts(found.resources)}.", markup=False)
        console.print(found.summary)
        for victim in found.victims:
            console.print(f"  {victim.id} of {victim.queue} would have to go: {victim.reason}")
        for line in found.unblock:
            console.print(f"  {line.sentence}")
    return 0 if found.outcome in ("bound", "preempts") else NO


SMALL = 100
"""Fewer thousandths of a core than this were probably meant as cores."""


def _ask(path: Path) -> tuple[AskSubmitted, list[str]]:
    """Return the ask in a file, and what of it may mean something else than it says."""
    from events.vocabulary import AskSubmitted  # noqa: PLC0415
    from evsched.config.document import read_value  # noqa: PLC0415
    from evsched.config.errors import ConfigurationError  # noqa: PLC0415
    from evsched.core.quantity import QuantityError, parse_yunikorn  # noqa: PLC0415

    warnings: list[str] = []
    try:
        found = read_value(path.read_text(encoding="utf-8"), str(path))
        podsets = found.get("podsets") if isinstance(found, dict) else None
        for one in (found, *(podsets if isinstance(podsets, list) else ())):
            if isinstance(one, dict) and isinstance(one.get("resources"), dict):
                warnings += [
                    f'{name}: {amount} is {amount} thousandths of a core; "{amount}" in quotes'
                    f" is {amount} cores"
                    for name, amount in one["resources"].items()
                    if name in ("cpu", "vcore") and isinstance(amount, int) and 0 < amount < SMALL
                ]
                one["resources"] = {
                    name: parse_yunikorn(name, amount) if isinstance(amount, str) else amount
                    for name, amount in one["resources"].items()
                }
        return msgspec.convert(found, AskSubmitted), warnings
    except ConfigurationError as error:
        raise CommandError(f"ask {error}") from error
    except (OSError, UnicodeDecodeError, msgspec.ValidationError, QuantityError) as error:
        message = f"ask {path}: {getattr(error, 'strerror', None) or error}"
        raise CommandError(message) from error

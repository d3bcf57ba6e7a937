"""`evsched whatif` and `evsched plan`: what would happen, without anything being written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from evsched.cli.answers import NO, CommandError, emit, paper, say, talk
from evsched.cli.logs import HERE, Where, log_of
from evsched.cli.options import Json
from replays.history.moments import MomentInvalid, parse_moment

if TYPE_CHECKING:
    from events.chain import Step
    from events.configuration import Configuration
    from events.vocabulary import AskSubmitted
    from replays.checking.whatif import Report
    from replays.history.moments import Moment
    from replays.history.rebuild import History

CHANGES_SHOWN = 50
Time = Annotated[str | None, Parameter(allow_leading_hyphen=True)]


def _moment(text: str) -> Moment:
    try:
        return parse_moment(text)
    except MomentInvalid as error:
        raise CommandError(str(error)) from error


def _load(path: Path, partition: str) -> Configuration:
    from evsched.config import ConfigurationError, load  # noqa: PLC0415

    try:
        loaded = load([path])
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    for fault in loaded.warnings:
        say(f"warning: {fault}")
    found = [one for one in loaded.configurations if one.partition == partition] or list(
        loaded.configurations
    )
    if len(found) != 1:
        names = ", ".join(one.partition for one in loaded.configurations)
        message = f"configuration {path}: holds partitions {names}, expected one called {partition}"
        raise CommandError(message)
    return found[0]


async def whatif(
    *,
    config: Path,
    where: Where = HERE,
    first: Annotated[Time, Parameter(name="--from")] = None,
    last: Annotated[Time, Parameter(name="--to")] = None,
    json: Json = False,
) -> int:
    """Run the recorded inputs under another configuration and show what would have been different; exits 1 when anything would.

    The configuration takes the place of the one in force at --from; without --from, of the one that
    was applied last. Configurations that were applied later on stay as recorded.

    **Examples**

    `evsched whatif --config queues-new.yaml`

    `evsched whatif --config queues-new.yaml --from -24h --to -12h --json`

    Args:
        config: The configuration to try.
        where: Which log.
        first: Moment from which it holds.
        last: Moment up to which the log is taken.
        json: One document.
    """
    from replays.checking.whatif import ConfigurationRefused, NotTried  # noqa: PLC0415
    from replays.history.rebuild import History  # noqa: PLC0415

    async with log_of(where) as opened:
        history = History(opened)
        begin = _moment(first) if first is not None else await _last_configuration(history)
        try:
            report = await _run(history, config, begin, _moment(last) if last is not None else None)
        except ConfigurationRefused as error:
            raise CommandError(f"{config}: would be refused: {error}") from error
        except NotTried as error:
            raise CommandError(
                f"{config}: was not tried: in this part of the log {error}"
            ) from error
    if json:
        emit(report)
    else:
        _print(report)
    return 0 if report.identical else NO


async def _last_configuration(history: History) -> Moment:
    """Return the moment before the last configuration was applied: the step that applies it is the first of the run."""
    from events.vocabulary import ConfigurationApplied  # noqa: PLC0415
    from replays.history.moments import Moment  # noqa: PLC0415

    seq = 0
    async for step in history.steps():
        if any(type(event) is ConfigurationApplied for event in step.events):
            seq = step.events[0].seq - 1
    return Moment(seq=seq)


async def _run(history: History, config: Path, begin: Moment, end: Moment | None) -> Report:
    from replays.checking.whatif import WhatIf, median_eviction_ms  # noqa: PLC0415
    from replays.history.steps import copy  # noqa: PLC0415

    recorded, reader = await history.boundary(begin)
    end_time = None
    if end is not None:
        end_time = (
            end.time if end.before_end_ms is None else await history.end_time() - end.before_end_ms
        )
    steps: list[Step] = []
    async for step in history.steps(reader):
        if end is not None and (
            (end.seq is not None and step.head.next_seq - 1 > end.seq)
            or (end_time is not None and step.time > end_time)
        ):
            break
        steps.append(step)
    in_force = recorded.state.configuration
    partition = in_force.partition if in_force is not None else "default"
    run = WhatIf(recorded, copy(recorded), _load(config, partition), median_eviction_ms(steps))
    from rich.progress import track  # noqa: PLC0415

    console = talk()
    quiet = not console.is_terminal
    return run.run(
        track(
            steps,
            description="taking the steps again",
            console=console,
            transient=True,
            disable=quiet,
        )
    )


def _print(report: Report) -> None:
    from rich.text import Text  # noqa: PLC0415

    from evsched.cli.consoles import PlainTable  # noqa: PLC0415
    from evsched.core.quantity import format_amount  # noqa: PLC0415

    console = paper()
    if report.identical:
        console.print(f"Nothing would have been different in {report.steps} steps.")
        if not report.steps:
            say("no step of the log lies between --from and --to")
        return
    console.print(f"The first difference is at seq {report.first_difference}.")
    console.print(f"{len(report.changes)} decisions differ in {report.steps} steps.")
    table = PlainTable(title_justify="left", show_edge=False, pad_edge=False)
    entitled = "nominal quota" if report.format == "kueue" else "guarantee"
    for name in (
        "queue",
        "bound",
        "waited s",
        "preemptions",
        "victims",
        f"below {entitled} (amount x s)",
    ):
        table.add_column(name, justify="left" if name == "queue" else "right")
    for queue in dict.fromkeys((*report.recorded, *report.supposed)):
        pair = report.recorded.get(queue), report.supposed.get(queue)
        cells = [
            _change(*(getattr(one, field) if one is not None else 0 for one in pair))
            for field in ("bound", "waited_ms", "preemptions", "victims")
        ]
        cells[1] = _change(*((one.waited_ms // 1000) if one is not None else 0 for one in pair))
        unmet = [
            ", ".join(
                f"{format_amount(name, amount // 1000)} {name}"
                for name, amount in sorted(one.unmet.items())
            )
            if one is not None and one.unmet
            else "0"
            for one in pair
        ]
        table.add_row(
            Text(queue), *cells, unmet[0] if unmet[0] == unmet[1] else f"{unmet[0]} → {unmet[1]}"
        )
    console.print(table)
    for change in report.changes[:CHANGES_SHOWN]:
        console.print(
            Text(
                f"  {change.subject} {change.kind}: {_moment_of(change.recorded)} → {_moment_of(change.supposed)}"
            )
        )
    if len(report.changes) > CHANGES_SHOWN:
        say(f"{len(report.changes) - CHANGES_SHOWN} more differences; --json shows all")
    say(
        f"how far to trust it: {report.left_out} recorded inputs left out that followed from decisions that did not happen, "
        f"{report.confirmed} evictions supposed to take {report.eviction_ms} ms each, "
        f"{report.moved} ends moved with their beginnings, {report.refused} inputs refused"
    )


def _change(before: int, after: int) -> str:
    return str(before) if before == after else f"{before} → {after}"


def _moment_of(text: str | None) -> str:
    from replays.history.moments import format_time  # noqa: PLC0415

    if text is None:
        return "not"
    time, _, rest = text.partition(" ")
    return f"{format_time(int(time))} {rest}".strip()


async def plan(ask: Path, /, *, where: Where = HERE, json: Json = False) -> int:
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
        json: One document.
    """
    from replays.explaining.plan import plan_ask  # noqa: PLC0415
    from replays.history.moments import END  # noqa: PLC0415
    from replays.history.rebuild import History  # noqa: PLC0415

    proposed = _ask(ask)
    async with log_of(where) as opened:
        engine = await History(opened).at(END)
    found = plan_ask(engine, proposed)
    if json:
        emit(found)
    else:
        console = paper()
        console.print(found.summary)
        for victim in found.victims:
            console.print(f"  {victim.id} of {victim.queue} would have to go: {victim.reason}")
        for line in found.unblock:
            console.print(f"  {line.sentence}")
    return 0 if found.outcome in ("bound", "preempts") else NO


def _ask(path: Path) -> AskSubmitted:
    """Return the ask in a file."""
    import yaml  # noqa: PLC0415

    from events.vocabulary import AskSubmitted  # noqa: PLC0415
    from evsched.core.quantity import QuantityError, parse_yunikorn  # noqa: PLC0415

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        podsets = found.get("podsets") if isinstance(found, dict) else None
        for one in (found, *(podsets if isinstance(podsets, list) else ())):
            if isinstance(one, dict) and isinstance(one.get("resources"), dict):
                one["resources"] = {
                    name: parse_yunikorn(name, amount) if isinstance(amount, str) else amount
                    for name, amount in one["resources"].items()
                }
        return msgspec.convert(found, AskSubmitted)
    except (OSError, yaml.YAMLError, msgspec.ValidationError, QuantityError) as error:
        message = f"ask {path}: {getattr(error, 'strerror', None) or error}"
        raise CommandError(message) from error

"""The openb trace as proposals: `python -m benchmarks.openb`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.openb.trace import (
    Timed,
    TraceError,
    lives_ms,
    queues_yaml,
    read_nodes,
    read_pods,
    timed_inputs,
)
from events.streams import Streams
from events.streams.attachment import must_be_attached
from events.vocabulary import AnyInput, ConfigurationApplied, Input
from evsched.cli.answers import CommandError, emit, say, talk, tell
from evsched.cli.logs import HERE, Where, steps_of, streams_of
from evsched.cli.options import Json
from evsched.config import from_mapping
from evsched.config.document import read_value
from evsched.service.environment import SystemClock

SOURCE = "/benchmarks/openb"
BATCH = 500


async def openb(  # noqa: PLR0913 - the options of a command
    nodes: Path,
    pods: Path,
    /,
    *,
    where: Where = HERE,
    speed: float = math.inf,
    apply_queues: Annotated[bool, Parameter(negative=())] = False,
    print_queues: Annotated[bool, Parameter(negative=())] = False,
    print_lives: Annotated[bool, Parameter(negative=())] = False,
    limit: int | None = None,
    json: Json = False,
) -> None:
    """Propose the nodes and pods of the openb trace, each pod at its time.

    Cards count in thousandths as the resource `gpu`. The QoS class of a pod becomes its queue and
    priority: `LS` root.latency-sensitive (100), `Guaranteed` root.guaranteed (100), `Burstable`
    root.burstable (50), `BE` root.best-effort (0). The scheduler needs queues of these names:
    `--print-queues` prints a queues.yaml with guarantees that fit these nodes, `--apply-queues`
    proposes it too.

    Ids come from names, and what the log or the inbox holds already is left out, so an import that
    was interrupted goes on where it stopped.

    **Examples**

    `python -m benchmarks.openb nodes.csv pods.csv --speed inf --apply-queues`

    `python -m benchmarks.openb nodes.csv pods.csv --print-queues > queues.yaml`

    Args:
        nodes: The node list, CSV.
        pods: The pod list, CSV.
        where: Which log.
        speed: Seconds of the trace that pass in one second; inf: everything at once.
        apply_queues: Propose a configuration that fits the trace first.
        print_queues: Print that configuration, and propose nothing.
        print_lives: Print how long each pod runs at that speed, for `evsched emulate --lives`, and
            propose nothing.
        limit: Only the first so many pods, for a try.
        json: One document at the end: how much was proposed, and how much was there already.
    """
    if not speed > 0:
        raise CommandError(f"--speed: found {speed}, expected more than 0")
    try:
        node_rows, pod_rows = read_nodes(nodes), read_pods(pods)
    except TraceError as error:
        raise CommandError(str(error)) from error
    text = queues_yaml(node_rows)
    if print_queues:
        for line in text.splitlines():
            tell(line)
        return
    if print_lives:
        emit(lives_ms(pod_rows[:limit], speed))
        return
    timed = timed_inputs(node_rows, pod_rows[:limit], speed)
    if apply_queues:
        timed.insert(0, Timed(0, _configuration(text)))
    async with streams_of(where, create=True) as streams:
        await must_be_attached(streams)
        known = await proposed_already(streams)
        missing = [one for one in timed if one.input.proposal not in known]
        await _send(streams, missing)
    if json:
        emit({"proposed": len(missing), "known": len(timed) - len(missing)})
    say(f"{len(missing)} proposed, {len(timed) - len(missing)} were there already")


async def proposed_already(streams: Streams) -> set[str]:
    """Return the ids of all proposals that the log has answered or the inbox still holds."""
    known: set[str] = set()
    inbox_next = 0
    async for step in steps_of(streams.log):
        known.update(
            event.proposal for event in step.events if isinstance(event, Input) and event.proposal
        )
        inbox_next = step.head.inbox_next
    while batch := await streams.inbox.read(inbox_next):
        known.update(proposal.id for proposal in batch)
        inbox_next = batch[-1].position + 1
    return known


async def _send(streams: Streams, timed: Sequence[Timed]) -> None:
    """Send what is due, batch by batch; the first goes at once, so an interrupted import goes on without a pause."""
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("proposing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = talk()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("proposing", total=len(timed))
        clock = SystemClock()
        begin = clock.elapsed() - (timed[0].at_ms / 1000 if timed else 0)
        sent = 0
        while sent < len(timed):
            now_ms = (clock.elapsed() - begin) * 1000
            batch: list[AnyInput] = []
            for one in timed[sent : sent + BATCH]:
                if one.at_ms > now_ms:
                    break
                batch.append(one.input)
            if batch:
                await streams.inbox.propose(batch, SOURCE)
                sent += len(batch)
                progress.advance(task, len(batch))
            else:
                await asyncio.sleep((timed[sent].at_ms - now_ms) / 1000)


def _configuration(text: str) -> ConfigurationApplied:
    (configuration,) = from_mapping("yunikorn", read_value(text, "queues"), "queues for openb")
    return ConfigurationApplied(proposal="openb:queues", configuration=configuration, document=text)

"""`evsched emulate`: an agent that behaves like a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from evsched.agents.emulated.agent import Agent
from evsched.agents.emulated.following import emulate_on
from evsched.cli.answers import CommandError, say
from evsched.cli.logs import HERE, Where, streams_of
from evsched.core.duration import DurationError, parse_duration_ms
from evsched.service.logs import configure
from evsched.service.surroundings import SystemClock
from replays.openb import TraceError, lives_ms, read_pods


async def emulate(
    *,
    where: Where = HERE,
    grace: str = "5s",
    life: str | None = None,
    pods: Path | None = None,
    speed: float = 1.0,
    recreate: Annotated[bool, Parameter(negative="--no-recreate")] = True,
) -> None:
    """Follow the log like a cluster would, until Ctrl-C: evict, end and re-create what runs.

    Who is told to go has gone after the grace time. What runs ends after its life: that of the
    openb trace for pods of that name, else the one given, else never. An evicted pod comes again
    under a new name, as a ReplicaSet would make it. Everything is read from the log, so it can be
    stopped and started at any time, and nothing is confirmed twice.

    **Examples**

    `evsched emulate --grace 2s --life 10m`

    `evsched emulate --pods pods.csv --speed 1000`

    Args:
        where: Which log.
        grace: How long a victim takes to leave.
        life: How long a task runs for which no other life is known.
        pods: The pod list of the openb trace.
        speed: How much faster than recorded these lives pass.
        recreate: Whether evicted pods come again.
    """
    if not speed > 0:
        raise CommandError(f"--speed: found {speed}, expected more than 0")
    try:
        lives = lives_ms(read_pods(pods), speed) if pods is not None else {}
    except TraceError as error:
        raise CommandError(str(error)) from error
    agent = Agent(
        grace_ms=_duration("--grace", grace),
        lives_ms=lives,
        default_life_ms=None if life is None else _duration("--life", life),
        recreate=recreate,
    )
    configure("console")
    async with streams_of(where, create=True) as streams:
        say(f"following {streams.log.name}")
        await emulate_on(streams, agent, SystemClock().now)


def _duration(option: str, text: str) -> int:
    try:
        found = parse_duration_ms(text)
    except DurationError as error:
        raise CommandError(f"{option}: {error}") from error
    if found < 0:
        raise CommandError(f"{option}: found {text}, expected 0s or more")
    return found

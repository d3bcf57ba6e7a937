"""`evsched emulate`: an agent that behaves like a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from events.bounds import MAX_MOMENT
from evsched.agents.emulated.agent import Agent
from evsched.agents.emulated.following import emulate_on
from evsched.cli.answers import CommandError, say
from evsched.cli.logs import HERE, Where, streams_of
from evsched.core.duration import DurationError, parse_duration_ms
from evsched.service.environment import SystemClock
from evsched.service.logs import configure


async def emulate(
    *,
    where: Where = HERE,
    grace: str = "5s",
    life: str | None = None,
    lives: Path | None = None,
    recreate: Annotated[bool, Parameter(negative="--no-recreate")] = True,
) -> None:
    """Follow the log like a cluster would, until Ctrl-C: evict, end and re-create what runs.

    What is evicted has gone after the grace time. What runs ends after its life: that of its name
    in --lives, else the one given, else never. An evicted pod comes again under a new name, as a
    ReplicaSet would make it. Everything is read from the log, so it can be stopped and started at
    any time, and nothing is confirmed twice.

    **Examples**

    `evsched emulate --grace 2s --life 10m`

    `evsched emulate --lives lives.json`

    Args:
        where: Which log.
        grace: How long a victim takes to leave.
        life: How long a task runs for which no other life is known.
        lives: JSON file with the milliseconds that each pod runs, by its name.
        recreate: Whether evicted pods come again.
    """
    agent = Agent(
        grace_ms=_duration("--grace", grace),
        lives_ms={} if lives is None else _lives(lives),
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


def _lives(path: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(
            path.read_bytes(), type=dict[str, Annotated[int, msgspec.Meta(ge=0, le=MAX_MOMENT)]]
        )
    except (OSError, msgspec.MsgspecError) as error:
        message = getattr(error, "strerror", None) or error
        raise CommandError(f"--lives {path}: {message}") from error

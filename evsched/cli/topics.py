"""`evsched topics`: make the streams of a log, and verify that they keep everything."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from events.errors import StreamError
from events.streams import open_streams
from evsched.cli.answers import CommandError, emit, say
from evsched.cli.logs import Reach, as_command_error
from evsched.cli.options import Json

app = App(
    name="topics", help="Make the topics of a log, and verify that nothing in them is ever lost."
)

HERE = Reach()
"""The default log."""

Partitions = Annotated[
    int, Parameter(name="--partitions", help="How many cluster partitions the log has.")
]


@app.command
async def create(*, where: Reach = HERE, partitions: Partitions = 1, json: Json = False) -> None:
    """Make what a log needs, set up so that nothing is ever deleted, and verify it; what is there already is left as it is.

    **Example**

    `evsched topics create --log kafka://localhost:9092/cluster --partitions 4`

    Args:
        where: Which log.
        partitions: How many cluster partitions there are.
        json: One document a cluster partition.
    """
    await _each(where, partitions, json=json, make=True)


@app.command
async def check(*, where: Reach = HERE, partitions: Partitions = 1, json: Json = False) -> None:
    """Verify that a log exists and that no setting can lose a part of it; exits 3 when one can.

    **Example**

    `evsched topics check --log kafka://localhost:9092/cluster`

    Args:
        where: Which log.
        partitions: How many cluster partitions there are.
        json: One document a cluster partition.
    """
    await _each(where, partitions, json=json, make=False)


async def _each(where: Reach, partitions: int, *, json: bool, make: bool) -> None:
    if partitions < 1:
        raise CommandError(f"--partitions: found {partitions}, expected 1 or more")
    # The last one first: making it makes as many as it takes for it to be among them.
    for partition in reversed(range(partitions)):
        try:
            async with open_streams(where.url, partition, where.security) as streams:
                await (streams.log.create() if make else streams.log.check())
                name, end = streams.log.name, await streams.log.end()
        except StreamError as error:
            raise as_command_error(error) from error
        if json:
            emit({"log": name, "partition": partition, "end": end})
        else:
            say(f"{name}: set up rightly, {end} records")

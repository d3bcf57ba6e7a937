"""Another process that uses a log in SQLite; run by tests as ``python -m tests.events.sqlite_process WHAT PATH …``.

``crash PATH N WHEN``: leads, writes step ``a``, then step ``b``, dying ``before`` or ``after`` its
N-th database operation. Says ``done`` once the step is acknowledged, and the number of operations
that writing it takes. ``load PATH FILE N``: imports an exported log, dying after its N-th database
operation; says ``done`` when it needed no more. ``create PATH…``: for each of these files: says
``ready``, waits for a line, makes the file and proposes an input. ``propose PATH``: proposes one
input, reads the log, says how many frames it found and whether it would checkpoint.
"""

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite

from events.streams import open_streams
from events.streams.export import import_log
from events.vocabulary import NodeRemoved
from tests.events.world import lead, records_of, write


def say(text: str) -> None:
    """Write a line that is out before the process dies."""
    os.write(1, f"{text}\n".encode())


def die_at(number: int, when: str) -> list[int]:
    """Let this process die around its database operation of this number, counted from now; return the count as it goes."""
    count = [0]
    original = aiosqlite.Connection._execute

    async def counted(
        self: aiosqlite.Connection, function: Any, *arguments: Any, **named: Any
    ) -> Any:
        count[0] += 1
        if count[0] != number:
            return await original(self, function, *arguments, **named)
        if when == "before":
            os._exit(9)
        return await original(self, partial(run_and_die, function), *arguments, **named)

    aiosqlite.Connection._execute = counted
    return count


def run_and_die(function: Any, *arguments: Any, **named: Any) -> None:
    """Do it, and nothing after it."""
    function(*arguments, **named)
    os._exit(9)


async def crash(path: str, number: str, when: str) -> None:
    """See the top of this module."""
    async with open_streams(f"sqlite://{path}") as streams:
        await streams.log.create()
        leader = await lead(streams.log)
        await write(leader, "a")
        count = die_at(int(number), when)
        await write(leader, "b")
        say(f"done {count[0]}")
        os._exit(9)


async def load(path: str, file: str, number: str) -> None:
    """See the top of this module."""
    async with open_streams(f"sqlite://{path}") as streams:
        await streams.log.create()
        die_at(int(number), "after")
        await import_log(Path(file), streams.log)
        say("done")
        os._exit(9)


async def create(*paths: str) -> None:
    """See the top of this module."""
    for path in paths:
        say("ready")
        sys.stdin.readline()
        async with open_streams(f"sqlite://{path}") as streams:
            await streams.log.create()
            await streams.inbox.propose([NodeRemoved(node=str(os.getpid()))])


async def propose(path: str) -> None:
    """See the top of this module."""
    async with open_streams(f"sqlite://{path}") as streams:
        await streams.inbox.propose([NodeRemoved(node="theirs")], "another process")
        frames = len(await records_of(streams.log))
        writer = streams.inbox._file._writer
        ((pages,),) = await writer.execute_fetchall("pragma wal_autocheckpoint")
        say(f"{frames} {pages}")


if __name__ == "__main__":
    asyncio.run(
        {"crash": crash, "load": load, "create": create, "propose": propose}[sys.argv[1]](
            *sys.argv[2:]
        )
    )

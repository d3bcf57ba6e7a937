"""Another process that uses a log in SQLite; run by tests as ``python -m tests.events.sqlite_process WHAT PATH …``.

``crash PATH N WHEN``: leads, writes step ``a``, then step ``b``, dying ``before`` or ``after`` its
N-th database operation. Says ``done`` once the step is acknowledged, and the number of operations
that writing it takes. ``load FOLDER FILE``: imports an exported log into ``FOLDER/N.sqlite`` for N =
1, 2, …, each in a process of its own that dies after its N-th database operation, until one needs no
more; says for each how it ended, and ``done`` before the last. They are forked, which spares each the
start of Python. ``create PATH…``: for each of these files: says
``ready``, waits for a line, makes the file and proposes an input. ``propose PATH``: proposes one
input, reads the log, says how many frames it found and whether it would checkpoint.
"""

import asyncio
import itertools
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

DIED = 9
"""Exit code of a process that died at the operation it was to die at."""
ENOUGH = 10
"""Exit code of an import that came to its end before."""


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


async def load(path: str, file: str, number: int) -> None:
    """Import a log until the operation of this number is done, and die."""
    async with open_streams(f"sqlite://{path}") as streams:
        await streams.log.create()
        die_at(number, "after")
        await import_log(Path(file), streams.log)
        say("done")
        os._exit(ENOUGH)


def loads(folder: str, file: str) -> None:
    """See the top of this module."""
    code = DIED
    for number in itertools.count(1):
        child = os.fork()
        if not child:
            asyncio.run(load(f"{folder}/{number}.sqlite", file, number))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        say(f"{code}")
        if code != DIED:
            break


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
    what, *arguments = sys.argv[1:]
    if what == "load":
        loads(*arguments)
    else:
        asyncio.run({"crash": crash, "create": create, "propose": propose}[what](*arguments))

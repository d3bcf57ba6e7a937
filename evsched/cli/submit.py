"""`evsched submit`: proposals from JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated
from uuid import uuid4

from cyclopts import Parameter
from msgspec.structs import replace

from events.frame import UNREADABLE, decode_input
from events.vocabulary import AnyInput
from evsched.cli.answers import DONE, NO, CommandError, emit, say
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Actor, Json
from evsched.cli.proposing import propose
from evsched.service.proposing import ACCEPTED


async def submit(
    file: Annotated[Path, Parameter(name="FILE")] = Path("-"),
    /,
    *,
    where: Where = HERE,
    source: str = "/evsched/submit",
    actor: Actor = "",
    wait: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Propose events from a file of JSON lines to the scheduler; `-` reads the standard input.

    Each line is an input as the log shows it, without `seq`. A line without a `proposal` id gets
    one; give your own, and sending the same file again changes nothing. All lines are read before
    the first is sent, so a broken one sends nothing.

    **Examples**

    `evsched submit inputs.jsonl --wait`

    `echo '{"type": "NodeRegistered", "node": "n1", "capacity": {"vcore": 4000}}' | evsched submit`

    Args:
        file: JSON lines.
        where: Which log.
        source: The program that proposes, for the log: a URI reference; other letters are escaped.
        actor: The person or account behind it, in every line that does not say so itself.
        wait: Wait until a leader has answered all of them; exits 1 when it refused any.
        json: One document a proposal: its id, position, and with --wait the answer.
    """
    inputs = [
        one if one.actor or not actor else replace(one, actor=actor)
        for one in parsed(_lines(file), str(file))
    ]
    answers = await propose(where, inputs, source, wait=wait)
    refused = 0
    for proposed, (position, answer) in zip(inputs, answers, strict=True):
        refused += wait and answer != ACCEPTED
        if json:
            emit(
                {"proposal": proposed.proposal, "position": position}
                | ({"answer": answer} if wait else {})
            )
        elif wait and answer != ACCEPTED:
            say(f"{proposed.proposal}: refused: {answer}")
    say(f"{len(inputs)} proposed" + (f", {refused} refused" if wait else ""))
    return NO if refused else DONE


def parsed(lines: Iterable[tuple[int, str]], name: str) -> Iterator[AnyInput]:
    """Yield the inputs in numbered lines, each with an id.

    Raises:
        CommandError: A line is no input; with its number.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            found = decode_input(line.encode())
        except UNREADABLE as error:
            raise CommandError(f"{name}:{number}: {error}") from error
        yield found if found.proposal else replace(found, proposal=f"submit:{uuid4().hex}")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        if str(file) == "-":
            yield from enumerate(sys.stdin, start=1)
            return
        with file.open(encoding="utf-8") as opened:
            yield from enumerate(opened, start=1)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or error}") from error

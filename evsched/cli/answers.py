"""What the command line says, and the codes it exits with.

What is said may hold names and sentences from a log, a file or a proposal of a stranger. So all of
it leaves through this module, where a letter that could speak to a terminal, or begin a line of its
own, is replaced in text and escaped in JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

    from evsched.cli.consoles import Paper

DONE, NO, MISUSE, UNREACHABLE, CRASHED, INTERRUPTED = 0, 1, 2, 3, 70, 130
"""Exit codes: done, the answer is no, the call is at fault, log or broker are unreachable or damaged, a bug of ours, Ctrl-C."""


FILE_WIDTH = 160
"""How wide a table may be where no terminal says it."""


class CommandError(Exception):
    """A command cannot do what it was asked for.

    Attributes:
        code: What the process exits with: `MISUSE` when the caller is at fault, `UNREACHABLE` when
            log or broker are.
        more: Further lines, where there are several faults.
    """

    def __init__(self, message: str, code: int = MISUSE, more: Sequence[str] = ()) -> None:
        self.code = code
        self.more = more
        super().__init__(message)


class PortTaken(CommandError):
    """Nothing can listen at a place, as something else does."""


def refused(faults: Iterable[object]) -> CommandError:
    """Return what is said of a file with several faults, at least one: each in a line of its own."""
    first, *more = map(str, faults)
    return CommandError(first, more=more)


def printable(text: str) -> str:
    """Return a text in which letters that could speak to a terminal are replaced: controls, line ends, directions of writing."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def tell(line: str = "", *, flush: bool = False) -> None:
    """Write one line of data to the standard output; ``flush``: at once."""
    print(printable(line), flush=flush)  # noqa: T201 - the one place


def say(line: str) -> None:
    """Say something beside the data, in one line, to the standard error."""
    print(printable(line), file=sys.stderr)  # noqa: T201 - the one place


def say_error(message: str, more: Sequence[str] = ()) -> None:
    """Say what went wrong, to the standard error; ``more`` are further lines. What has several lines itself becomes one."""
    say(f"evsched: {' '.join(message.splitlines())}")
    for line in more:
        say(line)


def emit(document: Any) -> None:
    """Write one document as a line of JSON to the standard output."""
    sys.stdout.write(escaped(msgspec.json.encode(document).decode()))
    sys.stdout.write("\n")


def escaped(text: str) -> str:
    """Return the same JSON with every letter that is not printable as an escape; only strings hold such letters."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def talk() -> Console:
    """Return a console on the standard error, for progress and remarks."""
    from rich.console import Console  # noqa: PLC0415 - costs a tenth of a second, which quick commands need not pay

    return Console(stderr=True, highlight=False)


def paper() -> Paper:
    """Return a console on the standard output, for data that people read."""
    from evsched.cli.consoles import Paper  # noqa: PLC0415 - costs a tenth of a second, which quick commands need not pay

    return Paper()

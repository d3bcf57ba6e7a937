"""What the command line says, and the codes it exits with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

DONE, NO, MISUSE, UNREACHABLE, CRASHED, INTERRUPTED = 0, 1, 2, 3, 70, 130
"""Exit codes: done, the answer is no, the call is at fault, log or broker are unreachable or damaged, a bug of ours, Ctrl-C."""


FILE_WIDTH = 160
"""How wide a table may be where no terminal says it."""


class CommandError(Exception):
    """A command cannot do what it was asked for.

    Attributes:
        code: What the process exits with: `MISUSE` when the caller is at fault, `UNREACHABLE` when
            log or broker are.
    """

    def __init__(self, message: str, code: int = MISUSE) -> None:
        self.code = code
        super().__init__(message)


def say(message: str) -> None:
    """Say something beside the data, to the standard error."""
    print(message, file=sys.stderr)


def say_error(message: str) -> None:
    """Say what went wrong, to the standard error."""
    say(f"evsched: {message}")


def emit(document: Any) -> None:
    """Write one document as a line of JSON to the standard output."""
    sys.stdout.write(msgspec.json.encode(document).decode())
    sys.stdout.write("\n")


def talk() -> Console:
    """Return a console on the standard error, for progress and remarks."""
    from rich.console import Console  # noqa: PLC0415 - costs a tenth of a second, which quick commands need not pay

    return Console(stderr=True, highlight=False)


def paper() -> Console:
    """Return a console on the standard output, for data that people read."""
    from rich.console import Console  # noqa: PLC0415 - costs a tenth of a second, which quick commands need not pay

    class Paper(Console):
        """A console that leaves a closed pipe to `evsched.cli.main`, as plain output does."""

        def on_broken_pipe(self) -> None:
            """Say that nobody reads any more."""
            raise BrokenPipeError

    return Paper(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)

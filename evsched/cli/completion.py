"""`evsched completion`: what the shell offers after the tab key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from cyclopts import App
from cyclopts.completion import detect

from evsched.cli.answers import CommandError, say

if TYPE_CHECKING:
    from collections.abc import Callable

Shell = Literal["bash", "zsh", "fish", "powershell"]
Made = TypeVar("Made", str, Path)

app = App(name="completion", help="Complete commands and options in your shell.")


@app.command
def install(*, shell: Shell | None = None, output: Path | None = None) -> None:
    """Write the completion file of a shell where the shell looks for it.

    Where a shell does not look by itself, a line in its startup file (`.bashrc`, `.zshrc`) reads
    it; with --output nothing but that file is written. Open a new shell afterwards, and do it again
    after an update of evsched.

    **Examples**

    `evsched completion install`

    `evsched completion install --shell zsh`

    Args:
        shell: Which; the one in use by default.
        output: The file; the place of the shell by default.
    """
    whole = _whole()
    path = _detected(
        lambda: whole.install_completion(shell=shell, output=output, add_to_startup=output is None)
    )
    say(f"{output or path}: written; open a new shell to use it")


@app.command
def show(*, shell: Shell | None = None) -> None:
    """Print the completion script of a shell, for a place of your own.

    **Example**

    `evsched completion show --shell fish > ~/.config/fish/completions/evsched.fish`

    Args:
        shell: Which; the one in use by default.
    """
    whole = _whole()
    print(_detected(lambda: whole.generate_completion(shell=shell)))  # noqa: T201 - a script has lines


def _whole() -> App:
    """Return the whole command line."""
    from evsched.cli.main import command_line  # noqa: PLC0415 - it names this module

    return command_line([])


def _detected(made: Callable[[], Made]) -> Made:
    """Return what is made for the shell in use; raise `CommandError` where that cannot be seen."""
    try:
        return made()
    except detect.ShellDetectionError as error:
        raise CommandError(f"{error}; expected --shell bash, zsh, fish or powershell") from error

"""Consoles on the standard output; a module of its own, as loading rich costs what quick commands need not pay."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from evsched.cli.answers import FILE_WIDTH, printable
from evsched.cli.tables import PlainTable


class HelpPaper(Console):
    """A console that leaves a closed pipe to `evsched.cli.main`, as plain output does."""

    def __init__(self, **options: Any) -> None:
        """Print as wide as the terminal is, or as a file may be."""
        width = None if sys.stdout.isatty() else FILE_WIDTH
        super().__init__(highlight=False, width=width, **options)

    def on_broken_pipe(self) -> None:
        """Say that nobody reads any more."""
        raise BrokenPipeError


class Paper(HelpPaper):
    """A console for data, which may come from a stranger.

    What is printed is a line or a table (`table`). Letters that could speak to a terminal are replaced in both,
    and nothing in them is taken for markup.
    """

    def __init__(self) -> None:
        """Take every text as it is."""
        super().__init__(markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print lines; see `rich.console.Console.print`. Where no terminal is, none of them is folded."""
        options.setdefault("soft_wrap", not self.is_terminal)
        super().print(*(_plain(one) for one in objects), **options)

    def table(self, table: PlainTable) -> None:
        """Print a table, line by line."""
        width = self.width if self.is_terminal else None
        for line in table.lines(width, self._painted if self.is_terminal else None):
            self.file.write(f"{line}\n")

    def _painted(self, text: str, style: str) -> str:
        return self.get_style(style).render(text, color_system=self._color_system)

    def heading(self, text: str) -> None:
        """Print the heading of a part, under an empty line."""
        self.print()
        self.print(Text(text, style="bold"))


def _plain(value: Any) -> Any:
    """Return a text without letters that could speak to a terminal; anything else as it is."""
    if isinstance(value, str):
        return Text(printable(value))
    if isinstance(value, Text):
        value.plain = printable(value.plain)
    return value

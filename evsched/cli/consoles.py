"""Consoles on the standard output; a module of its own, as loading rich costs what quick commands need not pay."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evsched.cli.answers import FILE_WIDTH, printable


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

    What is printed is a line or a table. Letters that could speak to a terminal are replaced in both,
    and nothing in them is taken for markup.
    """

    def __init__(self) -> None:
        """Take every text as it is."""
        super().__init__(markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print lines or tables; see `rich.console.Console.print`."""
        super().print(*(_plain(one) for one in objects), **options)

    def heading(self, text: str) -> None:
        """Print the heading of a part, under an empty line."""
        self.print()
        self.print(Text(text, style="bold"))


class PlainTable(Table):
    """A table whose cells may come from a stranger."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row; see `rich.table.Table.add_row`."""
        super().add_row(*(_plain(one) for one in cells), **options)


def _plain(value: Any) -> Any:
    """Return a text without letters that could speak to a terminal; anything else as it is."""
    if isinstance(value, str):
        return Text(printable(value))
    if isinstance(value, Text):
        value.plain = printable(value.plain)
    return value

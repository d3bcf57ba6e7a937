"""Tables for people, line by line: as wide as they are in a pipe, folded to fit on a terminal.

The rows are gone through twice, once for the widths of the columns and once to write them, so that
of a hundred thousand rows none has to be kept. In a pipe every cell stays whole, on one line. A
terminal that is too narrow folds the widest columns within themselves: nothing is cut off, neither
the end of a name nor what is said of it in the last column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len, chop_cells

from evsched.cli.answers import printable

Cell = str | tuple[str, str]
"""A text, or a text with its style in the words of rich."""

Paint = Callable[[str, str], str]
"""Puts a text into a style."""

NARROWEST = 8
"""No column is folded to less."""

WHOLE = ("resource", "flavor")
"""Columns that are folded last: ``on-demand/memory`` in two lines looks like two resources."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    justify: Literal["left", "right"] = "left"


class PlainTable:
    """A table whose cells may come from a stranger.

    Attributes:
        title: Stands above it; empty: none.
    """

    def __init__(self, *names: str, title: str = "", ruled: bool = True, empty: str = "") -> None:
        """Begin a table without rows.

        Args:
            names: Of its first columns.
            title: Stands above it.
            ruled: With lines between the columns and below the heading.
            empty: A column but the first that has only cells like this is left out; empty: none is.
        """
        self.title = title
        self._columns = [Column(name) for name in names]
        self._ruled = ruled
        self._empty = empty
        self._rows: list[Sequence[Cell]] = []
        self._source: Callable[[], Iterable[Sequence[Cell]]] = lambda: self._rows

    def add_column(self, name: str, justify: Literal["left", "right"] = "left") -> None:
        """Add a column on the right."""
        self._columns.append(Column(name, justify))

    def add_row(self, *cells: Cell) -> None:
        """Add a row, a cell a column."""
        self._rows.append(cells)

    def stream(self, source: Callable[[], Iterable[Sequence[Cell]]]) -> None:
        """Take the rows from here instead; it is asked twice and gives the same both times."""
        self._source = source

    def lines(self, width: int | None, paint: Paint | None = None) -> Iterator[str]:
        """Yield the lines of the table.

        Args:
            width: Of the terminal, in columns; None: there is none.
            paint: How styles are written; None: not at all.
        """
        shown, cells = self._widths()
        widths = [
            max(one, cell_len(self._columns[place].name))
            for place, one in zip(shown, cells, strict=True)
        ]
        gap = 3 if self._ruled else 2
        if width is not None and sum(widths) + gap * (len(widths) - 1) > width:
            # A heading of several words gives way before any cell does.
            words = [self._columns[place].name.split(" ") for place in shown]
            least = [max(map(cell_len, found)) for found in words]
            narrow = [max(pair) for pair in zip(cells, least, strict=True)]
            whole = [
                number for number, place in enumerate(shown) if self._columns[place].name in WHOLE
            ]
            widths = fitted(narrow, width - gap * (len(narrow) - 1), whole)
        if self.title:
            yield printable(self.title)
        heads = [self._columns[place].name for place in shown]
        yield from self._row(heads, shown, widths, paint, " ┃ ")
        if self._ruled:
            yield "━╇━".join("━" * one for one in widths)
        for row in self._source():
            yield from self._row([row[place] for place in shown], shown, widths, paint, " │ ")

    def _widths(self) -> tuple[list[int], list[int]]:
        """Return the places of the columns that are shown, and how wide the cells of each are."""
        count = len(self._columns)
        widths, filled = [0] * count, [not self._empty or not place for place in range(count)]
        for row in self._source():
            for place, cell in enumerate(row):
                text = cell if type(cell) is str else cell[0]
                size = len(text) if text.isascii() else cell_len(printable(text))
                widths[place] = max(widths[place], size)
                if not filled[place]:
                    filled[place] = text != self._empty
        shown = [place for place in range(count) if filled[place]]
        return shown, [widths[place] for place in shown]

    def _row(
        self,
        cells: Sequence[Cell],
        shown: Sequence[int],
        widths: Sequence[int],
        paint: Paint | None,
        bar: str,
    ) -> Iterator[str]:
        """Yield the lines of one row: one, unless a cell is folded."""
        pieces: list[list[str]] = []
        styles: list[str] = []
        for cell, size in zip(cells, widths, strict=True):
            text, style = (cell, "") if isinstance(cell, str) else cell
            pieces.append(folded(printable(text), size))
            styles.append(style)
        for number in range(max(map(len, pieces), default=0)):
            line = []
            for place, piece, size, style in zip(shown, pieces, widths, styles, strict=True):
                text = piece[number] if number < len(piece) else ""
                room = " " * (size - (len(text) if text.isascii() else cell_len(text)))
                text = paint(text, style) if paint is not None and style and text else text
                right = self._columns[place].justify == "right"
                line.append(room + text if right else text + room)
            yield (bar if self._ruled else "  ").join(line).rstrip()


def folded(text: str, width: int) -> list[str]:
    """Return a text in pieces of at most this width, parted at spaces where there are any, else between the parts of a name."""
    if len(text) <= width and text.isascii():
        return [text]
    found = [""]
    for word in text.split(" "):
        joined = f"{found[-1]} {word}" if found[-1] else word
        if cell_len(joined) <= width:
            found[-1] = joined
        else:
            found += _chopped(word, width)
    return [one for one in found if one] or [""]


_PARTS = re.compile(r"[^/.\-_,=]*[/.\-_,=]|[^/.\-_,=]+")
"""The parts of a name, each with the sign behind it: ``on-``, ``demand/``, ``memory``."""


def _chopped(word: str, width: int) -> list[str]:
    """Return a word that is too long in pieces, parted behind its signs where that is enough."""
    found = [""]
    for part in _PARTS.findall(word):
        if cell_len(found[-1] + part) <= width:
            found[-1] += part
        else:
            found += chop_cells(part, width)
    return found


def fitted(widths: Sequence[int], room: int, whole: Collection[int] = ()) -> list[int]:
    """Return the widths of columns that fit into so much room: the widest ones give way, down to `NARROWEST`.

    Args:
        widths: As wide as they would be.
        room: For all of them together.
        whole: Places of columns that give way last.
    """
    found = list(widths)
    for kept in (whole, ()):
        most = max((one for place, one in enumerate(found) if place not in kept), default=0)
        while most > NARROWEST and sum(found) > room:
            most -= 1
            found = [one if place in kept else min(one, most) for place, one in enumerate(found)]
    return found

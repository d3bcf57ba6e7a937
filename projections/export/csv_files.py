"""Exported tables as CSV (RFC 4180): what PostgreSQL, DuckDB and pandas read.

Text always stands in quotes and nothing else does, so that NULL, which is nothing between two commas, and
empty text differ. That is PostgreSQL's way of telling them apart.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from events.cloudevents import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from projections.export.contents import ExportedColumn, ValueType


def _text(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


@lru_cache(maxsize=10_000)
def _time(value: int) -> str:
    """Return a time as text; neighbouring rows have many in common."""
    return rfc3339(value)


def _boolean(value: int) -> str:
    return "true" if value else "false"


_WRITTEN: dict[ValueType, Callable[[Any], str]] = {
    "integer": str,
    "boolean": _boolean,
    "text": _text,
    "time": _time,
}


class CsvFile:
    """One file; its first line names the columns."""

    def __init__(self, path: Path, columns: Sequence[ExportedColumn]) -> None:
        """Make the file; raise OSError when that cannot be."""
        self._written = [_WRITTEN[column.type] for column in columns]
        self._file = path.open("x", encoding="utf-8", newline="")
        self._file.write(",".join(_text(column.name) for column in columns) + "\r\n")

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows."""
        self._file.writelines(
            ",".join(
                "" if value is None else written(value)
                for written, value in zip(self._written, row, strict=True)
            )
            + "\r\n"
            for row in rows
        )

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


class CsvFormat:
    """Comma-separated values."""

    name = "csv"
    suffix = ".csv"

    def open(self, path: Path, columns: Sequence[ExportedColumn]) -> CsvFile:
        """Make a file with these columns."""
        return CsvFile(path, columns)

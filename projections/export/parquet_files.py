"""Exported tables as Parquet: typed, with times in UTC; needs the extra `evsched[parquet]`.

Amounts are 64-bit integers, so nothing is rounded. A batch becomes a row group of its own, and is
out of memory before the next one is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from projections.export.contents import ExportedColumn, ValueType

_TYPES: dict[ValueType, Any] = {
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "time": pa.timestamp("ms", tz="UTC"),
}


class ParquetFile:
    """One file."""

    def __init__(self, path: Path, columns: Sequence[ExportedColumn]) -> None:
        """Make the file; raise OSError when that cannot be."""
        self._schema = pa.schema([(column.name, _TYPES[column.type]) for column in columns])
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows; raise ValueError when a value is not of its column's type."""
        columns = [
            _column(values, one.type)
            for values, one in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


def _column(values: tuple[Any, ...], kind: Any) -> Any:
    """Return a column; SQLite has booleans as 0 and 1, and Arrow does not take those for any."""
    if kind == pa.bool_():
        return pa.array([None if value is None else value != 0 for value in values], kind)
    return pa.array(values, kind)


class ParquetFormat:
    """Columns with types."""

    name = "parquet"
    suffix = ".parquet"

    def open(self, path: Path, columns: Sequence[ExportedColumn]) -> ParquetFile:
        """Make a file with these columns."""
        return ParquetFile(path, columns)

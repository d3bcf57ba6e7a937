"""Rows as a person reads them: amounts with suffixes, times in UTC, names that cannot disturb the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from evsched.cli.answers import printable
from evsched.core.quantity import MILLI_RESOURCES, format_amount
from replays.history.moments import format_time
from replays.history.rows import AMOUNTS, TIMES

if TYPE_CHECKING:
    from evsched.cli.tables import PlainTable

NOTHING = "-"
_HIGH, _LOW = "bold red", "yellow"


def amounts(found: Mapping[str, int]) -> str:
    """Return amounts by resource as a person writes them: ``vcore 1500m, memory 4Gi``."""
    return (
        ", ".join(
            f"{name} {format_amount(name.rpartition('/')[2], amount)}"
            for name, amount in found.items()
        )
        or NOTHING
    )


_LARGE_BYTES = 2**30
_HOUR_MS = 3_600_000
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


def amount_hours(found: Mapping[str, int]) -> str:
    """Return amounts that lasted as a person writes them: ``0.039 vcore, 1.5Gi memory``; ``0`` where there are none.

    Args:
        found: By resource, base units times milliseconds.
    """
    return (
        ", ".join(f"{_hours(name, amount)} {name}" for name, amount in found.items() if amount)
        or "0"
    )


def _hours(resource: str, amount: int) -> str:
    """Return an amount times milliseconds in cores, Gi or pieces times hours, rounded to three places."""
    kind = resource.rpartition("/")[2]
    in_bytes = kind.startswith(_BYTES)
    unit = 1000 if kind in MILLI_RESOURCES else _LARGE_BYTES if in_bytes else 1
    thousandths = (2000 * amount + unit * _HOUR_MS) // (2 * unit * _HOUR_MS)
    if not thousandths:
        return "<0.001"
    text = f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")
    return f"{text}Gi" if in_bytes else text


def cell(name: str, value: Any) -> str:
    """Return the entry of a row as text.

    Args:
        name: Of the column; it says what numbers mean.
        value: As in `replays.history.rows`.
    """
    if value is None or value == "":
        return NOTHING
    if isinstance(value, Mapping):
        if name in AMOUNTS:
            return amounts(value)
        return printable(", ".join(f"{key}={item}" for key, item in value.items())) or NOTHING
    if isinstance(value, bool):
        return "yes" if value else NOTHING
    if isinstance(value, int) and name in TIMES:
        return format_time(value)
    if isinstance(value, list | tuple):
        return (
            printable(", ".join(item if isinstance(item, str) else _json(item) for item in value))
            or NOTHING
        )
    return printable(str(value))


def counted(count: int, plural: str) -> str:
    """Return a count with its word: ``1 timer``, ``2 timers``, ``12 settings``."""
    word = "settings" if plural == "config" else plural
    return f"{count} {word.removesuffix('s') if count == 1 else word}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def style(row: Mapping[str, Any], name: str) -> str:
    """Return the colour of an entry: what is above its maximum or below its guarantee while something waits stands out."""
    if name == "usage":
        used, most = row["usage"], row.get("maximum") or {}
        if any(used.get(resource, 0) > limit for resource, limit in most.items()):
            return _HIGH
        wanted, least = row.get("pending") or {}, row.get("guaranteed") or {}
        if any(
            used.get(resource, 0) < amount and wanted.get(resource, 0)
            for resource, amount in least.items()
        ):
            return _LOW
    if name in {"eviction_requested", "draining", "failed"} and row[name]:
        return _LOW
    return ""


def table(
    rows: Callable[[], Iterable[Mapping[str, Any]]] | Sequence[Mapping[str, Any]], title: str = ""
) -> PlainTable:
    """Return a table of rows, one column an entry; columns in which no row has anything are left out.

    Args:
        rows: What gives them, each time anew, where they are many; or the rows.
        title: Stands above it.
    """
    from evsched.cli.tables import PlainTable  # noqa: PLC0415 - costs time that --json need not pay

    again = rows if callable(rows) else lambda: rows
    # In the order in which they come, each with how many numbers it has.
    names: dict[str, int] = {}
    count = 0
    for row in again():
        count += 1
        for name, value in row.items():
            names[name] = names.get(name, 0) + (type(value) is int and name not in TIMES)
    made = PlainTable(title=title, empty=NOTHING)
    for name, numbers in names.items():
        made.add_column(name.replace("_", " "), justify="right" if numbers == count else "left")

    def cells() -> Iterator[list[tuple[str, str]]]:
        for row in again():
            yield [(cell(name, row.get(name)), style(row, name)) for name in names]

    made.stream(cells)
    return made

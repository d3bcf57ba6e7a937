"""Writes the figures of the last `make bench` into docs/performance.md: ``python -m benchmarks.figures [build/benchmarks.json]``.

They stand between two comments there and nowhere else, so no figure can be shown that was not
measured.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- figures -->\n", "<!-- end of the figures -->\n"


def lines(documents: list[dict[str, Any]]) -> list[str]:
    """Return the table, in Markdown, of what `python -m benchmarks` has written as JSON."""
    found = ["| what | measured | target | limit in the same run |", "| --- | ---: | ---: | --- |"]
    for one in documents:
        sign = "≥" if one.get("better", "more") == "more" else "≤"
        target = "" if one.get("target") is None else f"{sign} {shown(one['target'])}"
        limit = (
            ""
            if one.get("limit") is None
            else f"{shown(one['limit'])} ({one.get('limit_name', '')})"
        )
        note = f" ({one['note']})" if one.get("note") else ""
        missed = " **missed**" if one.get("met") is False else ""
        found.append(
            f"| {one['name']}{note} | {shown(one['value'])} {one['unit']}{missed} | {target} | {limit} |"
        )
    return found


def shown(value: float) -> str:
    """Return a number with three or more significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """Replace what stands between the comments."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "benchmarks.json"
    table = lines(msgspec.json.decode(source.read_bytes()))
    where = (
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores."
    )
    page = ROOT / "docs" / "performance.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(
        before + BEGIN + "\n" + "\n".join([where, "", *table]) + "\n\n" + END + after,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

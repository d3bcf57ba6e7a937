"""Measures, and shows each figure beside its target and its limit.

usage: python -m benchmarks [--list] [--json FILE] [NAME ...]

A NAME is that of a module of this folder (``allocation``) or of one benchmark in it
(``allocation.flat``). Without one, all run. The figures are also written as JSON, to
build/benchmarks.json unless --json says otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table

from benchmarks.rows import Benchmark, Row

FOLDER = Path(__file__).resolve().parent


def found() -> dict[str, Benchmark]:
    """Return all benchmarks by ``module.name``, modules in order of their names."""
    benchmarks: dict[str, Benchmark] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if not path.stem.startswith("_"):
            module = importlib.import_module(f"benchmarks.{path.stem}")
            for name, benchmark in getattr(module, "BENCHMARKS", {}).items():
                benchmarks[f"{path.stem}.{name}"] = benchmark
    return benchmarks


def chosen(benchmarks: dict[str, Benchmark], names: list[str]) -> dict[str, Benchmark]:
    """Return those that were asked for; exit with status 2 when a name means none of them."""
    for name in names:
        if not any(name in {known, known.partition(".")[0]} for known in benchmarks):
            print(f"{name}: no such benchmark; there are {', '.join(benchmarks)}", file=sys.stderr)
            raise SystemExit(2)
    return {
        known: one
        for known, one in benchmarks.items()
        if not names or known in names or known.partition(".")[0] in names
    }


def table(rows: list[Row]) -> Table:
    """Return the rows for people."""
    shown = Table(title=f"{platform.python_implementation()} {platform.python_version()}")
    for name, justify in (
        ("what", "left"),
        ("measured", "right"),
        ("unit", "left"),
        ("target", "right"),
        ("limit", "right"),
    ):
        shown.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    shown.add_column("of limit", justify="right")
    shown.add_column("note")
    for row in rows:
        style = {True: "green", False: "red", None: ""}[row.met]
        shown.add_row(
            row.name,
            f"[{style}]{figure(row.value)}[/]" if style else figure(row.value),
            row.unit,
            ""
            if row.target is None
            else f"{'≥' if row.better == 'more' else '≤'} {figure(row.target)}",
            "" if row.limit is None else f"{figure(row.limit)} ({row.limit_name})",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.note,
        )
    return shown


def figure(value: float) -> str:
    """Return a number with three or more significant digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> int:
    """Run what was asked for; return 1 when a target was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure, each beside its target and its limit."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a module of this folder, or one benchmark in it"
    )
    parser.add_argument("--list", action="store_true", help="only list what there is")
    parser.add_argument(
        "--json", type=Path, default=FOLDER.parent / "build" / "benchmarks.json", metavar="FILE"
    )
    arguments = parser.parse_args()
    benchmarks = chosen(found(), arguments.names)
    if arguments.list:
        print("\n".join(benchmarks))
        return 0
    rows: list[Row] = []
    with Progress(
        TextColumn("{task.description}"), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("")
        for name, benchmark in benchmarks.items():
            progress.update(task, description=f"measuring {name}")
            rows.extend(benchmark())
    Console().print(table(rows))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    documents = [{**msgspec.to_builtins(row), "ratio": row.ratio, "met": row.met} for row in rows]
    arguments.json.write_bytes(
        msgspec.json.format(msgspec.json.encode(documents), indent=1) + b"\n"
    )
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())

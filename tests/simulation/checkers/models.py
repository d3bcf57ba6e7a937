"""A read model says of every moment what a clerk who reads the log says of it."""

from __future__ import annotations

from typing import Any

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.tasks import Ledger
from tests.simulation.checkers.truth import Step

EVERY = 5
"""Of the steps, each so many-th is compared, and the last."""


def check(steps: list[Step], ledger: Ledger, rows: tuple[Any, ...]) -> None:
    """Compare who waits, who runs and what nodes there are, step by step.

    Args:
        steps: Those that count.
        ledger: Of a clerk who has taken none of them.
        rows: Of a read model that has taken all of them, each with ``table``, ``subject``,
            ``from_seq`` and ``to_seq``.

    Raises:
        Found: They say something else.
    """
    for number, step in enumerate(steps, 1):
        ledger.take([step])
        if not step.events or (number % EVERY and number < len(steps)):
            continue
        seq = step.events[-1]["seq"]
        wanted = {"asks": ledger.waiting, "allocations": ledger.running, "nodes": ledger.nodes}
        for table, names in wanted.items():
            found = sorted(
                row.subject
                for row in rows
                if row.table == table and row.from_seq <= seq < row.to_seq
            )
            if found != sorted(names):
                raise Found("models", f"event {seq}: {table} are {found}, not {sorted(names)}")

"""Nothing grows with the length of a story."""

from __future__ import annotations

from typing import Any

from tests.simulation.checkers.found import Found

TASKS = 12
SPARE = 64
FILES = 22
"""The 16 snapshots that a machine keeps, their folders, and what a process left that was killed while it wrote."""


def check(outcome: Any) -> None:
    """Look at queues and files in the end.

    Raises:
        Found: There are too many.
    """
    for one in outcome.replicas:
        if one.tasks > TASKS:
            raise Found("memory", f"machine {one.machine} has {one.tasks} tasks")
        if one.heap > 4 * one.timers + SPARE:
            raise Found("memory", f"machine {one.machine} has a heap of {one.heap}")
    if outcome.snapshots > FILES:
        raise Found("memory", f"{outcome.snapshots} files of snapshots")

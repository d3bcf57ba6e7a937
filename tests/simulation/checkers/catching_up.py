"""A new leader decides nothing before it has read what was in the inbox when its term began."""

from __future__ import annotations

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.truth import Step


def check(steps: list[Step], backlog: tuple[int, ...]) -> None:
    """Look at the first decided step of every term.

    Args:
        steps: Those that count.
        backlog: How many proposals the inbox held when each record of the log was written.

    Raises:
        Found: It was decided on a picture that was known to be stale.
    """
    term, wanted = 0, 0
    for step in steps:
        if step.term != term:
            term, wanted = step.term, backlog[step.place]
        elif step.decided and step.inbox_next < wanted:
            raise Found(
                "catching up",
                f"position {step.place}: decided at proposal {step.inbox_next} of {wanted}",
            )

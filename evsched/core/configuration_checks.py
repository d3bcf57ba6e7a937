"""The rules that a configuration must keep, whether it comes from a file or as an event.

`problems` is what makes a configuration be refused as a whole, wherever it comes from;
`file_problems` adds what only a file is refused for; `remarks` is what an administrator should know
about one that is accepted. All are pure functions of the configuration.
"""

from __future__ import annotations

from events.configuration import Configuration, KueueSpec
from evsched.core.kueue.quota_rules import quota_problems, quota_remarks
from evsched.core.problem import Problem
from evsched.core.yunikorn.queue_rules import queue_problems

MAX_PROBLEMS = 100
"""So many are told; who has more has them after the first hundred are mended."""

__all__ = ["MAX_PROBLEMS", "Problem", "file_problems", "problems", "remarks"]


def problems(configuration: Configuration) -> tuple[Problem, ...]:
    """Return every rule that no configuration may break, in the order of the configuration, at most `MAX_PROBLEMS`."""
    return tuple(problem for problem in _all(configuration) if not problem.advisory)[:MAX_PROBLEMS]


def file_problems(configuration: Configuration) -> tuple[Problem, ...]:
    """Return every rule that a configuration breaks, those included that only a file must keep, at most `MAX_PROBLEMS`."""
    return tuple(_all(configuration)[:MAX_PROBLEMS])


def remarks(configuration: Configuration) -> tuple[Problem, ...]:
    """Return what is accepted but will not do what its author may think."""
    return (
        tuple(quota_remarks(configuration)[:MAX_PROBLEMS])
        if isinstance(configuration, KueueSpec)
        else ()
    )


def _all(configuration: Configuration) -> list[Problem]:
    """Return what the rules of a configuration's format say."""
    return (
        quota_problems(configuration)
        if isinstance(configuration, KueueSpec)
        else queue_problems(configuration)
    )

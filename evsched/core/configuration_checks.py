"""The rules that a configuration must keep, whether it comes from a file or as an event.

`problems` is what makes a configuration be refused as a whole, wherever it comes from;
`file_problems` adds what only a file is refused for; `remarks` is what an administrator should know
about one that is accepted. All are pure functions of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from events.configuration import Configuration
from evsched.core.problem import Problem
from evsched.core.registry import family_of

MAX_PROBLEMS = 100
"""So many are told; who has more has them after the first hundred are mended."""

__all__ = ["MAX_PROBLEMS", "Problem", "file_problems", "problems", "remarks", "resource_types"]


def problems(configuration: Configuration) -> tuple[Problem, ...]:
    """Return every rule that no configuration may break, in the order of the configuration, at most `MAX_PROBLEMS`."""
    return tuple(islice((one for one in _all(configuration) if not one.advisory), MAX_PROBLEMS))


def file_problems(configuration: Configuration) -> tuple[Problem, ...]:
    """Return every rule that a configuration breaks, those included that only a file must keep, at most `MAX_PROBLEMS`."""
    return tuple(islice(_all(configuration), MAX_PROBLEMS))


def remarks(configuration: Configuration) -> tuple[Problem, ...]:
    """Return what is accepted but will not do what its author may think."""
    return tuple(family_of(configuration).remarks(configuration)[:MAX_PROBLEMS])


def resource_types(configuration: Configuration) -> Iterable[str]:
    """Return the resource types that a configuration makes, each once."""
    return family_of(configuration).resource_types(configuration)


def _all(configuration: Configuration) -> Iterator[Problem]:
    """Yield what the rules of a configuration's format say."""
    return iter(family_of(configuration).problems(configuration))

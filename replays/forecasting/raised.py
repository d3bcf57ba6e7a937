"""A configuration in which one limit is higher than in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from events.configuration import Configuration


Submitter = tuple[str, tuple[str, ...]]
"""A user and the user's groups."""


class RaisedLimit(NamedTuple):
    """What was raised, and the configuration with it; the fields are those of a `Lever`."""

    kind: Literal["maximum", "guaranteed", "limit", "applications", "nominal", "borrowing"]
    where: str
    detail: str
    before: dict[str, int]
    after: dict[str, int]
    configuration: Configuration


def more(amounts: dict[str, int], step: dict[str, int]) -> dict[str, int]:
    """Return amounts with the step on those that are named in both."""
    return {name: amount + step.get(name, 0) for name, amount in amounts.items()}


def named(amounts: dict[str, int], step: dict[str, int]) -> dict[str, int]:
    """Return those of the amounts that the step names."""
    return {name: amount for name, amount in amounts.items() if step.get(name)}

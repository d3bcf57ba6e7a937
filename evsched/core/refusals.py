"""Why a proposal is refused, and which leaf its queue means: what validation and the families share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evsched.core.state import State


class Rejection(NamedTuple):
    """Why a proposal was refused: a stable word and a sentence."""

    code: str
    reason: str


def leaf_of(state: State, queue: str) -> str:
    """Return the path of the leaf that a proposal's queue means.

    A LocalQueue stands for its ClusterQueue. The path need not exist. Names in queues.yaml ignore
    case and are kept in lower case; Kueue's do not, and are found as they are.
    """
    path = state.local_queues.get(queue, queue)
    return path if path in state.queues else path.lower()  # names in queues.yaml ignore case


def leaf_problem(state: State, queue: str, subject: str) -> Rejection | None:
    """Refuse a queue that takes nothing in: unknown, a parent, or no longer in the configuration.

    ``subject`` begins the message, which says what is wrong with the queue and what was expected.
    """
    if state.configuration is None:
        return Rejection(
            "conflict", f"{subject}: no configuration was applied yet, so there are no queues"
        )
    path = leaf_of(state, queue)
    found = state.queues.get(path)
    if found is None:
        return Rejection("unknown", f"{subject}: queue {queue or '(none)'} does not exist")
    if not found.leaf:
        return Rejection("invalid", f"{subject}: queue {queue} is a parent, expected a leaf")
    if found.draining:
        return Rejection(
            "conflict",
            f"{subject}: queue {queue} is no longer in the configuration and takes nothing in",
        )
    return None

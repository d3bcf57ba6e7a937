"""What is remarkable about guarantees, though no rule forbids it."""

from __future__ import annotations

from collections.abc import Iterator

from events.configuration import QueueSpec, YunikornSpec
from evsched.core.problem import Problem

EVERY_POD = ("vcore", "memory")
"""What every pod uses, whether its queue names it or not."""

MAX_SHOWN = 8
"""So many resources of a long list are named in a message."""


def guarantee_remarks(spec: YunikornSpec) -> Iterator[Problem]:
    """Yield the queues that are guaranteed one resource and none of another that they use.

    A queue gives nothing back unless it is above its guarantee in some type (seed
    preemption_design, law 5). A type that it has no guarantee for is never above one, so however
    much of it the queue has, nothing is reclaimed while it is within its guarantee of the others.
    A queue uses what its own maximum or limits name, and what every pod uses.
    """
    named = {resource for queue in _queues(spec.root, "") for resource in _types(queue[1])}
    every = [resource for resource in EVERY_POD if resource in named]
    for path, queue in _queues(spec.root, ""):
        guaranteed = [name for name, amount in (queue.guaranteed or {}).items() if amount]
        if not guaranteed:
            continue
        used = dict.fromkeys((*_types(queue), *every))
        missing = [name for name in used if name not in (queue.guaranteed or {})]
        if missing:
            yield Problem(
                f"queue {path}",
                "resources.guaranteed",
                f"queue {path}: guarantees {_list(guaranteed)} and nothing of {_list(missing)}, which it"
                f" uses: none of that can be reclaimed while it is within its guarantee (law 5)",
            )


def _queues(queue: QueueSpec, above: str) -> Iterator[tuple[str, QueueSpec]]:
    """Yield a queue and everything below it with its path, in the order of the file."""
    path = f"{above}.{queue.name}" if above else queue.name
    yield path, queue
    for child in queue.queues:
        yield from _queues(child, path)


def _types(queue: QueueSpec) -> dict[str, None]:
    """Return the resources that a queue names itself, in their order."""
    found = dict.fromkeys((*(queue.guaranteed or ()), *(queue.maximum or ())))
    for limit in queue.limits:
        found.update(dict.fromkeys(limit.max_resources or ()))
    return found


def _list(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more

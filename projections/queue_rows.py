"""The rows of one queue: its limits, and those of users and groups in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from evsched.core.kueue.model import quota_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evsched.core.kueue.model import Quota
    from evsched.core.queues import Queue

_json = msgspec.json.Encoder()


def text(value: object) -> str:
    """Return a value as JSON text."""
    return _json.encode(value).decode()


def queue_row(queue: Queue, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the row of a queue: of its family's limits those that it knows; ``names`` are those of the resource types."""
    quota = quota_in(queue)
    yunikorn = quota is None

    def limits(amounts: Mapping[int, int] | None, *, known: bool = True) -> str | None:
        if not known or amounts is None:
            return None
        return text({names[index]: amounts[index] for index in sorted(amounts)})

    return (
        queue.path, queue.parent.path if queue.parent is not None else None, queue.order, int(queue.leaf),
        int(queue.dynamic), int(queue.draining), queue.max_applications or None,
        limits(queue.guaranteed, known=yunikorn), limits(queue.maximum, known=yunikorn),
        limits(None if quota is None else quota.nominal), limits(None if quota is None else quota.borrowing),
        limits(None if quota is None else quota.lending),
        limits(None if quota is None or queue.leaf else quota.subtree),
        None if quota is None else quota.weight_nano,
        None if quota is None or queue.leaf else text(_lendable(quota)),
    )  # fmt: skip


def _lendable(cohort: Quota) -> dict[str, int]:
    """Return what could be used in a cohort, by resource: its flavors count together."""
    resources = {cohort.resource_of[index] for index in cohort.top.subtree}
    return {resource: cohort.lendable(resource) for resource in sorted(resources)}


def user_limit_rows(queue: Queue) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the limits of a queue; of several for one name the first counts."""
    found: dict[str, tuple[Any, ...]] = {}
    for place, limit in enumerate(queue.limits):
        most = None if limit.max_resources is None else text(limit.max_resources)
        for kind, names in (("user", limit.users), ("group", limit.groups)):
            for name in names:
                key = f"{queue.path} {kind} {name}"
                row = (key, queue.path, kind, name, place, most, limit.max_applications or None)
                found.setdefault(key, row)
    return iter(found.values())

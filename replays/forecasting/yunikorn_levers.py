"""Limits on the path of an ask in queues.yaml, each raised by a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from replays.forecasting.raised import RaisedLimit, Submitter, more, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from events.configuration import LimitSpec, QueueSpec, YunikornSpec


def raised(
    spec: YunikornSpec, path: Sequence[str], who: Submitter, step: dict[str, int]
) -> Iterator[RaisedLimit]:
    """Yield configurations in which one limit on the path allows so much more.

    All maxima of the path together are one more of them, as several may hold an ask; so are the
    guarantees, of which one above another one would break the rules of the file.

    Args:
        spec: The one in force. Queues that placement rules created do not stand in it.
        path: Paths of the leaf and the queues above it.
        who: Whose application it is.
        step: By resource, base units.
    """
    maxima = [one for one in path if named(_at(spec, one, "maximum"), step)]
    for groups in (*([one] for one in maxima), *([maxima] if len(maxima) > 1 else [])):
        yield _raised(spec, groups, "maximum", step)
    if spec.preemption_enabled and _found(spec, path[0]) is not None:
        above = [one for one in path[1:] if _at(spec, one, "guaranteed")]
        yield _raised(spec, [path[0], *above], "guaranteed", step)
    for one in path:
        queue = _found(spec, one)
        if queue is not None:
            yield from _limits(spec, one, queue, who, step)


def _limits(
    spec: YunikornSpec, path: str, queue: QueueSpec, who: Submitter, step: dict[str, int]
) -> Iterator[RaisedLimit]:
    """Yield more applications for a queue, and more of everything for each limit that is about a user."""
    if queue.max_applications:
        count = queue.max_applications + 1
        changed = _changed(spec, path, lambda one: replace(one, max_applications=count))
        counts = {"applications": queue.max_applications}, {"applications": count}
        yield RaisedLimit("applications", path, "", *counts, changed)
    for at, limit in enumerate(queue.limits):
        if not _concerns(limit, who):
            continue
        resources = None if limit.max_resources is None else more(limit.max_resources, step)
        count = limit.max_applications + 1 if limit.max_applications else 0
        larger = replace(limit, max_resources=resources, max_applications=count)
        limits = (*queue.limits[:at], larger, *queue.limits[at + 1 :])
        changed = _changed(spec, path, lambda one, limits=limits: replace(one, limits=limits))  # type: ignore[misc]
        yield RaisedLimit("limit", path, _title(limit), _told(limit), _told(larger), changed)


def _concerns(limit: LimitSpec, who: Submitter) -> bool:
    user, groups = who
    return bool({user, "*"} & set(limit.users) or {*groups, "*"} & set(limit.groups))


def _title(limit: LimitSpec) -> str:
    return limit.description or ", ".join((*limit.users, *limit.groups))


def _told(limit: LimitSpec) -> dict[str, int]:
    applications = {"applications": limit.max_applications} if limit.max_applications else {}
    return {**(limit.max_resources or {}), **applications}


def _raised(
    spec: YunikornSpec, paths: Sequence[str], kind: str, step: dict[str, int]
) -> RaisedLimit:
    """Raise a maximum or guarantee of these queues; the first of them is named."""
    changed = spec
    for path in paths:
        amounts = _at(spec, path, kind)
        larger = more(
            {**dict.fromkeys(step, 0), **amounts} if kind == "guaranteed" else amounts, step
        )
        fields = {kind: larger}
        changed = _changed(changed, path, lambda one, fields=fields: replace(one, **fields))  # type: ignore[misc]
    first = paths[0]
    detail = f"and {', '.join(paths[1:])}" if len(paths) > 1 else ""
    before = named(_at(spec, first, kind), step)
    after = named(_at(changed, first, kind), step)
    label = "maximum" if kind == "maximum" else "guaranteed"
    return RaisedLimit(label, first, detail, before, after, changed)  # type: ignore[arg-type]


def _at(spec: YunikornSpec, path: str, field: str) -> dict[str, int]:
    queue = _found(spec, path)
    return {} if queue is None else getattr(queue, field) or {}


def _found(spec: YunikornSpec, path: str) -> QueueSpec | None:
    """Return a queue of the file by its path; None: it was created by a placement rule."""
    queue: QueueSpec | None = spec.root
    for name in path.split(".")[1:]:
        queue = None if queue is None else {one.name: one for one in queue.queues}.get(name)
    return queue


def _changed(
    spec: YunikornSpec, path: str, change: Callable[[QueueSpec], QueueSpec]
) -> YunikornSpec:
    def within(queue: QueueSpec, names: list[str]) -> QueueSpec:
        if not names:
            return change(queue)
        children = tuple(
            within(one, names[1:]) if one.name == names[0] else one for one in queue.queues
        )
        return replace(queue, queues=children)

    return replace(spec, root=within(spec.root, path.split(".")[1:]))

"""The rules of limits on users and groups.

A limit holds in its queue and everything below, for each user by itself and for each group as a
whole. The first limit of a queue that names a user or group counts, ``*`` stands for whoever is
not named, so names come before it (YuniKorn's documentation of limits). A limit may not be higher
than the same name's further up, or it could never be reached and would mislead whoever reads it.

Here a configuration is judged before it is taken. What a limit then does to asks is decided in
`evsched.core.yunikorn.limits`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from events.configuration import Amounts, LimitSpec, QueueSpec, YunikornSpec
from evsched.core.problem import Problem
from evsched.core.quantity import format_amount

WILDCARD = "*"

# A name of at most 252 characters, with a $ behind it or not; or ``*``.
_NAME = re.compile(r"\*|[A-Za-z0-9_][A-Za-z0-9_.:#/@+-]{0,251}\$?")

LimitKind = Literal["user", "group"]
_Held = dict[tuple[LimitKind, str], LimitSpec]
"""The limits of one queue by whom they limit."""


def limit_problems(spec: YunikornSpec) -> Iterator[Problem]:
    """Yield every rule that the limits of a partition's queues break, parents first.

    Args:
        spec: Its tree is neither too deep nor too large (`evsched.core.yunikorn.queue_rules` asks
            that first), as this walks it by recursion.
    """
    return _queue(spec.root, "root", ())


def _queue(queue: QueueSpec, path: str, above: tuple[tuple[str, _Held], ...]) -> Iterator[Problem]:
    """Check the limits of a queue and of everything below it.

    ``above`` are the limits of its ancestors, each with the path of its queue, root first.
    """
    subject = f"queue {path}"
    held: _Held = {}
    for index, limit in enumerate(queue.limits):
        field = f"limits[{index}]"
        yield from _shape(subject, field, limit)
        yield from _names(subject, field, limit, held)
        yield from _under_queue(subject, field, limit, queue)
        yield from _under_ancestors(subject, field, limit, above)
    for child in queue.queues:
        yield from _queue(child, f"{path}.{child.name}", (*above, (path, held)))


def _shape(subject: str, field: str, limit: LimitSpec) -> Iterator[Problem]:
    """Check that a limit limits somebody in something."""
    if not limit.users and not limit.groups:
        yield Problem(subject, field, f"{subject}: {field} names nobody, expected users or groups")
    if not limit.max_applications and not any((limit.max_resources or {}).values()):
        yield Problem(
            subject,
            field,
            f"{subject}: {field} limits nothing, expected maxresources or maxapplications",
        )


def _names(subject: str, field: str, limit: LimitSpec, held: _Held) -> Iterator[Problem]:
    """Check names, their order and that each has one limit; what is found is added to ``held``.

    A group ``*`` needs a named group before it: alone it would limit everybody together, which is
    what the maximum of the queue does.
    """
    kinds: tuple[tuple[LimitKind, tuple[str, ...]], ...] = (
        ("user", limit.users),
        ("group", limit.groups),
    )
    for kind, names in kinds:
        place = f"{field}.{kind}s"
        for name in names:
            if not _NAME.fullmatch(name):
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {field} has the {kind} name {name[:64]!r}, expected a name or *",
                )
            if (kind, name) in held:
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {field} limits {kind} {name} a second time, expected once",
                )
            elif (kind, WILDCARD) in held:
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {field} limits {kind} {name} behind *, expected * last",
                )
            if kind == "group" and name == WILDCARD and not any(key[0] == "group" for key in held):
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {field} limits group * alone, expected a named group before it",
                )
            held[kind, name] = limit


def _under_queue(subject: str, field: str, limit: LimitSpec, queue: QueueSpec) -> Iterator[Problem]:
    """Check a limit against what the queue itself may use.

    A maximum further up is not looked at here: the queue's own lies within it, by another rule.
    """
    yield from _under(
        subject, field, limit, (queue.maximum or {}, queue.max_applications, "the queue")
    )


def _under_ancestors(
    subject: str, field: str, limit: LimitSpec, above: tuple[tuple[str, _Held], ...]
) -> Iterator[Problem]:
    """Check a limit against those of the same name, or of ``*``, in the queues above.

    Where neither is there, the name is not limited above, and any limit is lower.
    """
    kinds: tuple[tuple[LimitKind, tuple[str, ...]], ...] = (
        ("user", limit.users),
        ("group", limit.groups),
    )
    for path, held in above:
        for kind, names in kinds:
            for name in names:
                higher = held.get((kind, name), held.get((kind, WILDCARD)))
                if higher is not None:
                    whose = f"{kind} {name} in queue {path}"
                    yield from _under(
                        subject,
                        field,
                        limit,
                        (higher.max_resources or {}, higher.max_applications, whose),
                    )


def _under(
    subject: str, field: str, limit: LimitSpec, most: tuple[Amounts, int, str]
) -> Iterator[Problem]:
    """Check a limit against another one, where both limit.

    ``most`` is the other one: its amounts, its number of applications (0: any) and whose it is,
    for the message. A type that it does not name is not limited there.
    """
    resources, applications, whose = most
    for resource, amount in (limit.max_resources or {}).items():
        if amount > resources.get(resource, amount):
            found, expected = (
                format_amount(resource, amount),
                format_amount(resource, resources[resource]),
            )
            message = f"{subject}: {field} maxresources {resource} {found} is above {expected} of {whose}, expected at most that"
            yield Problem(subject, f"{field}.maxresources.{resource}", message)
    if 0 < applications < limit.max_applications:
        found = f"{field} maxapplications {limit.max_applications}"
        message = f"{subject}: {found} is above {applications} of {whose}, expected at most that"
        yield Problem(subject, f"{field}.maxapplications", message)

"""What users and groups use, by queue, as YuniKorn shows it.

Everything that runs counts for its user, at every queue of its path. It counts for the group that
the nearest limit on its path names (`evsched.core.yunikorn.limits`), and for no group without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evsched.api.yunikorn import answers
from evsched.api.yunikorn.amounts import vector
from evsched.core.yunikorn.limits import held_in

if TYPE_CHECKING:
    from evsched.core.queues import Application, Queue
    from evsched.core.state import State

Consumer = Literal["user", "group"]


def users(state: State) -> list[answers.UserUsageInfo]:
    """Return every user of whom something runs, by name."""
    found: dict[str, list[Application]] = {}
    for one in _running(state):
        found.setdefault(one.user, []).append(one)
    return [_user(state, name, theirs) for name, theirs in sorted(found.items())]


def groups(state: State) -> list[answers.GroupUsageInfo]:
    """Return every group for which something counts, by name."""
    found: dict[str, list[Application]] = {}
    for one in _running(state):
        group = group_of(one)
        if group:
            found.setdefault(group, []).append(one)
    return [
        answers.GroupUsageInfo(
            group_name=name,
            applications=[one.id for one in theirs],
            queues=_usage(state, state.root, "group", name, theirs),
        )
        for name, theirs in sorted(found.items())
    ]


def group_of(application: Application) -> str:
    """Return the group that an application counts for; empty when no limit on its path names one."""
    for queue in application.leaf.lineage:
        for held in held_in(queue, application):
            if held.key[1] == "group":
                return held.key[2]
    return ""


def _running(state: State) -> list[Application]:
    return [one for _, one in sorted(state.applications.items()) if one.allocations]


def _user(state: State, name: str, theirs: list[Application]) -> answers.UserUsageInfo:
    counted = {one.id: group_of(one) for one in theirs}
    return answers.UserUsageInfo(
        user_name=name,
        groups={application: group for application, group in counted.items() if group},
        queues=_usage(state, state.root, "user", name, theirs),
    )


def _usage(
    state: State, queue: Queue, kind: Consumer, name: str, theirs: list[Application]
) -> answers.UsageInfo:
    """Return what these applications use in a queue and, queue by queue, below."""
    used = [0] * state.width
    for one in theirs:
        for index, amount in enumerate(one.usage):
            used[index] += amount
    limit = next((held for held in held_in(queue, theirs[0]) if held.key[1:] == (kind, name)), None)
    inside = [
        (child, [one for one in theirs if child.contains(one.leaf)])
        for _, child in sorted(queue.children.items())
    ]
    return answers.UsageInfo(
        queue_path=queue.path,
        resource_usage=vector(state.types.names, used),
        running_applications=[one.id for one in theirs],
        max_resources={} if limit is None else dict(sorted(limit.resources.items())),
        max_applications=0 if limit is None else limit.applications,
        children=[_usage(state, child, kind, name, those) for child, those in inside if those],
    )

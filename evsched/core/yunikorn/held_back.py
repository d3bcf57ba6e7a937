"""What a limit on users, groups or applications holds back, as it was found out.

A part of `evsched.core.yunikorn.waiting`. A limit is asked about when an ask is next, and not again
until the user, or where groups are limited any user, has used less. The row "a limit for each of
200 users" of `benchmarks.allocation` measures what this saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.yunikorn.order_nodes import DemandBucket

if TYPE_CHECKING:
    from evsched.core.queues import Application
    from evsched.core.state import State
    from evsched.core.yunikorn.order_nodes import AskGroup


class HeldBack:
    """Groups and buckets that a limit holds back, by user; a user without any has no entry."""

    __slots__ = ("_by_user", "_group_limits")

    def __init__(self, state: State) -> None:
        """Start with nothing; a group has many users, so with limits on groups any of them may help any other."""
        self._by_user: dict[str, dict[AskGroup | DemandBucket, None]] = {}
        limits = (limit for queue in state.queues.values() for limit in queue.limits)
        self._group_limits = any(limit.groups for limit in limits)

    def add(self, held: AskGroup | DemandBucket) -> None:
        """Note that a limit holds a group or a bucket back."""
        self._by_user.setdefault(_user(held), {})[held] = None

    def forget(self, held: AskGroup | DemandBucket) -> None:
        """Forget that a limit holds a group or a bucket back, if one does."""
        user = _user(held)
        here = self._by_user.get(user)
        if here is not None:
            here.pop(held, None)
            if not here:
                del self._by_user[user]

    def helped_by(self, application: Application) -> list[AskGroup | DemandBucket]:
        """Return what may go on now that an application uses less.

        Those of its user; those of all users where groups are limited anywhere, and where the
        application stopped running, which `maxapplications` counts.
        """
        if not self._by_user:
            return []
        if self._group_limits or not application.allocations:
            return [held for here in self._by_user.values() for held in here]
        return list(self._by_user.get(application.user, ()))


def _user(held: AskGroup | DemandBucket) -> str:
    """Return whose asks these are; limits are looked up for buckets of known users alone."""
    peers = held.peers if isinstance(held, DemandBucket) else held.app_node.peers
    return "" if peers is None else peers[0]

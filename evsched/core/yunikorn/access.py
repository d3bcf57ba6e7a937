"""Who may submit to a queue: ``submitacl`` and ``adminacl`` of queues.yaml.

An access list is ``users groups``: names with commas between them, one space between the two parts,
``*`` for everybody. An empty list lets nobody in by itself, but whoever may submit to a queue, or
administers it, may do so to all queues below it.

A partition in whose configuration no list is written at all, as in the seeds' examples, has no
access control: everybody may submit. The first list that is written anywhere ends that.
"""

from __future__ import annotations

from collections.abc import Iterable

from evsched.core.queues import Queue


def listed(acl: str, user: str, groups: Iterable[str]) -> bool:
    """Tell whether an access list names a user or one of the user's groups."""
    users, _, named = acl.partition(" ")
    if users == "*" or named.strip() == "*":
        return True
    listed_groups = [name.strip() for name in named.split(",")]
    return user in [name.strip() for name in users.split(",")] or any(
        group in listed_groups for group in groups
    )


def may_submit(queue: Queue, user: str, groups: Iterable[str]) -> bool:
    """Tell whether a user may submit to a queue, by its lists or those of a queue above it."""
    known = [group for group in groups if group]
    for above in queue.lineage:
        for acl in (above.submit_acl, above.admin_acl):
            if acl and listed(acl, user, known):
                return True
    return not any(one.submit_acl or one.admin_acl for one in queue.lineage[-1].walk())

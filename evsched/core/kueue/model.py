"""Quotas of cohorts and ClusterQueues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.queues import Queue

if TYPE_CHECKING:
    from evsched.core.resources import Pairs, ResourceTypes
    from events.configuration import KueueSpec


class Quota:
    """The quotas of one queue."""

    def use(self, pairs: Pairs) -> None:
        """Count amounts here and above."""

    def release(self, pairs: Pairs) -> None:
        """Take amounts off here and above."""


def build_tree(spec: KueueSpec, types: ResourceTypes) -> tuple[Queue, dict[str, Queue]]:
    """Return the root and all queues by path."""
    root = Queue("", "", None, leaf=False)
    queues: dict[str, Queue] = {}
    for found in spec.cluster_queues:
        queue = queues[found.name] = Queue(found.name, found.name, root, leaf=True)
        root.children[found.name] = queue
    return root, queues

"""From a configuration to a queue tree, and from one tree to the next.

A new configuration replaces the tree as a whole. Applications stay in the queue they are in: a
queue that the configuration no longer names goes on as *draining* (nothing new is taken in) until
it is empty, a dynamic queue lives on by the template it was made by, whatever has become of that
(quota_enforcement, "Dynamic Queues").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import KueueSpec, QueueSpec, TemplateSpec
from evsched.core import tallies
from evsched.core.kueue.model import build_tree as build_kueue
from evsched.core.queues import Queue
from evsched.core.yunikorn.settings import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.configuration import Configuration, YunikornSpec
    from evsched.core.resources import ResourceTypes
    from evsched.core.state import State

KUEUE_ROOT = ""
"""Path of the queue above all cohorts and lonely ClusterQueues; it has no quota."""


def build_yunikorn(spec: YunikornSpec, types: ResourceTypes) -> tuple[Queue, dict[str, Queue]]:
    """Return the root and all queues by path."""
    queues: dict[str, Queue] = {}
    root = _build(spec.root, None, types, queues)
    return root, queues


def _build(
    spec: QueueSpec, parent: Queue | None, types: ResourceTypes, queues: dict[str, Queue]
) -> Queue:
    name = spec.name.lower()
    path = f"{parent.path}.{name}" if parent is not None else name
    leaf = not (spec.parent or spec.queues or parent is None)
    queue = Queue(path, name, parent, leaf=leaf)
    queue.settings = resolve(
        spec.properties,
        parent.settings if parent is not None else None,
        leaf=leaf,
        quota_delay_ms=spec.quota_preemption_delay_ms,
    )
    queue.guaranteed = types.limits(spec.guaranteed)
    queue.maximum = types.limits(spec.maximum)
    queue.max_applications = spec.max_applications
    queue.submit_acl = spec.submit_acl
    queue.admin_acl = spec.admin_acl
    queue.template = spec.template
    queue.limits = spec.limits
    queue.order = len(queues)
    queues[path] = queue
    for child in spec.queues:
        below = _build(child, queue, types, queues)
        queue.children[below.name] = below
    return queue


def template_of(parent: Queue) -> TemplateSpec:
    """Return the template for a dynamic queue below ``parent``: its own, or the nearest one above (seed quota_enforcement)."""
    for queue in parent.lineage:
        if queue.template is not None:
            return queue.template
    return TemplateSpec()


def add_queue(state: State, path: str, *, parent: bool, draining: bool = False) -> Queue:
    """Add a queue that the configuration does not name (dynamic or draining) and return it; what is missing above it too.

    A dynamic leaf gets the guarantee, maximum and properties of its template; a draining queue has
    no limits of its own.
    """
    known = state.queues.get(path)
    if known is not None:
        return known
    # Names of ClusterQueues may hold dots, and say nothing about their place.
    above, _, name = path.rpartition(".") if state.root.path else ("", "", path)
    upper = add_queue(state, above, parent=True, draining=draining) if above else state.root
    queue = Queue(path, name or path, upper, leaf=not parent)
    if draining:
        queue.draining = True
        queue.settings = resolve({}, upper.settings, leaf=queue.leaf, quota_delay_ms=None)
    else:
        template = state.templates.get(path) or template_of(upper)
        if not parent:
            state.templates[path] = template
        queue.dynamic = True
        queue.settings = resolve(
            {} if parent else template.properties,
            upper.settings,
            leaf=queue.leaf,
            quota_delay_ms=template.quota_preemption_delay_ms,
        )
        if queue.leaf:
            queue.guaranteed = state.types.limits(template.guaranteed)
            queue.maximum = state.types.limits(template.maximum)
            queue.max_applications = template.max_applications
    queue.order = max((other.order for other in state.queues.values()), default=-1) + 1
    upper.children[queue.name] = queue
    state.queues[path] = queue
    if len(state.types.names) != state.width:
        state.widen()
    queue.widen(state.width)
    return queue


def arrange(state: State, added: Iterable[str]) -> None:
    """Put queues that the configuration does not name behind the others, in this order, as a snapshot found them.

    `install` adds the dynamic ones first. Where a queue began to drain and a dynamic one came after
    it, the order of siblings, and with it who is preempted first, was another.
    """
    after = max((queue.order for queue in state.queues.values()), default=-1) + 1
    for order, path in enumerate(added, after):
        queue = state.queues.pop(path)
        state.queues[path] = queue
        queue.order = order
        if queue.parent is not None:
            queue.parent.children[queue.name] = queue.parent.children.pop(queue.name)


def install(state: State, configuration: Configuration) -> None:
    """Put a configuration into force: new tree, applications moved over, all sums counted anew."""
    if isinstance(configuration, KueueSpec):
        root, queues = build_kueue(configuration, state.types)
    else:
        root, queues = build_yunikorn(configuration, state.types)
    state.configuration = configuration
    state.root, state.queues = root, queues
    state.local_queues = (
        {
            f"{local.namespace}/{local.name}": local.cluster_queue
            for local in configuration.local_queues
        }
        if isinstance(configuration, KueueSpec)
        else {}
    )
    state.columns = state.order = state.victims = state.limits = None
    state.widen()
    for path, parent in tuple(state.dynamic.items()):
        if path in queues:
            del state.dynamic[path]
            state.templates.pop(path, None)
        else:
            add_queue(state, path, parent=parent)
    for application in state.applications.values():
        leaf = queues.get(application.leaf.path)
        if leaf is None or not leaf.leaf:
            leaf = add_queue(state, application.leaf.path, parent=False, draining=True)
        application.leaf = leaf
        leaf.applications[application.id] = application
    if state.counting:
        tallies.count_queues(state)
    state.ripen_all()

"""The queue tree of queues.yaml: as configured, and with the queues that are added to it later.

A dynamic queue lives on by the template it was made by, whatever has become of that
(quota_enforcement, "Dynamic Queues"). A queue that the configuration leaves out while it is in use
is *draining*: it stays until it is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import QueueSpec, TemplateSpec
from evsched.core.queues import Queue, Tree
from evsched.core.refusals import Rejection
from evsched.core.yunikorn.settings import resolve

if TYPE_CHECKING:
    from events.configuration import YunikornSpec
    from evsched.core.resources import ResourceTypes
    from evsched.core.state import State


def build(spec: YunikornSpec, types: ResourceTypes) -> Tree:
    """Return the tree that a configuration describes.

    Args:
        spec: Judged valid before.
        types: Resource types that are new are added to them, in the order of the file.
    """
    queues: dict[str, Queue] = {}
    root = _build(spec.root, None, types, queues)
    return Tree(root, queues, {})


def _build(
    spec: QueueSpec, parent: Queue | None, types: ResourceTypes, queues: dict[str, Queue]
) -> Queue:
    """Return a queue with everything below it, and enter each into ``queues`` by its path.

    The order of the file is kept (``order``), parents before children. It breaks no ties in
    decisions, but people read lists in it. Root is a parent whatever it says.
    """
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
    """Return the template for a dynamic queue below ``parent``.

    Its own, or the nearest one above (seed quota_enforcement, "Dynamic Queues"). Without any, the
    queue has no guarantee and no maximum.
    """
    for queue in parent.lineage:
        if queue.template is not None:
            return queue.template
    return TemplateSpec()


def add_queue(state: State, path: str, *, parent: bool, draining: bool) -> Queue:
    """Add a queue that is not configured, and what is missing above it; return it.

    A dynamic leaf gets the guarantee, maximum and properties of its template; a draining queue has
    no limits of its own. The template is remembered with the queue (`State.templates`), and is the
    one that counts when the tree is built anew. A queue that is there already is returned as it
    is.
    """
    known = state.queues.get(path)
    if known is not None:
        return known
    above, _, name = path.rpartition(".")
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
    state.attach(queue, upper)
    return queue


def kept_leaves(state: State, configuration: YunikornSpec) -> Rejection | None:
    """Refuse a configuration that makes a leaf in use a parent, or the other way round.

    Applications run in leaves alone, so what runs there would be nowhere. A queue that is left out
    of the configuration is no fault: it drains.
    """
    used = {application.leaf.path for application in state.applications.values()}
    # Sorted, so that of several leaves below a queue the sentence names the same one everywhere.
    above_used = {
        above.path: path for path in sorted(used) for above in state.queues[path].lineage[1:]
    }
    stack = [("", configuration.root)]
    while stack:
        above, spec = stack.pop()
        path = f"{above}.{spec.name.lower()}" if above else spec.name.lower()
        if (spec.parent or spec.queues) and path in used:
            return Rejection(
                "conflict",
                f"configuration: queue {path} becomes a parent while applications run in it",
            )
        if not (spec.parent or spec.queues) and path in above_used:
            return Rejection(
                "conflict",
                f"configuration: queue {path} becomes a leaf while applications run below it (in "
                f"{above_used[path]}); leave it a parent, or out, until they are gone",
            )
        stack.extend((path, child) for child in spec.queues)
    return None

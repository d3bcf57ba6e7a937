"""Queues as YuniKorn shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import QueueSpec, YunikornSpec
from evsched.api.yunikorn import answers
from evsched.api.yunikorn.amounts import limits, percent, vector
from evsched.core.duration import format_duration
from evsched.core.yunikorn.ordering import MIN_PRIORITY, shown_priority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from events.configuration import Amounts
    from evsched.core.queues import Queue
    from evsched.core.state import State


class QueueView:
    """The queues of one state, with what is counted once for all of them."""

    def __init__(self, state: State, configuration: YunikornSpec) -> None:
        """Look at a state that has this configuration."""
        self._state = state
        self._partition = configuration.partition
        self._properties = dict(_written(configuration.root, ""))
        self._running: dict[str, int] = {}
        self._priorities: dict[str, int] = {}
        for application in state.applications.values():
            runs = bool(application.allocations)
            highest = max(application.priorities, default=MIN_PRIORITY)
            for queue in application.leaf.lineage:
                self._running[queue.path] = self._running.get(queue.path, 0) + runs
                known = self._priorities.get(queue.path, MIN_PRIORITY)
                self._priorities[queue.path] = max(known, highest)
                # Nothing waits: YuniKorn hands its smallest priority up, whatever the offset.
                if highest != MIN_PRIORITY:
                    highest = shown_priority(queue, highest)

    def tree(self) -> answers.QueueInfo:
        """Return root with all queues below it."""
        return self.queue(self._state.root, subtree=True)

    def queue(self, queue: Queue, *, subtree: bool) -> answers.QueueInfo:
        """Return one queue, with those below it when the ``subtree`` is wanted; their names are always there."""
        settings, names = queue.settings, self._state.types.names
        maximum = self._maximum(queue)
        allocated = vector(names, queue.usage)
        children = sorted(queue.children.values(), key=lambda child: child.path)
        return answers.QueueInfo(
            queuename=queue.path,
            status="Draining" if queue.draining else "Active",
            partition=self._partition,
            pending_resource=vector(names, queue.pending),
            max_resource=maximum,
            guaranteed_resource=limits(names, queue.guaranteed),
            allocated_resource=allocated,
            preempting_resource=vector(names, queue.preempting),
            headroom=self._headroom(queue),
            is_leaf=queue.leaf,
            is_managed=not queue.dynamic,
            properties=self._in_force(queue),
            parent="" if queue.parent is None else queue.parent.path,
            template=_template(queue),
            children=[self.queue(child, subtree=True) for child in children] if subtree else [],
            child_names=[child.path for child in children],
            abs_used_capacity=percent(allocated, maximum),
            max_running_apps=queue.max_applications,
            running_apps=self._running.get(queue.path, 0),
            current_priority=self._priority(queue),
            sorting_policy=settings.sort_policy,
            priority_sorting=settings.sort_priority,
            preemption_enabled=settings.preemption_policy != "disabled",
            is_preemption_fence=settings.preemption_policy == "fence",
            preemption_delay=go_duration(settings.preemption_delay_ms),
            quota_preemption_delay=go_duration(settings.quota_preemption_delay_ms),
            is_priority_fence=settings.priority_fence,
            priority_offset=settings.priority_offset,
        )

    def _priority(self, queue: Queue) -> int:
        highest = self._priorities.get(queue.path, MIN_PRIORITY)
        return highest if highest == MIN_PRIORITY else shown_priority(queue, highest)

    def _maximum(self, queue: Queue) -> Amounts:
        """Return a queue's maximum; that of root is what the nodes have, as YuniKorn sets it."""
        names = self._state.types.names
        own = limits(names, queue.maximum)
        return own if queue.parent is not None else {**vector(names, self._state.total), **own}

    def _headroom(self, queue: Queue) -> Amounts:
        """Return what is left below every maximum on the path; a type that none of them names has none."""
        names, left = self._state.types.names, dict[str, int]()
        for above in queue.lineage:
            used = vector(names, above.usage)
            for name, most in self._maximum(above).items():
                room = most - used.get(name, 0)
                left[name] = min(left.get(name, room), room)
        return dict(sorted(left.items()))

    def _in_force(self, queue: Queue) -> dict[str, str]:
        """Return a queue's properties as written, its own before those that it takes over."""
        template = self._state.templates.get(queue.path)
        own = self._properties.get(queue.path, {}) if template is None else template.properties
        above = {} if queue.parent is None else queue.parent.settings.inherited
        return dict(sorted({**above, **own}.items()))


def go_duration(ms: int) -> str:
    """Return milliseconds as Go's ``Duration.String`` does: ``1m30s``, ``2h0m0s``, ``500ms``, ``0s``."""
    if ms < 1000:  # noqa: PLR2004 - Go leaves out the seconds of what is shorter than one
        return format_duration(ms)
    minutes, rest = divmod(ms, 60_000)
    seconds, millis = divmod(rest, 1000)
    text = f"{seconds}.{millis:03}".rstrip("0") + "s" if millis else f"{seconds}s"
    if not minutes:
        return text
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"


def _written(spec: QueueSpec, above: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the path of every configured queue with its own properties."""
    path = f"{above}.{spec.name.lower()}" if above else spec.name.lower()
    yield path, spec.properties
    for below in spec.queues:
        yield from _written(below, path)


def _template(queue: Queue) -> answers.TemplateInfo | None:
    found = queue.template
    if found is None:
        return None
    return answers.TemplateInfo(
        max_applications=found.max_applications,
        max_resource=found.maximum or {},
        guaranteed_resource=found.guaranteed or {},
        properties=found.properties,
    )

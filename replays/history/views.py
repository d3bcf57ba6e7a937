"""A state as rows for people and programs, one kind of thing each (`replays.history.rows`).

How rows are shown to a person is the command line's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET

from evsched.core.kueue import shares
from evsched.core.kueue.model import quota_in
from replays.history.rows import (
    AllocationRow,
    ApplicationRow,
    AskRow,
    NodeRow,
    QueueRow,
    Row,
    SettingRow,
    TimerRow,
)

if TYPE_CHECKING:
    from evsched.core.queues import Application, Queue
    from evsched.core.state import State
    from evsched.core.workloads import Node


def queues(state: State) -> list[QueueRow]:
    """Return every queue, parents first, in the order of the configuration."""
    if state.configuration is None:
        return []
    found = [queue for queue in state.root.walk() if queue.path]
    seen = {queue.path for queue in found}
    found += [queue for path, queue in state.queues.items() if path not in seen]
    return [queue_row(state, queue) for queue in found]


def queue_row(state: State, queue: Queue) -> QueueRow:
    """Return the row of a queue."""
    names = state.types.names

    def limits(amounts: Mapping[int, int]) -> dict[str, int]:
        return {names[index]: amounts[index] for index in sorted(amounts)}

    def vector(amounts: list[int]) -> dict[str, int]:
        return {names[index]: amount for index, amount in enumerate(amounts) if amount}

    def used(amounts: Mapping[int, int]) -> dict[str, int]:
        return {names[index]: amounts[index] for index in sorted(amounts) if amounts[index]}

    quota = quota_in(queue)
    fair = shares.are_shared(state)
    return QueueRow(
        queue=queue.path,
        # What a queue may lend to nobody counts where it is used, not in the cohorts above.
        usage=vector(queue.usage) if quota is None else used(quota.usage),
        guaranteed=limits(queue.guaranteed) if quota is None else UNSET,
        maximum=limits(queue.maximum) if quota is None else UNSET,
        nominal=UNSET if quota is None else limits(quota.nominal),
        borrowing_limit=UNSET if quota is None else limits(quota.borrowing),
        lending_limit=UNSET if quota is None else limits(quota.lending),
        quota=UNSET if quota is None or queue.leaf else limits(quota.subtree),
        share=UNSET if quota is None or not fair else shares.status(quota, quota.usage),
        pending=vector(queue.pending),
        pending_asks=queue.pending_asks,
        preempting=vector(queue.preempting),
        leaf=queue.leaf,
        dynamic=queue.dynamic,
        draining=queue.draining,
    )


def nodes(state: State) -> list[NodeRow]:
    """Return every node, by name."""
    return [node_row(state, node) for _, node in sorted(state.nodes.items())]


def node_row(state: State, node: Node) -> NodeRow:
    """Return the row of a node."""
    used = {state.types.names[index]: amount for index, amount in enumerate(node.used) if amount}
    free = {resource: amount - used.get(resource, 0) for resource, amount in node.resources.items()}
    return NodeRow(
        node=node.name, capacity=node.resources, used=used, free=free, allocations=len(node.allocations),
        reserved_for=list(node.reserved), schedulable=node.schedulable, labels=node.labels,
    )  # fmt: skip


def apps(state: State) -> list[ApplicationRow]:
    """Return every application, by id."""
    return [application_row(state, one) for _, one in sorted(state.applications.items())]


def application_row(state: State, application: Application) -> ApplicationRow:
    """Return the row of an application."""
    names = state.types.names
    return ApplicationRow(
        application=application.id, queue=application.leaf.path, user=application.user,
        created=application.created,
        usage={names[index]: amount for index, amount in enumerate(application.usage) if amount},
        asks=len(application.asks), allocations=len(application.allocations),
        paused_until=state.paused.get(application.id),
    )  # fmt: skip


def asks(state: State) -> list[AskRow]:
    """Return what waits, by id."""
    return [
        AskRow(
            ask=ask.id, queue=ask.queue, application=ask.application,
            resources=state.types.shapes[ask.shape].resources, priority=ask.priority, created=ask.created,
            required_node=ask.required_node, reserved=state.reservations.get(ask.id), preempted=ask.preempted,
            missed=state.missed(ask.id) or None, failed=ask.failed,
        )
        for _, ask in sorted(state.asks.items())
    ]  # fmt: skip


def allocations(state: State) -> list[AllocationRow]:
    """Return what runs, by id."""
    return [
        AllocationRow(
            allocation=one.id, queue=one.queue, application=one.application, node=one.node,
            resources=state.types.shapes[one.shape].resources, priority=one.priority, created=one.created,
            bound=one.bound, eviction_requested=one.eviction_requested or None, victim_of=one.victim_of, quota_of=one.quota_of,
        )
        for _, one in sorted(state.allocations.items())
    ]  # fmt: skip


def timers(state: State) -> list[TimerRow]:
    """Return what is armed, by due time and then id."""
    armed = sorted(state.timers.armed.values(), key=lambda timer: (timer.due, timer.id))
    return [
        TimerRow(
            timer=one.id,
            due=one.due,
            kind=one.kind,
            subject=one.subject,
            cause=one.cause,
        )
        for one in armed
    ]


def config(state: State) -> list[SettingRow]:
    """Return the configuration in force, one setting a row, its place in the document as the key."""
    if state.configuration is None:
        return []
    return settings(msgspec.json.decode(msgspec.json.encode(state.configuration)))


def settings(configuration: dict[str, Any]) -> list[SettingRow]:
    """Return the settings of a configuration that was decoded from JSON."""
    return [SettingRow(setting=place, value=value) for place, value in _leaves(configuration, "")]


def _leaves(value: Any, place: str) -> list[tuple[str, Any]]:
    """Return the ends of a nested document with their places; elements of lists are called by name where they have one."""
    if isinstance(value, dict) and value:
        return [
            leaf
            for key, item in value.items()
            for leaf in _leaves(item, f"{place}.{key}" if place else key)
        ]
    if isinstance(value, list) and value:
        named = [
            (
                item["name"]
                if isinstance(item, dict) and isinstance(item.get("name"), str)
                else str(number),
                item,
            )
            for number, item in enumerate(value)
        ]
        return [leaf for name, item in named for leaf in _leaves(item, f"{place}[{name}]")]
    return [(place, value)]


View = Literal["queues", "nodes", "apps", "asks", "allocations", "timers", "config"]
"""The names of the views, as they are typed."""

VIEWS: dict[View, Callable[[State], Sequence[Row]]] = {
    "queues": queues,
    "nodes": nodes,
    "apps": apps,
    "asks": asks,
    "allocations": allocations,
    "timers": timers,
    "config": config,
}

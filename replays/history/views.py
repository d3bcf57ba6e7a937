"""A state as rows for people and programs: one kind of thing each, every row a plain dictionary whose first entry is its key.

Amounts are in base units, times in milliseconds; how they are shown to a person is the command
line's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from evsched.core.kueue import shares
from evsched.core.kueue.model import quota_in

if TYPE_CHECKING:
    from evsched.core.queues import Queue
    from evsched.core.state import State

Row = dict[str, Any]

AMOUNTS = frozenset({
    "resources", "capacity", "used", "free", "guaranteed", "maximum", "nominal", "quota", "borrowing_limit", "lending_limit",
    "usage", "pending", "preempting",
})  # fmt: skip
"""Entries that hold amounts by resource name."""

TIMES = frozenset({"created", "bound", "told", "due", "paused_until"})
"""Entries that hold a time."""


def queues(state: State) -> list[Row]:
    """Return every queue, parents first, in the order of the configuration."""
    if state.configuration is None:
        return []
    found = [queue for queue in state.root.walk() if queue.path]
    seen = {queue.path for queue in found}
    found += [queue for path, queue in state.queues.items() if path not in seen]
    return [_queue(state, queue) for queue in found]


def _queue(state: State, queue: Queue) -> Row:
    names = state.types.names

    def limits(amounts: Mapping[int, int]) -> dict[str, int]:
        return {names[index]: amount for index, amount in amounts.items()}

    def vector(amounts: list[int]) -> dict[str, int]:
        return {names[index]: amount for index, amount in enumerate(amounts) if amount}

    row: Row = {"queue": queue.path, "usage": vector(queue.usage)}
    quota = quota_in(queue)
    if quota is None:
        row |= {"guaranteed": limits(queue.guaranteed), "maximum": limits(queue.maximum)}
    else:
        row |= {
            "nominal": limits(quota.nominal),
            "borrowing_limit": limits(quota.borrowing),
            "lending_limit": limits(quota.lending),
        }
        if not queue.leaf:  # with what those below it lend
            row |= {"quota": limits(quota.subtree)}
        if shares.are_shared(state):
            row |= {"share": shares.status(quota, quota.usage)}
    return row | {
        "pending": vector(queue.pending),
        "pending_asks": queue.pending_asks,
        "preempting": vector(queue.preempting),
        "leaf": queue.leaf,
        "dynamic": queue.dynamic,
        "draining": queue.draining,
    }


def nodes(state: State) -> list[Row]:
    """Return every node, by name."""
    names = state.types.names
    rows: list[Row] = []
    for name, node in sorted(state.nodes.items()):
        used = {names[index]: amount for index, amount in enumerate(node.used) if amount}
        free = {
            resource: amount - used.get(resource, 0) for resource, amount in node.resources.items()
        }
        rows.append({
            "node": name, "capacity": node.resources, "used": used, "free": free, "allocations": len(node.allocations),
            "reserved_for": list(node.reserved), "schedulable": node.schedulable, "labels": node.labels,
        })  # fmt: skip
    return rows


def apps(state: State) -> list[Row]:
    """Return every application, by id."""
    names = state.types.names
    return [
        {
            "application": application.id, "queue": application.leaf.path, "user": application.user,
            "created": application.created,
            "usage": {names[index]: amount for index, amount in enumerate(application.usage) if amount},
            "asks": len(application.asks), "allocations": len(application.allocations),
            "paused_until": state.paused.get(application.id),
        }
        for _, application in sorted(state.applications.items())
    ]  # fmt: skip


def asks(state: State) -> list[Row]:
    """Return what waits, by id."""
    return [
        {
            "ask": ask.id, "queue": ask.queue, "application": ask.application,
            "resources": state.types.shapes[ask.shape].resources, "priority": ask.priority, "created": ask.created,
            "required_node": ask.required_node, "reserved": state.reservations.get(ask.id), "preempted": ask.preempted,
            "missed": state.missed(ask.id) or None, "failed": ask.failed,
        }
        for _, ask in sorted(state.asks.items())
    ]  # fmt: skip


def allocations(state: State) -> list[Row]:
    """Return what runs, by id."""
    return [
        {
            "allocation": one.id, "queue": one.queue, "application": one.application, "node": one.node,
            "resources": state.types.shapes[one.shape].resources, "priority": one.priority, "created": one.created,
            "bound": one.bound, "told": one.told or None, "victim_of": one.victim_of, "quota_of": one.quota_of,
        }
        for _, one in sorted(state.allocations.items())
    ]  # fmt: skip


def timers(state: State) -> list[Row]:
    """Return what is armed, by due time and then id."""
    armed = sorted(state.timers.armed.values(), key=lambda timer: (timer.due, timer.id))
    return [
        {
            "timer": one.id,
            "due": one.due,
            "kind": one.kind,
            "subject": one.subject,
            "cause": one.cause,
        }
        for one in armed
    ]


def config(state: State) -> list[Row]:
    """Return the configuration in force, one setting a row, its place in the document as the key."""
    if state.configuration is None:
        return []
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state.configuration))
    return [{"setting": place, "value": value} for place, value in _leaves(document, "")]


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


VIEWS: dict[str, Callable[[State], list[Row]]] = {
    "queues": queues,
    "nodes": nodes,
    "apps": apps,
    "asks": asks,
    "allocations": allocations,
    "timers": timers,
    "config": config,
}
"""By the name that is typed."""


class Change(Struct, frozen=True, kw_only=True):
    """What is different about one thing between two moments.

    Attributes:
        kind: The view in which it stands.
        key: Which one.
        what: ``came``, ``went`` or ``changed``.
        fields: Entry to its values before and after, those that differ; all of them for what came
            or went.
    """

    kind: str
    key: str
    what: str
    fields: dict[str, tuple[Any, Any]]


def changes(before: State, after: State, kinds: tuple[str, ...] = tuple(VIEWS)) -> list[Change]:
    """Return what is different between two states, by kind; in the order of the later state, then what went."""
    found: list[Change] = []
    for kind in kinds:
        old = {_key(row): row for row in VIEWS[kind](before)}
        new = {_key(row): row for row in VIEWS[kind](after)}
        for key, row in new.items():
            was = old.get(key)
            if was is None:
                fields = {name: (None, value) for name, value in _rest(row).items()}
                found.append(Change(kind=kind, key=key, what="came", fields=fields))
            elif was != row:
                names = dict.fromkeys((*was, *row))
                fields = {
                    name: (was.get(name), row.get(name))
                    for name in names
                    if was.get(name) != row.get(name)
                }
                found.append(Change(kind=kind, key=key, what="changed", fields=fields))
        for key, row in old.items():
            if key not in new:
                fields = {name: (value, None) for name, value in _rest(row).items()}
                found.append(Change(kind=kind, key=key, what="went", fields=fields))
    return found


def _key(row: Row) -> str:
    return str(next(iter(row.values())))


def _rest(row: Row) -> Row:
    return dict(list(row.items())[1:])

"""A small language for things that become true in a log: what `evsched bisect` looks for.

::

    queue root.a usage.vcore > max.vcore          usage, pending, preempting, guaranteed, max (of a resource), pending_asks
    node n1 free.memory < 4Gi                     capacity, used, free (of a resource), allocations
    ask t1 waits | failed | reserved | gone       application, node, queue and timer: exists | gone
    allocation t1 runs | leaving | gone              also: node n1 unschedulable, queue root.a draining
    asks > 100                                    queues, nodes, apps, asks, allocations, timers, preemptions
    event PreemptionDecided                       an event of this type

Several are joined by ``and``, ``or`` and ``not`` (``not`` binds most, ``or`` least). What was never
there is not ``gone``. A limit that is not set compares with nothing: no usage is above an unset
maximum, and none below an unset guarantee. Nothing is evaluated but these words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.core.quantity import QuantityError, parse_yunikorn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evsched.core.queues import Queue
    from evsched.core.state import State

Predicate = Callable[["State", v.AnyEvent], bool]
"""Whether something holds after an event."""

AmountOf = Callable[["State"], "int | None"]
"""A number in a state; None where it is not set, or what it belongs to is not there."""

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_COUNTS: dict[str, Callable[[State], int]] = {
    "queues": lambda state: len(state.queues),
    "nodes": lambda state: len(state.nodes),
    "apps": lambda state: len(state.applications),
    "asks": lambda state: len(state.asks),
    "allocations": lambda state: len(state.allocations),
    "timers": lambda state: len(state.timers.armed),
    "preemptions": lambda state: len(state.preemptions),
}
THINGS: dict[str, Callable[[State], Mapping[str, object]]] = {
    "queue": lambda state: (
        {**state.queues, state.root.path: state.root} if state.configuration is not None else {}
    ),
    "node": lambda state: state.nodes,
    "application": lambda state: state.applications,
    "ask": lambda state: state.asks,
    "allocation": lambda state: state.allocations,
    "timer": lambda state: state.timers.armed,
}
"""What an expression may name, by kind: how to find all of a kind in a state, by name."""
_THERE = {"ask": "waits", "allocation": "runs"}
_STATES: dict[tuple[str, str], Callable[[State, str], bool]] = {
    ("ask", "failed"): lambda state, name: name in state.asks and bool(state.asks[name].failed),
    ("ask", "reserved"): lambda state, name: name in state.reservations,
    ("allocation", "leaving"): lambda state, name: (
        name in state.allocations and state.allocations[name].eviction_requested > 0
    ),
    ("node", "unschedulable"): lambda state, name: (
        name in state.nodes and not state.nodes[name].schedulable
    ),
    ("queue", "draining"): lambda state, name: name in state.queues and state.queues[name].draining,
}
_QUEUE_VECTORS = ("usage", "pending", "preempting")
_QUEUE_LIMITS = {"guaranteed": "guaranteed", "max": "maximum", "maximum": "maximum"}
_NODE_AMOUNTS = ("capacity", "used", "free")
_EVENT_TYPES = {kind.__name__: kind for kind in v.AnyEvent.__args__}


class ExpressionInvalid(ValueError):
    """The expression says nothing that could be looked for; the message names the word and what was expected."""


def parse(text: str) -> Predicate:
    """Return what an expression means; raise `ExpressionInvalid`.

    A predicate is to be called after every event, in order: some remember what they saw.
    """
    words = text.split()
    if not words:
        message = (
            "expression: is empty, expected for example `queue root.a usage.vcore > max.vcore`"
        )
        raise ExpressionInvalid(message)
    return _any(words)


def subjects(text: str) -> list[tuple[str, str]]:
    """Return what an expression that can be read names, each as kind and name."""
    parts = [part for whole in _split(text.split(), "or") for part in _split(whole, "and")]
    plain = [[word for word in part if word != "not"] for part in parts]
    return [(part[0], part[1]) for part in plain if part[0] in THINGS]


def _any(words: list[str]) -> Predicate:
    parts = [_all(part) for part in _split(words, "or")]
    if len(parts) == 1:
        return parts[0]
    return lambda state, event: any([part(state, event) for part in parts])  # noqa: C419 - some remember what they saw


def _all(words: list[str]) -> Predicate:
    parts = [_one(part) for part in _split(words, "and")]
    if len(parts) == 1:
        return parts[0]
    return lambda state, event: all([part(state, event) for part in parts])  # noqa: C419 - some remember what they saw


def _split(words: list[str], joint: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == joint:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _one(words: list[str]) -> Predicate:
    if words[:1] == ["not"]:
        inner = _one(words[1:])
        return lambda state, event: not inner(state, event)
    match words:
        case ["event", name]:
            return _event(name)
        case [name, sign, number] if name in _COUNTS:
            return _compared(_COUNTS[name], sign, _number(number))
        case [kind, name, word] if kind in THINGS:
            return _thing(kind, name, word)
        case ["queue" | "node" as kind, name, left, sign, right]:
            return _compared(_amount(kind, name, left), sign, _right(kind, name, left, right))
    example = "`queue root.a usage.vcore > max.vcore` or `ask t1 gone`"
    message = f"expression: found {' '.join(words)!r}, expected for example {example}"
    raise ExpressionInvalid(message)


def _event(name: str) -> Predicate:
    kind = _EVENT_TYPES.get(name)
    if kind is None:
        message = f"event {name}: no such type, expected one of {', '.join(sorted(_EVENT_TYPES))}"
        raise ExpressionInvalid(message)
    return lambda _, event: type(event) is kind


def _thing(kind: str, name: str, word: str) -> Predicate:
    """Return whether something is there, is gone, or is in some state."""
    things, there = THINGS[kind], _THERE.get(kind, "exists")
    if word == there:
        return lambda state, _: name in things(state)
    if word == "gone":
        return _Gone(things, name)
    if (kind, word) in _STATES:
        holds = _STATES[kind, word]
        return lambda state, _: holds(state, name)
    known = [there, "gone", *(state for of, state in _STATES if of == kind)]
    message = f"{kind} {name}: found {word!r}, expected {', '.join(known)}{_or_amount(kind)}"
    raise ExpressionInvalid(message)


def _or_amount(kind: str) -> str:
    return " or a comparison" if kind in {"queue", "node"} else ""


class _Gone:
    """Whether something was there and is not any more."""

    def __init__(self, things: Callable[[State], Mapping[str, object]], name: str) -> None:
        self._things, self._name, self._seen = things, name, False

    def __call__(self, state: State, _: v.AnyEvent) -> bool:
        there = self._name in self._things(state)
        self._seen = self._seen or there
        return self._seen and not there


def _compared(left: AmountOf, sign: str, right: AmountOf) -> Predicate:
    compare = _COMPARE.get(sign)
    if compare is None:
        message = f"expression: found {sign!r}, expected one of {' '.join(_COMPARE)}"
        raise ExpressionInvalid(message)

    def holds(state: State, _: v.AnyEvent) -> bool:
        one, other = left(state), right(state)
        return one is not None and other is not None and compare(one, other)

    return holds


def _number(text: str) -> AmountOf:
    if not text.isascii() or not text.isdigit():
        message = f"expression: found {text!r}, expected a whole number"
        raise ExpressionInvalid(message)
    number = int(text)
    return lambda _: number


def _right(kind: str, name: str, left: str, text: str) -> AmountOf:
    """Return what an amount is compared with: a number in the unit of its resource, or another amount of the same thing."""
    if not text[:1].isdigit():
        return _amount(kind, name, text)
    resource = left.partition(".")[2]
    if not resource:
        return _number(text)
    try:
        amount = parse_yunikorn(resource.rpartition("/")[2], text)
    except QuantityError as error:
        raise ExpressionInvalid(str(error)) from error
    return lambda _: amount


def _amount(kind: str, name: str, word: str) -> AmountOf:
    """Return an amount of a queue or node, by its name and resource (``usage.vcore``)."""
    field, _, resource = word.partition(".")
    if kind == "queue":
        if field in _QUEUE_VECTORS and resource:
            return lambda state: _of_queue(state, name, resource, field)
        if field in _QUEUE_LIMITS and resource:
            return lambda state: _limit(state, name, resource, _QUEUE_LIMITS[field])
        if word == "pending_asks":
            return lambda state: _pending_asks(state, name)
        expected = "usage, pending, preempting, guaranteed or max with a resource (usage.vcore), or pending_asks"
    else:
        if field in _NODE_AMOUNTS and resource:
            return lambda state: _of_node(state, name, resource, field)
        if word == "allocations":
            return lambda state: len(state.nodes[name].allocations) if name in state.nodes else None
        expected = "capacity, used or free with a resource (free.memory), or allocations"
    message = f"{kind} {name}: found {word!r}, expected {expected}"
    raise ExpressionInvalid(message)


def _queue(state: State, name: str) -> Queue | None:
    return state.queues.get(name) or (
        state.root if name == state.root.path and state.configuration is not None else None
    )


def _of_queue(state: State, name: str, resource: str, field: str) -> int | None:
    queue, index = _queue(state, name), state.types.index.get(resource)
    if queue is None:
        return None
    return int(getattr(queue, field)[index]) if index is not None else 0


def _pending_asks(state: State, name: str) -> int | None:
    queue = _queue(state, name)
    return queue.pending_asks if queue is not None else None


def _limit(state: State, name: str, resource: str, field: str) -> int | None:
    queue, index = _queue(state, name), state.types.index.get(resource)
    return None if queue is None or index is None else getattr(queue, field).get(index)


def _of_node(state: State, name: str, resource: str, field: str) -> int | None:
    node, index = state.nodes.get(name), state.types.index.get(resource)
    if node is None:
        return None
    if index is None:
        return 0
    return node.free(index) if field == "free" else int(getattr(node, field)[index])

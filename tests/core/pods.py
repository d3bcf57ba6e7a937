"""Pods and nodes with conditions drawn at random, and once more, naively, which of the nodes take which of the pods."""

from __future__ import annotations

from random import Random

from events.pods import (
    AntiAffinityTerm,
    LabelRequirement,
    NodeSelectorTerm,
    PodFacts,
    Taint,
    Toleration,
)
from evsched.core.pods import facts
from evsched.core.state import State
from evsched.core.workloads import Ask, Node

KEYS, VALUES = ("disk", "zone", "gen"), ("a", "b", "7", "11", "-3", "x9")
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")


def labels(draw: Random, keys: tuple[str, ...] = KEYS) -> dict[str, str]:
    """Return the labels of a node, or of a pod."""
    return {key: draw.choice(VALUES) for key in keys if draw.random() < 0.6}


def taints(draw: Random) -> tuple[Taint, ...]:
    """Return the taints of a node, often none."""
    return tuple(
        Taint(key=draw.choice(KEYS), value=draw.choice(("", "a")), effect=draw.choice(EFFECTS))
        for _ in range(draw.choice((0, 0, 0, 1, 1, 2)))
    )


def says(draw: Random) -> dict[str, object]:
    """Return what a node says beside its capacity."""
    return {"labels": labels(draw), "taints": taints(draw)}


def requirement(draw: Random, operators: str, keys: tuple[str, ...] = KEYS) -> LabelRequirement:
    """Return a condition with one of these operators."""
    operator = draw.choice(operators.split())
    if operator in {"Gt", "Lt"}:
        values: tuple[str, ...] = (draw.choice(("5", "-4", "11")),)
    elif operator in {"In", "NotIn"}:
        values = tuple(draw.sample(VALUES, draw.choice((1, 1, 2))))
    else:
        values = ()
    return LabelRequirement(key=draw.choice(keys), operator=operator, values=values)


def term(draw: Random) -> NodeSelectorTerm:
    """Return a term of node affinity, seldom an empty one."""
    operators = "In In NotIn Exists DoesNotExist Gt Lt"
    fields = ()
    if draw.random() < 0.2:
        operator = draw.choice(("In", "NotIn"))
        value = draw.choice(("n1", "n2", "n3"))
        fields = (LabelRequirement(key="metadata.name", operator=operator, values=(value,)),)
    return NodeSelectorTerm(
        expressions=tuple(requirement(draw, operators) for _ in range(draw.choice((0, 1, 1, 2)))),
        fields=fields,
    )


def pod(draw: Random) -> PodFacts | None:
    """Return what a pod says, often nothing."""
    if draw.random() < 0.4:
        return None
    app = ("app", "tier")
    return PodFacts(
        namespace=draw.choice(("", "shop")),
        uid=str(draw.randrange(9)),
        labels=labels(draw, app),
        node_selector={"disk": draw.choice(VALUES[:2])} if draw.random() < 0.2 else {},
        node_affinity=tuple(term(draw) for _ in range(draw.choice((0, 0, 0, 1, 2)))),
        tolerations=tuple(
            Toleration(
                key=key,
                operator="Exists" if not key or draw.random() < 0.5 else "Equal",
                effect=draw.choice(("", "NoSchedule", "NoExecute")),
            )
            for key in draw.sample(("", *KEYS), draw.choice((0, 1, 1, 2)))
        ),
        anti_affinity=tuple(
            AntiAffinityTerm(
                selector=tuple(
                    requirement(draw, "In NotIn Exists DoesNotExist", app)
                    for _ in range(draw.choice((0, 1, 1, 2)))
                ),
                namespaces=draw.choice(((), (), ("shop",))),
            )
            for _ in range(draw.choice((0, 0, 0, 1)))
        ),
    )


def takes(state: State, ask: Ask, node: Node) -> bool:
    """Tell whether a node takes an ask, room aside; rules 1 only ask whether it takes anybody."""
    if not state.rules.node_rules:
        return node.schedulable
    said = facts(ask.pod)
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(
            one.effect in ("", taint.effect)
            and (not one.key or (one.key == taint.key and one.operator == "Exists")
                 or (one.key == taint.key and one.value == taint.value))
            for one in said.tolerations
        ):  # fmt: skip
            return False
    selected = all(node.labels.get(key) == value for key, value in said.node_selector.items())
    related = not said.node_affinity or any(
        (one.expressions or one.fields)
        and all(holds(this, node.labels) for this in one.expressions)
        and all(holds(this, {"metadata.name": node.name}) for this in one.fields)
        for one in said.node_affinity
    )
    # Of a task without a pod nothing is known that a term could select.
    here = [one.pod for one in state.allocations.values() if one.node == node.name and one.pod]
    apart = not ask.pod or not any(
        keeps_away(said, facts(other)) or keeps_away(facts(other), said) for other in here
    )
    return node.schedulable and selected and bool(related) and apart


def keeps_away(one: PodFacts, other: PodFacts) -> bool:
    """Tell whether a term of one pod selects the other."""
    for this in one.anti_affinity:
        namespaces = this.namespaces or (one.namespace,)
        if other.namespace in namespaces and all(holds(it, other.labels) for it in this.selector):
            return True
    return False


def holds(one: LabelRequirement, found: dict[str, str]) -> bool:
    """Tell whether a condition holds, straight from the API's reference."""
    value = found.get(one.key)
    there = value is not None
    try:
        number = int(value) if there else None
    except ValueError:
        number = None
    return {
        "In": lambda: there and value in one.values,
        "NotIn": lambda: not there or value not in one.values,
        "Exists": lambda: there,
        "DoesNotExist": lambda: not there,
        "Gt": lambda: number is not None and number > int(one.values[0]),
        "Lt": lambda: number is not None and number < int(one.values[0]),
    }[one.operator]()

"""Whether an ask may run on a node by the rules in force: `evsched.core.node_rules`, where they decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from evsched.core.node_rules import Objection, is_open, objection

if TYPE_CHECKING:
    from msgspec import UnsetType

    from evsched.core.state import State
    from evsched.core.workloads import Ask, Node


def pod_of(state: State, ask: Ask) -> bytes | UnsetType:
    """Return what decides where an ask may run; UNSET where it says nothing, or the rules do not ask."""
    return ask.pod if state.rules.node_rules else UNSET


def refusal(state: State, ask: Ask, node: Node) -> Objection | None:
    """Return why an ask may not run on a node, room aside; None when it may."""
    if state.rules.node_rules:
        return objection(ask.pod, node)
    return None if node.schedulable else Objection("unschedulable")


def may_run(state: State, ask: Ask, node: Node) -> bool:
    """Tell whether an ask may run on a node, room aside."""
    return refusal(state, ask, node) is None


def is_open_to_all(state: State, node: Node) -> bool:
    """Tell whether a node takes pods that say nothing, room aside."""
    return is_open(node) if state.rules.node_rules else node.schedulable

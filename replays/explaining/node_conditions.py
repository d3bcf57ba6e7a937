"""Which nodes the pod of an ask may not run on, and why, counted by reason.

The numbers are those of one look at each node (`evsched.core.node_access`), which only an
explanation pays for.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evsched.core.node_access import refusal
from evsched.core.pods import facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.state import State
    from evsched.core.workloads import Ask, Node

UNSCHEDULABLE = "unschedulable"


def split(
    state: State, ask: Ask, nodes: Iterable[Node]
) -> tuple[list[Node], list[dict[str, object]]]:
    """Return the nodes that an ask may run on once they take anybody, and why the others do not take it.

    A node that is unschedulable is among the first: that it takes nobody has nothing to do with the
    ask. Of anti-affinity all allocations count together.

    Returns:
        The nodes, and one entry for each reason, the most frequent first: ``rule``, ``detail`` and
        the number of ``nodes``.
    """
    open_to: list[Node] = []
    refused: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        found = refusal(state, ask, node)
        if found is None or found.code == UNSCHEDULABLE:
            open_to.append(node)
        else:
            refused[found.code, "" if found.code == "anti-affinity" else found.detail] += 1
    ordered = sorted(refused.items(), key=lambda one: (-one[1], one[0]))
    return open_to, [
        {"rule": rule, "detail": detail, "nodes": count} for (rule, detail), count in ordered
    ]


def unmodelled(task_pod: bytes | object) -> tuple[str, ...]:
    """Return what a pod asks for that no decision depends on, by name."""
    return facts(task_pod).unmodelled if isinstance(task_pod, bytes) else ()

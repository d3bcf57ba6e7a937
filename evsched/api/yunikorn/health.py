"""The health check of YuniKorn's interface: whether what is counted adds up, and whether anything is set aside.

YuniKorn looks at the same things in its own data. That the log is whole was checked on the way: a
state that did not fit it would not be here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.api.yunikorn import answers
from evsched.core.suspension import in_force

if TYPE_CHECKING:
    from evsched.core.state import State

FEW = 5
"""How many subjects a diagnosis names."""


def health(state: State) -> answers.HealthInfo:
    """Return what was looked at in a state, and whether all of it is well."""
    negative = sorted(
        [f"node {node.name}" for node in state.nodes.values() if min(node.used, default=0) < 0]
        + [
            f"queue {queue.path}"
            for queue in state.queues.values()
            if min((*queue.usage, *queue.pending), default=0) < 0
        ]
    )
    over = sorted(
        node.name
        for node in state.nodes.values()
        if any(node.free(index) < 0 for index in range(state.width))
    )
    suspended = [f"{one.kind} {one.subject}".strip() for one in in_force(state)]
    checks = [
        _check(
            "Decisions set aside",
            "A fault in evsched itself took something out of its decisions",
            suspended,
        ),
        _check("Negative resources", "Usage or pending amounts below zero", negative),
        _check("Consistency of data", "Root uses what all applications use", _unequal(state)),
        _check("Node over capacity", "More is allocated on a node than it has", over),
    ]
    return answers.HealthInfo(
        healthy=all(check.succeeded for check in checks), health_checks=checks
    )


def _unequal(state: State) -> list[str]:
    """Return the resources of which root uses another amount than all applications together."""
    sums = [0] * state.width
    for application in state.applications.values():
        for index, amount in enumerate(application.usage):
            sums[index] += amount
    return [
        name
        for index, name in enumerate(state.types.names)
        if state.configuration is not None and sums[index] != state.root.usage[index]
    ]


def _check(name: str, description: str, wrong: list[str]) -> answers.HealthCheckInfo:
    more = f" and {len(wrong) - FEW} more" if len(wrong) > FEW else ""
    said = f"{', '.join(wrong[:FEW])}{more}" if wrong else "none found"
    return answers.HealthCheckInfo(
        name=name, succeeded=not wrong, description=description, diagnosis_message=said
    )

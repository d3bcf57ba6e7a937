"""What an administrator chooses about acting, and the names by which the agent's marks are known in the cluster."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

HonourPdb = Literal["strict", "best-effort", "off"]

GATE = "evsched.io/admission"
"""The scheduling gate that is removed from a pod when the log has bound it; it makes any pod one that evsched decides."""

DECISION = "evsched.io/decision"
"""The annotation of a bound pod that has the ``seq`` of the decision."""

SCHEDULER = "evsched"
"""The ``schedulerName`` of pods that are bound by the agent, and the controller that its Events report."""

CONDITION = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"
"""The reason that Kubernetes has for a pod that a scheduler evicts."""

SAYS = "evsched decision "
"""How the message of each condition begins that the agent writes on a victim."""


class ActingPolicy(Struct, frozen=True, kw_only=True):
    """How decisions are carried out.

    Attributes:
        scheduler: The ``schedulerName`` of the pods that the log decides; others are only recorded.
        gate: The scheduling gate behind which a pod of any scheduler waits for the log.
        honour_pdb: ``strict``: victims go by the Eviction API alone. ``best-effort``: a budget is
            honoured until the log asks for the eviction again, then the pod is deleted. ``off``:
            victims are deleted.
    """

    scheduler: str = SCHEDULER
    gate: str = GATE
    honour_pdb: HonourPdb = "strict"

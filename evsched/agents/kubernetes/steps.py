"""The single steps by which the log comes to say what the cluster is: how a task ends, how one that runs is found."""

from __future__ import annotations

from events.configuration import PlacementRuleSpec, QueueSpec, YunikornSpec
from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    AnyInput,
    AskSubmitted,
    AskWithdrawn,
)
from evsched.agents.kubernetes.logged import TaskFacts, amounts_of, wish_of
from evsched.agents.kubernetes.pods import SeenPod

DEFAULT_CONFIGURATION = YunikornSpec(
    root=QueueSpec(name="root", parent=True),
    placement_rules=(
        PlacementRuleSpec(name="provided", create=True),
        PlacementRuleSpec(name="tag", create=True, value="namespace"),
    ),
)
"""What a log begins with where the cluster has no queues: one for each namespace, none of them limited."""


def differs(known: TaskFacts, seen: SeenPod) -> bool:
    """Tell whether a pod is another than the log says.

    While it waits, in all that it asks for. Once it is bound only its amounts count: programs write
    labels on their own pods as they run, and where those run is decided.
    """
    if seen.stage == "bound" or known.runs:
        return known.amounts != amounts_of(seen.ask)
    return known.wish != wish_of(seen.ask)


def end_of(task: str, known: TaskFacts, reason: str) -> AnyInput:
    """Return the end of a task: a release when it runs, a withdrawal when it waits."""
    if known.runs:
        return AllocationReleased(allocation=task, reason=reason)
    return AskWithdrawn(ask=task)


def restored(seen: SeenPod) -> AllocationRestored:
    """Return the allocation of a pod that runs and was never seen waiting."""
    ask: AskSubmitted = seen.ask
    return AllocationRestored(
        allocation=ask.ask,
        application=ask.application,
        queue=ask.queue,
        user=ask.user,
        groups=ask.groups,
        node=seen.node,
        resources=ask.resources,
        priority=ask.priority,
        allow_preemption=ask.allow_preemption,
        required_node=ask.required_node,
        created=ask.created,
        admitted=seen.bound_at,
        uid=ask.uid,
        pod=ask.pod,
    )

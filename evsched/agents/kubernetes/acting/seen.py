"""A pod as the watch shows it, as far as acting goes by it; with its true name, which the log may not have."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from evsched.agents.kubernetes.acting.policy import (
    CONDITION,
    DECISION,
    SAYS,
    ActingPolicy,
)
from evsched.agents.kubernetes.objects import PodObject
from evsched.agents.kubernetes.tasks import SeenTask


class PodFound(Struct, frozen=True, gc=False, kw_only=True):
    """A pod that is there.

    Attributes:
        node: Where it is bound; empty: nowhere yet.
        gates: Its scheduling gates.
        terminating: It is being deleted.
        mark: Message of its condition ``DisruptionTarget`` where that holds; empty: it does not.
        waits: Message of its condition ``PodScheduled`` where that is False; empty: it is not.
        nominated: Its ``nominatedNodeName``.
        decided: The log has bound or freed it, as its annotation says.
    """

    namespace: str
    name: str
    uid: str
    scheduler: str
    node: str = ""
    gates: tuple[str, ...] = ()
    terminating: bool = False
    mark: str = ""
    waits: str = ""
    nominated: str = ""
    decided: bool = False

    @property
    def marked(self) -> bool:
        """Tell whether the agent has written on it that it is a victim."""
        return self.mark.startswith(SAYS)


def found_pod(pod: PodObject) -> PodFound:
    """Return a pod as acting goes by it."""
    mark = waits = ""
    for one in pod.status.conditions or ():
        if one.type == CONDITION and one.status == "True":
            # A condition may have no message, and holds nevertheless.
            mark = one.message or one.reason or one.type
        elif one.type == "PodScheduled" and one.status == "False":
            waits = one.message or ""
    meta, spec = pod.metadata, pod.spec
    return PodFound(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        scheduler=spec.scheduler_name,
        node=spec.node_name,
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        terminating=meta.deletion_timestamp is not None,
        mark=mark,
        waits=waits,
        nominated=pod.status.nominated_node_name,
        decided=DECISION in (meta.annotations or {}),
    )


def decided_by(policy: ActingPolicy, seen: SeenTask, pod: PodObject) -> SeenTask:
    """Return a pod as it is recorded where decisions are carried out.

    A pod that is not bound asks the log for something only where the log decides it: where it names
    the scheduler, or waits behind its gate and no other. What is deleted before it was bound asks
    for nothing any more. A victim is leaving when it is being deleted, not when the agent says so.
    What another scheduler has bound is chosen as a victim last, since the agent would refuse it.
    """
    terminating = pod.metadata.deletion_timestamp is not None
    found = found_pod(pod)
    if seen.stage in {"gated", "waiting"}:
        ours = policy.gate in found.gates or found.scheduler == policy.scheduler
        if terminating:
            return replace(seen, stage="over", ended="deleted")
        waits = ours and not set(found.gates) - {policy.gate}
        return replace(seen, stage="waiting" if waits else "gated")
    if not is_ours(found, policy):
        return replace(seen, ask=replace(seen.ask, allow_preemption=False))
    if seen.leaving is not None and found.marked and not terminating:
        return replace(seen, leaving=None)
    return seen


def is_ours(pod: PodFound, policy: ActingPolicy) -> bool:
    """Tell whether a pod is one that the log decides, and not one that another scheduler answers for."""
    return pod.scheduler == policy.scheduler or pod.decided
